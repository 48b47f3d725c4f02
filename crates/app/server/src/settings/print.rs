//! What `lazuli config` prints: every setting in force and where it comes from. Secrets are masked.

use serde_json::{Value, json};

use super::sources::{Origin, Texts};
use super::table::{Row, TABLE};
use crate::secret::MASK;

/// One line per setting: name, value, origin.
pub fn lines(texts: &Texts) -> Vec<[String; 3]> {
    in_force(texts)
        .map(|row| {
            let (value, origin) = shown(texts, row);
            let origin = origin.map_or_else(|| "default".to_owned(), ToString::to_string);
            [row.name.to_owned(), value.unwrap_or_else(|| "-".to_owned()), origin]
        })
        .collect()
}

/// The same as one JSON object, by name.
pub fn json(texts: &Texts) -> Value {
    let entry = |row: &Row| {
        let (value, origin) = shown(texts, row);
        let origin = origin.map_or_else(|| "default".to_owned(), ToString::to_string);
        (row.name.to_owned(), json!({ "value": value, "origin": origin }))
    };
    Value::Object(in_force(texts).map(entry).collect())
}

/// All settings, and of those that are for one front alone the ones that are set.
fn in_force(texts: &Texts) -> impl Iterator<Item = &'static Row> {
    TABLE.iter().filter(|row| !row.is_override || texts.get(row.name).is_some())
}

fn shown<'a>(texts: &'a Texts, row: &Row) -> (Option<String>, Option<&'a Origin>) {
    match texts.get(row.name) {
        Some((_, origin)) if row.secret => (Some(MASK.to_owned()), Some(origin)),
        Some((text, origin)) => (Some(text.to_owned()), Some(origin)),
        None => (None, None),
    }
}
