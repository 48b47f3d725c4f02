//! How a CSV file of another program becomes entities: which columns are the keys, what separates fields, and which types
//! values have.

use lazuli_azure::odata::EdmType;
use lazuli_http::date::parse_iso8601;
use serde_json::{Value, json};

use super::columns::kind_of;

/// What the options of an import say about the file.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) delimiter: u8,
    /// The column whose values are the partition keys, if it is not the one of that name.
    pub(super) partition_key: Option<String>,
    pub(super) row_key: Option<String>,
    pub(super) types: Types,
}

/// The types of values without one of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Types {
    /// Each value by what it looks like.
    Guessed,
    /// By column; text where a column is not named.
    Given(Vec<(String, EdmType)>),
}

impl Default for Layout {
    fn default() -> Self {
        let types = Types::Given(Vec::new());
        Self { delimiter: b',', partition_key: None, row_key: None, types }
    }
}

impl Layout {
    /// Whether the file is another program's, whose columns need not be names of properties.
    pub(super) fn is_foreign(&self) -> bool {
        self.partition_key.is_some() || self.row_key.is_some()
    }

    /// The type of values of this column; none if it is to be guessed.
    pub(super) fn type_of(&self, column: &str) -> Option<EdmType> {
        match &self.types {
            Types::Guessed => None,
            Types::Given(types) => {
                let given = types.iter().find(|(name, _)| name == column);
                Some(given.map_or(EdmType::String, |(_, kind)| *kind))
            }
        }
    }

    /// Refuses types of columns that the file does not have.
    pub(super) fn check_types(&self, has: impl Fn(&str) -> bool) -> Result<(), String> {
        let Types::Given(types) = &self.types else { return Ok(()) };
        match types.iter().find(|(name, _)| !has(name)) {
            Some((name, _)) => Err(format!("the header has no column {name}, whose type is given")),
            None => Ok(()),
        }
    }

    /// What an import that is resumed must have in common with the one that was interrupted.
    pub(super) fn json(&self) -> Value {
        let types = match &self.types {
            Types::Guessed => json!("guess"),
            Types::Given(types) => {
                types.iter().map(|(name, kind)| json!([name, kind.name()])).collect()
            }
        };
        json!([self.delimiter, self.partition_key, self.row_key, types])
    }
}

/// Reads `;`, `tab` and the like: one byte that is neither a quotation mark nor a line end.
pub(super) fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text == "tab" || text == "\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Ok(*byte),
        _ => Err("a delimiter is one character, such as ; or |, or the word tab".to_owned()),
    }
}

/// Reads `guess`, or `COLUMN=TYPE` with commas between them.
pub(super) fn types(text: &str) -> Result<Types, String> {
    if text == "guess" {
        return Ok(Types::Guessed);
    }
    let one = |part: &str| {
        let (name, kind) = part
            .rsplit_once('=')
            .ok_or_else(|| format!("`{part}` is not COLUMN=TYPE, such as Total=Double"))?;
        Ok((name.trim().to_owned(), kind_of(kind.trim())?))
    };
    text.split(',').map(one).collect::<Result<_, String>>().map(Types::Given)
}

/// The type that a text looks like. Numbers that would not be written so again, such as 007, are text.
pub(super) fn guess(text: &str) -> EdmType {
    if matches!(text, "true" | "false" | "TRUE" | "FALSE" | "True" | "False") {
        return EdmType::Boolean;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_padded = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if digits.starts_with(|first: char| first.is_ascii_digit()) && !is_padded {
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return match (text.parse::<i32>(), text.parse::<i64>()) {
                (Ok(_), _) => EdmType::Int32,
                (_, Ok(_)) => EdmType::Int64,
                _ => EdmType::String,
            };
        }
        let is_number =
            |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+');
        if digits.bytes().all(is_number) && text.parse::<f64>().is_ok_and(f64::is_finite) {
            return EdmType::Double;
        }
        if text.contains('T') && parse_iso8601(text).is_some() {
            return EdmType::DateTime;
        }
    }
    EdmType::String
}

/// A name that the service takes for a property: letters, digits and low lines, not beginning with a digit.
pub(super) fn property_name(column: &str) -> String {
    let fit = |letter: char| if letter.is_alphanumeric() { letter } else { '_' };
    let name: String = column.chars().map(fit).collect();
    match name.chars().next() {
        Some(first) if !first.is_numeric() => name,
        _ => format!("_{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delimiter_is_one_character() {
        assert_eq!(delimiter(";"), Ok(b';'));
        assert_eq!((delimiter("tab"), delimiter("\t")), (Ok(b'\t'), Ok(b'\t')));
        for bad in ["", ";;", "\"", "\n", "ä"] {
            assert!(delimiter(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn types_are_given_by_column_or_guessed() {
        let given = vec![("Total".to_owned(), EdmType::Double), ("n=1".to_owned(), EdmType::Int32)];
        assert_eq!(types("Total=Double, n=1=Edm.Int32"), Ok(Types::Given(given)));
        assert_eq!(types("guess"), Ok(Types::Guessed));
        assert!(types("Total").is_err() && types("Total=Money").is_err());
    }

    #[test]
    fn a_value_has_the_type_that_it_looks_like() {
        use EdmType::{Boolean, DateTime, Double, Int32, Int64, String};
        for (text, kind) in [
            ("1", Int32),
            ("-2147483648", Int32),
            ("2147483648", Int64),
            ("99999999999999999999", String),
            ("1.50", Double),
            ("-1e3", Double),
            ("0.5", Double),
            ("007", String),
            ("-", String),
            ("1-2", String),
            ("True", Boolean),
            ("2026-01-02T03:04:05Z", DateTime),
            ("2026-01-02", String),
            ("NaN", String),
            ("10 Main Street", String),
        ] {
            assert_eq!(guess(text), kind, "{text}");
        }
    }

    #[test]
    fn columns_become_names_of_properties() {
        assert_eq!(property_name("Order Date"), "Order_Date");
        assert_eq!(property_name("2026"), "_2026");
        assert_eq!(property_name("größe%"), "größe_");
        assert_eq!(property_name(""), "_");
    }
}
