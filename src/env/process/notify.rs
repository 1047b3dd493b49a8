//! Talking to the supervisor that started this process (systemd's notification protocol): lines of
//! `NAME=value` in one datagram to the socket that `NOTIFY_SOCKET` names. Without one, nothing is
//! sent. A supervisor that does not listen is no reason to fail: what cannot be sent is dropped.
//!
//! Only the main thread uses it, never an executor: a full socket blocks for a moment.

use crate::limits::SUPERVISOR_SEND_TIMEOUT;
use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// What the environment says about the supervisor.
#[derive(Clone, Debug, Default)]
pub struct SupervisorSettings {
    /// `NOTIFY_SOCKET`: a path, or `@name` in the abstract namespace.
    pub socket: Option<OsString>,
    /// `WATCHDOG_USEC`: the process is killed when it is silent for so many microseconds.
    pub watchdog_us: Option<String>,
    /// `WATCHDOG_PID`: the process that is meant; another one ignores the watchdog.
    pub watchdog_pid: Option<String>,
}

impl SupervisorSettings {
    /// As this process was started.
    #[must_use]
    pub fn of_this_process() -> SupervisorSettings {
        let text = |name| std::env::var(name).ok();
        SupervisorSettings {
            socket: std::env::var_os("NOTIFY_SOCKET"),
            watchdog_us: text("WATCHDOG_USEC"),
            watchdog_pid: text("WATCHDOG_PID"),
        }
    }
}

/// The way to the supervisor, or to nobody.
#[derive(Debug, Default)]
pub struct Supervisor {
    way: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// Opens the way. A socket of a kind that is not known (`vsock:`) counts as none.
    ///
    /// # Errors
    /// Names the socket, when it is of a known kind and cannot be used; the broker runs on without.
    pub fn new(settings: &SupervisorSettings) -> io::Result<Supervisor> {
        let Some(name) = settings.socket.as_ref() else {
            return Ok(Supervisor::default());
        };
        let bytes = name.as_bytes();
        let address = match bytes.first() {
            Some(b'/') => SocketAddr::from_pathname(name),
            Some(b'@') => SocketAddr::from_abstract_name(&bytes[1..]),
            _ => return Ok(Supervisor::default()),
        };
        let subject = || format!("the supervisor's socket {}", name.to_string_lossy());
        let fail = |error| crate::env::error::at("use", subject(), error);
        let address = address.map_err(fail)?;
        let socket = UnixDatagram::unbound().map_err(fail)?;
        // A supervisor that hangs must not hang the broker; one that is busy may take a moment.
        socket
            .set_write_timeout(Some(SUPERVISOR_SEND_TIMEOUT))
            .map_err(fail)?;
        let meant = match settings.watchdog_pid.as_deref() {
            None | Some("") => true,
            Some(pid) => pid.parse() == Ok(std::process::id()),
        };
        let watchdog = settings
            .watchdog_us
            .as_deref()
            .and_then(|text| text.parse().ok())
            .filter(|us| meant && *us > 0)
            .map(Duration::from_micros);
        Ok(Supervisor {
            way: Some((socket, address)),
            watchdog,
        })
    }

    /// The silence after which the supervisor kills this process, if it watches.
    #[must_use]
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Whether anybody listens.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.way.is_some()
    }

    /// Everything is served.
    pub fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// One line about what is going on, for `systemctl status`.
    pub fn status(&self, status: &str) {
        self.send(&format!("STATUS={}", one_line(status)));
    }

    /// A start or stop that takes longer: the supervisor waits at least so long from now on.
    pub fn extend(&self, by: Duration, status: &str) {
        let us = by.as_micros();
        self.send(&format!(
            "EXTEND_TIMEOUT_USEC={us}\nSTATUS={}",
            one_line(status)
        ));
    }

    /// Alive.
    pub fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    /// The stop has begun.
    pub fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=stopping");
    }

    fn send(&self, text: &str) {
        if let Some((socket, address)) = &self.way {
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

/// A line feed in a status would begin another assignment.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(socket: &str) -> SupervisorSettings {
        SupervisorSettings {
            socket: Some(socket.into()),
            ..SupervisorSettings::default()
        }
    }

    fn heard(listener: &UnixDatagram) -> String {
        let mut bytes = [0; 512];
        listener
            .set_read_timeout(Some(Duration::from_secs(10)))
            .expect("set");
        let count = listener.recv(&mut bytes).expect("a datagram");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    /// Goal: the words of the protocol arrive, one datagram each, on both kinds of socket, and a
    /// status cannot smuggle an assignment in. Method: listen as systemd does.
    #[test]
    fn words_arrive() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("notify");
        let named = UnixDatagram::bind(&path).expect("bound");
        let abstract_name = format!("penstock-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
        let nameless = UnixDatagram::bind_addr(&address).expect("bound");
        let names = [
            (path.to_str().expect("text").to_owned(), named),
            (format!("@{abstract_name}"), nameless),
        ];
        for (name, listener) in names {
            let supervisor = Supervisor::new(&settings(&name)).expect("opened");
            supervisor.extend(Duration::from_secs(30), "recovering\nREADY=1");
            assert_eq!(
                heard(&listener),
                "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=recovering READY=1"
            );
            supervisor.ready("serving");
            assert_eq!(heard(&listener), "READY=1\nSTATUS=serving");
            supervisor.alive();
            assert_eq!(heard(&listener), "WATCHDOG=1");
            supervisor.stopping();
            assert_eq!(heard(&listener), "STOPPING=1\nSTATUS=stopping");
        }
    }

    /// Goal: nobody there is fine in every way. Method: no socket, an unknown kind, a path without
    /// a listener, an empty name; and a watchdog that means another process.
    #[test]
    fn nobody_is_fine() {
        let none = Supervisor::new(&SupervisorSettings::default()).expect("none");
        assert!(!none.is_there());
        for name in ["vsock:2:1", "", "/no/such/socket", "@"] {
            let supervisor = Supervisor::new(&settings(name)).expect("usable");
            supervisor.ready("x");
        }
        let long = format!("/{}", "x".repeat(200));
        let error = Supervisor::new(&settings(&long)).expect_err("too long for a socket");
        assert!(error.to_string().contains("socket /xxx"), "{error}");
    }

    /// Goal: the watchdog counts only for the process it means. Method: each form.
    #[test]
    fn the_watchdog_means_one_process() {
        let own = std::process::id().to_string();
        let cases = [
            (Some("30000000"), None, Some(30)),
            (Some("30000000"), Some(own.as_str()), Some(30)),
            (Some("30000000"), Some("1"), None),
            (Some("0"), None, None),
            (Some("soon"), None, None),
            (None, None, None),
        ];
        for (us, pid, seconds) in cases {
            let settings = SupervisorSettings {
                socket: Some("@x".into()),
                watchdog_us: us.map(str::to_owned),
                watchdog_pid: pid.map(str::to_owned),
            };
            let supervisor = Supervisor::new(&settings).expect("opened");
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(supervisor.watchdog(), expected, "{us:?} {pid:?}");
        }
    }
}
