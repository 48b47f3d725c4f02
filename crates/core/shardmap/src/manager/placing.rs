//! Choosing shards for new partitions, and checking their bounds.

use std::collections::BTreeMap;

use lazuli_store::{Error, KeyRange, Result};

use super::Manager;
use crate::catalog::View;
use crate::route::{ROUTE_BYTES_MAX, virtual_shards};
use crate::{Container, MapKind, Shard, ShardId, placement};

/// Refuses a shard that the container's rules do not allow for these routes.
pub(crate) fn check_placement(
    container: &Container,
    routes: &KeyRange,
    shard: &Shard,
) -> Result<()> {
    placement::allowed(&container.placement, routes, shard)
        .map_err(|error| error.context(format!("container {}", container.name)))
}

/// Spreads new partitions: each goes to the allowed shard that then holds the fewest.
pub(super) struct Spread {
    /// With how many partitions they hold, those to come included.
    shards: BTreeMap<ShardId, Choice>,
}

struct Choice {
    shard: Shard,
    held: u64,
    answers: bool,
}

impl Spread {
    /// Over these shards, or over all that answer if none is named.
    pub(super) async fn over(view: View<'_>, among: &[ShardId], manager: &Manager) -> Result<Self> {
        let mut shards = BTreeMap::new();
        for shard in view.shards().await? {
            if among.is_empty() || among.contains(&shard.id) {
                let local = manager.local(shard.id).ok();
                let answers = local.is_some();
                // The catalog has one count for each container, so its sum costs more with every container. The shard
                // knows the sum; the catalog is asked only while the shard is down or reads its rows again.
                let held = match local.and_then(|local| local.partition_count().ok()) {
                    Some(held) => held as u64,
                    None => view.count_on(shard.id, None).await?,
                };
                shards.insert(shard.id, Choice { shard, held, answers });
            }
        }
        for id in among {
            if !shards.contains_key(id) {
                let message = format!("there is no shard with id {id}");
                return Err(Error::not_found("shard-not-found", message));
            }
        }
        Ok(Self { shards })
    }

    /// The shard for these routes: the one wished for, or else the best.
    pub(super) fn choose(
        &mut self,
        container: &Container,
        routes: &KeyRange,
        wished: Option<ShardId>,
    ) -> Result<ShardId> {
        let id = match wished {
            Some(id) => {
                let missing = || {
                    let message = format!("there is no shard with id {id}");
                    Error::not_found("shard-not-found", message)
                };
                let choice = self.shards.get(&id).ok_or_else(missing)?;
                check_placement(container, routes, &choice.shard)?;
                id
            }
            None => {
                let fits = |shard: &Shard| check_placement(container, routes, shard).is_ok();
                let allowed = self.shards.values().filter(|it| it.answers && fits(&it.shard));
                let best = allowed.min_by_key(|it| (it.held, it.shard.id));
                best.map(|it| it.shard.id).ok_or_else(|| {
                    let message = format!(
                        "no shard that answers may hold these routes of container {}",
                        container.name
                    );
                    Error::precondition("no-shard-allowed", message)
                })?
            }
        };
        if let Some(choice) = self.shards.get_mut(&id) {
            choice.held += 1;
        }
        Ok(id)
    }
}

/// Refuses bounds that a partition of this container cannot have: nothing inside, within a shardlet, within a virtual
/// shard, or anything but one key in a list map.
pub(super) fn check_bounds(container: &Container, routes: &KeyRange) -> Result<()> {
    let longest = routes.end.as_ref().map_or(0, bytes::Bytes::len).max(routes.start.len());
    if longest > ROUTE_BYTES_MAX {
        let message =
            format!("a bound of {longest} bytes; the longest route has {ROUTE_BYTES_MAX}");
        return Err(Error::too_large("bound-too-large", message));
    }
    if routes.is_empty() {
        return Err(Error::invalid("range-empty", "a partition must hold some routes"));
    }
    match container.kind {
        MapKind::Hash => match virtual_shards(routes) {
            Some(_) => Ok(()),
            None => Err(inside("a virtual shard")),
        },
        MapKind::Range | MapKind::EpkV1 | MapKind::EpkV2 | MapKind::EpkMulti => {
            check_shardlet(container, &routes.start)?;
            routes.end.as_ref().map_or(Ok(()), |end| check_shardlet(container, end))
        }
        MapKind::List => {
            container.kind.key(&container.key, &routes.start)?;
            if *routes == KeyRange::prefix(routes.start.clone()) {
                return Ok(());
            }
            Err(Error::invalid("not-a-point", "a partition of a list map holds exactly one key"))
        }
    }
}

/// Refuses a bound that has a whole route in front of it: the shardlet of that route would be torn apart.
pub(super) fn check_shardlet(container: &Container, bound: &[u8]) -> Result<()> {
    match container.kind.split(&container.key, bound) {
        Ok((_, rest)) if !rest.is_empty() => Err(inside("a shardlet")),
        _ => Ok(()),
    }
}

fn inside(what: &str) -> Error {
    Error::invalid("bound-inside-shardlet", format!("a bound must not lie inside {what}"))
}
