//! The real binary as a child process: started, watched, killed, stopped.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longest a start may take before the test gives up on it.
pub const START_MAX: Duration = Duration::from_secs(120);

/// A folder for one test, on the file system of the build: a temporary one may have no `O_DIRECT`.
/// It goes when the test does, unless it is kept.
pub fn home(test: &str) -> tempfile::TempDir {
    let prefix = format!("{test}-");
    let folder = tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    folder.expect("a folder can be made")
}

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// A folder of the test's own; data, ready file and logs lie in it.
    pub home: PathBuf,
    /// Executors; `None` leaves the default.
    pub cores: Option<u32>,
    /// More arguments of `serve`.
    pub extra: Vec<String>,
}

impl Options {
    pub fn new(home: &Path) -> Options {
        Options {
            home: home.to_owned(),
            cores: Some(1),
            extra: Vec::new(),
        }
    }

    pub fn cores(mut self, cores: u32) -> Options {
        self.cores = Some(cores);
        self
    }

    pub fn with(mut self, arguments: &[&str]) -> Options {
        self.extra
            .extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    pub fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    pub fn ready_file(&self) -> PathBuf {
        self.home.join("ready.json")
    }

    pub fn log(&self) -> PathBuf {
        self.home.join("broker.log")
    }
}

/// What the ready file says.
#[derive(Clone, Debug)]
pub struct Ready {
    pub pid: u32,
    pub kafka: Vec<SocketAddr>,
    pub http: SocketAddr,
    pub shards: u64,
    pub cores: serde_json::Value,
}

/// A running process, killed when it goes out of scope.
pub struct Broker {
    pub options: Options,
    child: Child,
}

impl Broker {
    /// Starts the process and does not wait for it to serve anything.
    pub fn spawn(options: &Options) -> Broker {
        let _ = fs::remove_file(options.ready_file());
        Self::spawn_as_is(options)
    }

    /// The same, with whatever ready file lies there.
    pub fn spawn_as_is(options: &Options) -> Broker {
        fs::create_dir_all(&options.home).expect("the test's folder can be made");
        let log = File::options()
            .create(true)
            .append(true)
            .open(options.log());
        let log = log.expect("the broker's log can be opened");
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PENSTOCK_") {
                command.env_remove(name); // The test's own settings are no keys of the broker.
            }
        }
        command.arg("serve").arg("--data").arg(options.data());
        let has = |flag: &str| options.extra.iter().any(|argument| argument == flag);
        if !has("--kafka") {
            command.args(["--kafka", "127.0.0.1:0"]);
        }
        if !has("--http") {
            command.args(["--http", "127.0.0.1:0"]);
        }
        command.arg("--ready-file").arg(options.ready_file());
        if let Some(cores) = options.cores {
            command.arg("--cores").arg(cores.to_string());
        }
        command.args(&options.extra).stdin(Stdio::null());
        command
            .stdout(log.try_clone().expect("a descriptor is free"))
            .stderr(log);
        let child = command.spawn().expect("the binary can be started");
        Broker {
            options: options.clone(),
            child,
        }
    }

    /// Starts the process and waits until it serves.
    pub fn start(options: &Options) -> (Broker, Ready) {
        let mut broker = Broker::spawn(options);
        let ready = broker.wait_ready(START_MAX);
        let ready = ready.unwrap_or_else(|why| panic!("{why}\n{}", broker.log_tail()));
        (broker, ready)
    }

    /// Waits for the ready file of this very process.
    pub fn wait_ready(&mut self, most: Duration) -> Result<Ready, String> {
        let deadline = Instant::now() + most;
        loop {
            let ready = read_ready(&self.options.ready_file());
            if let Some(ready) = ready.filter(|ready| ready.pid == self.child.id()) {
                return Ok(ready);
            }
            if let Some(status) = self.child.try_wait().expect("the child can be asked") {
                return Err(format!(
                    "the broker ended with {status} before it was ready"
                ));
            }
            if Instant::now() > deadline {
                return Err(format!("the broker was not ready after {most:?}"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process is still there.
    pub fn is_alive(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("the child can be asked")
            .is_none()
    }

    /// `kill -9`, and the process is gone when this returns.
    pub fn kill(mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a killed child can be awaited");
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        let pid = self.child.id().to_string();
        let number = format!("-{signal}");
        let status = Command::new("kill").args([number, pid]).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "the child can be signalled"
        );
    }

    /// Waits for the process to end by itself.
    pub fn wait(&mut self, most: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + most;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("the child can be asked") {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    /// SIGTERM, and how long it took to end; it must end with code 0 within `most`.
    pub fn stop(mut self, most: Duration) -> Duration {
        let begin = Instant::now();
        self.signal(15);
        match self.wait(most) {
            Some(status) if status.code() == Some(0) => begin.elapsed(),
            Some(status) => panic!(
                "after SIGTERM: code {:?}, signal {:?}\n{}",
                status.code(),
                status.signal(),
                self.log_tail()
            ),
            None => panic!("still there {most:?} after SIGTERM\n{}", self.log_tail()),
        }
    }

    /// A number of KiB from the process' status: `VmHWM` is the peak of resident memory.
    pub fn status_kib(&self, field: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(path).expect("the process is alive");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let digits = line.and_then(|line| line.split_whitespace().next());
        digits
            .and_then(|digits| digits.parse().ok())
            .expect("a number of KiB")
    }

    /// The last lines of everything the broker wrote to standard output and error, or its first
    /// panic.
    pub fn log_tail(&self) -> String {
        let text = fs::read_to_string(self.options.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let panic = lines.iter().position(|line| line.contains("panicked"));
        let from = panic.unwrap_or_else(|| lines.len().saturating_sub(40));
        lines[from..lines.len().min(from + 60)].join("\n")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The ready file, if it is there and whole.
pub fn read_ready(path: &Path) -> Option<Ready> {
    let json: serde_json::Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let kafka = json["kafka"]
        .as_array()?
        .iter()
        .map(|address| address.as_str()?.parse().ok());
    Some(Ready {
        pid: u32::try_from(json["pid"].as_u64()?).ok()?,
        kafka: kafka.collect::<Option<Vec<_>>>()?,
        http: json["http"].as_str()?.parse().ok()?,
        shards: json["shards"]
            .as_u64()
            .or_else(|| Some(json["shards"].as_array()?.len() as u64))?,
        cores: json["cores"].clone(),
    })
}

/// GET over HTTP: status and body.
pub fn http_get(address: SocketAddr, path: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok((status.unwrap_or(0), body.to_owned()))
}
