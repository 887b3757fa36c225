//! Bodies of HTTP requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| catraca_node::fuzzing::bodies(bytes));
