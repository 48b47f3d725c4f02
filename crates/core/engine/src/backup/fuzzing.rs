//! What a fuzzer calls for backups: any bytes in, a panic if something that must hold does not. The target in `fuzz/` is
//! this function; the tests of the parser run the same one on seeds and on changes of them.

use bytes::{Buf, Bytes};
use lazuli_store::crc64::Crc64;
use lazuli_store::{Error, Kind};

use super::format::{BackupTotals, FrameKind, foot_body, frame, preamble};
use super::parser::{BackupParser, BackupPart};

/// The bytes as a backup, and the same bytes as frames whose sums are right, so that what lies behind the sums is reached
/// too. However a backup is cut into pieces, it reads the same, or is refused with the same words.
pub fn backup(data: &[u8]) {
    check(data);
    check(&sealed(data));
}

fn check(data: &[u8]) {
    let whole = read(data, data.len().max(1));
    for size in [1, 7, 1_000] {
        assert_eq!(read(data, size), whole, "in pieces of {size}");
    }
    match whole {
        Ok((parts, totals)) => {
            assert_eq!(parts.last(), Some(&BackupPart::End(totals)));
            assert!(matches!(parts.first(), Some(BackupPart::Head(_))));
            let rows = parts.iter().map(|part| match part {
                BackupPart::Rows(rows) => rows.len() as u64,
                _ => 0,
            });
            assert_eq!(rows.sum::<u64>(), totals.rows);
            assert!(read(&data[..data.len() - 1], data.len()).is_err(), "a byte is missing");
        }
        Err((kind, message)) => assert_eq!(kind, Kind::Invalid, "{message}"),
    }
}

/// All parts of a backup that comes in pieces of this size, or why it is refused.
fn read(data: &[u8], size: usize) -> Result<(Vec<BackupPart>, BackupTotals), (Kind, String)> {
    parts(data, size).map_err(|error| (error.kind(), error.to_string()))
}

fn parts(data: &[u8], size: usize) -> Result<(Vec<BackupPart>, BackupTotals), Error> {
    let mut parser = BackupParser::new();
    let mut parts = Vec::new();
    for piece in data.chunks(size) {
        parser.push(piece);
        while let Some(part) = parser.next_part()? {
            parts.push(part);
        }
    }
    Ok((parts, parser.finish()?))
}

/// Frames of `kind (1) | length (2) | body`, with their sums and an end that fits.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut data = Bytes::copy_from_slice(data);
    let mut out = preamble().to_vec();
    let mut totals = BackupTotals::default();
    while data.len() >= 3 {
        let (kind, length) = (data.get_u8(), usize::from(data.get_u16()));
        let body = data.split_to(length.min(data.len()));
        let kind = match kind % 5 {
            1 => FrameKind::Head,
            2 => FrameKind::Rows,
            3 => FrameKind::File,
            4 => FrameKind::Piece,
            _ => FrameKind::Foot,
        };
        match kind {
            FrameKind::File => totals.files += 1,
            FrameKind::Piece => totals.file_bytes += body.len() as u64,
            FrameKind::Rows => {
                for row in super::format::read_rows(body.clone()).unwrap_or_default() {
                    totals.rows += 1;
                    totals.row_bytes += (row.key.len() + row.value.len()) as u64;
                }
            }
            FrameKind::Head | FrameKind::Foot => {}
        }
        out.extend_from_slice(&frame(kind, &body));
    }
    let mut sum = Crc64::new();
    sum.update(&out);
    out.extend_from_slice(&frame(FrameKind::Foot, &foot_body(&totals, sum.sum())));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[u8] = include_bytes!("../../../../../fuzz/seeds/backup/whole");
    const FRAMES: &[u8] = include_bytes!("../../../../../fuzz/seeds/backup/frames");

    #[test]
    fn the_seeds_are_backups_and_every_change_of_them_is_read_or_refused() {
        let (parts, totals) = read(WHOLE, 100).expect("the seed is a backup");
        assert_eq!((parts.len(), totals.rows, totals.files), (8, 5, 1));
        assert_eq!(read(&sealed(FRAMES), 100).expect("so is this one"), (parts, totals));
        for seed in [WHOLE, FRAMES] {
            backup(seed);
            for at in 0..seed.len() {
                backup(&seed[..at]);
                for bits in [1, 0x80, 0xff] {
                    let mut changed = seed.to_vec();
                    changed[at] ^= bits;
                    backup(&changed);
                }
            }
        }
    }
}
