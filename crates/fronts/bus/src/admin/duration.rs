//! Durations as ISO 8601 writes them: `P1DT2H3M4.5S`.

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;
/// The longest duration of the service, which stands for ever.
const FOR_EVER: &str = "P10675199DT2H48M5.4775807S";
/// From so many days on a duration is for ever.
const FOR_EVER_DAYS: u64 = 10_675_199;

/// Milliseconds; none if the text is no duration. Years and months are refused: their length is not fixed.
pub(super) fn parse(text: &str) -> Option<u64> {
    let rest = text.trim().strip_prefix('P')?;
    let (days, time) = rest.split_once('T').unwrap_or((rest, ""));
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let mut total = 0u64;
    let mut add = |text: &str, units: &[(char, u64)]| -> Option<()> {
        let mut rest = text;
        let mut units = units.iter();
        while !rest.is_empty() {
            let at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let unit = rest[at..].chars().next()?;
            let (_, unit_ms) = units.find(|(name, _)| *name == unit)?;
            let amount = milli_units(&rest[..at])?;
            total = total.saturating_add(amount.saturating_mul(*unit_ms) / 1_000);
            rest = &rest[at + 1..];
        }
        Some(())
    };
    add(days, &[('W', 7 * DAY_MS), ('D', DAY_MS)])?;
    add(time, &[('H', HOUR_MS), ('M', MINUTE_MS), ('S', SECOND_MS)])?;
    Some(total)
}

/// A number in thousandths.
fn milli_units(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    let is_number = text.chars().any(|c| c.is_ascii_digit()) && !fraction.contains('.');
    is_number.then_some(whole.saturating_mul(1_000).saturating_add(digits.parse().ok()?))
}

/// The same, where the longest duration means none.
pub(super) fn parse_limit(text: &str) -> Option<Option<u64>> {
    parse(text).map(|millis| Some(millis).filter(|millis| millis / DAY_MS < FOR_EVER_DAYS))
}

pub(super) fn print(millis: u64) -> String {
    let mut text = String::from("P");
    if millis >= DAY_MS {
        text += &format!("{}D", millis / DAY_MS);
    }
    let rest = millis % DAY_MS;
    if rest > 0 || millis == 0 {
        text.push('T');
    }
    if rest >= HOUR_MS {
        text += &format!("{}H", rest / HOUR_MS);
    }
    if rest % HOUR_MS >= MINUTE_MS {
        text += &format!("{}M", rest % HOUR_MS / MINUTE_MS);
    }
    let (seconds, millis_left) = (rest % MINUTE_MS / SECOND_MS, rest % SECOND_MS);
    match (seconds, millis_left) {
        (0, 0) if millis > 0 => {}
        (seconds, 0) => text += &format!("{seconds}S"),
        (seconds, millis) => text += &format!("{seconds}.{millis:03}S"),
    }
    text
}

pub(super) fn print_limit(millis: Option<u64>) -> String {
    millis.map_or_else(|| FOR_EVER.to_owned(), print)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_survives_its_text() {
        for (text, millis) in [
            ("PT1M", MINUTE_MS),
            ("PT30S", 30 * SECOND_MS),
            ("P1D", DAY_MS),
            ("P14DT2H3M4.500S", 14 * DAY_MS + 2 * HOUR_MS + 3 * MINUTE_MS + 4_500),
            ("PT0S", 0),
            ("PT0.001S", 1),
        ] {
            assert_eq!(parse(text), Some(millis));
            assert_eq!(print(millis), text);
        }
        assert_eq!(parse("PT300S"), Some(5 * MINUTE_MS));
        assert_eq!(parse("P1W"), Some(7 * DAY_MS));
        assert_eq!(parse_limit(FOR_EVER), Some(None));
        assert_eq!(parse_limit("P10675199DT10085.477580S"), Some(None));
        assert_eq!(print_limit(None), FOR_EVER);
        for bad in ["", "P", "PT", "1M", "P1Y", "PT1", "PT1.2.3S", "PTS", "PT1S1M", "P1H", "-P1D"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
