//! Moments in ticks of 100 nanoseconds, their text, and the parts of a date.

/// Ticks of 100 nanoseconds in a second.
pub(super) const TICKS_PER_SECOND: i64 = 10_000_000;
const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;

/// A moment from the year 1 to the year 9999, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Since the Unix epoch.
    ticks: i64,
}

/// A moment as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    /// Ticks in the second.
    pub(super) fraction: i64,
}

/// A part of a date, named as in the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

const PARTS: [(&[&str], Part); 9] = [
    (&["year", "yyyy", "yy"], Part::Year),
    (&["month", "mm", "m"], Part::Month),
    (&["day", "dd", "d"], Part::Day),
    (&["hour", "hh"], Part::Hour),
    (&["minute", "mi", "n"], Part::Minute),
    (&["second", "ss", "s"], Part::Second),
    (&["millisecond", "ms"], Part::Millisecond),
    (&["microsecond", "mcs"], Part::Microsecond),
    (&["nanosecond", "ns"], Part::Nanosecond),
];

impl Part {
    pub(super) fn read(name: &str) -> Option<Self> {
        let found =
            PARTS.iter().find(|(names, _)| names.iter().any(|it| it.eq_ignore_ascii_case(name)));
        found.map(|(_, part)| *part)
    }

    /// Nanoseconds of one, for the parts that are always of the same length.
    pub(super) fn nanos(self) -> Option<i64> {
        Some(match self {
            Self::Year | Self::Month => return None,
            Self::Day => 86_400_000_000_000,
            Self::Hour => 3_600_000_000_000,
            Self::Minute => 60_000_000_000,
            Self::Second => 1_000_000_000,
            Self::Millisecond => 1_000_000,
            Self::Microsecond => 1_000,
            Self::Nanosecond => 1,
        })
    }

    /// Months of one, for the other parts.
    pub(super) fn months(self) -> Option<i64> {
        match self {
            Self::Year => Some(12),
            Self::Month => Some(1),
            _ => None,
        }
    }
}

impl Moment {
    /// The moment at ticks since the Unix epoch, if it is in a year that has four digits.
    pub(super) fn from_ticks(ticks: i64) -> Option<Self> {
        const FIRST: i64 = -719_162 * TICKS_PER_DAY;
        const END: i64 = 2_932_897 * TICKS_PER_DAY;
        (FIRST..END).contains(&ticks).then_some(Self { ticks })
    }

    pub(super) fn from_millis(millis: i64) -> Option<Self> {
        Self::from_ticks(millis.checked_mul(10_000)?)
    }

    pub(super) fn from_fields(fields: Fields) -> Option<Self> {
        let Fields { year, month, day, hour, minute, second, fraction } = fields;
        let is_time = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..TICKS_PER_SECOND).contains(&fraction);
        let is_date = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_of_month(year, month)).contains(&day);
        if !is_time || !is_date {
            return None;
        }
        let seconds =
            days_from_date(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        Some(Self { ticks: seconds * TICKS_PER_SECOND + fraction })
    }

    /// Reads `2021-01-08T18:35:00.1234567Z`. The time, the seconds, the fraction and the `Z` may be missing, and a space
    /// may stand for the `T`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.strip_suffix('Z').unwrap_or(text);
        let (date, time) = match text.split_once(['T', ' ']) {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let mut parts = date.split('-');
        let year = digits(parts.next()?, 4)?;
        let month = digits(parts.next()?, 2)?;
        let day = digits(parts.next()?, 2)?;
        if parts.next().is_some() {
            return None;
        }
        let mut fields = Fields { year, month, day, hour: 0, minute: 0, second: 0, fraction: 0 };
        if let Some(time) = time {
            let (time, fraction) = match time.split_once('.') {
                Some((time, fraction)) => (time, Some(fraction)),
                None => (time, None),
            };
            let mut parts = time.split(':');
            fields.hour = digits(parts.next()?, 2)?;
            fields.minute = digits(parts.next()?, 2)?;
            match parts.next() {
                Some(second) => fields.second = digits(second, 2)?,
                None if fraction.is_some() => return None,
                None => {}
            }
            if parts.next().is_some() {
                return None;
            }
            if let Some(fraction) = fraction {
                fields.fraction = read_fraction(fraction)?;
            }
        }
        Self::from_fields(fields)
    }

    /// Since the Unix epoch.
    pub(super) fn ticks(self) -> i64 {
        self.ticks
    }

    pub(super) fn fields(self) -> Fields {
        let days = self.ticks.div_euclid(TICKS_PER_DAY);
        let in_day = self.ticks.rem_euclid(TICKS_PER_DAY);
        let (year, month, day) = date_from_days(days);
        let seconds = in_day / TICKS_PER_SECOND;
        Fields {
            year,
            month,
            day,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            fraction: in_day % TICKS_PER_SECOND,
        }
    }

    /// Months since the year 0.
    pub(super) fn months(self) -> i64 {
        let fields = self.fields();
        fields.year * 12 + fields.month - 1
    }

    pub(super) fn add(self, part: Part, count: i64) -> Option<Self> {
        if let Some(nanos) = part.nanos() {
            let ticks = i128::from(count) * i128::from(nanos) / 100;
            return Self::from_ticks(i64::try_from(i128::from(self.ticks) + ticks).ok()?);
        }
        let months = self.months().checked_add(count.checked_mul(part.months()?)?)?;
        let mut fields = self.fields();
        fields.year = months.div_euclid(12);
        fields.month = months.rem_euclid(12) + 1;
        if !(1..=9999).contains(&fields.year) {
            return None;
        }
        // The last day of a shorter month.
        fields.day = fields.day.min(days_of_month(fields.year, fields.month));
        Self::from_fields(fields)
    }

    /// `2021-01-08T18:35:00.1234567Z`
    pub(super) fn text(self) -> String {
        let Fields { year, month, day, hour, minute, second, fraction } = self.fields();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")
    }
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Ticks of a fraction of one to seven digits.
fn read_fraction(text: &str) -> Option<i64> {
    if !(1..=7).contains(&text.len()) {
        return None;
    }
    let value = digits(text, text.len())?;
    Some(value * 10_i64.pow(7 - text.len() as u32))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since the Unix epoch. Years are counted from March, so that a leap day is the last of its year.
fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_eight_thousand_years_comes_back_from_its_date() {
        let mut expected = (1, 1, 1);
        for days in -719_162..2_932_897 {
            let date = date_from_days(days);
            assert_eq!(date, expected);
            assert_eq!(days_from_date(date.0, date.1, date.2), days);
            expected.2 += 1;
            if expected.2 > days_of_month(expected.0, expected.1) {
                expected = if expected.1 == 12 {
                    (expected.0 + 1, 1, 1)
                } else {
                    (expected.0, expected.1 + 1, 1)
                };
            }
        }
        assert_eq!(expected, (10_000, 1, 1));
    }

    #[test]
    fn texts_are_read_with_and_without_their_ends() {
        for (text, expected) in [
            ("2021-01-08T18:35:00.1234567Z", Some("2021-01-08T18:35:00.1234567Z")),
            ("2021-01-08T18:35:00.12", Some("2021-01-08T18:35:00.1200000Z")),
            ("2021-01-08 18:35:07", Some("2021-01-08T18:35:07.0000000Z")),
            ("2021-01-08T18:35Z", Some("2021-01-08T18:35:00.0000000Z")),
            ("2021-01-08", Some("2021-01-08T00:00:00.0000000Z")),
            ("0001-01-01", Some("0001-01-01T00:00:00.0000000Z")),
            ("9999-12-31T23:59:59.9999999Z", Some("9999-12-31T23:59:59.9999999Z")),
            ("2020-02-29", Some("2020-02-29T00:00:00.0000000Z")),
            ("2021-02-29", None),
            ("0000-01-01", None),
            ("2021-1-08", None),
            ("2021-01-08T", None),
            ("2021-01-08T24:00:00", None),
            ("2021-01-08T18:60:00", None),
            ("2021-01-08T18:35:00.12345678", None),
            ("2021-01-08T18:35.5", None),
            ("2021-01-08T18:35:00+01:00", None),
            ("-021-01-08", None),
            ("", None),
        ] {
            let found = Moment::read(text).map(Moment::text);
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
