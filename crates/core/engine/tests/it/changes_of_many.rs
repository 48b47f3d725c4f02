//! Transactions that change many items, after a look at all of them at once, against a plain map.

use std::collections::BTreeMap;

use crate::world::{World, item_key, route};
use bytes::Bytes;
use lazuli_engine::{Condition, ItemKey, Result, Transaction, Tx};
use lazuli_shardmap::manager::Cuts;
use lazuli_shardmap::{MapKind, Policies};

#[derive(Clone)]
struct Step {
    row: u32,
    condition: Condition,
    /// None deletes.
    payload: Option<Bytes>,
}

struct ChangeMany {
    keys: Vec<ItemKey>,
    steps: Vec<Step>,
}

impl Transaction for ChangeMany {
    type Output = ();

    async fn run(&self, tx: &mut Tx<'_>) -> Result<()> {
        tx.foresee(self.keys.iter()).await?;
        for (key, step) in self.keys.iter().zip(&self.steps) {
            tx.change(key, step.condition, |_| Ok(step.payload.clone())).await?;
            let found = tx.get(key).await?;
            assert_eq!(found.map(|item| item.payload), step.payload, "it sees its own writes");
        }
        Ok(())
    }
}

/// Whether all steps may be made, and what is there then.
fn modelled(model: &BTreeMap<u32, Bytes>, steps: &[Step]) -> Option<BTreeMap<u32, Bytes>> {
    let mut after = model.clone();
    for step in steps {
        let is_there = after.contains_key(&step.row);
        match step.condition {
            Condition::Absent if is_there => return None,
            Condition::Present if !is_there => return None,
            _ => {}
        }
        match step.payload.clone() {
            Some(payload) => after.insert(step.row, payload),
            None => after.remove(&step.row),
        };
    }
    Some(after)
}

/// Rows in stretches, some new and some not, some twice in one transaction; a third of the transactions fail.
#[tokio::test]
async fn many_changes_do_what_one_by_one_would() {
    let world = World::new(1).await;
    let container = world.create("c", MapKind::Range, Cuts::At(vec![]), Policies::default()).await;
    let mut model = BTreeMap::new();
    let (mut made, mut refused) = (0, 0);
    for round in 0..300u32 {
        let draw = |n: u32| (round * 31 + n).wrapping_mul(2_654_435_761) >> 16;
        let first = draw(0) % 400;
        let steps: Vec<Step> = (0..1 + draw(1) % 8)
            .map(|n| Step {
                row: first + if draw(n + 2) % 9 == 0 { 0 } else { n },
                condition: match draw(n + 20) % 12 {
                    0 => Condition::Present,
                    1 => Condition::Absent,
                    _ => Condition::Any,
                },
                payload: (draw(n + 40) % 4 != 0).then(|| format!("value {round} {n}").into()),
            })
            .collect();
        let key = |step: &Step| item_key(&container, "p", &format!("{:04}", step.row));
        let keys = steps.iter().map(key).collect();
        let change = ChangeMany { keys, steps: steps.clone() };
        let answer = world.engine.write(container.id, &route(&container, "p"), change).await;
        match modelled(&model, &steps) {
            Some(after) => {
                answer.unwrap();
                (model, made) = (after, made + 1);
            }
            None => {
                assert!(answer.is_err(), "round {round}");
                refused += 1;
            }
        }
    }
    assert!(made > 50 && refused > 50, "{made} made, {refused} refused");
    for row in 0..410 {
        let found = world.get(&container, "p", &format!("{row:04}")).await.unwrap();
        assert_eq!(found.map(Bytes::from), model.get(&row).cloned(), "row {row}");
    }
    let partition = world.partitions(&container).await[0].clone();
    let stats = world.engine.partition_stats(partition.id, partition.shard).await.unwrap();
    assert_eq!(stats.counts.items, model.len() as u64);
}
