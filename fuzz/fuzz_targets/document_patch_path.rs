//! Paths of partial updates.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_documents::fuzzing::document_patch_path(data));
