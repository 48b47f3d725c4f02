//! Files of the cache, of Redis and ours.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_keyspace::fuzzing::file(data));
