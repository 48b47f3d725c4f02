//! Texts of filters and actions of rules, parsed and evaluated.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_bus_shape::filter::fuzzing::bus_filter(data));
