//! MurmurHash3, in its forms for 32 and for 128 bits on machines of 64, with seed 0. Clients place keys by it.

/// The form for 32 bits.
pub(crate) fn murmur3_32(bytes: &[u8]) -> u32 {
    let mix =
        |block: u32| block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let mut hash = 0_u32;
    let (blocks, rest) = bytes.as_chunks::<4>();
    for block in blocks {
        hash ^= mix(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    if !rest.is_empty() {
        hash ^= mix(rest.iter().rev().fold(0, |block, byte| block << 8 | u32::from(*byte)));
    }
    hash ^= bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The form for 128 bits. The first half of what the recipe writes is the lower half of this number.
pub(crate) fn murmur3_128(bytes: &[u8]) -> u128 {
    let mix1 = |block: u64| block.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix2 = |block: u64| block.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (mut low, mut high) = (0_u64, 0_u64);
    let (blocks, rest) = bytes.as_chunks::<16>();
    for block in blocks {
        let block = u128::from_le_bytes(*block);
        low ^= mix1(block as u64);
        low = low.rotate_left(27).wrapping_add(high).wrapping_mul(5).wrapping_add(0x52dc_e729);
        high ^= mix2((block >> 64) as u64);
        high = high.rotate_left(31).wrapping_add(low).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let tail = rest.iter().rev().fold(0_u128, |tail, byte| tail << 8 | u128::from(*byte));
    high ^= mix2((tail >> 64) as u64);
    low ^= mix1(tail as u64);
    let length = bytes.len() as u64;
    low ^= length;
    high ^= length;
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    low = last_mix(low);
    high = last_mix(high);
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    u128::from(high) << 64 | u128::from(low)
}

fn last_mix(mut half: u64) -> u64 {
    half = (half ^ (half >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    half = (half ^ (half >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    half ^ (half >> 33)
}
