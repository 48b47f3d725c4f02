//! Resource ids.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_documents::fuzzing::document_rid(data));
