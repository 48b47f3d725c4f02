//! The default store: one fjall database per shard.
