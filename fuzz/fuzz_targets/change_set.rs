//! The change set of a transaction.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_tables::fuzzing::change_set(data));
