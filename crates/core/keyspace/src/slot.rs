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
    // Hardly any key has one, and this way to ask is the fastest.
    if !key.contains(&b'{') {
        return key;
    }
    let Some(open) = key.iter().position(|it| *it == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|it| *it == b'}') {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

/// CRC-16/XMODEM. Eight bytes at a time: byte by byte each look-up waits for the one before it, and every command needs the
/// slots of its keys.
#[inline]
pub fn crc16(bytes: &[u8]) -> u16 {
    let mut chunks = bytes.chunks_exact(8);
    let mut crc = 0u16;
    for chunk in &mut chunks {
        let [high, low] = crc.to_be_bytes();
        crc = TABLES[7][usize::from(chunk[0] ^ high)]
            ^ TABLES[6][usize::from(chunk[1] ^ low)]
            ^ TABLES[5][usize::from(chunk[2])]
            ^ TABLES[4][usize::from(chunk[3])]
            ^ TABLES[3][usize::from(chunk[4])]
            ^ TABLES[2][usize::from(chunk[5])]
            ^ TABLES[1][usize::from(chunk[6])]
            ^ TABLES[0][usize::from(chunk[7])];
    }
    let step = |crc: u16, byte: &u8| (crc << 8) ^ TABLES[0][usize::from((crc >> 8) as u8 ^ byte)];
    chunks.remainder().iter().fold(crc, step)
}

/// What a byte does to the checksum with so many bytes behind it.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        tables[0][index] = crc;
        index += 1;
    }
    let mut behind = 1;
    while behind < 8 {
        let mut index = 0;
        while index < 256 {
            let before = tables[behind - 1][index];
            tables[behind][index] = (before << 8) ^ tables[0][(before >> 8) as usize];
            index += 1;
        }
        behind += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes_at_a_time_are_as_one_by_one() {
        let bytes: Vec<u8> = (0..100u8).map(|it| it.wrapping_mul(37) ^ 0x5a).collect();
        let step = |crc: u16, byte: &u8| {
            (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| match crc & 0x8000 {
                0 => crc << 1,
                _ => (crc << 1) ^ 0x1021,
            })
        };
        for length in 0..bytes.len() {
            assert_eq!(crc16(&bytes[..length]), bytes[..length].iter().fold(0, step), "{length}");
        }
    }

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
