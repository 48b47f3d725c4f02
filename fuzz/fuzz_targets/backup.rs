//! The parser of backups.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_engine::backup::fuzzing::backup(data));
