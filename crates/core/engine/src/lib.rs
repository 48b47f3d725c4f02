//! The partition engine: lanes, transactions, changes, time to live, fan-out.
