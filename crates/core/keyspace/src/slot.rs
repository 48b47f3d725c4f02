//! Hash slots: which of the 16,384 a key belongs to. Keys with the same text in braces share one.

/// How many slots there are.
pub const SLOTS: u16 = 16_384;

/// The slot of a key: the checksum of the text between its first `{` and the next `}`, or of the whole key if there is none
/// or it is empty.
#[inline]
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(hashed_part(key)) & (SLOTS - 1)
}

#[inline]
fn hashed_part(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|it| *it == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|it| *it == b'}') {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

/// CRC-16/XMODEM.
#[inline]
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"foo"), 12182);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"{user1000}.followers"));
        assert_eq!(slot_of(b"foo{}{bar}"), crc16(b"foo{}{bar}") & 16383);
        assert_eq!(slot_of(b"foo{{bar}}zap"), crc16(b"{bar") & 16383);
        assert_eq!(slot_of(b"foo{bar}{zap}"), crc16(b"bar") & 16383);
        assert_eq!(slot_of(b""), 0);
    }
}
