//! The frame splitter, fed in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock::wire::fuzz::{NoMeter, Target, run};

fuzz_target!(|input: &[u8]| run(Target::Frames, input, &NoMeter));
