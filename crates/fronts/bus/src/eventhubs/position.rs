//! Where a reader begins: the text of its filter.

use lazuli_amqp::{Terminus, Value};

use crate::error::{Fault, Result};

const FILTER: &str = "apache.org:selector-filter:string";

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    First,
    End,
    /// At this offset.
    Offset(u64),
    /// At the first event that came at this time or later.
    Time(u64),
}

impl Position {
    /// The position that the source of a link names; without one it is the beginning.
    pub(super) fn of(source: Option<&Terminus>) -> Result<Self> {
        let filters = source.and_then(Terminus::filters);
        let filter = filters.and_then(|filters| filters.get(FILTER)).map(Value::undescribed);
        match filter {
            None | Some(Value::Null) => Ok(Self::First),
            Some(filter) => {
                let bad = || Fault::argument("The filter of the link cannot be read.");
                Self::parse(filter.as_text().ok_or_else(bad)?).ok_or_else(bad)
            }
        }
    }

    /// `amqp.annotation.NAME >[=] 'value'`.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().strip_prefix("amqp.annotation.")?;
        let at = text.find('>')?;
        let (name, rest) = (text[..at].trim(), &text[at + 1..]);
        let (is_inclusive, rest) = match rest.strip_prefix('=') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let value = rest.trim().trim_matches('\'');
        let behind = |number: u64| if is_inclusive { number } else { number.saturating_add(1) };
        match (name, value) {
            ("x-opt-offset" | "x-opt-sequence-number", "@latest") => Some(Self::End),
            ("x-opt-offset" | "x-opt-sequence-number", "-1") => Some(Self::First),
            ("x-opt-offset" | "x-opt-sequence-number", number) => {
                Some(Self::Offset(behind(number.parse().ok()?)))
            }
            ("x-opt-enqueued-time", ms) => {
                // Clients send whole milliseconds, and some write them with a fraction.
                let whole = ms.split('.').next().unwrap_or(ms);
                let ms: i64 = whole.parse().ok()?;
                Some(u64::try_from(ms).map_or(Self::First, |ms| Self::Time(behind(ms))))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_clients_write_them() {
        for (text, expected) in [
            ("amqp.annotation.x-opt-offset > '-1'", Position::First),
            ("amqp.annotation.x-opt-offset > '@latest'", Position::End),
            ("amqp.annotation.x-opt-offset > '41'", Position::Offset(42)),
            ("amqp.annotation.x-opt-offset >= '41'", Position::Offset(41)),
            ("amqp.annotation.x-opt-sequence-number >= '7'", Position::Offset(7)),
            ("amqp.annotation.x-opt-sequence-number > '7'", Position::Offset(8)),
            ("amqp.annotation.x-opt-enqueued-time >= '1500'", Position::Time(1500)),
            ("amqp.annotation.x-opt-enqueued-time > '1500'", Position::Time(1501)),
        ] {
            assert_eq!(Position::parse(text), Some(expected), "{text}");
        }
        for text in ["", "amqp.annotation.x > '1'", "amqp.annotation.x-opt-offset > 'x'"] {
            assert_eq!(Position::parse(text), None, "{text}");
        }
    }
}
