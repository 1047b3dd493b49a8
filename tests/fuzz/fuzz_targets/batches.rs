//! Record batches, their records and codecs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock::wire::fuzz::{NoMeter, Target, run};

fuzz_target!(|input: &[u8]| run(Target::Batches, input, &NoMeter));
