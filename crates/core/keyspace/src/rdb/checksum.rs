//! The checksum of payloads: CRC-64 with the polynomial of Jones.

const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

const TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut number = 0;
    while number < 256 {
        let (mut crc, mut bit) = (number as u64, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[number] = crc;
        number += 1;
    }
    table
};

pub(super) fn crc64(bytes: &[u8]) -> u64 {
    continued(0, bytes)
}

/// The checksum of what came before and these bytes.
pub(super) fn continued(before: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(before, |crc, byte| TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(super::crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
