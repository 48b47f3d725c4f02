//! Why the shard map refused something, for callers that must tell apart errors of one kind.

lazuli_store::reasons! {
    pub enum MapReason {
        ContainerNotFound = "container-not-found",
        PartitionNotFound = "partition-not-found",
        /// The partition has another epoch than the caller knows.
        PartitionChanged = "partition-changed",
        PartitionOffline = "partition-offline",
        /// The partition takes no writes.
        PartitionReadOnly = "partition-read-only",
        /// The shard does not answer and is left alone for a while.
        ShardDown = "shard-down",
        /// No partition holds the key.
        MappingNotFound = "mapping-not-found",
        /// Writes wait until the move that fenced the partition has committed or reopened it.
        PartitionFenced = "partition-fenced",
        /// A key of a list map already has a partition.
        PointMapped = "point-mapped",
        LockNotHeld = "lock-not-held",
        MoveNotFound = "move-not-found",
        /// Another process leads the move under a newer job epoch, or the move is over.
        MoveTaken = "move-taken",
        /// The shard has forgotten the operation, because it was finished before.
        OperationStale = "operation-stale",
        /// The shard's rows are not those that the operation expects.
        LocalMapDiffers = "local-map-differs",
        /// Another node holds the lease under which the change was to be made.
        LeaseLost = "lease-lost",
        /// Other nodes saw no heartbeat of this node for too long and have removed it.
        NodeRemoved = "node-removed",
        RecordExists = "record-exists",
        RecordChanged = "record-changed",
    }
}
