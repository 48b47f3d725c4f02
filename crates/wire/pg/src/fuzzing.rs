//! What must hold for any bytes from a client or a shard. Fuzz targets and tests call these.

use bytes::Bytes;

use crate::client::ClientMessage;
use crate::frame::Frames;
use crate::scram::{Exchange, MECHANISM, Secret, read_initial};
use crate::server;
use crate::startup::StartupPacket;

/// Messages are cut and read without a panic, and none is longer than what came in.
pub fn messages(data: &[u8]) {
    let mut frames = Frames::default();
    frames.buffer().extend_from_slice(data);
    let mut left = data.len();
    while let Ok(Some(frame)) = frames.next(data.len()) {
        assert!(frame.whole.len() <= left, "a message is longer than what came in");
        left -= frame.whole.len();
        let _ = ClientMessage::read(&frame);
        let _ = server::read_row_description(frame.body());
        let _ = server::read_data_row(frame.body());
        let _ = server::read_parameter_description(frame.body());
        let _ = server::read_parameter_status(frame.body());
        let _ = server::ErrorFields::read(frame.body());
    }
}

/// What comes before the first message.
pub fn startup(data: &[u8]) {
    let _ = StartupPacket::read(Bytes::copy_from_slice(data));
}

/// A proof that was not made with the password is never taken.
pub fn scram(data: &[u8]) {
    let middle = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (first, last) = data.split_at(middle);
    let _ = read_initial(Bytes::copy_from_slice(data));
    let secret = Secret::of_nobody("fuzz", b"seed");
    if let Ok((exchange, _)) = Exchange::begin(MECHANISM, first, secret, "nonce", None) {
        let last = last.get(1..).unwrap_or_default();
        assert!(exchange.finish(last).is_err(), "a proof without a password was taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every seed, and every seed with one byte changed or cut at any place.
    fn try_all(seeds: &[&[u8]], check: fn(&[u8])) {
        for seed in seeds {
            check(seed);
            for at in 0..seed.len() {
                check(&seed[..at]);
                for byte in [0, 1, 0x7f, 0xff] {
                    let mut changed = seed.to_vec();
                    changed[at] = byte;
                    check(&changed);
                }
            }
        }
    }

    #[test]
    fn changed_seeds_break_nothing() {
        let seed = |text: &'static str| text.as_bytes();
        try_all(
            &[
                include_bytes!("../../../../fuzz/seeds/pg_messages/extended"),
                include_bytes!("../../../../fuzz/seeds/pg_messages/answers"),
            ],
            messages,
        );
        try_all(&[include_bytes!("../../../../fuzz/seeds/pg_startup/parameters")], startup);
        try_all(&[seed("n,,n=user,r=abc\nc=biws,r=abcnonce,p=AAAA")], scram);
    }
}
