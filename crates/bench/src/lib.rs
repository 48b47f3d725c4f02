//! Benchmarks of our own parts.
