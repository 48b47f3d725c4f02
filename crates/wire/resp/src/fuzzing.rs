//! What must hold of any bytes, for the fuzz targets and for the tests that run them on seeds.

use crate::request::Parser;
use crate::{Reply, read_answer};

/// Parses requests whole and in two pieces: both must find the same commands.
pub fn request(bytes: &[u8]) {
    let whole = commands(bytes, bytes.len());
    let cut = bytes.first().map_or(0, |it| usize::from(*it) % (bytes.len() + 1));
    assert_eq!(whole, commands(bytes, cut), "a request in two pieces is the same");
}

/// All commands, the buffer being known up to `cut` at first.
fn commands(bytes: &[u8], cut: usize) -> Vec<Result<Vec<Vec<u8>>, String>> {
    let mut parser = Parser::default();
    let (mut start, mut found, mut known) = (0, Vec::new(), cut);
    loop {
        match parser.parse(&bytes[start..known], false) {
            Err(error) => {
                found.push(Err(error.text()));
                return found;
            }
            Ok(Some(end)) => {
                assert!(end > 0 && start + end <= known, "a command lies in the buffer");
                let args = parser.args(&bytes[start..known]);
                found.push(Ok(args.iter().map(<[u8]>::to_vec).collect()));
                start += end;
            }
            Ok(None) if known < bytes.len() => known = bytes.len(),
            Ok(None) => return found,
        }
    }
}

/// Reads a reply: it ends inside of the bytes.
pub fn answer(bytes: &[u8]) {
    if let Ok(Some((_, length))) = read_answer(bytes) {
        assert!(length <= bytes.len(), "a reply lies in the buffer");
    }
    let mut reply = Reply::new(true);
    reply.bulk(bytes);
    assert!(matches!(read_answer(&reply.bytes), Ok(Some(_))), "what is written is read");
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTS: [&[u8]; 3] = [
        include_bytes!("../../../../fuzz/seeds/resp_request/pipeline"),
        include_bytes!("../../../../fuzz/seeds/resp_request/inline"),
        include_bytes!("../../../../fuzz/seeds/resp_request/negative"),
    ];
    const ANSWERS: [&[u8]; 3] = [
        include_bytes!("../../../../fuzz/seeds/resp_answer/map"),
        include_bytes!("../../../../fuzz/seeds/resp_answer/verbatim"),
        include_bytes!("../../../../fuzz/seeds/resp_answer/push"),
    ];

    fn with_changes(seeds: &[&[u8]], check: fn(&[u8])) {
        for seed in seeds {
            check(seed);
            for at in 0..seed.len() {
                check(&seed[..at]);
                for change in [1, 0x10, 0x80, 0xff] {
                    let mut bytes = seed.to_vec();
                    bytes[at] ^= change;
                    check(&bytes);
                }
            }
        }
    }

    #[test]
    fn requests_and_changes_of_them_are_read_or_refused() {
        with_changes(&REQUESTS, request);
    }

    #[test]
    fn replies_and_changes_of_them_are_read_or_refused() {
        with_changes(&ANSWERS, answer);
    }
}
