//! AMQP: a value as clients send it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_amqp::fuzzing::amqp_value(data));
