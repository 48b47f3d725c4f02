//! Stored access policies: what an access control list of a container holds, as XML.
//!
//! A shared access signature may name a policy instead of carrying its own terms, so that it can be taken back.

use lazuli_http::date::{self, Fraction};
use lazuli_http::xml::{self, Element};

use crate::DocumentError;

/// The most policies of one list.
pub const POLICIES_MAX: usize = 5;
/// The longest name of a policy.
pub const POLICY_ID_CHARS_MAX: usize = 64;

/// Terms under a name. What is not there must be in the signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredPolicy {
    pub id: String,
    pub start: Option<String>,
    pub expiry: Option<String>,
    pub permissions: Option<String>,
}

/// Reads a list. An empty body is an empty list. `letters` are the permissions that the service knows.
pub fn read(body: &[u8], letters: &str) -> Result<Vec<StoredPolicy>, DocumentError> {
    if body.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let root = xml::parse(body).map_err(|_| DocumentError::NotXml)?;
    if root.name != "SignedIdentifiers" {
        return Err(DocumentError::NotXml);
    }
    let mut policies: Vec<StoredPolicy> = Vec::new();
    for element in &root.children {
        let policy = policy(element)?;
        let is_known = policies.iter().any(|other| other.id == policy.id);
        if is_known || policies.len() == POLICIES_MAX || !is_valid(&policy, letters) {
            return Err(DocumentError::BadValue);
        }
        policies.push(policy);
    }
    Ok(policies)
}

fn policy(element: &Element) -> Result<StoredPolicy, DocumentError> {
    if element.name != "SignedIdentifier" {
        return Err(DocumentError::NotXml);
    }
    let terms = element.child("AccessPolicy");
    let term = |name: &str| terms.and_then(|terms| terms.child_text(name)).map(str::to_owned);
    Ok(StoredPolicy {
        id: element.child_text("Id").unwrap_or_default().to_owned(),
        start: term("Start").map(full),
        expiry: term("Expiry").map(full),
        permissions: term("Permission"),
    })
}

/// A time in the one form in which the services give it back. They take shorter ones, and clients read only this one.
fn full(time: String) -> String {
    match date::parse_iso8601(&time) {
        Some(ticks) => date::format_iso8601(ticks, Fraction::Seven),
        None => time,
    }
}

fn is_valid(policy: &StoredPolicy, letters: &str) -> bool {
    let is_date = |date: &Option<String>| {
        date.as_ref().is_none_or(|date| date::parse_iso8601(date).is_some())
    };
    let length = policy.id.chars().count();
    let known = policy.permissions.iter().flat_map(|text| text.chars());
    (1..=POLICY_ID_CHARS_MAX).contains(&length)
        && is_date(&policy.start)
        && is_date(&policy.expiry)
        && known.into_iter().all(|letter| letters.contains(letter))
}

pub fn write(policies: &[StoredPolicy]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>");
    for policy in policies {
        out.push_str("<SignedIdentifier>");
        xml::write(&mut out, "Id", &policy.id);
        out.push_str("<AccessPolicy>");
        for (name, value) in [
            ("Start", &policy.start),
            ("Expiry", &policy.expiry),
            ("Permission", &policy.permissions),
        ] {
            if let Some(value) = value {
                xml::write(&mut out, name, value);
            }
        }
        out.push_str("</AccessPolicy></SignedIdentifier>");
    }
    out.push_str("</SignedIdentifiers>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(id: &str) -> StoredPolicy {
        StoredPolicy {
            id: id.into(),
            start: None,
            expiry: Some("2030-01-01T00:00:00.0000000Z".into()),
            permissions: Some("ra".into()),
        }
    }

    #[test]
    fn a_list_comes_back() {
        let list = vec![policy("one"), StoredPolicy { id: "<two>".into(), ..Default::default() }];
        assert_eq!(read(write(&list).as_bytes(), "raud"), Ok(list));
        assert_eq!(read(b" ", "raud"), Ok(vec![]));
    }

    #[test]
    fn times_come_back_whole() {
        for short in
            ["2030-01-01", "2030-01-01T00:00Z", "2030-01-01T00:00:00Z", "2030-01-01T01:00+01:00"]
        {
            let sent = StoredPolicy { expiry: Some(short.into()), ..policy("a") };
            assert_eq!(read(write(&[sent]).as_bytes(), "raud"), Ok(vec![policy("a")]), "{short}");
        }
    }

    #[test]
    fn bad_lists_are_refused() {
        let check = |list: &[StoredPolicy]| read(write(list).as_bytes(), "raud");
        let many: Vec<_> = (0..6).map(|n| policy(&n.to_string())).collect();
        assert_eq!(check(&many), Err(DocumentError::BadValue));
        assert!(check(&many[..5]).is_ok());
        assert_eq!(check(&[policy("a"), policy("a")]), Err(DocumentError::BadValue));
        assert_eq!(check(&[policy("")]), Err(DocumentError::BadValue));
        assert_eq!(check(&[policy(&"x".repeat(65))]), Err(DocumentError::BadValue));
        let letters = StoredPolicy { permissions: Some("rx".into()), ..policy("a") };
        assert_eq!(check(&[letters]), Err(DocumentError::BadValue));
        let date = StoredPolicy { start: Some("soon".into()), ..policy("a") };
        assert_eq!(check(&[date]), Err(DocumentError::BadValue));
        assert_eq!(read(b"<a/>", "r"), Err(DocumentError::NotXml));
        assert_eq!(
            read(b"<SignedIdentifiers><a/></SignedIdentifiers>", "r"),
            Err(DocumentError::NotXml)
        );
    }
}
