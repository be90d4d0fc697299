//! tbx
fn main() {}
