//! What a hub is: its name, its settings, and how its keys are made. All of it is kept in the attributes of its container.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::{Container, Error, ItemKey, KeyPart, Result, Space};

use crate::LogReason;
use crate::limits::{
    CAPTURE_BYTES_MAX, GROUPS_MAX, NAME_BYTES_MAX, PARTITIONS_MAX, RETENTION_DEFAULT,
    TOMBSTONES_DEFAULT,
};
use crate::rows::damaged;

/// The group that every hub has.
pub(crate) const DEFAULT_GROUP: &str = "$Default";

const TITLE: &str = "title";
const CREATED: &str = "created-ms";
pub(crate) const PARTITIONS: &str = "partitions";
pub(crate) const LAYOUT: &str = "layout";
pub(crate) const GROWING: &str = "growing";
const RETENTION_MS: &str = "retention-ms";
const RETENTION_BYTES: &str = "retention-bytes";
const COMPACT: &str = "compact";
const TOMBSTONES_MS: &str = "tombstones-ms";
const LAG_MS: &str = "compaction-lag-ms";
const DIRTY: &str = "dirty-permille";
const GROUP: &str = "group/";
const CAPTURE: &str = "capture";

/// What people choose about a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubSettings {
    pub partitions: u32,
    /// How long records stay; none means for ever.
    pub retention: Option<Duration>,
    /// How many bytes of records a partition keeps; none means all.
    pub retention_bytes: Option<u64>,
    pub cleanup: Cleanup,
    /// How compaction goes, where there is any.
    pub compaction: Compaction,
    /// Consumer groups besides the default one, for readers over AMQP.
    pub groups: BTreeSet<String>,
    /// Where records are captured as files.
    pub capture: Option<Capture>,
}

/// What may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cleanup {
    /// What is older than the retention, or beyond its size.
    #[default]
    Delete,
    /// All records of a key but its newest.
    Compact,
    /// Both of it.
    CompactAndDelete,
}

impl Cleanup {
    pub fn compacts(self) -> bool {
        self != Self::Delete
    }

    pub fn deletes(self) -> bool {
        self != Self::Compact
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Compact => "compact",
            Self::CompactAndDelete => "compact,delete",
        }
    }

    /// The policies of a list with commas, in any order.
    pub fn of_name(name: &str) -> Option<Self> {
        let (mut compacts, mut deletes) = (false, false);
        for word in name.split(',').map(str::trim) {
            match word {
                "compact" => compacts = true,
                "delete" => deletes = true,
                _ => return None,
            }
        }
        Some(match (compacts, deletes) {
            (true, true) => Self::CompactAndDelete,
            (true, false) => Self::Compact,
            (false, _) => Self::Delete,
        })
    }
}

/// How a log is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// How long a record stays that says that its key is gone, from when the older records of the key went.
    pub tombstones: Duration,
    /// How long every record stays.
    pub lag: Duration,
    /// Which part of a log is new before it is compacted again, in thousandths of its bytes.
    pub dirty_permille: u32,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { tombstones: TOMBSTONES_DEFAULT, lag: Duration::ZERO, dirty_permille: 500 }
    }
}

/// Where the records of a hub are written to as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The blob container.
    pub container: String,
    /// After how long a file is ended.
    pub seconds: u32,
    /// After how many bytes a file is ended.
    pub bytes: u64,
}

impl HubSettings {
    pub fn new(partitions: u32) -> Self {
        Self {
            partitions,
            retention: Some(RETENTION_DEFAULT),
            retention_bytes: None,
            cleanup: Cleanup::Delete,
            compaction: Compaction::default(),
            groups: BTreeSet::new(),
            capture: None,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Error::invalid(LogReason::BadSettings, message));
        if self.partitions == 0 || self.partitions > PARTITIONS_MAX {
            return bad(format!("a hub has 1 to {PARTITIONS_MAX} partitions"));
        }
        if self.retention.is_some_and(|retention| retention.is_zero()) {
            return bad("records stay for longer than no time".to_owned());
        }
        if self.compaction.dirty_permille > 1_000 {
            return bad("no more than all of a log is new".to_owned());
        }
        if let Some(capture) = &self.capture {
            let is_sized = (1..=CAPTURE_BYTES_MAX).contains(&capture.bytes);
            if !is_sized || capture.seconds == 0 || capture.container.is_empty() {
                return bad(format!(
                    "files of events have 1 to {CAPTURE_BYTES_MAX} bytes, are ended after a second or \
                     more, and go to a container that has a name"
                ));
            }
        }
        if self.groups.len() > GROUPS_MAX {
            return bad(format!("a hub has up to {GROUPS_MAX} consumer groups"));
        }
        self.groups.iter().try_for_each(|group| check_group_name(group))
    }

    /// As attributes of the container.
    pub(crate) fn write(&self, attributes: &mut BTreeMap<String, String>) {
        let mut set = |name: &str, value: Option<String>| match value {
            Some(value) => drop(attributes.insert(name.to_owned(), value)),
            None => drop(attributes.remove(name)),
        };
        set(RETENTION_MS, self.retention.map(|retention| retention.as_millis().to_string()));
        set(RETENTION_BYTES, self.retention_bytes.map(|bytes| bytes.to_string()));
        set(COMPACT, self.cleanup.compacts().then(|| self.cleanup.name().to_owned()));
        let Compaction { tombstones, lag, dirty_permille } = self.compaction;
        set(TOMBSTONES_MS, Some(tombstones.as_millis().to_string()));
        set(LAG_MS, Some(lag.as_millis().to_string()));
        set(DIRTY, Some(dirty_permille.to_string()));
        let capture = self.capture.as_ref();
        let capture = capture.map(|it| format!("{} {} {}", it.seconds, it.bytes, it.container));
        set(CAPTURE, capture);
        attributes.retain(|name, _| !name.starts_with(GROUP));
        attributes
            .extend(self.groups.iter().map(|group| (format!("{GROUP}{group}"), String::new())));
    }
}

/// A hub as its container says it is.
#[derive(Clone, Debug)]
pub struct Hub {
    /// As people wrote it.
    pub name: String,
    pub settings: HubSettings,
    pub created_ms: u64,
    /// Grows when partitions are added: appends by key say by which layout they were routed.
    pub(crate) layout: u64,
    /// To how many partitions the hub is growing.
    pub(crate) growing: Option<u32>,
    pub(crate) container: Arc<Container>,
}

/// A hub that was read from a version of its container.
pub(crate) type Known = Arc<Hub>;

impl Hub {
    /// The hub that this container keeps.
    pub(crate) fn of(container: Arc<Container>) -> Result<Self> {
        let attributes = &container.policies.attributes;
        let bad = || damaged("what is kept of a hub");
        let number = |name: &str| -> Result<Option<u64>> {
            attributes.get(name).map(|text| text.parse().map_err(|_| bad())).transpose()
        };
        let millis = |name: &str| Ok::<_, Error>(number(name)?.map(Duration::from_millis));
        let small = |number: u64| u32::try_from(number).map_err(|_| bad());
        let partitions = small(number(PARTITIONS)?.ok_or_else(bad)?)?;
        let groups = attributes.keys().filter_map(|name| name.strip_prefix(GROUP));
        let capture = attributes.get(CAPTURE).map(|text| {
            let mut parts = text.splitn(3, ' ');
            let mut part = || parts.next().ok_or_else(bad);
            let seconds = part()?.parse().map_err(|_| bad())?;
            let bytes = part()?.parse().map_err(|_| bad())?;
            Ok::<_, Error>(Capture { seconds, bytes, container: part()?.to_owned() })
        });
        let settings = HubSettings {
            partitions,
            retention: millis(RETENTION_MS)?,
            retention_bytes: number(RETENTION_BYTES)?,
            cleanup: match attributes.get(COMPACT) {
                Some(name) => Cleanup::of_name(name).ok_or_else(bad)?,
                None => Cleanup::Delete,
            },
            compaction: Compaction {
                tombstones: millis(TOMBSTONES_MS)?.unwrap_or(TOMBSTONES_DEFAULT),
                lag: millis(LAG_MS)?.unwrap_or_default(),
                dirty_permille: number(DIRTY)?.map_or(Ok(500), small)?,
            },
            groups: groups.map(str::to_owned).collect(),
            capture: capture.transpose()?,
        };
        Ok(Self {
            name: attributes.get(TITLE).cloned().ok_or_else(bad)?,
            settings,
            created_ms: number(CREATED)?.unwrap_or(0),
            layout: number(LAYOUT)?.unwrap_or(0),
            growing: number(GROWING)?.map(small).transpose()?,
            container,
        })
    }

    /// The attributes of the container of a new hub, which has no partitions yet.
    pub(crate) fn attributes(
        name: &str,
        settings: &HubSettings,
        now_ms: u64,
    ) -> BTreeMap<String, String> {
        let mut attributes = BTreeMap::from([
            (TITLE.to_owned(), name.to_owned()),
            (CREATED.to_owned(), now_ms.to_string()),
            (PARTITIONS.to_owned(), "0".to_owned()),
            (LAYOUT.to_owned(), "0".to_owned()),
            (GROWING.to_owned(), settings.partitions.to_string()),
        ]);
        settings.write(&mut attributes);
        attributes
    }

    /// Names this hub, and not another one of its name before or after it.
    pub fn id(&self) -> lazuli_engine::ContainerId {
        self.container.id
    }

    /// Whether readers over AMQP may name this group.
    pub fn has_group(&self, group: &str) -> bool {
        let same = |one: &String| one.eq_ignore_ascii_case(group);
        group.eq_ignore_ascii_case(DEFAULT_GROUP) || self.settings.groups.iter().any(same)
    }

    /// Where a partition of this hub is kept. Fails with `NotFound` if it has none of this number.
    pub(crate) fn log(&self, partition: u32) -> Result<LogPlace> {
        if partition >= self.settings.partitions {
            let message = format!("hub {} has no partition {partition}", self.name);
            return Err(Error::not_found(LogReason::NoSuchPartition, message));
        }
        LogPlace::new(&self.container, partition)
    }
}

/// How the keys of one log are made.
#[derive(Clone)]
pub(crate) struct LogPlace {
    pub(crate) container: lazuli_engine::ContainerId,
    pub(crate) partition: u32,
    pub(crate) route: Bytes,
}

impl LogPlace {
    pub(crate) fn new(container: &Container, partition: u32) -> Result<Self> {
        let number = i32::try_from(partition).unwrap_or(i32::MAX);
        let route = container.kind.route(&container.key, &[KeyPart::Int32(number)])?;
        Ok(Self { container: container.id, partition, route })
    }

    pub(crate) fn state(&self) -> ItemKey {
        ItemKey::new(self.container, Space::LOG_STATES, &self.route, &[])
    }

    pub(crate) fn batch(&self, first: u64) -> ItemKey {
        ItemKey::new(self.container, Space::LOG_BATCHES, &self.route, &first.to_be_bytes())
    }

    /// How far the log is compacted.
    pub(crate) fn cleaned(&self) -> ItemKey {
        ItemKey::new(self.container, Space::LOG_STATES, &self.route, &[1])
    }

    pub(crate) fn producer(&self, id: i64) -> ItemKey {
        ItemKey::new(self.container, Space::LOG_PRODUCERS, &self.route, &id.to_be_bytes())
    }

    /// `route | offset`, as bounds of scans have it.
    pub(crate) fn bound(&self, offset: u64) -> Bytes {
        [&self.route[..], &offset.to_be_bytes()].concat().into()
    }
}

/// Letters, digits, dots, hyphens and underscores, with one of the first two at both ends, as both protocols allow it.
pub fn check_hub_name(name: &str) -> Result<()> {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let ends = [name.bytes().next(), name.bytes().next_back()];
    let has_ends = ends.iter().flatten().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let fits = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
    if fits && has_ends && name.bytes().all(is_inner) {
        return Ok(());
    }
    let message = "a name has 1 to 249 letters, digits, dots, hyphens and underscores";
    Err(Error::invalid(LogReason::BadName, message))
}

/// Names of consumer groups: anything printable without slashes, because they stand in addresses.
pub fn check_group_name(name: &str) -> Result<()> {
    let is_plain = |one: char| !one.is_control() && one != '/';
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain) {
        return Ok(());
    }
    let message = "the name of a consumer group has 1 to 249 bytes without slashes";
    Err(Error::invalid(LogReason::BadName, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleanups_are_lists_with_commas() {
        for cleanup in [Cleanup::Delete, Cleanup::Compact, Cleanup::CompactAndDelete] {
            assert_eq!(Cleanup::of_name(cleanup.name()), Some(cleanup));
        }
        assert_eq!(Cleanup::of_name("delete, compact"), Some(Cleanup::CompactAndDelete));
        assert_eq!((Cleanup::of_name(""), Cleanup::of_name("keep")), (None, None));
    }

    #[test]
    fn names_are_those_that_both_protocols_allow() {
        for name in ["a", "_schemas", "My.Hub-1", "__consumer", &"x".repeat(249)] {
            assert!(check_hub_name(name).is_ok(), "{name}");
        }
        for name in ["", ".", "a/b", "-a", "a.", "ä", "a b", &"x".repeat(250)] {
            assert!(check_hub_name(name).is_err(), "{name}");
        }
        assert!(check_group_name("$Default").is_ok() && check_group_name("a/b").is_err());
    }
}
