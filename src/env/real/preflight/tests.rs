//! Every cause that can be made without changing the host is made for real, in a child process.

use super::*;

fn facts(release: &str, disabled: Option<u8>, root: bool, seccomp: bool) -> KernelFacts {
    KernelFacts {
        release: release.to_owned(),
        io_uring_disabled: disabled,
        root,
        seccomp,
    }
}

fn text(number: i32, facts: KernelFacts) -> String {
    diagnose(io::Error::from_raw_os_error(number), facts).to_string()
}

/// Goal: each cause is told apart and its text has the cure. Method: the kernel's answers.
#[test]
fn each_cause_is_named() {
    let cases = [
        (
            libc::ENOSYS,
            facts("5.4.0-150", None, true, false),
            "too old: Linux 5.4.0-150",
        ),
        (libc::ENOSYS, facts("4.4.0", None, true, false), "too old"),
        (libc::ENOSYS, facts("6.1.0", None, true, false), "gVisor"),
        (libc::ENOSYS, facts("6.1.0", None, true, true), "seccomp"),
        (
            libc::EPERM,
            facts("6.18.4", Some(2), true, true),
            "io_uring_disabled = 2",
        ),
        (
            libc::EPERM,
            facts("6.18.4", Some(1), false, true),
            "io_uring_disabled = 1",
        ),
        (
            libc::EPERM,
            facts("6.18.4", Some(1), true, true),
            "--security-opt",
        ),
        (
            libc::EPERM,
            facts("6.18.4", Some(0), true, true),
            "io_uring_setup",
        ),
        (
            libc::EPERM,
            facts("6.18.4", None, false, false),
            "security module",
        ),
        (
            libc::ENOMEM,
            facts("6.18.4", Some(0), false, false),
            "LimitMEMLOCK",
        ),
        (
            libc::EMFILE,
            facts("6.18.4", Some(0), false, false),
            "os error 24",
        ),
    ];
    for (number, facts, words) in cases {
        let release = facts.release.clone();
        let text = text(number, facts);
        assert!(text.contains(words), "{number} on {release}: {text}");
    }
}

/// Goal: releases of all kinds are read. Method: recorded ones.
#[test]
fn releases_are_parsed() {
    assert_eq!(parse_release("6.18.44-fc"), Some((6, 18)));
    assert_eq!(parse_release("5.10"), Some((5, 10)));
    assert_eq!(
        parse_release("5.15.153.1-microsoft-standard-WSL2"),
        Some((5, 15))
    );
    assert_eq!(parse_release(""), None);
}

/// Goal: this host, on which the tests of executors run, passes, and limits end at the hard ones.
/// Method: ask.
#[test]
fn this_host_passes() {
    let limits = raise_limits();
    assert_eq!(
        limit(libc::RLIMIT_NOFILE),
        Some((limits.open_files, limits.open_files))
    );
    check_io_uring().expect("io_uring");
}

/// Goal: direct I/O is tried where the data will be, also when the folder is not there yet, and
/// leaves nothing. Method: a folder beside the build.
#[test]
fn direct_io_leaves_nothing() {
    let binary = std::env::current_exe().expect("this binary");
    let beside = binary.parent().expect("a folder");
    let directory = tempfile::tempdir_in(beside).expect("temporary directory");
    let data = directory.path().join("not").join("yet");
    let file_system = check_direct_io(&data).expect("direct I/O");
    assert!(!file_system.volatile, "{file_system:?}");
    assert_eq!(
        std::fs::read_dir(directory.path()).expect("listed").count(),
        0
    );
}

/// Goal: a file system without direct I/O is refused by name. Method: procfs has none, and takes
/// no files at all.
#[test]
fn no_direct_io_is_named() {
    let problem = check_direct_io(Path::new("/proc/self")).expect_err("no such thing");
    let text = problem.to_string();
    assert!(text.contains("/proc") && text.contains("ext4"), "{text}");
}

/// Runs the ignored test `name` in a process of its own and gives what it printed after "found: ".
fn found_by_child(name: &str) -> String {
    let test = format!("env::real::preflight::tests::{name}");
    let output = std::process::Command::new(std::env::current_exe().expect("this binary"))
        .env(crate::env::process::TEST_CHILD, "1")
        .args([
            &test,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .output()
        .expect("child ran");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = text.lines().find_map(|line| line.split_once("found: "));
    found
        .unwrap_or_else(|| panic!("nothing found: {output:?}"))
        .1
        .to_owned()
}

fn print_what_is_found() {
    match check_io_uring() {
        Ok(()) => println!("found: nothing"),
        Err(problem) => println!("found: {problem}"),
    }
}

#[test]
#[ignore = "runs as a child of a_seccomp_filter_is_found"]
fn child_under_a_seccomp_filter() {
    if !crate::env::process::is_test_child() {
        return;
    }
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let number = u32::try_from(libc::SYS_io_uring_setup).expect("a small number");
    let refuse = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    let mut steps = [
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, 1, number),
        step(RETURN, 0, 0, refuse),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, which only reads the call's number.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program),
            0
        );
    }
    print_what_is_found();
}

/// Goal: the commonest cause, a container's filter, is found. Method: a child under such a filter.
#[test]
fn a_seccomp_filter_is_found() {
    let text = found_by_child("child_under_a_seccomp_filter");
    assert!(text.contains("seccomp=unconfined"), "{text}");
}

#[test]
#[ignore = "runs as a child of little_locked_memory_is_found"]
fn child_with_little_locked_memory() {
    if !crate::env::process::is_test_child() {
        return;
    }
    let little = libc::rlimit {
        rlim_cur: 64 << 10,
        rlim_max: 64 << 10,
    };
    // SAFETY: reads one struct.
    assert_eq!(
        unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const little) },
        0
    );
    assert_eq!(raise_limits().locked_memory_bytes, 64 << 10);
    print_what_is_found();
}

/// Goal: too little locked memory is found before glommio fails. Method: a child with 64 KiB.
#[test]
fn little_locked_memory_is_found() {
    let text = found_by_child("child_with_little_locked_memory");
    assert!(
        text.contains("RLIMIT_MEMLOCK is 64 KiB, 512 KiB are needed"),
        "{text}"
    );
}

#[test]
#[ignore = "runs as a child of soft_limits_are_raised"]
fn child_with_low_soft_limits() {
    if !crate::env::process::is_test_child() {
        return;
    }
    for resource in [libc::RLIMIT_MEMLOCK, libc::RLIMIT_NOFILE] {
        let (_, hard) = limit(resource).expect("a limit");
        let low = libc::rlimit {
            rlim_cur: 100,
            rlim_max: hard,
        };
        // SAFETY: reads one struct.
        assert_eq!(unsafe { libc::setrlimit(resource, &raw const low) }, 0);
    }
    let limits = raise_limits();
    let hard = |resource| limit(resource).map(|(_, hard)| hard);
    assert_eq!(Some(limits.open_files), hard(libc::RLIMIT_NOFILE));
    assert_eq!(Some(limits.locked_memory_bytes), hard(libc::RLIMIT_MEMLOCK));
    print_what_is_found();
}

/// Goal: soft limits are no obstacle where the hard ones suffice. Method: a child that lowers them.
#[test]
fn soft_limits_are_raised() {
    assert_eq!(found_by_child("child_with_low_soft_limits"), "nothing");
}
