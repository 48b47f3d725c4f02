//! Values as they are stored.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_value::fuzzing::stored_value(data));
