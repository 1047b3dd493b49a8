//! Routes glommio's ring set-up through `env::ring` (see there for what is changed and why).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
