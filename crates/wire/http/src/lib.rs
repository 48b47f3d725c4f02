//! HTTP as the storage services speak it: listening, limits, shared key, OData JSON.
