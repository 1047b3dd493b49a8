//! The command line's verbs. Client verbs are plain blocking clients: no io_uring, no executor, so
//! that they work in containers that forbid it. Data goes to standard output, all else to standard
//! error.

pub mod cli;
pub mod client;
pub mod config;
pub mod consume;
pub mod dump;
pub mod error;
pub mod load;
pub mod output;
pub mod probe;
pub mod produce;
pub mod record;
pub mod sender;
pub mod top;
pub mod topic;
pub mod tune;
pub mod verify;

use cli::Verb;
use error::AdminError;
use output::Output;

/// Runs any verb but `serve`, which is not a client.
///
/// # Errors
/// Why it failed; `AdminError::status` is the exit status.
pub fn run(verb: &Verb) -> Result<(), AdminError> {
    let mut out = Output::new()?;
    match verb {
        Verb::Serve(_) => unreachable!("main starts the broker itself"),
        Verb::Config(args) => config::show(args, &mut out),
        Verb::Topic(args) => topic::run(&args.verb, &mut out),
        Verb::Produce(args) => produce::run(args, &mut out),
        Verb::Consume(args) => consume::run(args, &mut out),
        Verb::Load(args) => load::run(args, &mut out),
        Verb::Dump(args) => dump::run(args, &mut out),
        Verb::Top(args) => top::run(args, &mut out),
        Verb::Probe(args) => probe::run(args, &mut out),
        Verb::Tune(args) => tune::run(args, &mut out),
        Verb::Verify(args) => verify::run(args, &mut out),
    }
}
