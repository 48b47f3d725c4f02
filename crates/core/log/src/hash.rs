//! From a partition key to a partition, by the hash that the publishers of Event Hubs use on the client: Jenkins' lookup3
//! over the UTF-8 bytes of the key, folded to 16 bits. A publisher that computes it itself and one that leaves it to the
//! service come to the same partition.

/// The partition of a key among `count`, which must not be zero.
pub fn partition_of_key(key: &str, count: u32) -> u32 {
    let hash = i64::from(key_hash(key.as_bytes()));
    // The remainder has the sign of the hash, and only then its absolute value is taken.
    (hash % i64::from(count.max(1))).unsigned_abs() as u32
}

/// The hash of a key: 16 bits with a sign.
pub fn key_hash(key: &[u8]) -> i16 {
    let (c, b) = lookup3(key);
    (c ^ b) as u16 as i16
}

/// Both words of lookup3 with both seeds zero.
fn lookup3(key: &[u8]) -> (u32, u32) {
    let start = 0xdead_beef_u32.wrapping_add(key.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = key;
    while rest.len() > 12 {
        let (block, more) = rest.split_at(12);
        a = a.wrapping_add(word(block, 0));
        b = b.wrapping_add(word(block, 4));
        c = c.wrapping_add(word(block, 8));
        (a, b, c) = mix(a, b, c);
        rest = more;
    }
    if rest.is_empty() {
        return (c, b);
    }
    // Bytes that are missing count as zero.
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    a = a.wrapping_add(word(&last, 0));
    b = b.wrapping_add(word(&last, 4));
    c = c.wrapping_add(word(&last, 8));
    finish(a, b, c)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    let step = |x: &mut u32, y: &mut u32, z: &mut u32, bits: u32| {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(bits);
        *z = z.wrapping_add(*y);
    };
    step(&mut a, &mut b, &mut c, 4);
    step(&mut b, &mut c, &mut a, 6);
    step(&mut c, &mut a, &mut b, 8);
    step(&mut a, &mut b, &mut c, 16);
    step(&mut b, &mut c, &mut a, 19);
    step(&mut c, &mut a, &mut b, 4);
    (a, b, c)
}

fn finish(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32) {
    let step = |x: &mut u32, y: u32, bits: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(bits));
    step(&mut c, b, 14);
    step(&mut a, c, 11);
    step(&mut b, a, 25);
    step(&mut c, b, 16);
    step(&mut a, c, 4);
    step(&mut b, a, 14);
    step(&mut c, b, 24);
    (c, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hash_as_the_clients_of_the_service_do() {
        assert_eq!(key_hash(b"k"), -32125);
        assert_eq!(key_hash(b"test"), -12036);
        assert_eq!(key_hash(b"partition-key"), -15301);
        for (key, count, partition) in [
            ("k", 2, 1),
            ("k", 4, 1),
            ("k", 32, 29),
            ("test", 2, 0),
            ("test", 4, 0),
            ("test", 32, 4),
            ("partition-key", 32, 5),
        ] {
            assert_eq!(partition_of_key(key, count), partition, "{key} of {count}");
        }
    }

    #[test]
    fn every_key_has_one_of_the_partitions() {
        for length in 0..64 {
            let key = "é".repeat(length);
            for count in [1, 2, 3, 7, 32, 1024] {
                assert!(partition_of_key(&key, count) < count);
            }
        }
    }
}
