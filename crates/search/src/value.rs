//! Dates, durations and points as they stand in documents, filters and parameters.

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// A place on the earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub longitude: f64,
    pub latitude: f64,
}

/// The mean radius of the earth in kilometers.
const EARTH_RADIUS_KM: f64 = 6_371.008_8;

impl Point {
    /// A point whose coordinates are in range.
    pub(crate) fn new(longitude: f64, latitude: f64) -> Option<Point> {
        let good = (-180.0..=180.0).contains(&longitude) && (-90.0..=90.0).contains(&latitude);
        good.then_some(Point { longitude, latitude })
    }

    /// A point as documents hold it: GeoJSON.
    pub(crate) fn from_json(value: &serde_json::Value) -> Option<Point> {
        if value.get("type")?.as_str()? != "Point" {
            return None;
        }
        let coordinates = value.get("coordinates")?.as_array()?;
        match coordinates.as_slice() {
            [longitude, latitude] => Point::new(longitude.as_f64()?, latitude.as_f64()?),
            _ => None,
        }
    }

    /// The distance along the surface in kilometers.
    pub(crate) fn distance_km(self, other: Point) -> f64 {
        let (lat1, lat2) = (self.latitude.to_radians(), other.latitude.to_radians());
        let latitudes = ((lat2 - lat1) / 2.0).sin();
        let longitudes = ((other.longitude - self.longitude).to_radians() / 2.0).sin();
        let a = latitudes * latitudes + lat1.cos() * lat2.cos() * longitudes * longitudes;
        2.0 * EARTH_RADIUS_KM * a.sqrt().min(1.0).asin()
    }

    /// Whether the point lies in a closed polygon; its edges are straight in degrees.
    pub(crate) fn within(self, polygon: &[Point]) -> bool {
        let mut inside = false;
        for pair in polygon.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            if (a.latitude > self.latitude) != (b.latitude > self.latitude) {
                let share = (self.latitude - a.latitude) / (b.latitude - a.latitude);
                if self.longitude < a.longitude + share * (b.longitude - a.longitude) {
                    inside = !inside;
                }
            }
        }
        inside
    }
}

/// Days since 1970-01-01 of a date of the Gregorian calendar.
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
pub(crate) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Reads digits from the front of a text.
fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let head = text.get(..count)?;
    if !head.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    Some((head.parse().ok()?, &text[count..]))
}

/// Milliseconds since 1970 of a date with time and offset, as OData V4 writes it. Finer parts of a second are cut off.
pub(crate) fn parse_date_ms(text: &str) -> Option<i64> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_of_month(year, month) || year < 1 {
        return None;
    }
    let days = days_from_civil(year, month, day) * DAY_MS;
    let rest = rest.strip_prefix(['T', 't'])?;
    let (hour, rest) = digits(rest, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => digits(rest, 2)?,
        None => (0, rest),
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (millis, rest) = fraction_ms(rest)?;
    let time = ((hour * 60 + minute) * 60 + second) * 1_000 + millis;
    Some(days + time - offset_ms(rest)?)
}

fn fraction_ms(rest: &str) -> Option<(i64, &str)> {
    let Some(rest) = rest.strip_prefix('.') else { return Some((0, rest)) };
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 || count > 12 {
        return None;
    }
    let padded = format!("{}00", &rest[..count]);
    Some((padded[..3].parse().ok()?, &rest[count..]))
}

fn offset_ms(rest: &str) -> Option<i64> {
    if rest.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match rest.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = digits(&rest[1..], 2)?;
    let (minutes, rest) = digits(rest.strip_prefix(':')?, 2)?;
    (rest.is_empty() && hours <= 14 && minutes < 60)
        .then_some(sign * (hours * 60 + minutes) * 60_000)
}

/// A date as the service writes it: in UTC, milliseconds only where there are some.
pub(crate) fn format_date_ms(ms: i64) -> String {
    let (year, month, day) = civil_from_days(ms.div_euclid(DAY_MS));
    let rest = ms.rem_euclid(DAY_MS);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, millis) = (rest / 1_000 % 60, rest % 1_000);
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Milliseconds of a duration of days and times (`P1DT2H3M4.5S`, also negative).
pub(crate) fn parse_duration_ms(text: &str) -> Option<i64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let rest = rest.strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let mut total = sum_parts(date, &[('D', 86_400_000.0)])?;
    total += sum_parts(time, &[('H', 3_600_000.0), ('M', 60_000.0), ('S', 1_000.0)])?;
    let total = total * f64::from(sign);
    (total.abs() < 9e15).then_some(total as i64)
}

fn sum_parts(mut text: &str, units: &[(char, f64)]) -> Option<f64> {
    let mut total = 0.0;
    let mut units = units.iter();
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = text[..end].parse().ok()?;
        let letter = text[end..].chars().next()?;
        let (_, factor) = units.find(|(unit, _)| *unit == letter)?;
        total += number * factor;
        text = &text[end + 1..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_with_offsets_and_written_in_utc() {
        let read = |text| parse_date_ms(text).map(format_date_ms);
        assert_eq!(read("2024-02-29T23:30:00+01:00").as_deref(), Some("2024-02-29T22:30:00Z"));
        assert_eq!(
            read("2015-04-15T10:30:09.7552052Z").as_deref(),
            Some("2015-04-15T10:30:09.755Z")
        );
        assert_eq!(read("1969-12-31T23:59:59.5Z").as_deref(), Some("1969-12-31T23:59:59.500Z"));
        for wrong in ["2023-02-29T00:00:00Z", "2023-01-01", "x", "2023-01-01T24:00:00Z"] {
            assert_eq!(parse_date_ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations_are_days_and_times() {
        assert_eq!(parse_duration_ms("P1DT1H1M1.5S"), Some(90_061_500));
        assert_eq!(parse_duration_ms("-PT5M"), Some(-300_000));
        for wrong in ["P", "PT", "1D", "P1H", "PT1S1M"] {
            assert_eq!(parse_duration_ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn distances_and_polygons_are_those_of_the_earth() {
        let seattle = Point { longitude: -122.33, latitude: 47.61 };
        let portland = Point { longitude: -122.68, latitude: 45.52 };
        assert!((seattle.distance_km(portland) - 234.0).abs() < 2.0);
        let corners =
            [(-123.0, 45.0), (-122.0, 45.0), (-122.0, 46.0), (-123.0, 46.0), (-123.0, 45.0)];
        let square: Vec<Point> =
            corners.iter().filter_map(|(lon, lat)| Point::new(*lon, *lat)).collect();
        assert!(portland.within(&square));
        assert!(!seattle.within(&square));
    }
}
