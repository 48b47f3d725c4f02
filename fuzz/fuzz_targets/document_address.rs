//! Paths of documents.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_documents::fuzzing::document_address(data));
