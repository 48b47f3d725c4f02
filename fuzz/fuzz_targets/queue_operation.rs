//! The head of a request to the Queue service.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_queues::fuzzing::queue_operation(data));
