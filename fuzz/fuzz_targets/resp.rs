//! Commands of the RESP port.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| catraca_node::fuzzing::commands(bytes));
