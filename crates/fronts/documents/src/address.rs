//! What a path names: the account, a resource, or a feed of resources.
//!
//! Ids and resource ids stand in the same places, so this parser does not tell them apart: `directory` does, by looking.
//! Some clients end every path with a slash and others none; both mean the same.

use lazuli_http::uri::percent_decode;

use crate::error::{Fault, Result};
use crate::limits::ID_BYTES_MAX;

/// The most segments that a path of the service has: those of an attachment.
const SEGMENTS_MAX: usize = 8;

/// What a path names. Texts are decoded ids or resource ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Account,
    /// Where clients get the certificate that they have to trust.
    Certificate,
    Feed(Feed),
    One(Feed, String),
    /// Deletes all items of one logical partition.
    PartitionDelete(ContainerName),
    /// Files beside items, which no service that is sold today still has.
    Attachments,
}

/// All resources of one kind with one parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Feed {
    Databases,
    Offers,
    InDatabase(String, DatabaseChild),
    Permissions { database: String, user: String },
    InContainer(ContainerName, ContainerChild),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseChild {
    Containers,
    Users,
    EncryptionKeys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContainerChild {
    Items,
    Ranges,
    Procedures,
    Triggers,
    Functions,
    Conflicts,
}

/// A container by the ids, or the resource ids, of its database and itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerName {
    pub(crate) database: String,
    pub(crate) container: String,
}

/// A path and what it names, with the two texts that signatures are made over.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) address: Address,
    /// The kind of resource that clients sign, `docs` for example.
    pub(crate) kind: &'static str,
    /// The decoded link of the resource, or of the parent if a feed is addressed.
    pub(crate) link: String,
}

const CERTIFICATE: &str = "/_explorer/emulator.pem";

impl Target {
    /// Reads the path of a request as it was sent.
    pub(crate) fn parse(path: &str) -> Result<Self> {
        if path == CERTIFICATE {
            return Ok(Self::plain(Address::Certificate));
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Ok(Self::plain(Address::Account));
        }
        let mut segments = Vec::new();
        for segment in path.split('/') {
            let decoded = percent_decode(segment).map_err(|_| unreadable())?;
            // An escaped slash cannot be part of an id.
            let is_bad =
                decoded.is_empty() || decoded.len() > ID_BYTES_MAX || decoded.contains('/');
            if is_bad || segments.len() == SEGMENTS_MAX {
                return Err(unreadable());
            }
            segments.push(decoded.into_owned());
        }
        let texts: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (address, kind) = parse(&texts).ok_or_else(unreadable)?;
        let link = match address {
            Address::PartitionDelete(_) => &texts[..4],
            _ if texts.len().is_multiple_of(2) => &texts[..],
            _ => &texts[..texts.len() - 1],
        };
        // Offers have no parent, and clients sign their resource id alone.
        let link = match link {
            ["offers", rid] => (*rid).to_owned(),
            link => link.join("/"),
        };
        Ok(Self { address, kind, link })
    }

    fn plain(address: Address) -> Self {
        Self { address, kind: "", link: String::new() }
    }

    /// What a client may have signed as the link: the names as they are, or a resource id in lower case.
    pub(crate) fn signed_links(&self) -> [String; 2] {
        let last = self.link.rsplit('/').next().unwrap_or_default();
        [self.link.clone(), last.to_lowercase()]
    }
}

fn unreadable() -> Fault {
    Fault::bad_request("The request url is not valid: it names no resource of the service.")
}

fn parse(segments: &[&str]) -> Option<(Address, &'static str)> {
    match *segments {
        ["dbs", ref rest @ ..] => in_databases(rest),
        ["offers"] => Some((Address::Feed(Feed::Offers), "offers")),
        ["offers", id] => Some((Address::One(Feed::Offers, id.to_owned()), "offers")),
        _ => None,
    }
}

fn in_databases(segments: &[&str]) -> Option<(Address, &'static str)> {
    let Some((database, rest)) = segments.split_first() else {
        return Some((Address::Feed(Feed::Databases), "dbs"));
    };
    let database = (*database).to_owned();
    let child = |child| Feed::InDatabase(database.clone(), child);
    match *rest {
        [] => Some((Address::One(Feed::Databases, database), "dbs")),
        ["colls"] => Some((Address::Feed(child(DatabaseChild::Containers)), "colls")),
        ["colls", id] => {
            Some((Address::One(child(DatabaseChild::Containers), id.to_owned()), "colls"))
        }
        ["colls", container, ref rest @ ..] => {
            in_container(ContainerName { database, container: container.to_owned() }, rest)
        }
        ["users"] => Some((Address::Feed(child(DatabaseChild::Users)), "users")),
        ["users", id] => Some((Address::One(child(DatabaseChild::Users), id.to_owned()), "users")),
        ["users", user, "permissions", ref rest @ ..] => {
            let feed = Feed::Permissions { database, user: user.to_owned() };
            one_of(feed, rest).map(|address| (address, "permissions"))
        }
        ["clientencryptionkeys", ref rest @ ..] => {
            let address = one_of(child(DatabaseChild::EncryptionKeys), rest)?;
            Some((address, "clientencryptionkeys"))
        }
        _ => None,
    }
}

fn in_container(name: ContainerName, segments: &[&str]) -> Option<(Address, &'static str)> {
    use ContainerChild::{Conflicts, Functions, Items, Procedures, Ranges, Triggers};
    let (child, kind, rest) = match *segments {
        ["docs", _, "attachments", ..] => return Some((Address::Attachments, "attachments")),
        ["operations", "partitionkeydelete"] => {
            return Some((Address::PartitionDelete(name), "colls"));
        }
        ["docs", ref rest @ ..] => (Items, "docs", rest),
        ["pkranges", ref rest @ ..] => (Ranges, "pkranges", rest),
        ["sprocs", ref rest @ ..] => (Procedures, "sprocs", rest),
        ["triggers", ref rest @ ..] => (Triggers, "triggers", rest),
        ["udfs", ref rest @ ..] => (Functions, "udfs", rest),
        ["conflicts", ref rest @ ..] => (Conflicts, "conflicts", rest),
        _ => return None,
    };
    Some((one_of(Feed::InContainer(name, child), rest)?, kind))
}

fn one_of(feed: Feed, rest: &[&str]) -> Option<Address> {
    match *rest {
        [] => Some(Address::Feed(feed)),
        [id] => Some(Address::One(feed, id.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(path: &str) -> Option<(Address, &'static str, String)> {
        Target::parse(path).ok().map(|target| (target.address, target.kind, target.link))
    }

    fn container() -> ContainerName {
        ContainerName { database: "d".into(), container: "c".into() }
    }

    #[test]
    fn a_slash_at_the_end_means_nothing() {
        for path in ["/", ""] {
            assert_eq!(parsed(path), Some((Address::Account, "", String::new())));
        }
        for path in ["/dbs/d/colls/c/docs/1", "/dbs/d/colls/c/docs/1/"] {
            let feed = Feed::InContainer(container(), ContainerChild::Items);
            let expected = (Address::One(feed, "1".into()), "docs", "dbs/d/colls/c/docs/1".into());
            assert_eq!(parsed(path), Some(expected));
        }
    }

    #[test]
    fn a_feed_is_signed_with_the_link_of_its_parent() {
        let feed = Feed::InContainer(container(), ContainerChild::Ranges);
        let expected = (Address::Feed(feed), "pkranges", "dbs/d/colls/c".into());
        assert_eq!(parsed("/dbs/d/colls/c/pkranges/"), Some(expected));
        assert_eq!(parsed("/dbs/"), Some((Address::Feed(Feed::Databases), "dbs", String::new())));
        let expected = (Address::PartitionDelete(container()), "colls", "dbs/d/colls/c".into());
        assert_eq!(parsed("/dbs/d/colls/c/operations/partitionkeydelete"), Some(expected));
    }

    #[test]
    fn ids_are_decoded_and_keep_their_case() {
        let target = Target::parse("/dbs/My%20Db/colls/%D1%8F/docs/100%25'x\"/").unwrap();
        assert_eq!(target.link, "dbs/My Db/colls/я/docs/100%'x\"");
        assert_eq!(target.signed_links()[1], "100%'x\"");
    }

    #[test]
    fn an_offer_is_signed_by_its_resource_id_in_lower_case() {
        let target = Target::parse("/offers/AbC-/").unwrap();
        assert_eq!(target.signed_links(), ["AbC-".to_owned(), "abc-".to_owned()]);
    }

    #[test]
    fn other_paths_are_refused() {
        for path in [
            "/db",
            "/dbs//colls",
            "/dbs/d/colls/c/docs/1/2",
            "/dbs/d/colls/c/docs/%2f",
            "/dbs/d/colls/c/docs/%zz",
            "/dbs/d/colls/c/docs/%ff",
            "/offers/a/b",
            "/dbs/d/users/u/permissions/p/x",
            "/dbs/d/colls/c/operations/other",
            "/_explorer/other.pem",
        ] {
            assert_eq!(parsed(path), None, "{path}");
        }
        let long = format!("/dbs/{}", "a".repeat(ID_BYTES_MAX + 1));
        assert_eq!(parsed(&long), None);
    }
}
