//! glommio's traps, as far as starting cores and tasks meets them.

use super::*;
use std::cell::{Cell, RefCell};
use std::process::{Command, Output};
use std::rc::Rc;

fn run_child(name: &str) -> Output {
    let binary = std::env::current_exe().expect("this binary");
    let test = format!("env::real::executor::tests::{name}");
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

fn assert_ended_as_bug(output: &Output, words: &[&str]) {
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    for word in words {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
}

/// Goal: a spawned task is not polled inside `spawn`. Method: spawn with a borrow held that the
/// task wants too, and look whether it ran before the call returned.
#[test]
fn spawn_does_not_poll_inline() {
    run_one("spawn", |core| async move {
        let cell = Rc::new(RefCell::new(0));
        let ran = Rc::new(Cell::new(false));
        {
            let mut borrowed = cell.borrow_mut();
            let (wanted, witness) = (Rc::clone(&cell), Rc::clone(&ran));
            core.env.spawn("borrower", async move {
                *wanted.borrow_mut() += 1;
                witness.set(true);
            });
            assert!(!ran.get(), "the task ran inside spawn");
            *borrowed = 41;
        }
        core.env.yield_now().await;
        assert!(ran.get());
        assert_eq!(*cell.borrow(), 42);
    })
    .expect("an executor");
}

/// Goal: more cores than CPUs share them, each with its own index, and outcomes come in order.
/// Method: four cores on the allowed CPUs; each tells where it is.
#[test]
fn cores_wrap_around_the_cpus() {
    let allowed = process::affinity_cpus();
    let cpus = place_cores(4, &allowed);
    let settings = CoreSettings {
        cpus: cpus.clone(),
        name: "wrap".to_owned(),
        prime: None,
    };
    let cores = run_cores(&settings, |core| async move {
        // SAFETY: cannot fail.
        let running_on = usize::try_from(unsafe { libc::sched_getcpu() }).expect("a CPU");
        (core.index, core.count, core.cpu, running_on)
    })
    .expect("executors");
    let expected: Vec<_> = cpus
        .iter()
        .enumerate()
        .map(|(index, cpu)| (index, 4, *cpu, *cpu))
        .collect();
    assert_eq!(cores.join(), expected);
}

/// Goal: a CPU that is not there is an error, and no core has run. Method: the second of two.
#[test]
fn missing_cpu_starts_nothing() {
    let ran = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&ran);
    let cpus = vec![process::affinity_cpus()[0], 100_000];
    let settings = CoreSettings {
        cpus,
        name: "missing".to_owned(),
        prime: None,
    };
    let outcome = run_cores(&settings, move |_core| async move {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let error = outcome.err().expect("no such CPU").to_string();
    assert!(error.contains("100000"), "{error}");
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[test]
#[ignore = "runs as a child of panic_in_a_task_ends_the_process"]
fn child_task_panics() {
    if !crate::env::process::is_test_child() {
        return;
    }
    let _ = run_one("panic", |core| async move {
        core.env.spawn("leaky", async { panic!("the pipe burst") });
        core.env.clock().sleep(Duration::from_secs(5)).await;
    });
}

/// Goal: a panic in a task is fatal, with its name, also without the hook. Method: a child.
#[test]
fn panic_in_a_task_ends_the_process() {
    assert_ended_as_bug(
        &run_child("child_task_panics"),
        &["leaky", "the pipe burst"],
    );
}

#[test]
#[ignore = "runs as a child of panic_in_the_main_future_ends_the_process"]
fn child_main_panics() {
    if !crate::env::process::is_test_child() {
        return;
    }
    process::install_panic_hook();
    let cpus = place_cores(2, &process::affinity_cpus());
    let settings = CoreSettings {
        cpus,
        name: "panic".to_owned(),
        prime: None,
    };
    let cores = run_cores(&settings, |core| async move {
        assert_ne!(core.index, 1, "no head of water");
        core.env.clock().sleep(Duration::from_secs(20)).await;
    });
    let _ = cores.expect("executors").join();
}

/// Goal: in the broker, a core cannot end by panic and leave the others. Method: a child with the
/// hook, whose core 0 would go on.
#[test]
fn panic_in_the_main_future_ends_the_process() {
    let start = Instant::now();
    assert_ended_as_bug(
        &run_child("child_main_panics"),
        &["panic-1", "no head of water"],
    );
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "nobody waited for core 0"
    );
}

/// Goal: without the hook (tests, tools) the panic of a core is the panic of whoever joins it, so a
/// failed assertion fails its own test only. Method: join a core that panicked.
#[test]
#[should_panic(expected = "the gauge reads nothing")]
fn panic_in_the_main_future_reaches_the_joiner() {
    let _ = run_one("joiner", |_core| async move {
        panic!("the gauge reads nothing")
    });
}

/// Goal: blocking work may run on every CPU of the process, not only on its core's. Method: a core
/// pinned to one CPU asks for the mask of a blocking thread.
#[test]
fn blocking_threads_are_not_pinned() {
    let allowed = process::affinity_cpus();
    let masks = run_one("mask", |core| async move {
        let own = process::affinity_cpus();
        let blocking = core.env.spawn_blocking(process::affinity_cpus).await;
        (own, blocking)
    });
    let (own, blocking) = masks.expect("an executor");
    assert_eq!(own.len(), 1, "the core is pinned");
    assert_eq!(blocking, allowed);
}

#[test]
#[ignore = "runs as a child of panic_in_blocking_work_ends_the_process"]
fn child_blocking_work_panics() {
    if !crate::env::process::is_test_child() {
        return;
    }
    let _ = run_one("panic", |core| async move {
        core.env
            .spawn_blocking(|| panic!("the sluice jammed"))
            .await;
    });
}

/// Goal: a panic on a blocking thread does not hang its caller. Method: a child.
#[test]
fn panic_in_blocking_work_ends_the_process() {
    let output = run_child("child_blocking_work_panics");
    assert_ended_as_bug(&output, &["blocking work", "the sluice jammed"]);
}

/// Goal: blocking work leaves the executor free and gives its value back. Method: the executor must
/// tick while two blocking sleeps run, and both must overlap.
#[test]
fn blocking_work_leaves_the_executor_free() {
    run_one("blocking", |core| async move {
        let ticks = Rc::new(Cell::new(0));
        let done = Rc::new(Cell::new(false));
        let (counted, stop, clock) = (Rc::clone(&ticks), Rc::clone(&done), core.env.clock());
        core.env.spawn("ticker", async move {
            while !stop.get() {
                counted.set(counted.get() + 1);
                clock.sleep(Duration::from_millis(5)).await;
            }
        });
        let work = |value: u32| {
            core.env.spawn_blocking(move || {
                std::thread::sleep(Duration::from_millis(500));
                value
            })
        };
        let start = Instant::now();
        let values = futures_lite::future::zip(work(1), work(2)).await;
        assert_eq!(values, (1, 2));
        assert!(
            start.elapsed() < Duration::from_millis(950),
            "two threads work at once"
        );
        assert!(ticks.get() >= 5, "{} ticks", ticks.get());
        done.set(true);
    })
    .expect("an executor");
}

/// Goal: a deadline ends what is too slow, keeps what is ready, and is not needed by what is ready
/// at once. Method: three futures, one of them dropped with a witness.
#[test]
fn deadline_drops_what_is_late() {
    struct Witness(Rc<Cell<bool>>);
    impl Drop for Witness {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    run_one("deadline", |core| async move {
        let clock = core.env.clock();
        let dropped = Rc::new(Cell::new(false));
        let witness = Witness(Rc::clone(&dropped));
        let late = async {
            let _witness = witness;
            clock.sleep(Duration::from_secs(30)).await;
        };
        assert_eq!(clock.deadline(Duration::from_millis(20), late).await, None);
        assert!(dropped.get(), "the late future was dropped");
        let ready = async { 7 };
        assert_eq!(clock.deadline(Duration::ZERO, ready).await, Some(7));
        let soon = async {
            clock.sleep(Duration::from_millis(1)).await;
            8
        };
        assert_eq!(clock.deadline(Duration::from_secs(30), soon).await, Some(8));
    })
    .expect("an executor");
}

/// Goal: chance differs between executors. Method: draw on two of them.
#[test]
fn executors_draw_different_numbers() {
    let draw = || run_one("draw", |core| async move { core.env.random_u64() }).expect("executor");
    assert_ne!(draw(), draw());
}
