//! Keys that only grow or only shrink: all inserts land at one end, so one partition does all the work, however many
//! there are (T6).

use lazuli_engine::{Container, End, HotEnd, LATE_MAX};
use lazuli_store::{Kind, Result};
use serde_json::json;

use super::{Advice, time_of};
use crate::running::Running;

pub(super) async fn advise(running: &Running) -> Result<Vec<Advice>> {
    let mut all = Vec::new();
    for hot in running.engine.hot_ends() {
        match running.catalog().container(hot.container).await {
            Ok(container) => {
                let since = time_of(&*running.engine.env().clock, hot.since);
                all.push(advice(&container, &hot, &since));
            }
            // Deleted a moment ago.
            Err(error) if error.kind() == Kind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

fn advice(container: &Container, hot: &HotEnd, since: &str) -> Advice {
    let HotEnd { inserts, at_end, moves, in_partition, .. } = hot;
    let (end, highest, last) = match hot.end {
        End::High => ("high", "highest", "last"),
        End::Low => ("low", "lowest", "first"),
    };
    let percent = |part: u64| part * 100 / inserts.max(&1);
    Advice {
        kind: "monotonic-keys",
        map: container.name.clone(),
        finding: format!("inserts land at the {end} end of the partition keys"),
        evidence: vec![
            format!(
                "{at_end} of {inserts} inserts ({} %) since {since} landed beyond the {highest} key so \
                 far; up to {LATE_MAX} places late counts as in order",
                percent(*at_end)
            ),
            format!("the {highest} key moved on {moves} times"),
            format!(
                "the {last} partition took {in_partition} of them ({} %); now it is partition {}",
                percent(*in_partition),
                hot.partition
            ),
        ],
        figures: json!({
            "end": end,
            "inserts": inserts,
            "at_end": at_end,
            "moves": moves,
            "partition": hot.partition.0,
            "in_partition": in_partition,
            "since": since,
        }),
        remedies: remedies(container),
    }
}

fn remedies(container: &Container) -> Vec<String> {
    let hash = if container.name.starts_with("tables/") {
        "hash the key: make the table by `lazuli table create NAME --hashed`, or with the header \
         `x-lazuli-map: hash`; ranges of partition keys are then asked of all partitions"
    } else {
        "hash the key: make the container with a hash map; ranges of partition keys are then asked \
         of all partitions"
    };
    vec![
        hash.to_owned(),
        "or begin the key with what varies: a customer, a device, some digits of a hash".to_owned(),
        "or write a counter's digits in reverse, the fastest first".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lazuli_engine::{ContainerId, KeySchema, KeyType, MapKind, PartitionId, Policies};
    use std::time::Duration;

    #[test]
    fn the_evidence_names_the_end_and_the_share() {
        let container = Container {
            id: ContainerId(1),
            name: "tables/a/events".into(),
            kind: MapKind::Range,
            key: KeySchema::one(KeyType::Text),
            schema: "record/1".into(),
            placement: vec![],
            policies: Policies::default(),
            version: 1,
        };
        let hot = HotEnd {
            container: container.id,
            end: End::Low,
            inserts: 2_000,
            at_end: 1_900,
            moves: 1_800,
            partition: PartitionId(4),
            in_partition: 2_000,
            since: Duration::ZERO,
        };
        let advice = advice(&container, &hot, "2026-01-01T00:00:00Z");
        assert_eq!(advice.finding, "inserts land at the low end of the partition keys");
        assert_eq!(
            advice.evidence,
            [
                "1900 of 2000 inserts (95 %) since 2026-01-01T00:00:00Z landed beyond the lowest key so \
                 far; up to 128 places late counts as in order",
                "the lowest key moved on 1800 times",
                "the first partition took 2000 of them (100 %); now it is partition 4",
            ]
        );
        assert!(advice.remedies[0].contains("x-lazuli-map: hash"));
    }
}
