//! Whole request frames: header, then decode or refuse.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock::wire::fuzz::{NoMeter, Target, run};

fuzz_target!(|input: &[u8]| run(Target::Requests, input, &NoMeter));
