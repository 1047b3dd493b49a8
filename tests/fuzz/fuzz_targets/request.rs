//! The body of a served request; two bytes choose the API and the version.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock::wire::fuzz::{NoMeter, Target, run, version_of};
use penstock::wire::schema::Entropy;
use penstock::wire::versions::SERVED;

fuzz_target!(|input: &[u8]| {
    let [api, version, body @ ..] = input else { return };
    let api_key = SERVED[usize::from(*api) % SERVED.len()].key;
    let version = version_of(api_key, &mut Entropy::new(u64::from(*version)));
    run(Target::Request { api_key, version }, body, &NoMeter);
});
