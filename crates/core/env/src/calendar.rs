//! The proleptic Gregorian calendar: days since the Unix epoch, and dates.
//!
//! Days are counted in eras of 400 years that begin on the first of March, so that the leap day is the last of its year.

const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01, where the first era begins, to 1970-01-01.
const DAYS_TO_EPOCH: i64 = 719_468;

/// Days since the Unix epoch of a date, if there is such a date.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let march_year = if month > 2 { year } else { year - 1 };
    let (era, year_of_era) = (march_year.div_euclid(400), march_year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * DAYS_PER_ERA + day_of_era - DAYS_TO_EPOCH;
    // The 31st of a shorter month comes out as a day of the next one.
    (day <= 28 || civil_from_days(days) == (year, month, day)).then_some(days)
}

/// Year, month and day.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_EPOCH;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}
