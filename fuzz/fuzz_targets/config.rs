//! Files that describe a group.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| catraca_node::fuzzing::config(bytes));
