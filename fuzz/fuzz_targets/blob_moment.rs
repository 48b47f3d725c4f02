//! Names of snapshots, ETags and markers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_blobs::fuzzing::moment(data));
