//! What comes before the first message of PostgreSQL's protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_pg::fuzzing::startup(data));
