//! The text of a script.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_scripts::fuzzing::script(data));
