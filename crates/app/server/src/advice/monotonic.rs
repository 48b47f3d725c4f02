//! Keys that only grow or only shrink: all inserts land at one end, so one partition does all the work, however many
//! there are (T6, B3).

use lazuli_engine::{Container, End, HASHED_SLICES, HotEnd, KeyPart, KeySchema, LATE_MAX};
use lazuli_store::{Kind, Result};
use serde_json::json;

use super::{Advice, time_of};
use crate::running::Running;

pub(super) async fn advise(running: &Running) -> Result<Vec<Advice>> {
    let mut all = Vec::new();
    for hot in running.history.hot_ends() {
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
    let finding = match blobs_of(container, hot) {
        Some(name) => format!("new blobs of container {name} land at the {end} end of the names"),
        None => format!("inserts land at the {end} end of the partition keys"),
    };
    Advice {
        kind: "monotonic-keys",
        map: container.name.clone(),
        finding,
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
            format!(
                "with hashed keys the busiest of {HASHED_SLICES} equal slices would have taken {} of \
                 them ({} %)",
                hot.busiest_slice,
                percent(hot.busiest_slice)
            ),
        ],
        figures: json!({
            "end": end,
            "inserts": inserts,
            "at_end": at_end,
            "moves": moves,
            "partition": hot.partition.0,
            "in_partition": in_partition,
            "busiest_hashed_slice": hot.busiest_slice,
            "since": since,
        }),
        remedies: remedies(container),
    }
}

/// The container of blobs whose names grow.
fn blobs_of(container: &Container, hot: &HotEnd) -> Option<String> {
    let leading = container.key.types().split_last()?.1;
    if !is_blobs(container) || leading.is_empty() {
        return None;
    }
    let parts = KeySchema::new(leading).and_then(|schema| schema.decode(&hot.group)).ok()?;
    match parts.into_iter().next() {
        Some(KeyPart::Text(name)) => Some(name),
        _ => None,
    }
}

fn is_blobs(container: &Container) -> bool {
    container.name.starts_with("blobs/")
}

fn remedies(container: &Container) -> Vec<String> {
    if is_blobs(container) {
        return vec![
            "hash the names: make the container with the header `x-lazuli-map: hash`; lists stay \
             in order and put sixteen ranges together"
                .to_owned(),
            "or begin names with some digits of a hash of the rest, such as 3f/2026/11/16/a.jpg: new \
             blobs then spread over the whole range; a list in order of time asks once for each \
             prefix"
                .to_owned(),
            "or begin them with what varies: a customer, a device".to_owned(),
            "or write a counter's digits in reverse, the fastest first".to_owned(),
        ];
    }
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
    use bytes::Bytes;
    use lazuli_engine::{ContainerId, KeyType, MapKind, PartitionId, Policies};
    use std::time::Duration;

    fn container(name: &str, key: KeySchema) -> Container {
        Container {
            id: ContainerId(1),
            name: name.into(),
            kind: MapKind::Range,
            key,
            schema: "record/1".into(),
            placement: vec![],
            policies: Policies::default(),
            version: 1,
        }
    }

    fn hot() -> HotEnd {
        HotEnd {
            container: ContainerId(1),
            end: End::Low,
            inserts: 2_000,
            at_end: 1_900,
            moves: 1_800,
            partition: PartitionId(4),
            in_partition: 2_000,
            busiest_slice: 140,
            group: Bytes::new(),
            since: Duration::ZERO,
        }
    }

    #[test]
    fn blobs_are_advised_by_container() {
        let parts = [KeyType::Text, KeyType::Int64];
        let group = KeySchema::new(parts).unwrap().encode(&["logs".into(), KeyPart::Int64(7)]);
        let key = KeySchema::new([KeyType::Text, KeyType::Int64, KeyType::Text]).unwrap();
        let hot = HotEnd { group: group.unwrap(), ..hot() };
        let advice = advice(&container("blobs/a", key), &hot, "2026-01-01T00:00:00Z");
        assert_eq!(advice.finding, "new blobs of container logs land at the low end of the names");
        assert!(advice.remedies[0].contains("x-lazuli-map: hash"));
        assert!(advice.remedies[1].starts_with("or begin names with some digits of a hash"));
    }

    #[test]
    fn the_evidence_names_the_end_and_the_share() {
        let container = container("tables/a/events", KeySchema::one(KeyType::Text));
        let advice = advice(&container, &hot(), "2026-01-01T00:00:00Z");
        assert_eq!(advice.finding, "inserts land at the low end of the partition keys");
        assert_eq!(
            advice.evidence,
            [
                "1900 of 2000 inserts (95 %) since 2026-01-01T00:00:00Z landed beyond the lowest key so \
                 far; up to 128 places late counts as in order",
                "the lowest key moved on 1800 times",
                "the first partition took 2000 of them (100 %); now it is partition 4",
                "with hashed keys the busiest of 16 equal slices would have taken 140 of them (7 %)",
            ]
        );
        assert!(advice.remedies[0].contains("x-lazuli-map: hash"));
    }
}
