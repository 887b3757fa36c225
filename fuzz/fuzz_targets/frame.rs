//! Frames of clients, nodes and members.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| catraca_node::fuzzing::frames(bytes));
