//! Texts of filters and actions from anybody: whatever they are, parsing and evaluation end, and never panic.

use lazuli_engine::Result;

use super::{Action, Filter, Properties, Value};
use crate::PropertyName;

struct Sample;

impl Properties for Sample {
    fn get(&self, name: &PropertyName) -> Result<Option<Value>> {
        Ok(match name {
            PropertyName::System(_) => Some(Value::text("text")),
            PropertyName::User(name) => match name.len() % 6 {
                0 => Some(Value::Integer(i64::MAX)),
                1 => Some(Value::Integer(7)),
                2 => Some(Value::Double(-0.5)),
                3 => Some(Value::text("a%_")),
                4 => Some(Value::Boolean(true)),
                _ => None,
            },
        })
    }

    fn new_id(&self) -> [u8; 16] {
        [7; 16]
    }
}

/// Parses a text as a filter and as an action and evaluates both twice, with the same result.
pub fn bus_filter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(filter) = Filter::sql(text) {
        let first = filter.matches(&Sample);
        let again = Filter::sql(text).expect("what parses once parses again").matches(&Sample);
        assert_eq!(first.ok(), again.ok(), "{text:?}");
    }
    if let Ok(action) = Action::parse(text) {
        let first = action.run(&Sample, &[]);
        assert_eq!(first.ok(), action.run(&Sample, &[]).ok(), "{text:?}");
    }
}

#[cfg(test)]
mod tests {
    use lazuli_env::SplitMix64;

    use super::*;

    const SEEDS: [&[u8]; 3] = [
        include_bytes!("../../../../../fuzz/seeds/bus_filter/condition"),
        include_bytes!("../../../../../fuzz/seeds/bus_filter/functions"),
        include_bytes!("../../../../../fuzz/seeds/bus_filter/action"),
    ];

    #[test]
    fn seeds_and_changes_of_them_are_parsed_and_evaluated_without_a_panic() {
        let mut random = SplitMix64::new(3);
        for seed in SEEDS {
            bus_filter(seed);
            for _ in 0..2_000 {
                let mut text = seed.to_vec();
                for _ in 0..=random.next_u64() % 3 {
                    let at = (random.next_u64() % text.len() as u64) as usize;
                    match random.next_u64() % 3 {
                        0 => text[at] = (random.next_u64() % 128) as u8,
                        1 if text.len() > 1 => _ = text.remove(at),
                        _ => text.insert(at, text[(at * 7 + 1) % text.len()]),
                    }
                }
                bus_filter(&text);
            }
        }
    }
}
