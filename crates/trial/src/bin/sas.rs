//! Prints a signature for the whole development account, good for a day: for programs that take one and cannot be told
//! where an emulator listens. Run by `cargo xtask program rclone`.

use std::time::{SystemTime, UNIX_EPOCH};

use lazuli_http::date::{Fraction, TICKS_PER_SECOND, format_iso8601};
use lazuli_trial::client::{ACCOUNT, signature};

const DAY_SECONDS: u64 = 24 * 3600;

fn main() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let ticks = i64::try_from(now + DAY_SECONDS).unwrap_or_default() * TICKS_PER_SECOND;
    let end = format_iso8601(ticks, Fraction::Shortest);
    let (may, services, kinds, version) = ("rwdlacup", "b", "sco", "2019-12-12");
    let text = format!("{ACCOUNT}\n{may}\n{services}\n{kinds}\n\n{end}\n\n\n{version}\n");
    let signature = signature(&text).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    let end = end.replace(':', "%3A");
    println!("sv={version}&ss={services}&srt={kinds}&sp={may}&se={end}&sig={signature}");
}
