//! How the process ends, shown in child processes: this test binary, run again with one test.

use super::*;
use std::process::{Command, Output, Stdio};

/// Runs the ignored test `name` of this module in a process of its own.
fn run_child(name: &str) -> Output {
    let binary = std::env::current_exe().expect("this binary");
    let test = format!("env::process::tests::{name}");
    Command::new(binary)
        .env(crate::env::process::TEST_CHILD, "1")
        .args([
            &test,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("child ran")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
#[ignore = "runs as a child of panic_ends_with_code_6"]
fn child_panics_on_a_thread() {
    if !crate::env::process::is_test_child() {
        return;
    }
    install_panic_hook();
    let thread = spawn_thread("worker-7", || panic!("the reservoir is empty")).expect("thread");
    let _ = thread.join();
    std::thread::sleep(Duration::from_secs(5));
}

/// Goal: a panic on any thread ends the process with code 6 and is told once, with thread and
/// place. Method: a child whose worker thread panics while the main thread would go on.
#[test]
fn panic_ends_with_code_6() {
    let output = run_child("child_panics_on_a_thread");
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    let text = stderr(&output);
    assert_eq!(text.matches("the reservoir is empty").count(), 1, "{text}");
    assert!(
        text.contains("worker-7") && text.contains("process/tests.rs"),
        "{text}"
    );
}

#[test]
#[ignore = "runs as a child of exit_calls_the_hook_once"]
fn child_exits_from_two_threads() {
    if !crate::env::process::is_test_child() {
        return;
    }
    set_exit_hook(|code| println!("hook {}", code.code()));
    let barrier = std::sync::Arc::new(std::sync::Barrier::new(2));
    let other = std::sync::Arc::clone(&barrier);
    let _thread = spawn_thread("other", move || {
        other.wait();
        exit_now(ExitCode::DiskFailed, "the disk failed");
    });
    barrier.wait();
    exit_now(ExitCode::DiskFailed, "the disk failed");
}

/// Goal: whoever ends the process, one reason is told and the hook runs once. Method: two threads.
#[test]
fn exit_calls_the_hook_once() {
    let output = run_child("child_exits_from_two_threads");
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert_eq!(
        stderr(&output).matches("penstock: the disk failed").count(),
        1
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout.matches("hook 5").count(), 1, "{stdout}");
}

#[test]
#[ignore = "runs as a child of second_signal_stops_at_once"]
fn child_waits_for_signals() {
    if !crate::env::process::is_test_child() {
        return;
    }
    watch_stop_signals(|signal| println!("asked by {}", signal.name())).expect("handlers");
    println!("ready");
    std::thread::sleep(Duration::from_secs(20));
    println!("slept");
}

/// Goal: the first signal is a message, the second ends the process. Method: signal a child twice
/// and see that it neither died of the first nor slept out its time.
#[test]
fn second_signal_stops_at_once() {
    use std::io::{BufRead, BufReader};
    let binary = std::env::current_exe().expect("this binary");
    let test = "env::process::tests::child_waits_for_signals";
    let mut child = Command::new(binary)
        .env(crate::env::process::TEST_CHILD, "1")
        .args([
            test,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("child started");
    let pid = libc::pid_t::try_from(child.id()).expect("a process id");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut wait_for = |word: &str| {
        let seen = lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.contains(word));
        assert!(seen, "the child never said {word}");
    };
    wait_for("ready");
    // SAFETY: signals a child that has not been waited for, so the number is still its own.
    unsafe { libc::kill(pid, libc::SIGTERM) };
    wait_for("asked by SIGTERM");
    // SAFETY: as above.
    unsafe { libc::kill(pid, libc::SIGINT) };
    let output = child.wait_with_output().expect("child ended");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(stderr(&output).contains("a second SIGINT"), "{output:?}");
}

/// Goal: the monotonic clock advances and the wall clock is of this age. Method: read them.
#[test]
fn clocks_advance() {
    let first = monotonic_ns();
    sleep_blocking(Duration::from_millis(2));
    assert!(monotonic_ns() >= first + 2_000_000);
    assert!(unix_ms() > 1_700_000_000_000);
}
