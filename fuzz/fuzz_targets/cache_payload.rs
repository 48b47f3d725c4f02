//! Values of the cache as RESTORE takes them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_keyspace::fuzzing::payload(data));
