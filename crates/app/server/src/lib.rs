//! Settings, wiring, listeners and the admin API.
