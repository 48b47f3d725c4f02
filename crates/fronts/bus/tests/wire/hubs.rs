//! Hubs over AMQP, where the official SDKs don't reach: idempotent publishers, many deliveries at once, and the
//! administration of hubs and consumer groups.

use lazuli_amqp::performative::{Attach, Performative, RECEIVER, SENDER};
use lazuli_amqp::{DeliveryState, Map, Terminus, Value, Writer};
use lazuli_log::HubSettings;
use lazuli_shardmap::PartitionState;
use lazuli_shardmap::manager::Known;
use lazuli_store::KeyRange;

use crate::world::{NAMESPACE, Talk, World, text};

const EPOCH: &str = "com.microsoft:producer-epoch";
const ID: &str = "com.microsoft:producer-id";
const SEQUENCE: &str = "com.microsoft:producer-sequence-number";
const IDEMPOTENT: &str = "com.microsoft:idempotent-producer";

/// Attaches an idempotent publisher of a partition, and answers what the server says of it.
async fn publisher(talk: &mut Talk, handle: u32, properties: Map) -> Map {
    let attach = Attach {
        name: format!("publisher {handle}"),
        handle,
        role: SENDER,
        source: Some(Terminus::source("plain client")),
        target: Some(Terminus::target("hub/Partitions/0")),
        initial_delivery_count: Some(0),
        desired_capabilities: vec![IDEMPOTENT.into()],
        properties,
        ..Attach::default()
    };
    let name = attach.name.clone();
    talk.0.say(0, Performative::Attach(Box::new(attach)));
    talk.until(|heard| match &heard.performative {
        Performative::Attach(answer) if answer.name == name => {
            assert!(answer.offered_capabilities.iter().any(|one| one.0 == IDEMPOTENT));
            Some(answer.properties.clone())
        }
        _ => None,
    })
    .await
}

fn event(body: &str, sequence: i32) -> bytes::Bytes {
    let annotations = Map::default().with(SEQUENCE, sequence);
    Writer::new().message_annotations(&annotations).data(body.as_bytes()).finish()
}

async fn count(world: &World) -> u64 {
    let hub = world.logs.hub(NAMESPACE, "hub").await.unwrap();
    world.logs.state(&hub, 0).await.unwrap().next
}

#[tokio::test]
async fn an_idempotent_publisher_is_stored_once_in_order_and_puts_its_former_self_out() {
    let world = World::start().await;
    world.logs.create_hub(NAMESPACE, "hub", &HubSettings::new(1)).await.unwrap();
    let mut talk = world.client().await;
    let given = publisher(&mut talk, 0, Map::default().with(ID, Value::Null)).await;
    let id = given.integer(ID).unwrap();
    assert_eq!((given.integer(EPOCH), given.integer(SEQUENCE)), (Some(0), Some(0)));
    for (delivery, sequence) in [(10, 0), (11, 1), (12, 1), (13, 0)] {
        // What was sent before is accepted again, and not stored again.
        let answer = talk.send(0, delivery, &event("e", sequence), None).await;
        assert_eq!(answer, DeliveryState::Accepted);
    }
    assert_eq!(count(&world).await, 2);
    let gap = talk.send(0, 14, &event("e", 5), None).await;
    let DeliveryState::Rejected(Some(error)) = gap else { panic!("a gap is refused") };
    assert!(error.condition.0.contains("sequence"), "{error:?}");

    let again = Map::default().with(ID, id).with(EPOCH, 1_i16).with(SEQUENCE, 0);
    let given = publisher(&mut talk, 1, again).await;
    assert_eq!((given.integer(ID), given.integer(EPOCH)), (Some(id), Some(1)));
    assert_eq!(talk.send(1, 15, &event("new", 0), None).await, DeliveryState::Accepted);
    let old = talk.send(0, 16, &event("old", 2), None).await;
    let DeliveryState::Rejected(Some(error)) = old else { panic!("the former one is out") };
    assert_eq!(error.condition.0, "com.microsoft:producer-epoch-stolen");
    assert_eq!(count(&world).await, 3);
}

#[tokio::test]
async fn what_is_sent_without_waiting_is_stored_in_its_order() {
    let world = World::start().await;
    world.logs.create_hub(NAMESPACE, "hub", &HubSettings::new(1)).await.unwrap();
    let mut talk = world.client().await;
    talk.0.attach_sender(0, Terminus::target("hub"));
    for id in 0..200 {
        talk.transfer(0, id, &text(&id.to_string()), None);
    }
    let mut answered = 0;
    while answered < 200 {
        answered += talk
            .until(|heard| match &heard.performative {
                Performative::Disposition(said) if said.role == RECEIVER => {
                    assert_eq!(said.state, Some(DeliveryState::Accepted));
                    Some(said.last.unwrap_or(said.first) - said.first + 1)
                }
                _ => None,
            })
            .await;
    }
    let source = Terminus::source("hub/ConsumerGroups/$Default/Partitions/0");
    let name = "apache.org:selector-filter:string";
    let first = Value::described(Value::symbol(name), "amqp.annotation.x-opt-offset > '-1'".into());
    talk.0.attach_receiver(1, source.with_filter(name, first));
    talk.0.credit(1, 0, 300, false);
    for id in 0..200 {
        assert_eq!(talk.message().await.1, id.to_string());
    }
}

#[tokio::test]
async fn events_without_a_key_pass_over_a_partition_that_is_down() {
    let world = World::start().await;
    let hub = world.logs.create_hub(NAMESPACE, "hub", &HubSettings::new(3)).await.unwrap();
    let manager = world.logs.engine().manager().clone();
    let entries = manager.catalog().partitions_in(hub.id(), &KeyRange::all(), 10).await.unwrap();
    let known = Known::from(&entries[1].partition);
    manager.set_state(known, PartitionState::Offline).await.unwrap();
    let mut talk = world.client().await;
    talk.0.attach_sender(0, Terminus::target("hub"));
    for id in 0..12 {
        assert_eq!(talk.send(0, id, &text("e"), None).await, DeliveryState::Accepted);
    }
    let mut counts = Vec::new();
    for partition in [0, 2] {
        counts.push(world.logs.state(&hub, partition).await.unwrap().next);
    }
    assert_eq!(counts.iter().sum::<u64>(), 12);
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    // Whoever names the partition is told.
    talk.0.attach_sender(1, Terminus::target("hub/Partitions/1"));
    let refused = talk.send(1, 20, &text("e"), None).await;
    assert!(matches!(refused, DeliveryState::Rejected(Some(_))), "{refused:?}");
}

fn entry(kind: &str, inside: &str) -> String {
    format!(
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\"><{kind}>\
         {inside}</{kind}></content></entry>"
    )
}

#[tokio::test]
async fn hubs_and_their_consumer_groups_are_made_by_the_administration() {
    let world = World::start().await;
    let hub = entry(
        "EventHubDescription",
        "<MessageRetentionInDays>3</MessageRetentionInDays><PartitionCount>2</PartitionCount>",
    );
    assert_eq!(world.administer("PUT", "/clicks?api-version=2014-01", &hub).await.0, 201);
    assert_eq!(world.administer("PUT", "/clicks?api-version=2014-01", &hub).await.0, 409);
    // A queue and a hub share their names.
    let queue = entry("QueueDescription", "");
    assert_eq!(world.administer("PUT", "/clicks?api-version=2021-05", &queue).await.0, 409);
    assert_eq!(world.administer("PUT", "/one?api-version=2014-01", &hub).await.0, 409);
    let (status, shown) = world.administer("GET", "/clicks?api-version=2014-01", "").await;
    assert_eq!(status, 200);
    for part in ["<MessageRetentionInDays>3<", "<PartitionCount>2<", "<a:string>1</a:string>"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let listed = world.administer("GET", "/$Resources/eventhubs?api-version=2014-01", "").await.1;
    assert!(listed.contains(">clicks</title>"), "{listed}");

    let compacted = entry(
        "EventHubDescription",
        "<PartitionCount>1</PartitionCount><RetentionDescription>\
         <CleanupPolicy>DeleteOrCompact</CleanupPolicy>\
         <RetentionTimeInHours>36</RetentionTimeInHours>\
         <TombstoneRetentionTimeInHours>2</TombstoneRetentionTimeInHours>\
         <MinCompactionLagTimeInMinutes>5</MinCompactionLagTimeInMinutes></RetentionDescription>",
    );
    assert_eq!(world.administer("PUT", "/kept?api-version=2014-01", &compacted).await.0, 201);
    let settings = world.logs.hub(NAMESPACE, "kept").await.unwrap().settings.clone();
    assert_eq!(settings.cleanup, lazuli_log::Cleanup::CompactAndDelete);
    let seconds = |time: std::time::Duration| time.as_secs();
    assert_eq!(settings.retention.map(seconds), Some(36 * 3600));
    assert_eq!(seconds(settings.compaction.tombstones), 2 * 3600);
    assert_eq!(seconds(settings.compaction.lag), 300);
    let shown = world.administer("GET", "/kept?api-version=2014-01", "").await.1;
    assert!(shown.contains("<CleanupPolicy>DeleteOrCompact<"), "{shown}");
    let wrong = compacted.replace("DeleteOrCompact", "Keep");
    assert_eq!(world.administer("PUT", "/other?api-version=2014-01", &wrong).await.0, 400);

    let group = entry("ConsumerGroupDescription", "");
    let path = "/clicks/consumergroups/reports?api-version=2014-01";
    let mut talk = world.client().await;
    let source = || Terminus::source("clicks/ConsumerGroups/reports/Partitions/0");
    talk.0.attach_receiver(0, source());
    assert_eq!(talk.refusal().await, "amqp:not-found");
    assert_eq!(world.administer("PUT", path, &group).await.0, 201);
    assert_eq!(world.administer("PUT", path, &group).await.0, 409);
    let groups = world.administer("GET", "/clicks/consumergroups?api-version=2014-01", "").await.1;
    assert!(groups.contains(">$Default<") && groups.contains(">reports<"), "{groups}");
    talk.0.attach_receiver(1, source());
    let accepted = talk
        .until(|heard| match &heard.performative {
            Performative::Attach(answer) if answer.name == "receiver 1" => {
                Some(answer.source.is_some())
            }
            _ => None,
        })
        .await;
    assert!(accepted, "the group is there now");
    assert_eq!(world.administer("DELETE", path, "").await.0, 200);
    assert_eq!(world.administer("DELETE", path, "").await.0, 404);
    let default = "/clicks/consumergroups/$Default?api-version=2014-01";
    assert_eq!(world.administer("DELETE", default, "").await.0, 400);
    assert_eq!(world.administer("DELETE", "/clicks?api-version=2014-01", "").await.0, 200);
    assert!(world.logs.hub(NAMESPACE, "clicks").await.is_err());
}
