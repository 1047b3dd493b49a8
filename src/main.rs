//! The `penstock` binary: parse, run, map the outcome to an exit code.

use clap::Parser;
use clap::error::ErrorKind;
use penstock::admin::cli::{Cli, Verb};
use penstock::admin::{self, output};
use penstock::base::exit::ExitCode;
use penstock::env::process;

/// Allocations of one size stay in one place, and free memory goes back: glibc's arenas do neither
/// for a process of long-lived threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    process::install_panic_hook();
    // Uptime counts from the first look at the clock.
    let _ = process::uptime_ms();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misuse(&error),
    };
    let status = match &cli.verb {
        Verb::Serve(args) => match admin::config::load(args) {
            Ok(loaded) => penstock::server::serve(loaded).code(),
            Err(error) => refuse(&error),
        },
        verb => admin::run(verb).map_or_else(|error| refuse(&error), |()| 0),
    };
    std::process::ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX))
}

/// Prints what clap has to say. Help and version are what was asked for; anything else is misuse,
/// for which clap's own number, 2, means something different here.
fn misuse(error: &clap::Error) -> std::process::ExitCode {
    let printed = error.print();
    let asked = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    let code = if asked && printed.is_ok() {
        ExitCode::Stopped
    } else {
        ExitCode::Misuse
    };
    std::process::ExitCode::from(u8::try_from(code.code()).unwrap_or(u8::MAX))
}

fn refuse(error: &admin::error::AdminError) -> i32 {
    if !error.is_silent() {
        output::note(&format!("penstock: {error}"));
    }
    error.status()
}
