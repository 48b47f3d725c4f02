//! Batches of operations on items.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_documents::fuzzing::document_batch(data));
