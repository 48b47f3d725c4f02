//! Shared access signatures for one table, or for a range of its entities.

use super::sas::Fields;
use super::{Keys, Refusal};
use crate::acl::StoredPolicy;
use lazuli_http::message::Request;
use lazuli_http::uri::Query;

/// From this version on the signed resource begins with the name of the service.
const VERSION_WITH_SERVICE: &str = "2015-02-21";
/// From this version on addresses and protocols are signed.
const VERSION_WITH_ADDRESSES: &str = "2015-04-05";

/// What the signature grants, after it was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableGrant {
    /// In small letters.
    pub table: String,
    pub permissions: String,
    pub range: EntityRange,
}

/// The entities from the first keys to the last, both included. Without a row key a whole partition counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityRange {
    pub first: Option<(String, Option<String>)>,
    pub last: Option<(String, Option<String>)>,
}

impl EntityRange {
    pub fn contains(&self, partition_key: &str, row_key: &str) -> bool {
        let behind_first = self.first.as_ref().is_none_or(|(partition, row)| {
            let row = row.as_deref().unwrap_or_default();
            (partition_key, row_key) >= (partition.as_str(), row)
        });
        let before_last = self.last.as_ref().is_none_or(|(partition, row)| match row {
            Some(row) => (partition_key, row_key) <= (partition.as_str(), row.as_str()),
            None => partition_key <= partition.as_str(),
        });
        behind_first && before_last
    }
}

/// The table and the policy that a signature names: what must be looked up before it can be checked.
pub fn named<'q>(query: &'q Query<'q>) -> Option<(&'q str, Option<&'q str>)> {
    Some((query.get("tn")?, query.get("si").filter(|policy| !policy.is_empty())))
}

/// Verifies a signature. The policy is the one that it names; naming one that does not exist is no use.
pub fn check(
    request: &Request,
    query: &Query<'_>,
    account: &str,
    keys: &Keys,
    policy: Option<&StoredPolicy>,
) -> Result<TableGrant, Refusal> {
    let fields = Fields(query);
    let (version, table) = (fields.version()?, fields.get("tn").to_ascii_lowercase());
    let service = if version >= VERSION_WITH_SERVICE { "/table" } else { "" };
    let resource = format!("{service}/{account}/{table}");
    let mut signed = vec![fields.get("sp"), fields.get("st"), fields.get("se"), &resource];
    signed.push(fields.get("si"));
    if version >= VERSION_WITH_ADDRESSES {
        signed.extend([fields.get("sip"), fields.get("spr")]);
    }
    signed.push(version);
    signed.extend(["spk", "srk", "epk", "erk"].map(|name| fields.get(name)));
    fields.verify(&signed.join("\n"), keys)?;
    if !fields.get("si").is_empty() && policy.is_none() {
        return Err(Refusal::UnknownPolicy);
    }
    let terms = fields.terms(policy)?;
    terms.check(request)?;
    let range = EntityRange { first: bound(query, "spk", "srk"), last: bound(query, "epk", "erk") };
    Ok(TableGrant { table, permissions: terms.permissions, range })
}

fn bound(query: &Query<'_>, partition: &str, row: &str) -> Option<(String, Option<String>)> {
    Some((query.get(partition)?.to_owned(), query.get(row).map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use lazuli_http::Method;

    use super::super::Key;
    use super::super::shared_key::tests::{KEY, request};
    use super::*;

    fn check_signed(
        parameters: &str,
        policy: Option<&StoredPolicy>,
    ) -> Result<TableGrant, Refusal> {
        let keys = Keys { first: Key::from_base64(KEY).unwrap(), second: None };
        let query = Query::parse(parameters).unwrap();
        let get = |name: &str| query.get(name).unwrap_or("");
        let text = format!(
            "{}\n{}\n{}\n/table/dev/people\n{}\n{}\n{}\n2019-02-02\n{}\n{}\n{}\n{}",
            get("sp"),
            get("st"),
            get("se"),
            get("si"),
            get("sip"),
            get("spr"),
            get("spk"),
            get("srk"),
            get("epk"),
            get("erk")
        );
        let signature = lazuli_http::uri::percent_encode(&STANDARD.encode(keys.first.sign(&text)));
        let signed = format!("{parameters}&sv=2019-02-02&sig={signature}");
        let query = Query::parse(&signed).unwrap();
        super::check(&request(Method::GET, "/", &[]), &query, "dev", &keys, policy)
    }

    #[test]
    fn terms_come_from_the_signature_or_from_the_policy() {
        let own = "tn=People&sp=ra&se=2026-11-16";
        assert_eq!(check_signed(own, None).unwrap().permissions, "ra");
        let policy = StoredPolicy {
            id: "p".into(),
            expiry: Some("2026-11-16".into()),
            permissions: Some("d".into()),
            start: None,
        };
        assert_eq!(check_signed("tn=People&si=p", Some(&policy)).unwrap().permissions, "d");
        assert_eq!(check_signed("tn=People&si=p", None), Err(Refusal::UnknownPolicy));
        assert_eq!(check_signed("tn=People&si=p&sp=r", Some(&policy)), Err(Refusal::Malformed));
        let over = StoredPolicy { expiry: Some("2026-11-15".into()), ..policy };
        assert_eq!(check_signed("tn=People&si=p", Some(&over)), Err(Refusal::OutsideTime));
        assert_eq!(
            check_signed("tn=Others&sp=r&se=2026-11-16", None),
            Err(Refusal::WrongSignature)
        );
    }

    #[test]
    fn ranges_hold_entities_by_both_keys() {
        let range = |more: &str| {
            let parameters = format!("tn=people&sp=r&se=2026-11-16{more}");
            check_signed(&parameters, None).unwrap().range
        };
        let all = range("");
        assert!(all.contains("", "") && all.contains("z", "z"));
        let rows = range("&spk=b&srk=3&epk=d&erk=5");
        for (partition, row, expected) in [
            ("a", "9", false),
            ("b", "2", false),
            ("b", "3", true),
            ("c", "", true),
            ("d", "5", true),
            ("d", "6", false),
            ("e", "", false),
        ] {
            assert_eq!(rows.contains(partition, row), expected, "{partition} {row}");
        }
        let partitions = range("&spk=b&epk=c");
        assert!(partitions.contains("b", "") && partitions.contains("c", "zzz"));
        assert!(!partitions.contains("a", "") && !partitions.contains("d", ""));
    }
}
