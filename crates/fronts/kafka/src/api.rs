//! The operations of the protocol, and the versions of each that are spoken.
//!
//! All versions here have fixed fields, but for the last one of `ApiVersions`: newer ones say the same in another form, and
//! every client speaks these too. Versions that no test of an official client has used are not offered.

macro_rules! operations {
    ($($name:ident = $key:literal, $least:literal..=$most:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Operation {
            $($name,)*
        }

        impl Operation {
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            pub(crate) fn of_key(key: i16) -> Option<Self> {
                match key {
                    $($key => Some(Self::$name),)*
                    _ => None,
                }
            }

            pub(crate) fn key(self) -> i16 {
                match self {
                    $(Self::$name => $key,)*
                }
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            pub(crate) fn versions(self) -> std::ops::RangeInclusive<i16> {
                match self {
                    $(Self::$name => $least..=$most,)*
                }
            }
        }
    };
}

operations! {
    Produce = 0, 3..=8;
    Fetch = 1, 4..=11;
    ListOffsets = 2, 1..=5;
    Metadata = 3, 0..=8;
    OffsetCommit = 8, 2..=7;
    OffsetFetch = 9, 1..=5;
    FindCoordinator = 10, 0..=2;
    JoinGroup = 11, 0..=5;
    Heartbeat = 12, 0..=3;
    LeaveGroup = 13, 0..=3;
    SyncGroup = 14, 0..=3;
    DescribeGroups = 15, 0..=4;
    ListGroups = 16, 0..=2;
    SaslHandshake = 17, 0..=1;
    ApiVersions = 18, 0..=3;
    CreateTopics = 19, 0..=4;
    DeleteTopics = 20, 0..=3;
    DeleteRecords = 21, 0..=1;
    InitProducerId = 22, 0..=1;
    OffsetForLeaderEpoch = 23, 2..=3;
    DescribeConfigs = 32, 0..=2;
    AlterConfigs = 33, 0..=1;
    SaslAuthenticate = 36, 0..=1;
    CreatePartitions = 37, 0..=1;
    DeleteGroups = 42, 0..=1;
    IncrementalAlterConfigs = 44, 0..=0;
}

impl Operation {
    /// Whether a client may ask for it before it has said who it is.
    pub(crate) fn is_for_strangers(self) -> bool {
        matches!(self, Self::ApiVersions | Self::SaslHandshake | Self::SaslAuthenticate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_toml_names_every_operation() {
        let table: toml::Table = include_str!("../operations.toml").parse().unwrap();
        let rows = table["operation"].as_array().unwrap();
        let done: Vec<(&str, i64)> = rows
            .iter()
            .filter(|row| row["status"].as_str() == Some("done"))
            .map(|row| (row["name"].as_str().unwrap(), row["key"].as_integer().unwrap()))
            .collect();
        let ours: Vec<(&str, i64)> =
            Operation::ALL.iter().map(|it| (it.name(), it.key().into())).collect();
        assert_eq!(done, ours);
        for it in Operation::ALL {
            assert_eq!(Operation::of_key(it.key()), Some(*it));
        }
    }
}
