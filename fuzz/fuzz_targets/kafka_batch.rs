//! Kafka: a record batch as producers send it.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_kafka_wire::fuzzing::record_batch(data));
