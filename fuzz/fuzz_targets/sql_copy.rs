//! Data of COPY.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_sql::fuzzing::copy_rows(data));
