//! `penstock tune`: whether this host is set up for the broker, what to change and why.
//!
//! Facts are read first (`facts`), all of them; the checks are pure functions from facts to a
//! [`Finding`]; what is printed, written as a script or applied is made from findings alone.
//! Nothing is written without `--apply` or `--undo`.

pub mod apply;
pub mod cpu;
pub mod disk;
pub mod facts;
pub mod finding;
pub mod memory;
pub mod network;
pub mod report;
pub mod script;
pub mod system;
pub mod wanted;

use super::cli::TuneArgs;
use super::error::AdminError;
use super::output::{self, Output};
use crate::env::process::{self, HostTree};
use crate::env::real::preflight;
use apply::Outcome;
use facts::{Broker, Facts};
use finding::{Change, Finding, State};
use report::Subject;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use wanted::Sysctl;

/// One check.
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// What it finds.
    pub run: fn(&Facts) -> Finding,
}

const fn check(name: &'static str, run: fn(&Facts) -> Finding) -> Check {
    Check { name, run }
}

/// Every check, in the order of the report.
pub const CHECKS: [Check; 28] = [
    check("kernel", system::kernel),
    check("io_uring", system::io_uring),
    check("locked_memory", system::locked_memory),
    check("open_files", system::open_files),
    check("aio_limit", system::aio_limit),
    check("governor", cpu::governor),
    check("idle_states", cpu::idle_states),
    check("clock_source", cpu::clock_source),
    check("steal", cpu::steal),
    check("numa_nodes", cpu::numa_nodes),
    check("numa_balancing", cpu::numa_balancing),
    check("zone_reclaim", cpu::zone_reclaim),
    check("huge_pages", memory::huge_pages),
    check("swappiness", memory::swappiness),
    check("dirty_pages", memory::dirty_pages),
    check("file_system", disk::file_system),
    check("mount_options", disk::mount_options),
    check("scheduler", disk::scheduler),
    check("nomerges", disk::nomerges),
    check("write_cache", disk::write_cache),
    check("disk_queues", disk::disk_queues),
    check("nic_queues", network::nic_queues),
    check("nic_irqs", network::nic_irqs),
    check("nic_drops", network::nic_drops),
    check("rps", network::rps),
    check("xps", network::xps),
    check("accept_backlog", network::accept_backlog),
    check("syn_backlog", network::syn_backlog),
];

/// Runs the checks that are wanted: those named in `only`, or all, but those in `skip`.
///
/// # Errors
/// Names a check that does not exist, with all that do.
pub fn findings(facts: &Facts, only: &[String], skip: &[String]) -> Result<Vec<Finding>, String> {
    for name in only.iter().chain(skip) {
        if !CHECKS.iter().any(|check| check.name == name) {
            let names: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
            return Err(format!(
                "there is no check `{name}`; the checks are {}",
                names.join(", ")
            ));
        }
    }
    let is_named = |list: &[String], name: &str| list.iter().any(|it| it == name);
    let wanted = CHECKS
        .iter()
        .filter(|check| only.is_empty() || is_named(only, check.name))
        .filter(|check| !is_named(skip, check.name));
    let run = wanted.map(|check| Finding {
        name: check.name,
        ..(check.run)(facts)
    });
    Ok(run.collect())
}

/// A number of `sysctl` against what it should be.
pub(in crate::admin::tune) fn sysctl_finding(facts: &Facts, sysctl: Sysctl) -> Finding {
    let path = sysctl.path();
    let Some(now) = facts.number(&path) else {
        return Finding::absent(&format!("{} is not there, or no number", sysctl.name));
    };
    if sysctl.accepts(now) {
        return Finding::fine(now.to_string());
    }
    Finding::new(State::Change, now.to_string())
        .wanted(sysctl.text())
        .changes(vec![Change {
            path,
            value: sysctl.value.to_string(),
            before: now.to_string(),
        }])
}

/// Runs the verb.
///
/// # Errors
/// `Untuned` (status 3) when something should be changed; misuse; what could not be written.
pub fn run(args: &TuneArgs, out: &mut Output) -> Result<(), AdminError> {
    let tree = HostTree::new(&args.root);
    if args.undo {
        return undo(args, &tree, out);
    }
    let facts = Facts::read(&tree, broker(args, &tree)?);
    let findings = findings(&facts, &args.only, &args.skip).map_err(AdminError::Usage)?;
    let subject = subject(&facts);
    if args.script {
        let host = format!("{}, Linux {}", subject.host, subject.kernel);
        out.bytes(script::script(&findings, &host).as_bytes())?;
        return out.flush();
    }
    if args.apply {
        return apply(args, &tree, &findings, out);
    }
    if args.json {
        out.json(&report::document(&subject, &findings))?;
    } else {
        report::print(&subject, &findings, !args.only.is_empty(), out)?;
    }
    out.flush()?;
    if findings.iter().any(|finding| finding.state.is_wanting()) {
        return Err(AdminError::Untuned);
    }
    Ok(())
}

/// The broker as `serve` would start it with the same file, environment and flags.
fn broker(args: &TuneArgs, tree: &HostTree) -> Result<Broker, AdminError> {
    let loaded = super::config::load(&args.config)?;
    let (cpus, io_uring) = if tree.is_this_host() {
        preflight::raise_limits();
        let asked = preflight::check_io_uring();
        (loaded.cpus, Some(asked.map_err(|error| error.to_string())))
    } else {
        (facts::allowed_cpus(tree), None)
    };
    Ok(Broker {
        data: data_path(&loaded.config.data, tree),
        cpus,
        connections: u64::from(loaded.config.max_connections),
        io_uring,
    })
}

fn data_path(data: &Path, tree: &HostTree) -> String {
    let path = if tree.is_this_host() {
        process::settled_path(data)
    } else {
        data.to_path_buf()
    };
    path.to_string_lossy().into_owned()
}

fn subject(facts: &Facts) -> Subject {
    let text = |path| finding::one_line(facts.text(path).unwrap_or("?"));
    Subject {
        host: text("/proc/sys/kernel/hostname"),
        kernel: text("/proc/sys/kernel/osrelease"),
        data: finding::one_line(&facts.broker.data),
        cpus: cpu::ranges(&facts.broker.cpus),
    }
}

fn apply(
    args: &TuneArgs,
    tree: &HostTree,
    findings: &[Finding],
    out: &mut Output,
) -> Result<(), AdminError> {
    let count: usize = findings.iter().map(|finding| finding.changes.len()).sum();
    if count == 0 {
        out.line("nothing to change")?;
        return out.flush();
    }
    must_be_root(tree)?;
    if !args.yes {
        for finding in findings.iter().filter(|it| !it.changes.is_empty()) {
            output::note(&format!(
                "{}: {}, should be {}",
                finding.name, finding.now, finding.wanted
            ));
        }
        if !confirmed(count)? {
            return Err(AdminError::Failed("nothing was changed".into()));
        }
    }
    let outcomes = apply::apply(tree, findings, &args.undo_file)?;
    let done = report_outcomes(&outcomes, out);
    output::note(&format!(
        "`penstock tune --undo` gives it back ({}); a restart of the host does too",
        args.undo_file.display()
    ));
    done
}

fn undo(args: &TuneArgs, tree: &HostTree, out: &mut Output) -> Result<(), AdminError> {
    must_be_root(tree)?;
    let outcomes = apply::undo(tree, &args.undo_file)?;
    if outcomes.is_empty() {
        out.line("nothing to undo: the host was restarted since, its settings are its own again")?;
    }
    report_outcomes(&outcomes, out)
}

fn must_be_root(tree: &HostTree) -> Result<(), AdminError> {
    if tree.is_this_host() && !process::user_is_root() {
        return Err(AdminError::Usage(
            "settings of the kernel can be changed by root only: run it with sudo".into(),
        ));
    }
    Ok(())
}

/// One line for each write.
fn report_outcomes(outcomes: &[Outcome], out: &mut Output) -> Result<(), AdminError> {
    let mut failed = false;
    for outcome in outcomes {
        match &outcome.result {
            Ok(done) => out.line(&format!("{}: {done}  {}", outcome.check, outcome.path))?,
            Err(reason) => {
                failed = true;
                output::note(&format!(
                    "{}: FAILED {}: {reason}",
                    outcome.check, outcome.path
                ));
            }
        }
    }
    out.flush()?;
    if failed {
        return Err(AdminError::Reported);
    }
    Ok(())
}

/// Asks the person at the terminal. Without one, only `--yes` will do.
fn confirmed(count: usize) -> Result<bool, AdminError> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let text = "this changes settings of the whole host; add --yes to say that it is meant";
        return Err(AdminError::Usage(text.into()));
    }
    let _ = write!(
        io::stderr(),
        "Change {count} of this host's settings? [y/N] "
    );
    let mut answer = String::new();
    let read = stdin.lock().read_line(&mut answer);
    read.map_err(|error| AdminError::Input("the answer".into(), error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
