//! CRC-64/NVME, the sum of block files. It is also the one that the wire of blobs uses, so that a sum which a client
//! sends is the sum that is kept.

/// A sum in the making.
#[derive(Clone, Default)]
pub struct Crc64(crc64fast_nvme::Digest);

impl Crc64 {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub fn sum(&self) -> u64 {
        self.0.sum64()
    }
}

/// The sum of bytes that are all there.
pub fn crc64(bytes: &[u8]) -> u64 {
    let mut sum = Crc64::new();
    sum.update(bytes);
    sum.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_the_check_text_is_the_published_one() {
        assert_eq!(crc64(b"123456789"), 0xae8b_1486_0a79_9888);
        assert_eq!(crc64(b""), 0);
    }

    #[test]
    fn a_sum_does_not_depend_on_where_the_pieces_end() {
        let bytes: Vec<u8> = (0..10_000u32).map(|n| (n * 31 % 251) as u8).collect();
        for size in [1, 7, 64, 999] {
            let mut sum = Crc64::new();
            bytes.chunks(size).for_each(|piece| sum.update(piece));
            assert_eq!(sum.sum(), crc64(&bytes));
        }
    }
}
