//! The broker under a supervisor: what it says on the socket that `NOTIFY_SOCKET` names, from the
//! start to the end. Method: the real binary, with a socket of the test's own in place of systemd.

mod support;

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::broker;

/// Longest silence that the test bears.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts the broker under a supervisor, with these variables.
fn start(home: &std::path::Path, socket: &OsStr, variables: &[(&str, &str)]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PENSTOCK_") {
            command.env_remove(name);
        }
    }
    command
        .args(["serve", "--cores", "2", "--kafka", "127.0.0.1:0"])
        .args(["--http", "127.0.0.1:0", "--data"])
        .arg(home.join("data"))
        .arg("--ready-file")
        .arg(home.join("ready.json"))
        .env("NOTIFY_SOCKET", socket)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().expect("the binary can be started")
}

fn hear(listener: &UnixDatagram) -> String {
    let mut bytes = [0; 1024];
    let count = listener
        .recv(&mut bytes)
        .expect("the broker says something");
    String::from_utf8(bytes[..count].to_vec()).expect("text")
}

/// Hears until a datagram has this line; gives all that was heard.
#[track_caller]
fn hear_until(listener: &UnixDatagram, line: &str) -> Vec<String> {
    let mut heard = Vec::new();
    for _ in 0..1000 {
        let datagram = hear(listener);
        let found = datagram.lines().any(|it| it == line);
        heard.push(datagram);
        if found {
            return heard;
        }
    }
    panic!("never heard {line}: {heard:?}");
}

fn stop(child: &Child) {
    let kill = Command::new("kill").arg(child.id().to_string()).status();
    assert!(kill.expect("kill").success());
}

/// Goal: recovery is told and extended, readiness comes after the ready file, then a sign of life
/// again and again, then the stop, in this order and as systemd reads it. Method: listen on a path.
#[test]
fn a_supervisor_hears_the_whole_life() {
    let home = broker::home("supervised");
    // A path of the build may be longer than a socket's name can be.
    let folder = tempfile::tempdir().expect("temporary directory");
    let path = folder.path().join("notify");
    let listener = UnixDatagram::bind(&path).expect("bound");
    listener.set_read_timeout(Some(PATIENCE)).expect("set");
    let watchdog = [("WATCHDOG_USEC", "3000000")];
    let mut child = start(home.path(), path.as_os_str(), &watchdog);

    let start = hear_until(&listener, "READY=1");
    assert!(
        home.path().join("ready.json").exists(),
        "ready before it is"
    );
    let (ready, before) = start.split_last().expect("one at least");
    assert!(ready.contains("STATUS=serving on 127.0.0.1:"), "{ready}");
    assert!(!before.is_empty(), "recovery was not told");
    for datagram in before {
        assert!(
            datagram.starts_with("EXTEND_TIMEOUT_USEC=30000000\n"),
            "{datagram}"
        );
        assert!(datagram.contains("of 2 cores have opened"), "{datagram}");
    }
    for _ in 0..3 {
        assert_eq!(hear(&listener), "WATCHDOG=1");
    }
    stop(&child);
    let end = hear_until(&listener, "STOPPING=1");
    let (_, signs) = end.split_last().expect("one at least");
    assert!(
        signs.iter().all(|datagram| datagram == "WATCHDOG=1"),
        "{end:?}"
    );
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// Goal: a socket in the abstract namespace is served, and without a watchdog there are no signs of
/// life. Method: as above, with `@name`, and a watchdog that means another process.
#[test]
fn an_abstract_socket_is_served() {
    let home = broker::home("supervised-abstract");
    let name = format!("penstock-supervised-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let listener = UnixDatagram::bind_addr(&address).expect("bound");
    listener.set_read_timeout(Some(PATIENCE)).expect("set");
    let watchdog = [("WATCHDOG_USEC", "300000"), ("WATCHDOG_PID", "1")];
    let mut child = start(home.path(), OsStr::new(&format!("@{name}")), &watchdog);
    hear_until(&listener, "READY=1");
    // Time for three signs of life, were there any.
    std::thread::sleep(Duration::from_millis(500));
    stop(&child);
    assert_eq!(hear(&listener), "STOPPING=1\nSTATUS=stopping");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// Goal: a supervisor that is gone, or a name that cannot be a socket's, does not keep the broker
/// from serving. Method: start with each, wait for the ready file, stop.
#[test]
fn a_deaf_supervisor_does_no_harm() {
    for (index, socket) in ["/no/such/socket", "nonsense", "@", &"/x".repeat(200)]
        .iter()
        .enumerate()
    {
        let home = broker::home(&format!("supervised-deaf-{index}"));
        let watchdog = [("WATCHDOG_USEC", "3000000")];
        let mut child = start(home.path(), OsStr::new(socket), &watchdog);
        let ready = home.path().join("ready.json");
        for _ in 0..600 {
            if ready.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(ready.exists(), "{socket}");
        stop(&child);
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{socket}");
    }
}
