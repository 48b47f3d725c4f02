//! Figures as people read them.

use lazuli_http::date::{Fraction, TICKS_PER_SECOND, format_iso8601};

/// A count with its thousands apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes in the unit that leaves up to three digits before the point.
pub(crate) fn bytes(number: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if number < 1_000 {
        return format!("{number} B");
    }
    let mut value = number as f64 / 1_000.0;
    let mut unit = units[0];
    for larger in &units[1..] {
        if value < 999.95 {
            break;
        }
        value /= 1_000.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// How many of something in a second.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate <= 0.0 => "0/s".to_owned(),
        rate if rate < 10.0 => format!("{rate:.1}/s"),
        rate => format!("{}/s", count(rate.round() as u64)),
    }
}

/// A part of a whole in percent; nothing of nothing is nothing.
pub(crate) fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// A span of time in its two largest units.
pub(crate) fn seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A short span of time.
pub(crate) fn micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        1_000_000..60_000_000 => format!("{:.1} s", micros as f64 / 1e6),
        _ => seconds(micros / 1_000_000),
    }
}

/// A moment as date and time of day, UTC.
pub(crate) fn moment(ms: u64) -> String {
    let seconds = i64::try_from(ms / 1_000).unwrap_or(0);
    let text = format_iso8601(seconds.saturating_mul(TICKS_PER_SECOND), Fraction::Shortest);
    text.trim_end_matches('Z').replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_without_fractions() {
        assert_eq!(moment(951_827_696_789), "2000-02-29 12:34:56");
        assert_eq!(moment(0), "1970-01-01 00:00:00");
    }

    #[test]
    fn figures_read_well() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let sizes = [0, 999, 1_000, 999_949, 999_950, 12_345_678, u64::MAX].map(bytes);
        let expected = ["0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "12.3 MB", "18.4 EB"];
        assert_eq!(sizes, expected);
        assert_eq!([0.0, 0.25, 9.94, 1234.5].map(rate), ["0/s", "0.2/s", "9.9/s", "1,235/s"]);
        assert_eq!([share(1, 3), share(0, 0)], ["33.3 %", "0.0 %"]);
        assert_eq!([7, 1_500, 2_000_000].map(micros), ["7 µs", "1.5 ms", "2.0 s"]);
        assert_eq!(
            [59, 61, 3_660, 90_000].map(seconds),
            ["59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]
        );
    }
}
