//! Why the engine refused something, for callers that must tell apart errors of one kind.

lazuli_store::reasons! {
    pub enum EngineReason {
        /// A transaction names routes of several shards.
        CrossShard = "cross-shard",
    }
}
