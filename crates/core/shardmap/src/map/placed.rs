//! Where a route is placed.

use bytes::Buf;

use crate::{Epoch, Partition, PartitionId, PartitionState, ShardId};

/// Where a route is placed: what a request carries to the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    pub partition: PartitionId,
    pub epoch: Epoch,
    pub shard: ShardId,
    pub state: PartitionState,
}

impl From<&Partition> for Placed {
    fn from(partition: &Partition) -> Self {
        let Partition { id, epoch, shard, state, .. } = *partition;
        Self { partition: id, epoch, shard, state }
    }
}

/// Bytes of a place in a record of a map: `partition (8) | epoch (8) | shard (4) | state (1)`.
pub(super) const PLACED_BYTES: usize = 21;

impl Placed {
    pub(super) fn to_bytes(self) -> [u8; PLACED_BYTES] {
        let mut bytes = [0; PLACED_BYTES];
        bytes[..8].copy_from_slice(&self.partition.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.epoch.0.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.shard.0.to_be_bytes());
        bytes[20] = match self.state {
            PartitionState::Online => 0,
            PartitionState::ReadOnly => 1,
            PartitionState::Offline => 2,
            PartitionState::Sending => 3,
            PartitionState::Fenced => 4,
        };
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; PLACED_BYTES]) -> Self {
        let mut bytes = &bytes[..];
        Self {
            partition: PartitionId(bytes.get_u64()),
            epoch: Epoch(bytes.get_u64()),
            shard: ShardId(bytes.get_u32()),
            state: match bytes.get_u8() {
                0 => PartitionState::Online,
                1 => PartitionState::ReadOnly,
                3 => PartitionState::Sending,
                4 => PartitionState::Fenced,
                _ => PartitionState::Offline,
            },
        }
    }
}
