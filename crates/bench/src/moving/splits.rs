//! Cutting a partition in place, however much it holds.

use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use lazuli_engine::{Middle, Partition};
use lazuli_shardmap::manager::Known;
use lazuli_store::{Error, Result};

use super::round::Split;
use super::world::World;

/// How often a partition is cut; what is reported is the slowest.
const CUTS: u64 = 7;

/// Fills a store with so many small items, cuts their partition several times, and deletes it.
pub(super) async fn measure(folder: &Path, items: u64) -> Result<Split> {
    let split = {
        let world = World::open(folder, 1, true).await?;
        let payload = Bytes::from_static(b"12345678");
        world.fill_with(|number| (number < items).then(|| payload.clone())).await?;
        cut(&world, items).await?
    };
    std::fs::remove_dir_all(folder).map_err(|error| Error::internal("folder", error))?;
    Ok(split)
}

async fn cut(world: &World, items: u64) -> Result<Split> {
    let mut split = Split { items, ..Split::default() };
    let start = Instant::now();
    let whole = world.partitions().await?[0].clone();
    world.engine.middle(&whole, Middle::Size).await?;
    split.middle = start.elapsed();
    for number in 1..=CUTS {
        let at = world.route(items * number / (CUTS + 1))?;
        let partition = holding(world, &at).await?;
        let start = Instant::now();
        world.engine.split(Known::from(&partition), at).await?;
        split.cut = split.cut.max(start.elapsed());
    }
    Ok(split)
}

async fn holding(world: &World, route: &[u8]) -> Result<Partition> {
    let all = world.partitions().await?;
    let found = all.into_iter().find(|partition| partition.routes.contains(route));
    Ok(found.expect("partitions hold all routes"))
}
