//! The routes of queues, topics and hubs. The name of an entity is one piece of a path, escaped: it may hold slashes.

use lazuli_log::Start;

use super::super::request::{NoOperation, Operation};
use super::super::routes::{Given, Route, change, read};
use super::{EntityPath, From, HubPath, Messaging};

/// How much a page has unless asked otherwise, and at most.
const PER_PAGE: usize = 100;
const PER_PAGE_MAX: usize = 1_000;
const MESSAGES: usize = 32;
const MESSAGES_MAX: usize = 250;

type Made = Result<Operation, NoOperation>;

pub(in crate::admin) const ROUTES: &[Route] = &[
    read("/v1/bus/{account}", "list-entities", |given| {
        let skip = given.parameter("after").map_or(Ok(0), str::parse);
        let skip = skip.map_err(|_| NoOperation::Parameter("after"))?;
        let most = given.limit("limit", PER_PAGE, PER_PAGE_MAX)?;
        made(Messaging::ListEntities { account: given.text("account")?, skip, most })
    })
    .taking(&["after", "limit"]),
    change("POST", "/v1/bus/{account}", "create-entity", |given| {
        made(Messaging::CreateEntity { account: given.text("account")? })
    })
    .recording(&["kind", "name", "partitions", "sessions"]),
    read("/v1/bus/{account}/{entity}", "show-entity", |given| {
        made(Messaging::ShowEntity(entity(given)?))
    }),
    change("DELETE", "/v1/bus/{account}/{entity}", "remove-entity", |given| {
        made(Messaging::DeleteEntity(entity(given)?))
    }),
    read("/v1/bus/{account}/{entity}/messages", "peek-bus-messages", |given| {
        let from = given.parameter("from").map_or(Ok(0), str::parse);
        let from = from.map_err(|_| NoOperation::Parameter("from"))?;
        let most = given.limit("limit", MESSAGES, MESSAGES_MAX)?;
        made(Messaging::Peek { path: entity(given)?, from, most })
    })
    .taking(&["from", "limit"]),
    change("POST", "/v1/bus/{account}/{entity}/messages", "send-bus-message", |given| {
        made(Messaging::Send(entity(given)?))
    }),
    change("DELETE", "/v1/bus/{account}/{entity}/messages", "purge-bus-messages", |given| {
        made(Messaging::Purge(entity(given)?))
    }),
    change("POST", "/v1/bus/{account}/{entity}/resubmit", "resubmit-dead-letters", |given| {
        made(Messaging::Resubmit(entity(given)?))
    })
    .recording(&["numbers"]),
    read("/v1/bus-rules/{account}", "list-bus-rules", |given| {
        made(Messaging::ListRules { account: given.text("account")? })
    }),
    change("PUT", "/v1/bus-rules/{account}/{rule}", "set-bus-rule", |given| {
        let (account, rule) = (given.text("account")?, given.text("rule")?);
        made(Messaging::SetRule { account, rule })
    })
    .recording(&["rights"]),
    change("DELETE", "/v1/bus-rules/{account}/{rule}", "delete-bus-rule", |given| {
        let (account, rule) = (given.text("account")?, given.text("rule")?);
        made(Messaging::DeleteRule { account, rule })
    }),
    read("/v1/hubs/{account}", "list-hubs", |given| {
        let (account, after) = (given.text("account")?, given.parameter("after"));
        let after = after.map(str::to_owned);
        let most = given.limit("limit", PER_PAGE, PER_PAGE_MAX)?;
        made(Messaging::ListHubs { account, after, most })
    })
    .taking(&["after", "limit"]),
    change("POST", "/v1/hubs/{account}", "create-hub", |given| {
        made(Messaging::CreateHub { account: given.text("account")? })
    })
    .recording(&["name", "partitions", "retention_hours", "retention_bytes", "cleanup"]),
    read("/v1/hubs/{account}/{hub}", "show-hub", |given| made(Messaging::ShowHub(hub(given)?))),
    change("DELETE", "/v1/hubs/{account}/{hub}", "delete-hub", |given| {
        made(Messaging::DeleteHub(hub(given)?))
    }),
    change("PUT", "/v1/hubs/{account}/{hub}/partitions", "set-hub-partitions", |given| {
        made(Messaging::SetPartitions(hub(given)?))
    })
    .recording(&["count"]),
    change("PUT", "/v1/hubs/{account}/{hub}/capture", "set-hub-capture", |given| {
        made(Messaging::SetCapture(hub(given)?))
    })
    .recording(&["container", "seconds", "bytes"]),
    change("DELETE", "/v1/hubs/{account}/{hub}/capture", "end-hub-capture", |given| {
        made(Messaging::EndCapture(hub(given)?))
    }),
    read("/v1/hubs/{account}/{hub}/events", "read-events", |given| {
        let partition = given.required("partition")?.parse();
        let partition = partition.map_err(|_| NoOperation::Parameter("partition"))?;
        let from = match given.parameter("from") {
            None | Some("first") => From::Start(Start::First),
            Some("end") => From::Start(Start::End),
            Some(offset) => {
                From::Offset(offset.parse().map_err(|_| NoOperation::Parameter("from"))?)
            }
        };
        let most = given.limit("limit", MESSAGES, MESSAGES_MAX)?;
        made(Messaging::ReadEvents { path: hub(given)?, partition, from, most })
    })
    .taking(&["partition", "from", "limit"]),
    change("POST", "/v1/hubs/{account}/{hub}/events", "send-event", |given| {
        made(Messaging::SendEvent(hub(given)?))
    }),
    change("POST", "/v1/hubs/{account}/{hub}/groups", "add-hub-group", |given| {
        made(Messaging::AddGroup(hub(given)?))
    })
    .recording(&["name"]),
    change("DELETE", "/v1/hubs/{account}/{hub}/groups/{group}", "delete-hub-group", |given| {
        made(Messaging::DeleteGroup { path: hub(given)?, group: given.text("group")? })
    }),
];

fn made(messaging: Messaging) -> Made {
    Ok(Operation::Messaging(messaging))
}

fn entity(given: &Given<'_, '_>) -> Result<EntityPath, NoOperation> {
    Ok(EntityPath { account: given.text("account")?, entity: given.text("entity")? })
}

fn hub(given: &Given<'_, '_>) -> Result<HubPath, NoOperation> {
    Ok(HubPath { account: given.text("account")?, hub: given.text("hub")? })
}
