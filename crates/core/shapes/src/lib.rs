//! Data models as functions on the engine.
