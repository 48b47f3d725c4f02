//! Addresses of databases.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_store_postgres::fuzzing::database_address(data));
