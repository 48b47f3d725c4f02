//! Figures that nodes tell each other through the catalog.

use std::collections::BTreeMap;

use bytes::Bytes;
use lazuli_env::Id;
use lazuli_shardmap::MapReason;
use lazuli_shardmap::catalog::TOLD_ROWS_MAX;

use crate::world::World;

const ONE: Id = Id::from_bytes([1; 16]);
const OTHER: Id = Id::from_bytes([2; 16]);

fn row(number: u64) -> (u64, Bytes) {
    (number, Bytes::from(format!("row {number}")))
}

#[tokio::test]
async fn a_node_keeps_its_last_rows_and_others_read_what_is_new_to_them() {
    let world = World::new().await;
    let catalog = world.catalog();
    catalog.add_node(ONE).await.unwrap();
    catalog.add_node(OTHER).await.unwrap();
    let newest = 3 * TOLD_ROWS_MAX as u64;
    for number in 1..newest {
        catalog.tell_figures(ONE, &[row(number)]).await.unwrap();
    }
    // Some are written again with the next one, as after a commit that was not answered.
    let again: Vec<_> = (newest - 2..=newest).map(row).collect();
    catalog.tell_figures(ONE, &again).await.unwrap();
    let told = catalog.told_since(OTHER, &BTreeMap::new()).await.unwrap();
    let last: Vec<_> = (newest + 1 - TOLD_ROWS_MAX as u64..=newest).map(row).collect();
    assert_eq!(told, [(ONE, last)]);
    let seen = BTreeMap::from([(ONE, newest - 1)]);
    let told = catalog.told_since(OTHER, &seen).await.unwrap();
    assert_eq!(told, [(ONE, vec![row(newest)])]);
    let told = catalog.told_since(ONE, &BTreeMap::new()).await.unwrap();
    assert_eq!(told, [(OTHER, Vec::new())]);
}

#[tokio::test]
async fn what_a_node_told_goes_with_the_node() {
    let world = World::new().await;
    let catalog = world.catalog();
    catalog.add_node(ONE).await.unwrap();
    catalog.tell_figures(ONE, &[row(1), row(2)]).await.unwrap();
    catalog.remove_node(ONE).await.unwrap();
    assert_eq!(catalog.told_since(OTHER, &BTreeMap::new()).await.unwrap(), []);
    let refused = catalog.tell_figures(ONE, &[row(3)]).await.unwrap_err();
    assert!(refused.is(MapReason::NodeRemoved), "{refused}");
    catalog.add_node(ONE).await.unwrap();
    let told = catalog.told_since(OTHER, &BTreeMap::new()).await.unwrap();
    assert_eq!(told, [(ONE, Vec::new())], "and comes back without it");
}
