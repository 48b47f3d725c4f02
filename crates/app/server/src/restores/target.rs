//! Which container a backup goes into, and what it is called there.

use std::collections::BTreeMap;

use lazuli_engine::backup::RestoreTarget;
use lazuli_shapes::record;
use lazuli_shardmap::Container;
use lazuli_store::{Error, Result};

use super::{RestoreReason, Wanted};
use crate::registry::Registry;

/// The container to restore into. Of a service's own containers only names that the service itself would give are taken,
/// so that what is restored is a table, or the queues or blobs of an account, like any other.
pub(super) async fn resolve(
    was: &Container,
    wanted: &Wanted,
    accounts: &Registry,
) -> Result<RestoreTarget> {
    let (name, attributes) = named(&was.name, wanted.into.as_deref())?;
    if let Some(account) = account_of(&name) {
        let accounts = accounts.list().await;
        if !accounts.iter().any(|(known, _)| known.name == account) {
            let message = format!("there is no account {account} to restore into");
            return Err(Error::not_found(RestoreReason::AccountNotFound, message));
        }
    }
    Ok(RestoreTarget { name, attributes, replace: wanted.replace })
}

/// The account in the name of a container that a service has made.
fn account_of(name: &str) -> Option<&str> {
    match name.split('/').collect::<Vec<_>>()[..] {
        ["tables", account, _] | ["queues" | "blobs" | "blob-containers", account] => Some(account),
        _ => None,
    }
}

fn named(was: &str, into: Option<&str>) -> Result<(String, BTreeMap<String, String>)> {
    let Some(into) = into else { return Ok((was.to_owned(), BTreeMap::new())) };
    let full = match (into.contains('/'), was.rsplit_once('/')) {
        (false, Some((before, _))) => format!("{before}/{into}"),
        _ => into.to_owned(),
    };
    let parts: Vec<&str> = full.split('/').collect();
    let was_parts: Vec<&str> = was.split('/').collect();
    if parts.len() != was_parts.len() || parts[0] != was_parts[0] && parts.len() > 1 {
        let message = format!("a backup of {was} cannot become {full}: name it as {was} is named");
        return Err(Error::invalid("name-unfit", message));
    }
    if let ["tables", account, table] = parts[..] {
        let Some(name) = lazuli_tables::container_of(account, table) else {
            let message = format!("no table can be called {table}");
            return Err(Error::invalid("name-unfit", message));
        };
        return Ok((name, [(record::TITLE.to_owned(), table.to_owned())].into()));
    }
    Ok((full, BTreeMap::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_whole_or_the_last_part_of_one() {
        let name = |was: &str, into: Option<&str>| named(was, into).map(|(name, _)| name);
        assert_eq!(name("tables/a/orders", None).unwrap(), "tables/a/orders");
        assert_eq!(name("tables/a/orders", Some("Restored")).unwrap(), "tables/a/restored");
        assert_eq!(name("tables/a/orders", Some("tables/b/Orders")).unwrap(), "tables/b/orders");
        assert_eq!(name("queues/a", Some("b")).unwrap(), "queues/b");
        assert_eq!(name("blobs/a", Some("blobs/b")).unwrap(), "blobs/b");
        assert_eq!(name("plain", Some("other")).unwrap(), "other");
        let (_, attributes) = named("tables/a/orders", Some("OrdersOld")).unwrap();
        assert_eq!(attributes[record::TITLE], "OrdersOld");
        for (was, into) in [
            ("tables/a/orders", "queues/a"),
            ("tables/a/orders", "blobs/a/orders"),
            ("tables/a/orders", "tables/a/1x"),
            ("tables/a/orders", "not-a-table"),
            ("queues/a", "queues/a/b"),
            ("blobs/a", "blob-containers/a"),
        ] {
            assert_eq!(named(was, Some(into)).unwrap_err().code(), "name-unfit", "{was} {into}");
        }
    }

    #[test]
    fn services_name_their_accounts() {
        assert_eq!(account_of("tables/a/t"), Some("a"));
        assert_eq!(account_of("blobs/a"), Some("a"));
        assert_eq!(account_of("orders"), None);
    }
}
