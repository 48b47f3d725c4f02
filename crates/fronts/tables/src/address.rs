//! Whom and what a request is sent to: the account, and the resource behind it.

use lazuli_http::Request;
use lazuli_http::account::Target;
use lazuli_http::auth::Accounts;
use lazuli_http::uri::percent_decode;

use crate::entity::{PARTITION_KEY, ROW_KEY};
use crate::error::{Code, Fault, Result};

/// Where a request was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) target: Target,
    pub(crate) resource: Resource,
}

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

impl Address {
    pub(crate) fn of(request: &Request, accounts: &Accounts) -> Result<Self> {
        let found = Target::of(request, accounts);
        let (target, path) = found.ok_or_else(|| Fault::new(Code::InvalidUri))?;
        Ok(Self { resource: Resource::parse(path)?, target })
    }

    /// The address of a request inside this one, which is to the same account: a path may name the account, by the same
    /// way, or leave it out. No resource has a slash in it, so that one of another account is none of this one.
    pub(crate) fn inside(&self, path: &str) -> Result<Self> {
        let resource = match self.target.inside(path) {
            Some(rest) => Resource::parse(rest)?,
            None => Resource::parse(path).map_err(|_| Fault::new(Code::InvalidInput))?,
        };
        Ok(Self { resource, target: self.target.clone() })
    }
}

impl Resource {
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
        let key = entity_key(name, arguments).ok_or_else(|| Fault::new(Code::InvalidInput))?;
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
            assert_eq!(parse(bad), Err(Code::InvalidInput), "{bad}");
        }
    }
}
