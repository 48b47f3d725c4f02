//! The XML of a message.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_queues::fuzzing::queue_message(data));
