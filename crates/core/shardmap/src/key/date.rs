//! Instants as text: `2024-02-29T12:30:00.1234567Z`, in ticks of 100 ns since 0001-01-01.

use lazuli_env::calendar::{civil_from_days, days_from_civil};

use super::DATE_TIME_TICKS_MAX;

const TICKS_PER_SECOND: i64 = 10_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Days from 0001-01-01 to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_162;

/// The text of an instant, which lies in the years 1 to 9999.
pub(super) fn print(ticks: i64) -> String {
    let (seconds, fraction) = (ticks / TICKS_PER_SECOND, ticks % TICKS_PER_SECOND);
    let (year, month, day) = date(seconds / SECONDS_PER_DAY);
    let second = seconds % SECONDS_PER_DAY;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if fraction > 0 {
        let digits = format!("{fraction:07}");
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// Reads RFC 3339: a date, or a date and time with up to seven digits of fraction and `Z` or an
/// offset, which is taken off. None if it is anything else, or outside the years 1 to 9999.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't']).unwrap_or((text, "00:00:00Z"));
    let [year, month, day] = fields(date, b'-', [4, 2, 2])?;
    let days = days(year, month, day)?;
    let at = time.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = time.split_at(at);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = fields(time, b':', [2, 2, 2])?;
    let seconds = clock(hour, minute, second)? - offset(zone)?;
    let ticks = (days * SECONDS_PER_DAY + seconds) * TICKS_PER_SECOND + fraction_ticks(fraction)?;
    (0..=DATE_TIME_TICKS_MAX).contains(&ticks).then_some(ticks)
}

/// Numbers of exactly these widths with a separator between them.
fn fields<const N: usize>(text: &str, separator: u8, widths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(char::from(separator));
    let mut numbers = [0; N];
    for (number, width) in numbers.iter_mut().zip(widths) {
        *number = digits(parts.next().filter(|part| part.len() == width)?)?;
    }
    parts.next().is_none().then_some(numbers)
}

fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn fraction_ticks(text: &str) -> Option<i64> {
    let width = u32::try_from(text.len()).ok().filter(|width| (1..=7).contains(width))?;
    Some(digits(text)? * 10_i64.pow(7 - width))
}

fn clock(hour: i64, minute: i64, second: i64) -> Option<i64> {
    (hour < 24 && minute < 60 && second < 60).then_some(hour * 3600 + minute * 60 + second)
}

fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let [hour, minute] = fields(&zone[1..], b':', [2, 2])?;
    Some(sign * clock(hour, minute, 0)?)
}

/// Days since 0001-01-01; none if there is no such date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    (1..=9999)
        .contains(&year)
        .then(|| days_from_civil(year, month, day))?
        .map(|it| it + DAYS_TO_EPOCH)
}

/// The year, month and day that is so many days after 0001-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    civil_from_days(days - DAYS_TO_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_all_years_follows_the_day_before() {
        let last = DATE_TIME_TICKS_MAX / TICKS_PER_SECOND / SECONDS_PER_DAY;
        let mut before = (0, 12, 31);
        for day in 0..=last {
            let (year, month, day_of_month) = date(day);
            assert_eq!(days(year, month, day_of_month), Some(day));
            assert!((year, month, day_of_month) > before);
            before = (year, month, day_of_month);
        }
        assert_eq!(before, (9999, 12, 31));
    }

    #[test]
    fn instants_print_and_parse() {
        for (text, ticks) in [
            ("0001-01-01T00:00:00Z", 0),
            ("1601-01-01T00:00:00Z", 504_911_232_000_000_000),
            ("1970-01-01T00:00:00Z", 621_355_968_000_000_000),
            ("2024-02-29T12:30:00.1234567Z", 638_448_066_001_234_567),
            ("9999-12-31T23:59:59.9999999Z", DATE_TIME_TICKS_MAX),
        ] {
            assert_eq!(parse(text), Some(ticks), "{text}");
            assert_eq!(print(ticks), text);
        }
    }

    #[test]
    fn an_offset_names_the_same_instant() {
        let utc = parse("2024-03-01T00:30:00Z");
        assert_eq!(parse("2024-03-01T02:30:00+02:00"), utc);
        assert_eq!(parse("2024-02-29T19:30:00-05:00"), utc);
        assert_eq!(parse("2024-03-01"), parse("2024-03-01T00:00:00Z"));
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in [
            "",
            "T",
            "2023-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-1-1",
            "0000-01-01",
            "10000-01-01",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.Z",
            "+024-01-01",
            "2024-01-01T00:00:00.12345678Z",
            "2024-01-01T00:00:00+0100",
            "2024-01-01T00:00:00Zx",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "2024-01-01T00:00:00é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
