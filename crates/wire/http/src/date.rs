//! Dates as HTTP and OData write them, on one time line: ticks of 100 ns since the Unix epoch.
//!
//! The tick is the finest time that the services keep (it is that of .NET), so nothing is lost on the way.

use lazuli_env::calendar::{civil_from_days, days_from_civil};

pub const TICKS_PER_MILLI: i64 = 10_000;
pub const TICKS_PER_SECOND: i64 = 1_000 * TICKS_PER_MILLI;
const SECONDS_PER_DAY: i64 = 86_400;
/// The first moment of the year 0 and the last one of the year 9999.
const TICKS_MIN: i64 = -62_167_219_200 * TICKS_PER_SECOND;
const TICKS_MAX: i64 = 253_402_300_800 * TICKS_PER_SECOND - 1;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// How an ISO date ends: as many digits as needed, or always seven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fraction {
    Shortest,
    Seven,
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT` into seconds since the Unix epoch.
pub fn parse_rfc1123(text: &str) -> Option<i64> {
    let rest = text.trim().split_once(", ")?.1;
    let mut parts = rest.split(' ').filter(|part| !part.is_empty());
    let day = number(parts.next()?, 1, 2)?;
    let month = parts.next()?;
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? as i64 + 1;
    let year = number(parts.next()?, 4, 4)?;
    let seconds = time_of_day(parts.next()?)?;
    let zone = parts.next()?;
    if !zone.eq_ignore_ascii_case("GMT") || parts.next().is_some() {
        return None;
    }
    Some(days_from_civil(year, month, day)? * SECONDS_PER_DAY + seconds)
}

pub fn format_rfc1123(seconds: i64) -> String {
    let days = seconds.div_euclid(SECONDS_PER_DAY);
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = clock(seconds.rem_euclid(SECONDS_PER_DAY));
    let weekday = WEEKDAYS[days.rem_euclid(7) as usize];
    let month = MONTHS[(month - 1) as usize];
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Reads `2024-05-06T07:08:09.1234567Z` into ticks. The fraction may have any length (further digits are cut off), the
/// zone may be an offset, and the seconds or the whole time of day may be missing. A missing zone is UTC. A moment whose
/// year has no four digits is none, though its offset may hide it: it could not be written so that it is read again.
pub fn parse_iso8601(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?),
        None => (text, ""),
    };
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4, 4)?;
    let month = number(parts.next()?, 1, 2)?;
    let day = number(parts.next()?, 1, 2)?;
    if parts.next().is_some() {
        return None;
    }
    let days = days_from_civil(year, month, day)?;
    let (time, offset) = split_zone(time)?;
    let (time, fraction) = match time.split_once('.') {
        Some((time, digits)) => (time, fraction_ticks(digits)?),
        None => (time, 0),
    };
    let seconds = if time.is_empty() { 0 } else { time_of_day(time)? };
    let ticks = (days * SECONDS_PER_DAY + seconds - offset) * TICKS_PER_SECOND + fraction;
    (TICKS_MIN..=TICKS_MAX).contains(&ticks).then_some(ticks)
}

pub fn format_iso8601(ticks: i64, fraction: Fraction) -> String {
    let mut out = Vec::with_capacity(ISO8601_BYTES_MAX);
    write_iso8601(&mut out, ticks, fraction);
    // Digits and punctuation only.
    String::from_utf8(out).unwrap_or_default()
}

/// The longest date that is written: one with all seven digits.
pub const ISO8601_BYTES_MAX: usize = 28;

/// As [`format_iso8601`], behind what `out` holds.
pub fn write_iso8601(out: &mut Vec<u8>, ticks: i64, fraction: Fraction) {
    let text = iso8601_seven(ticks);
    if fraction == Fraction::Seven {
        out.extend_from_slice(&text);
        return;
    }
    let digits = text[20..27].iter().rposition(|digit| *digit != b'0');
    out.extend_from_slice(&text[..digits.map_or(19, |last| 21 + last)]);
    out.push(b'Z');
}

/// A date with all seven digits. Answers are full of them, so no digit takes a detour.
pub fn iso8601_seven(ticks: i64) -> [u8; ISO8601_BYTES_MAX] {
    let seconds = ticks.div_euclid(TICKS_PER_SECOND);
    let rest = ticks.rem_euclid(TICKS_PER_SECOND);
    let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
    let (hour, minute, second) = clock(seconds.rem_euclid(SECONDS_PER_DAY));
    let mut text = *b"0000-00-00T00:00:00.0000000Z";
    put_digits(&mut text[..4], year);
    put_digits(&mut text[5..7], month);
    put_digits(&mut text[8..10], day);
    put_digits(&mut text[11..13], hour);
    put_digits(&mut text[14..16], minute);
    put_digits(&mut text[17..19], second);
    put_digits(&mut text[20..27], rest);
    text
}

/// Writes a number that is not negative into as many digits as there is room for.
fn put_digits(out: &mut [u8], number: i64) {
    // Every number here is below 10,000,000, and a machine divides short numbers faster.
    let mut number = number as u32;
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Parts the time of day from its zone, and says how many seconds the zone is ahead of UTC.
fn split_zone(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let Some(at) = time.find(['+', '-']) else { return Some((time, 0)) };
    let sign = if time.get(at..=at)? == "-" { -1 } else { 1 };
    let zone = time.get(at + 1..)?;
    let (hours, minutes) = match zone.split_once(':') {
        Some(parts) => parts,
        None if zone.len() == 4 => zone.split_at_checked(2)?,
        None => (zone, "0"),
    };
    let (hours, minutes) = (number(hours, 1, 2)?, number(minutes, 1, 2)?);
    if hours > 14 || minutes > 59 {
        return None;
    }
    Some((time.get(..at)?, sign * (hours * 3600 + minutes * 60)))
}

fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let hour = number(parts.next()?, 1, 2)?;
    let minute = number(parts.next()?, 1, 2)?;
    let second = parts.next().map_or(Some(0), |text| number(text, 1, 2))?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(hour * 3600 + minute * 60 + second)
}

fn fraction_ticks(digits: &str) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut ticks = 0;
    for at in 0..7 {
        let digit = digits.as_bytes().get(at).map_or(0, |b| i64::from(b - b'0'));
        ticks = ticks * 10 + digit;
    }
    Some(ticks)
}

/// A number without sign, of so many digits.
fn number(text: &str, digits_min: usize, digits_max: usize) -> Option<i64> {
    let fits = (digits_min..=digits_max).contains(&text.len());
    if !fits || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn clock(second_of_day: i64) -> (i64, i64, i64) {
    (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_dates_read_and_write() {
        assert_eq!(parse_rfc1123("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(format_rfc1123(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(format_rfc1123(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        for bad in ["", "Sun", "Sun, 06 Nov 1994 08:49:37", "Sun, 31 Feb 2024 00:00:00 GMT"] {
            assert_eq!(parse_rfc1123(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        let mut last = parse_iso8601("1600-12-31").unwrap();
        for day in 0..146_097 {
            let ticks = last + SECONDS_PER_DAY * TICKS_PER_SECOND;
            let text = format_iso8601(ticks, Fraction::Shortest);
            assert_eq!(parse_iso8601(&text), Some(ticks), "day {day}: {text}");
            last = ticks;
        }
        assert_eq!(format_iso8601(last, Fraction::Shortest), "2000-12-31T00:00:00Z");
    }

    #[test]
    fn iso_dates_are_read_in_all_their_forms() {
        let at = |text| parse_iso8601(text).map(|ticks| format_iso8601(ticks, Fraction::Shortest));
        let is = |text, expected: &str| assert_eq!(at(text).as_deref(), Some(expected), "{text}");
        is("2024-05-06T07:08:09.1234567Z", "2024-05-06T07:08:09.1234567Z");
        is("2024-05-06T07:08:09.12345678999Z", "2024-05-06T07:08:09.1234567Z");
        is("2024-05-06T07:08:09.500", "2024-05-06T07:08:09.5Z");
        is("2024-05-06T07:08:09+02:00", "2024-05-06T05:08:09Z");
        is("2024-05-06T07:08-0130", "2024-05-06T08:38:00Z");
        is("2024-05-06", "2024-05-06T00:00:00Z");
        is("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z");
        for bad in ["", "2024", "2024-13-01", "2024-02-30", "2024-05-06T24:00:00Z", "2024-05-06T1"]
        {
            assert_eq!(at(bad), None, "{bad}");
        }
        for bad in ["2024-05-06T07:08:09.Z", "2024-05-06T07:08:09.x", "2024-05-06T07:08:09+25:00"] {
            assert_eq!(at(bad), None, "{bad}");
        }
        is("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z");
        is("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z");
        for beyond in ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"] {
            assert_eq!(at(beyond), None, "{beyond}");
        }
        let ticks = parse_iso8601("2024-05-06").unwrap();
        assert_eq!(format_iso8601(ticks, Fraction::Seven), "2024-05-06T00:00:00.0000000Z");
    }
}
