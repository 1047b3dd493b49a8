//! Routes glommio's ring set-up and waiting through `env::real::ring` (see there for what is
//! changed and why). The argument goes to everything that is linked: binary, tests, benches.

fn main() {
    for function in [
        "io_uring_queue_init_params",
        "__sys_io_uring_enter",
        "__sys_io_uring_enter2",
    ] {
        println!("cargo::rustc-link-arg=-Wl,--wrap={function}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
