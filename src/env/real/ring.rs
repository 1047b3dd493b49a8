//! Better rings for glommio, without a changed copy of glommio.
//!
//! glommio 0.9.0 makes its main ring without flags, so every poll completion from another CPU
//! interrupts the executor; `COOP_TASKRUN | SINGLE_ISSUER` gives 1.8–2.6 times the TCP throughput
//! from 16 connections up. And an idle ring waits *as I/O*, so an idle broker would show 98 %
//! iowait; `NO_IOWAIT` (kernel 6.15) cures that at no cost. `build.rs` tells the linker to route
//! three functions of liburing here (`--wrap`). They are reimplemented on the system call, so that
//! nothing is missing if a linker ignores the option: then glommio simply gets its plain rings,
//! and [`status`] says so.
//!
//! Per executor glommio makes, on one thread, in this order: a probe ring (2 entries), the main
//! ring (no flags), the poll ring (`IOPOLL`), the latency ring (no flags; left alone, because its
//! completion is the preempt signal and must interrupt).

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SETUP_IOPOLL: c_uint = 1 << 0;
const SETUP_COOP_TASKRUN: c_uint = 1 << 8;
const SETUP_SINGLE_ISSUER: c_uint = 1 << 12;
const MAIN_RING_FLAGS: c_uint = SETUP_COOP_TASKRUN | SETUP_SINGLE_ISSUER;
const ENTER_GETEVENTS: c_uint = 1 << 0;
const ENTER_NO_IOWAIT: c_uint = 1 << 7;
const FEATURE_NO_IOWAIT: c_uint = 1 << 17;
/// glommio's probe ring is as small as this.
const PROBE_ENTRIES: c_uint = 2;

/// `struct io_uring_params` of the kernel.
#[repr(C)]
struct Params {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    sq_thread_cpu: u32,
    sq_thread_idle: u32,
    features: u32,
    wq_fd: u32,
    reserved: [u32; 3],
    offsets: [u64; 10],
}

/// The head of liburing's `struct io_uring` as glommio 0.9.0 bundles it, up to what is set here.
#[repr(C)]
struct Ring {
    submission: [u64; 13],
    completion: [u64; 11],
    flags: c_uint,
    ring_fd: c_int,
    features: c_uint,
    pad: [c_uint; 3],
}

const _: () = assert!(size_of::<Params>() == 120);
const _: () = assert!(size_of::<Ring>() == 216);

unsafe extern "C" {
    /// liburing: maps the queues of a ring's descriptor and fills `ring`, except for its features.
    fn io_uring_queue_mmap(fd: c_int, params: *mut Params, ring: *mut Ring) -> c_int;
}

/// Rings that came by here, since the start.
static RINGS_SEEN: AtomicU64 = AtomicU64::new(0);
/// Main rings that were given the flags.
static RINGS_TUNED: AtomicU64 = AtomicU64::new(0);
/// Main rings whose flags the kernel refused.
static RINGS_REFUSED: AtomicU64 = AtomicU64::new(0);
/// Whether the kernel knows `NO_IOWAIT`. Read on every enter, written at most once.
static NO_IOWAIT: AtomicBool = AtomicBool::new(false);
/// Whether an enter came by here. Read on every enter, written once.
static ENTER_SEEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The poll ring of an executor was just made on this thread, so its latency ring is next.
    static LATENCY_IS_NEXT: Cell<bool> = const { Cell::new(false) };
}

/// What became of the rings of this process so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RingStatus {
    /// Whether the linker routed ring set-up here. False before the first executor too.
    pub setup_wrapped: bool,
    /// Whether the linker routed waiting here.
    pub enter_wrapped: bool,
    /// Main rings with cooperative task running: one per executor, or the linker ignored the wrap
    /// or the kernel (before 6.0) refused.
    pub rings_tuned: u64,
    /// Main rings whose flags the kernel refused; they work, with the throughput of plain ones.
    pub rings_refused: u64,
    /// Whether idle waiting is kept out of the host's iowait and I/O pressure figures.
    pub no_iowait: bool,
}

/// What became of the rings of this process so far; for the banner and `dump`.
#[must_use]
pub fn status() -> RingStatus {
    RingStatus {
        setup_wrapped: RINGS_SEEN.load(Ordering::Relaxed) > 0,
        enter_wrapped: ENTER_SEEN.load(Ordering::Relaxed),
        rings_tuned: RINGS_TUNED.load(Ordering::Relaxed),
        rings_refused: RINGS_REFUSED.load(Ordering::Relaxed),
        no_iowait: NO_IOWAIT.load(Ordering::Relaxed),
    }
}

/// In the place of liburing's `io_uring_queue_init_params`: 0, or a negative error number.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_io_uring_queue_init_params(
    entries: c_uint,
    ring: *mut Ring,
    params: *mut Params,
) -> c_int {
    RINGS_SEEN.fetch_add(1, Ordering::Relaxed);
    // SAFETY: glommio hands over a ring and parameters of its own, valid for this call.
    unsafe {
        let is_main = note_ring_order(entries, (*params).flags);
        let extra = if is_main { MAIN_RING_FLAGS } else { 0 };
        init_ring(entries, ring, params, extra)
    }
}

/// Whether this set-up is that of a main ring, by its place in glommio's order.
fn note_ring_order(entries: c_uint, flags: c_uint) -> bool {
    if entries <= PROBE_ENTRIES {
        return false;
    }
    let after_poll_ring = LATENCY_IS_NEXT.replace(flags & SETUP_IOPOLL != 0);
    flags == 0 && !after_poll_ring
}

/// Makes a ring with `extra` flags, or without them if the kernel does not know them.
///
/// # Safety
/// Both pointers are valid and not shared during the call.
unsafe fn init_ring(entries: c_uint, ring: *mut Ring, params: *mut Params, extra: c_uint) -> c_int {
    // SAFETY: the caller's promise; the kernel writes only inside the parameters.
    unsafe {
        let plain_flags = (*params).flags;
        (*params).flags = plain_flags | extra;
        let mut outcome = setup_ring(entries, params);
        if extra != 0 {
            let counter = if outcome == -libc::EINVAL {
                &RINGS_REFUSED
            } else {
                &RINGS_TUNED
            };
            if outcome == -libc::EINVAL {
                (*params).flags = plain_flags;
                outcome = setup_ring(entries, params);
            }
            if outcome >= 0 {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
        if outcome < 0 {
            return outcome;
        }
        let fd = outcome;
        let mapped = io_uring_queue_mmap(fd, params, ring);
        if mapped != 0 {
            libc::close(fd);
            return mapped;
        }
        (*ring).features = (*params).features;
        if (*params).features & FEATURE_NO_IOWAIT != 0 {
            NO_IOWAIT.store(true, Ordering::Relaxed);
        }
        0
    }
}

/// The system call: a descriptor, or a negative error number.
///
/// # Safety
/// `params` is valid and not shared during the call.
unsafe fn setup_ring(entries: c_uint, params: *mut Params) -> c_int {
    // SAFETY: the caller's promise.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, params) };
    match c_int::try_from(fd) {
        Ok(fd) if fd >= 0 => fd,
        _ => -std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EINVAL),
    }
}

/// In the place of liburing's `__sys_io_uring_enter`: the count, or −1 with `errno` set.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap___sys_io_uring_enter(
    fd: c_int,
    to_submit: c_uint,
    min_complete: c_uint,
    flags: c_uint,
    signals: *const c_void,
) -> c_int {
    const KERNEL_SIGNALS_BYTES: c_int = 8;
    // SAFETY: passed on as it came.
    unsafe {
        enter(
            fd,
            to_submit,
            min_complete,
            flags,
            signals,
            KERNEL_SIGNALS_BYTES,
        )
    }
}

/// In the place of liburing's `__sys_io_uring_enter2`: the count, or −1 with `errno` set.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap___sys_io_uring_enter2(
    fd: c_int,
    to_submit: c_uint,
    min_complete: c_uint,
    flags: c_uint,
    argument: *const c_void,
    argument_bytes: c_int,
) -> c_int {
    // SAFETY: passed on as it came.
    unsafe { enter(fd, to_submit, min_complete, flags, argument, argument_bytes) }
}

/// # Safety
/// As the system call: `argument` is null or points at what `flags` say.
unsafe fn enter(
    fd: c_int,
    to_submit: c_uint,
    min_complete: c_uint,
    flags: c_uint,
    argument: *const c_void,
    argument_bytes: c_int,
) -> c_int {
    if !ENTER_SEEN.load(Ordering::Relaxed) {
        ENTER_SEEN.store(true, Ordering::Relaxed);
    }
    let quiet = flags & ENTER_GETEVENTS != 0 && NO_IOWAIT.load(Ordering::Relaxed);
    let flags = if quiet {
        flags | ENTER_NO_IOWAIT
    } else {
        flags
    };
    // SAFETY: the caller's promise.
    let count = unsafe {
        libc::syscall(
            libc::SYS_io_uring_enter,
            fd,
            to_submit,
            min_complete,
            flags,
            argument,
            argument_bytes,
        )
    };
    c_int::try_from(count).expect("a ring has fewer than 2^31 entries")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty_params() -> Params {
        // SAFETY: integers only; all zeros is what the kernel expects of an empty request.
        unsafe { std::mem::zeroed() }
    }

    /// Goal: the linker did what build.rs asked, and this kernel took the flags. Method: run an
    /// executor and look at the counters.
    #[test]
    fn executors_get_tuned_rings() {
        let before = status().rings_tuned;
        crate::env::real::executor::run_one("ring", |core| async move {
            core.env
                .clock()
                .sleep(std::time::Duration::from_millis(1))
                .await;
        })
        .expect("an executor");
        let after = status();
        assert!(after.setup_wrapped, "the linker ignored --wrap: {after:?}");
        assert!(after.enter_wrapped, "the linker ignored --wrap: {after:?}");
        assert!(
            after.rings_tuned > before,
            "the kernel refused the flags: {after:?}"
        );
    }

    /// Goal: flags the kernel refuses do not cost the ring. Method: a flag that does not exist.
    #[test]
    fn refused_flags_fall_back_to_a_plain_ring() {
        let before = status().rings_refused;
        let mut params = empty_params();
        // SAFETY: integers and pointers the set-up overwrites.
        let mut ring: Ring = unsafe { std::mem::zeroed() };
        // SAFETY: both live on this stack frame.
        let outcome = unsafe { init_ring(8, &raw mut ring, &raw mut params, 1 << 31) };
        assert_eq!(outcome, 0);
        assert_eq!(params.flags, 0);
        assert_eq!(status().rings_refused, before + 1);
        // SAFETY: a descriptor of this test; submits and waits for nothing.
        let count = unsafe { enter(ring.ring_fd, 0, 0, ENTER_GETEVENTS, std::ptr::null(), 8) };
        assert_eq!(count, 0, "the plain ring works");
        // SAFETY: as above. The mapping goes with the process.
        unsafe { libc::close(ring.ring_fd) };
    }

    /// Goal: only the main ring of each executor is picked. Method: glommio's order, twice on one
    /// thread, and once broken off after the main ring.
    #[test]
    fn main_ring_is_known_by_its_order() {
        let executor = |expected: bool| {
            assert!(!note_ring_order(2, 0), "probe");
            assert_eq!(note_ring_order(128, 0), expected, "main");
            assert!(!note_ring_order(128, SETUP_IOPOLL), "poll");
            assert!(!note_ring_order(128, 0), "latency");
        };
        executor(true);
        assert!(
            note_ring_order(128, 0),
            "a main ring whose executor then failed"
        );
        executor(true);
    }
}
