//! The simulator: seeded executor, faults, workloads, checkers.
