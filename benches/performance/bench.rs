//! The runner that all rows share: folders, brokers, loads, probes, and a record of all of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::driven::{Load, Probed, Running};
use crate::figures::Figures;
use crate::sample::Sample;
use crate::support::broker::{Broker, Options, Ready};
use penstock::env::{probe, process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest a load may take beyond what it was told.
const LOAD_MAX: Duration = Duration::from_secs(300);
/// A disk busy with something else must not end a measurement.
const STOP_MAX: Duration = Duration::from_secs(60);
/// Disk that no load begins without.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";
const PREFIX: &str = "performance";
const BINARY: &str = env!("CARGO_BIN_EXE_penstock");

/// The runner.
pub struct Bench {
    pub rounds: usize,
    /// Length of one measurement.
    pub seconds: f64,
    /// A measurement, not a test of the bench itself.
    pub full: bool,
    pub folder: PathBuf,
    /// Everything that was run for the row, in order.
    raw: Vec<Value>,
    loads: usize,
}

/// A broker that serves.
pub struct Served {
    pub broker: Broker,
    pub ready: Ready,
}

impl Served {
    pub fn sample(&self) -> Sample {
        Sample::take(self.broker.pid(), self.ready.http)
    }

    pub fn stop(self) {
        self.broker.stop(STOP_MAX);
    }
}

impl Bench {
    pub fn new(folder: PathBuf, full: bool) -> Bench {
        for place in [folder.as_path(), Path::new(MEMORY)] {
            sweep(place);
        }
        Bench {
            rounds: 1,
            seconds: if full { 4.0 } else { 0.3 },
            full,
            folder,
            raw: Vec::new(),
            loads: 0,
        }
    }

    /// What was run since the last call.
    pub fn take_raw(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.raw)
    }

    /// One size for measuring, another for the test of the bench.
    pub fn size(&self, full: u64, short: u64) -> u64 {
        if self.full { full } else { short }
    }

    pub fn free_bytes(&self) -> u64 {
        probe::free_bytes(&self.folder).expect("the folder is there")
    }

    /// A folder on the disk to measure; it goes when it is dropped.
    pub fn home(&self) -> TempDir {
        temporary(&self.folder).expect("a folder on the disk to measure")
    }

    /// A folder in memory, if this host has a place for it.
    pub fn home_in_memory(&self) -> Option<TempDir> {
        temporary(Path::new(MEMORY)).ok()
    }

    /// Starts a broker, and records what it was started with.
    pub fn serve(&mut self, options: &Options) -> Served {
        let configuration = configuration(options);
        let begin = Instant::now();
        let (broker, ready) = Broker::start(options);
        self.record(
            "serve",
            json!({
                "ready_s": begin.elapsed().as_secs_f64(),
                "configuration": configuration,
            }),
        );
        Served { broker, ready }
    }

    /// A broker on CPU 0 with one shard.
    pub fn options(&self, home: &TempDir) -> Options {
        Options::new(home.path()).with(&["--shards", "1", "--log", "warn"])
    }

    /// `duration` of a load, as a flag's value.
    pub fn duration(&self) -> String {
        format!("{}ms", (self.seconds * 1000.0) as u64)
    }

    /// Runs a load on CPU 1 (unless it says otherwise) to its end.
    ///
    /// # Errors
    /// It did not run.
    pub fn load(&mut self, served: &Served, label: &str, flags: &str) -> Result<Load, String> {
        let running = self.begin_load(served, label, flags)?;
        self.end_load(running)
    }

    /// The same, and notes what the generator itself doubts.
    ///
    /// # Errors
    /// It did not run.
    pub fn trusted_load(
        &mut self,
        served: &Served,
        label: &str,
        flags: &str,
        figures: &mut Figures,
    ) -> Result<Load, String> {
        let load = self.load(served, label, flags)?;
        if let Some(doubt) = load.doubt() {
            figures.doubt(label, doubt);
        }
        Ok(load)
    }

    /// Starts a load.
    ///
    /// # Errors
    /// The disk is nearly full: it is shared with whoever else uses this machine.
    pub fn begin_load(
        &mut self,
        served: &Served,
        label: &str,
        flags: &str,
    ) -> Result<Running, String> {
        let free = self.free_bytes();
        if free < FREE_BYTES_MIN {
            return Err(format!("{label}: only {} MB are free", free / 1_000_000));
        }
        self.loads += 1;
        let file = served
            .broker
            .options
            .home
            .join(format!("load-{}.json", self.loads));
        let mut command = command();
        command
            .args(["load", "--quiet", "--seed", "1", "--broker"])
            .arg(served.ready.kafka[0].to_string())
            .args(flags.split_whitespace());
        if !flags.contains("--workers") && cpus() > 1 {
            command.args(["--workers", "1,"]);
        }
        let log = served
            .broker
            .options
            .home
            .join(format!("load-{}.log", self.loads));
        let log = std::fs::File::create(log).expect("the folder can be written");
        let errors = log.try_clone().expect("a descriptor is free");
        let child = command.arg("--json").arg(&file).stdout(log).stderr(errors);
        Ok(Running {
            label: label.to_owned(),
            child: child.spawn().expect("the binary can be started"),
            file,
        })
    }

    /// Waits for a load's end and reads what it said.
    ///
    /// # Errors
    /// It has no result.
    pub fn end_load(&mut self, mut running: Running) -> Result<Load, String> {
        let deadline = Instant::now() + LOAD_MAX;
        while running
            .child
            .try_wait()
            .expect("a child can be asked")
            .is_none()
        {
            if Instant::now() > deadline {
                let _ = running.child.kill();
                let _ = running.child.wait();
                return Err(format!("{}: the load did not end", running.label));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let text = std::fs::read_to_string(&running.file).map_err(|_| {
            let log = std::fs::read_to_string(running.file.with_extension("log"));
            format!("{}: {}", running.label, log.unwrap_or_default().trim())
        })?;
        let mut document: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        if let Some(object) = document.as_object_mut() {
            object.remove("intervals");
        }
        self.record(&format!("load: {}", running.label), document.clone());
        Ok(Load { document })
    }

    /// Asks for the machine's own limits.
    ///
    /// # Errors
    /// The probe does not run.
    pub fn probe(&mut self, only: &[&str]) -> Result<Probed, String> {
        let seconds = self.size(self.seconds.clamp(1.0, 3.0) as u64, 1);
        let mut command = command();
        command
            .arg("probe")
            .arg(&self.folder)
            .args(["--json", "--seconds", &seconds.to_string(), "--size-mib"])
            .args([&self.size(512, 16).to_string(), "--only", &only.join(",")]);
        let output = command.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        let document: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        self.record("probe", document.clone());
        Ok(Probed { document })
    }

    /// Keeps something for the JSON.
    pub fn record(&mut self, what: &str, value: Value) {
        self.raw.push(json!({ "what": what, "seen": value }));
    }
}

/// Runs something on CPU 1, if there is one, where the broker is not.
pub fn beside<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // One CPU is all there is; then both share it.
            let _ = cpus() > 1 && process::pin_thread(1);
            work()
        });
        thread.join().expect("the work does not panic")
    })
}

/// CPUs that we may use.
pub fn cpus() -> usize {
    process::affinity_cpus().len()
}

fn temporary(folder: &Path) -> std::io::Result<TempDir> {
    let prefix = format!("{PREFIX}-{}-", process::process_id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(folder)
}

/// Removes what a bench that was interrupted left: gigabytes.
fn sweep(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let mut parts = name.split('-');
        let is_ours = parts.next() == Some(PREFIX);
        let Some(pid) = parts.next().and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        if is_ours && !Path::new(&format!("/proc/{pid}")).exists() {
            // What cannot be removed is only in the way, and says so by its name.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Our binary, without the settings of whoever runs the bench.
fn command() -> Command {
    let mut command = Command::new(BINARY);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PENSTOCK_") {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Every key of a broker's configuration with its value, and its flags as they were given.
fn configuration(options: &Options) -> Value {
    let mut flags = vec!["--data".to_owned(), options.data().display().to_string()];
    if let Some(cores) = options.cores {
        flags.extend(["--cores".to_owned(), cores.to_string()]);
    }
    flags.extend(options.extra.iter().cloned());
    let output = command().args(["config", "--json"]).args(&flags).output();
    let output = output.expect("the binary can be started");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let keys = document["keys"].as_array().cloned().unwrap_or_default();
    let keys = keys.iter().map(|key| {
        let name = key["key"].as_str().unwrap_or_default();
        (name.to_owned(), key["value"].clone())
    });
    json!({ "flags": flags.join(" "), "keys": Value::Object(keys.collect()) })
}
