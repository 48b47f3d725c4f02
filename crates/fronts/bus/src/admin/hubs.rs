//! Event hubs and their consumer groups as ATOM entries, as the service's own administration has them. A hub and a queue
//! share the paths of a namespace: what a new one is, its description says.

use std::sync::Arc;
use std::time::Duration;

use lazuli_http::xml::{self, Element};
use lazuli_http::{Response, StatusCode};
use lazuli_log::{Cleanup, Hub, HubSettings, LogReason};

use super::entry::{Entry, Feed, moment};
use super::{Context, Page, Result, content};
use crate::error::Fault;
use crate::eventhubs::from_log;

const ARRAYS: &str = "http://schemas.microsoft.com/2003/10/Serialization/Arrays";
const DAY: Duration = Duration::from_secs(24 * 3600);
const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);
/// What the service calls the ways of cleaning up.
const CLEANUPS: [(Cleanup, &str); 3] = [
    (Cleanup::Delete, "Delete"),
    (Cleanup::Compact, "Compact"),
    (Cleanup::CompactAndDelete, "DeleteOrCompact"),
];
/// The partitions of a hub whose description names no number, as the service has it.
const PARTITIONS_DEFAULT: u32 = 16;
/// The group that every hub has.
const DEFAULT_GROUP: &str = "$Default";

fn number(element: &Element, name: &str) -> Result<Option<u32>> {
    let bad = |text: &str| Fault::argument(format!("The value '{text}' of {name} is invalid."));
    element.child_text(name).map(|text| text.parse().map_err(|_| bad(text))).transpose()
}

/// Reads a description over settings: what the XML does not have stays as it is.
fn read(element: &Element, before: HubSettings) -> Result<HubSettings> {
    let mut settings = before;
    settings.partitions = number(element, "PartitionCount")?.unwrap_or(settings.partitions);
    match number(element, "MessageRetentionInDays")? {
        Some(days) if days > 0 => settings.retention = Some(DAY * days),
        // The service's own default is written as nothing.
        Some(_) | None => {}
    }
    if let Some(retention) = element.child("RetentionDescription") {
        read_retention(retention, &mut settings)?;
    }
    Ok(settings)
}

/// Reads what the service calls the retention: also how events are compacted.
fn read_retention(element: &Element, settings: &mut HubSettings) -> Result<()> {
    let bad = |name: &str, text: &str| {
        Fault::argument(format!("The value '{text}' of {name} is invalid."))
    };
    if let Some(text) = element.child_text("CleanupPolicy") {
        let found = CLEANUPS.iter().find(|(_, name)| name.eq_ignore_ascii_case(text));
        settings.cleanup = found.ok_or_else(|| bad("CleanupPolicy", text))?.0;
    }
    match element.child_text("RetentionTimeInHours") {
        None => {}
        // For ever.
        Some("-1") => settings.retention = None,
        Some(text) => {
            let hours = text.parse::<u32>().ok().filter(|hours| *hours > 0);
            let hours = hours.ok_or_else(|| bad("RetentionTimeInHours", text))?;
            settings.retention = Some(HOUR * hours);
        }
    }
    if let Some(hours) = number(element, "TombstoneRetentionTimeInHours")? {
        settings.compaction.tombstones = HOUR * hours;
    }
    if let Some(minutes) = number(element, "MinCompactionLagTimeInMinutes")? {
        settings.compaction.lag = MINUTE * minutes;
    }
    Ok(())
}

fn describe_retention(out: &mut String, settings: &HubSettings) {
    let hours = |time: Duration| time.as_secs().div_ceil(HOUR.as_secs()).to_string();
    let name = CLEANUPS.iter().find(|(cleanup, _)| *cleanup == settings.cleanup);
    let kept = settings.retention.map_or("-1".to_owned(), hours);
    let lag = settings.compaction.lag.as_secs().div_ceil(MINUTE.as_secs());
    xml::open(out, "RetentionDescription");
    xml::write(out, "CleanupPolicy", name.map_or("", |(_, name)| name));
    xml::write(out, "RetentionTimeInHours", &kept);
    if settings.cleanup.compacts() {
        let tombstones = hours(settings.compaction.tombstones);
        xml::write(out, "TombstoneRetentionTimeInHours", &tombstones);
        xml::write(out, "MinCompactionLagTimeInMinutes", &lag.to_string());
    }
    xml::close(out, "RetentionDescription");
}

fn describe(hub: &Hub) -> String {
    let mut out = String::new();
    let days = hub
        .settings
        .retention
        .map_or(u64::from(u32::MAX), |it| it.as_secs().div_ceil(DAY.as_secs()));
    let created = moment(hub.created_ms);
    xml::write(&mut out, "MessageRetentionInDays", &days.to_string());
    out.push_str("<AuthorizationRules/>");
    for (name, text) in
        [("Status", "Active"), ("CreatedAt", &created), ("UpdatedAt", created.as_str())]
    {
        xml::write(&mut out, name, text);
    }
    xml::write(&mut out, "PartitionCount", &hub.settings.partitions.to_string());
    out.push_str(&format!("<PartitionIds xmlns:a=\"{ARRAYS}\">"));
    for id in 0..hub.settings.partitions {
        xml::write(&mut out, "a:string", &id.to_string());
    }
    out.push_str("</PartitionIds>");
    describe_retention(&mut out, &hub.settings);
    out
}

impl Context<'_> {
    fn hub_entry(&self, hub: &Hub) -> Entry {
        Entry::plain(
            self,
            &hub.name,
            &hub.name,
            hub.created_ms,
            "EventHubDescription",
            describe(hub),
        )
    }

    fn group_entry(&self, hub: &Hub, group: &str) -> Entry {
        let mut inside = String::new();
        let created = moment(hub.created_ms);
        xml::write(&mut inside, "CreatedAt", &created);
        xml::write(&mut inside, "UpdatedAt", &created);
        let path = format!("{}/ConsumerGroups/{group}", hub.name);
        let (created, kind) = (hub.created_ms, "ConsumerGroupDescription");
        Entry::plain(self, &path, group, created, kind, inside)
    }

    /// The hub of this name; none if there is none.
    pub(super) async fn hub(&self, name: &str) -> Result<Option<Arc<Hub>>> {
        match self.logs.hub(&self.namespace, name).await {
            Ok(hub) => Ok(Some(hub)),
            // A queue may have a name that no hub can have.
            Err(error) if error.is(LogReason::HubNotFound) || error.is(LogReason::BadName) => {
                Ok(None)
            }
            Err(error) => Err(from_log(error)),
        }
    }

    async fn need_hub(&self, name: &str) -> Result<Arc<Hub>> {
        self.logs.hub(&self.namespace, name).await.map_err(from_log)
    }

    pub(super) async fn get_hub(&self, name: &str) -> Result<Option<Response>> {
        let hub = self.hub(name).await?;
        Ok(hub.map(|hub| self.hub_entry(&hub).response(StatusCode::OK)))
    }

    pub(super) async fn list_hubs(&self, path: &str, page: Page) -> Result<Response> {
        // Lists are paged by count here and by name in the shape.
        let most = page.skip.saturating_add(page.top).saturating_add(1);
        let all = self.logs.hubs(&self.namespace, None, most).await.map_err(from_log)?;
        let has_more = all.len() >= most;
        let mut feed = Feed::new(self, path, page, has_more);
        for hub in all.iter().skip(page.skip).take(page.top) {
            feed.push(self.hub_entry(hub));
        }
        Ok(feed.response())
    }

    /// Creates or changes a hub, if that is what the body describes.
    pub(super) async fn put_hub(
        &self,
        name: &str,
        body: &[u8],
        is_update: bool,
    ) -> Result<Option<Response>> {
        let Ok(element) = content(body, "EventHubDescription") else { return Ok(None) };
        let (logs, namespace) = (self.logs, self.namespace.as_str());
        if !is_update {
            if self.bus.entity(namespace, name).await.is_ok() {
                let text = format!("There is a queue or topic at '{name}'.");
                return Err(Fault::new(409, "com.microsoft:entity-already-exists", text));
            }
            let settings = read(&element, HubSettings::new(PARTITIONS_DEFAULT))?;
            let hub = logs.create_hub(namespace, name, &settings).await.map_err(from_log)?;
            return Ok(Some(self.hub_entry(&hub).response(StatusCode::CREATED)));
        }
        let before = self.need_hub(name).await?;
        let after = read(&element, before.settings.clone())?;
        let change = |it: &mut HubSettings| {
            it.retention = after.retention;
            it.cleanup = after.cleanup;
            it.compaction = after.compaction;
        };
        let changed = logs.change_hub(namespace, name, change).await;
        changed.map_err(from_log)?;
        let hub = logs.set_partitions(namespace, name, after.partitions).await.map_err(from_log)?;
        Ok(Some(self.hub_entry(&hub).response(StatusCode::OK)))
    }

    pub(super) async fn list_groups(&self, hub: &str, path: &str, page: Page) -> Result<Response> {
        let hub = self.need_hub(hub).await?;
        let groups = hub.settings.groups.iter().map(String::as_str);
        let all: Vec<&str> = std::iter::once(DEFAULT_GROUP).chain(groups).collect();
        let has_more = all.len() > page.skip.saturating_add(page.top);
        let mut feed = Feed::new(self, path, page, has_more);
        for group in all.into_iter().skip(page.skip).take(page.top) {
            feed.push(self.group_entry(&hub, group));
        }
        Ok(feed.response())
    }

    pub(super) async fn get_group(&self, hub: &str, group: &str) -> Result<Response> {
        let hub = self.need_hub(hub).await?;
        if !hub.has_group(group) {
            return Err(Fault::entity_not_found(&format!("{}:{group}", hub.name)));
        }
        Ok(self.group_entry(&hub, group).response(StatusCode::OK))
    }

    pub(super) async fn put_group(
        &self,
        hub: &str,
        group: &str,
        body: &[u8],
        is_update: bool,
    ) -> Result<Response> {
        content(body, "ConsumerGroupDescription")?;
        let found = self.need_hub(hub).await?;
        if is_update {
            return self.get_group(hub, group).await;
        }
        if found.has_group(group) {
            let text = format!("The consumer group '{group}' is there already.");
            return Err(Fault::new(409, "com.microsoft:entity-already-exists", text));
        }
        let hub = self.logs.add_group(&self.namespace, hub, group).await.map_err(from_log)?;
        Ok(self.group_entry(&hub, group).response(StatusCode::CREATED))
    }

    pub(super) async fn delete_group(&self, hub: &str, group: &str) -> Result<()> {
        let found = self.need_hub(hub).await?;
        if group.eq_ignore_ascii_case(DEFAULT_GROUP) {
            return Err(Fault::argument("The default consumer group cannot be deleted."));
        }
        if !found.has_group(group) {
            return Err(Fault::entity_not_found(&format!("{}:{group}", found.name)));
        }
        let without = |settings: &mut HubSettings| {
            settings.groups.retain(|one| !one.eq_ignore_ascii_case(group));
        };
        self.logs.change_hub(&self.namespace, hub, without).await.map(drop).map_err(from_log)
    }
}
