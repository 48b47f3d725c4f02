//! Replies of the cache, as programs and scripts read them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lazuli_resp::fuzzing::answer(data));
