//! What a request addresses behind its account, the service, a table, its entities or one entity, and the rules for names.

use lazuli_azure::account::Target;
use lazuli_http::uri::percent_decode;

use crate::entity::{PARTITION_KEY, ROW_KEY};
use crate::error::{Code, Common, Fault, Result};
use crate::limits::{Limits, TABLE_NAME_LENGTHS};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Service,
    Batch,
    Tables,
    Table(String),
    /// The entities of a table.
    Entities(String),
    Entity(EntityKey),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityKey {
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) row_key: String,
}

impl Resource {
    /// The resource of a request inside a batch, which is to the same account: a path may name the account, in the same
    /// way, or leave it out. No resource has a slash in it, so a path of another account is never one of this account.
    pub(crate) fn inside(target: &Target, path: &str) -> Result<Self> {
        match target.inside(path) {
            Some(rest) => Self::parse(rest),
            None => Self::parse(path).map_err(|_| Fault::new(Common::InvalidInput)),
        }
    }

    /// The path behind the account, as it was sent. Some clients end it with a slash, which means nothing.
    pub(crate) fn parse(path: &str) -> Result<Self> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let path = percent_decode(path)?;
        let path = path.trim_start_matches('/');
        let unknown = || Fault::new(Code::InvalidUri);
        match path {
            "" => return Ok(Self::Service),
            "$batch" => return Ok(Self::Batch),
            "Tables" | "Tables()" => return Ok(Self::Tables),
            _ => {}
        }
        let Some((name, arguments)) = path.split_once('(') else {
            return match path.contains('/') {
                true => Err(unknown()),
                false => Ok(Self::Entities(path.to_owned())),
            };
        };
        let arguments = arguments.strip_suffix(')').ok_or_else(unknown)?;
        if name.contains('/') {
            return Err(unknown());
        }
        if name == "Tables" {
            let (table, rest) = quoted(arguments).ok_or_else(unknown)?;
            return if rest.is_empty() { Ok(Self::Table(table)) } else { Err(unknown()) };
        }
        if arguments.is_empty() {
            return Ok(Self::Entities(name.to_owned()));
        }
        let key = entity_key(name, arguments).ok_or_else(|| Fault::new(Common::InvalidInput))?;
        Ok(Self::Entity(key))
    }
}

/// `PartitionKey='…',RowKey='…'`, in either order.
fn entity_key(table: &str, arguments: &str) -> Option<EntityKey> {
    let (first_name, rest) = arguments.split_once('=')?;
    let (first, rest) = quoted(rest)?;
    let (second_name, rest) = rest.trim_start().strip_prefix(',')?.split_once('=')?;
    let (second, rest) = quoted(rest)?;
    if !rest.trim().is_empty() {
        return None;
    }
    let (partition_key, row_key) = match (first_name.trim(), second_name.trim()) {
        (PARTITION_KEY, ROW_KEY) => (first, second),
        (ROW_KEY, PARTITION_KEY) => (second, first),
        _ => return None,
    };
    Some(EntityKey { table: table.to_owned(), partition_key, row_key })
}

/// Text between quotation marks, where two of them stand for one, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.trim_start().strip_prefix('\'')?;
    let mut out = String::new();
    loop {
        let (piece, tail) = rest.split_once('\'')?;
        out.push_str(piece);
        match tail.strip_prefix('\'') {
            Some(tail) => {
                out.push('\'');
                rest = tail;
            }
            None => return Some((out, tail)),
        }
    }
}

/// Letters and digits, a letter first; `tables` is taken by the service itself.
pub(crate) fn check_table(name: &str) -> Result<()> {
    if !TABLE_NAME_LENGTHS.contains(&name.chars().count()) {
        return Err(Fault::new(Code::OutOfRangeInput)
            .say("The specified resource name length is not within the permissible limits."));
    }
    let letter_first = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !letter_first || !plain || name.eq_ignore_ascii_case("tables") {
        return Err(Fault::new(Common::InvalidResourceName));
    }
    Ok(())
}

/// Any text that is short enough and has none of the characters that addresses can't carry.
pub(crate) fn check_key(name: &str, key: &str, limits: &Limits) -> Result<()> {
    if utf16_units(key) > limits.key_units_max {
        return Err(Fault::new(Code::KeyValueTooLarge));
    }
    let forbidden = |c: char| matches!(c, '/' | '\\' | '#' | '?') || c.is_control();
    if key.contains(forbidden) {
        return Err(Fault::new(Code::OutOfRangeInput)
            .say(format!("The '{name}' parameter of value '{key}' is out of range.")));
    }
    Ok(())
}

/// How long the service says that a text is.
pub(crate) fn utf16_units(text: &str) -> usize {
    // Text is mostly ASCII, where every byte is one.
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// What programming languages take as an identifier.
pub(crate) fn check_property(name: &str, limits: &Limits) -> Result<()> {
    if utf16_units(name) > limits.property_name_units_max {
        return Err(Fault::new(Code::PropertyNameTooLong));
    }
    let letter_first = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c.is_alphanumeric();
    if !letter_first || !name.chars().all(is_part) {
        return Err(Fault::new(Code::PropertyNameInvalid));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> std::result::Result<Resource, Code> {
        Resource::parse(path).map_err(|fault| fault.code)
    }

    fn entity(table: &str, partition_key: &str, row_key: &str) -> Resource {
        Resource::Entity(EntityKey {
            table: table.into(),
            partition_key: partition_key.into(),
            row_key: row_key.into(),
        })
    }

    #[test]
    fn resources_are_told_apart() {
        assert_eq!(parse(""), Ok(Resource::Service));
        assert_eq!(parse("$batch"), Ok(Resource::Batch));
        assert_eq!(parse("Tables"), Ok(Resource::Tables));
        assert_eq!(parse("Tables()"), Ok(Resource::Tables));
        assert_eq!(parse("Tables/"), Ok(Resource::Tables));
        assert_eq!(parse("Tables('abc')"), Ok(Resource::Table("abc".into())));
        assert_eq!(parse("Tables(%27abc%27)"), Ok(Resource::Table("abc".into())));
        assert_eq!(parse("/abc"), Ok(Resource::Entities("abc".into())));
        assert_eq!(parse("abc()"), Ok(Resource::Entities("abc".into())));
        for bad in ["a/b", "a/b()", "abc(", "abc)x(", "Tables(abc)", "Tables('a'x)"] {
            assert_eq!(parse(bad), Err(Code::InvalidUri), "{bad}");
        }
    }

    #[test]
    fn keys_are_unescaped_once() {
        let expected = entity("abc", "a'b", "ä,) c");
        assert_eq!(parse("abc(PartitionKey='a''b',RowKey='ä,) c')"), Ok(expected.clone()));
        let escaped = "abc(PartitionKey=%27a%27%27b%27,RowKey=%27%C3%A4%2C%29%20c%27)";
        assert_eq!(parse(escaped), Ok(expected.clone()));
        assert_eq!(parse("abc(RowKey='ä,) c', PartitionKey='a''b')"), Ok(expected));
        assert_eq!(parse("abc(PartitionKey='',RowKey='')"), Ok(entity("abc", "", "")));
        for bad in ["abc('x')", "abc(PartitionKey='a')", "abc(PartitionKey='a',PartitionKey='b')"] {
            assert_eq!(parse(bad), Err(Common::InvalidInput.into()), "{bad}");
        }
    }
}

#[cfg(test)]
mod names_tests {
    use super::*;

    #[test]
    fn table_names_follow_the_rules() {
        for good in ["abc", "Abc123", &"a".repeat(63)] {
            assert!(check_table(good).is_ok(), "{good}");
        }
        let code = |name: &str| check_table(name).unwrap_err().code;
        for bad in ["", "ab", &"a".repeat(64)] {
            assert_eq!(code(bad), Code::OutOfRangeInput, "{bad}");
        }
        for bad in ["1abc", "a-b", "a_b", "Tables", "tables", "äbc", "a b"] {
            assert_eq!(code(bad), Common::InvalidResourceName.into(), "{bad}");
        }
    }

    #[test]
    fn keys_are_short_and_can_stand_in_an_address() {
        let limits = Limits::default();
        let check = |key: &str| check_key("RowKey", key, &limits).map_err(|fault| fault.code);
        for good in ["", " ", "a'b", "ä😀", "a%b+c&d", &"x".repeat(512)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check(&"x".repeat(513)), Err(Code::KeyValueTooLarge));
        assert_eq!(check(&"😀".repeat(257)), Err(Code::KeyValueTooLarge));
        for bad in ["a/b", "a\\b", "a#b", "a?b", "a\tb", "a\u{7f}", "a\u{9f}"] {
            assert_eq!(check(bad), Err(Code::OutOfRangeInput), "{bad}");
        }
    }

    #[test]
    fn property_names_are_identifiers() {
        let limits = Limits::default();
        let check = |name: &str| check_property(name, &limits).map_err(|fault| fault.code);
        for good in ["A", "_a", "a1", "größe", &"x".repeat(255)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check(&"x".repeat(256)), Err(Code::PropertyNameTooLong));
        for bad in ["", "1a", "a-b", "a b", "a.b"] {
            assert_eq!(check(bad), Err(Code::PropertyNameInvalid), "{bad}");
        }
    }
}
