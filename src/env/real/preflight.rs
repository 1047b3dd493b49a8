//! What the host must have, asked before anything is made or started, so that a missing thing is
//! one sentence with its cure and exit code 3 instead of a panic inside glommio.

use crate::env::process;
use crate::limits::{BLOCK_ALIGN, LOCKED_MEMORY_BYTES_MIN};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// glommio 0.9.0 needs what io_uring can do since this kernel.
const KERNEL_MIN: (u32, u32) = (5, 8);

/// What the host lacks. Each text names the reason and the cure; the process ends with code 3.
#[derive(Debug)]
pub enum HostProblem {
    /// The kernel is too old for io_uring as it is used here.
    KernelTooOld {
        /// Its release.
        release: String,
    },
    /// The kernel, or what stands in its place, has no io_uring at all.
    IoUringMissing {
        /// Its release.
        release: String,
    },
    /// `kernel.io_uring_disabled` forbids it.
    IoUringDisabled {
        /// 1: only for the unprivileged; 2: for all.
        value: u8,
    },
    /// A seccomp filter forbids it: the default of Docker, Podman and others.
    Seccomp,
    /// Forbidden, and neither the sysctl nor a seccomp filter shows.
    IoUringRefused(io::Error),
    /// Too little memory may be locked.
    LockedMemory {
        /// The soft limit after raising it, in bytes.
        limit_bytes: u64,
    },
    /// The file system of the data directory cannot do direct I/O.
    NoDirectIo {
        /// The directory that was tried.
        directory: PathBuf,
        /// Its kind of file system.
        file_system: String,
        /// What the kernel said.
        error: io::Error,
    },
}

impl fmt::Display for HostProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = KERNEL_MIN;
        match self {
            HostProblem::KernelTooOld { release } => write!(
                formatter,
                "the kernel is too old: Linux {release}, and io_uring is needed as of \
                 {major}.{minor} (6.1 or newer is advised). Run a newer kernel"
            ),
            HostProblem::IoUringMissing { release } => write!(
                formatter,
                "this kernel (Linux {release}) has no io_uring, or a sandbox such as gVisor hides \
                 it. Run on a kernel built with CONFIG_IO_URING, outside that sandbox"
            ),
            HostProblem::IoUringDisabled { value: 1 } => write!(
                formatter,
                "io_uring is forbidden to ordinary users here (kernel.io_uring_disabled = 1). \
                 Allow it: sysctl -w kernel.io_uring_disabled=0, or put this user into the group \
                 of kernel.io_uring_group"
            ),
            HostProblem::IoUringDisabled { value } => write!(
                formatter,
                "io_uring is switched off on this host (kernel.io_uring_disabled = {value}). \
                 Allow it: sysctl -w kernel.io_uring_disabled=0"
            ),
            HostProblem::Seccomp => write!(
                formatter,
                "a seccomp filter forbids io_uring, as container runtimes do by default. Allow \
                 io_uring_setup, io_uring_enter and io_uring_register in the container's seccomp \
                 profile, or start it with --security-opt seccomp=unconfined"
            ),
            HostProblem::IoUringRefused(error) => write!(
                formatter,
                "the kernel refuses io_uring ({error}). A security module may forbid it: look into \
                 the kernel log"
            ),
            HostProblem::LockedMemory { limit_bytes } => write!(
                formatter,
                "too little memory may be locked: RLIMIT_MEMLOCK is {} KiB, {} KiB are needed and \
                 8 MiB per core are advised. Raise it: LimitMEMLOCK=infinity (systemd), \
                 --ulimit memlock=-1 (container), ulimit -l (shell)",
                limit_bytes / 1024,
                LOCKED_MEMORY_BYTES_MIN / 1024
            ),
            HostProblem::NoDirectIo {
                directory,
                file_system,
                error,
            } => write!(
                formatter,
                "the file system of {} ({file_system}) cannot do direct I/O ({error}). Put the \
                 data directory on ext4 or XFS on a local disk",
                directory.display()
            ),
        }
    }
}

impl std::error::Error for HostProblem {}

/// What the kernel tells about itself when it refuses; apart, so that every cause can be tested.
struct KernelFacts {
    release: String,
    io_uring_disabled: Option<u8>,
    root: bool,
    seccomp: bool,
}

impl KernelFacts {
    fn ask() -> KernelFacts {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        // A filter belongs to a thread; the one that was just refused is this one.
        let status = read("/proc/thread-self/status");
        let mode = status
            .lines()
            .find_map(|line| line.strip_prefix("Seccomp:"));
        KernelFacts {
            release: process::kernel_release(),
            io_uring_disabled: read("/proc/sys/kernel/io_uring_disabled")
                .trim()
                .parse()
                .ok(),
            root: process::user_is_root(),
            // 2 is a filter, 1 strict mode.
            seccomp: mode.is_some_and(|mode| mode.trim() != "0"),
        }
    }
}

/// Whether io_uring can be used and enough memory can be locked for it. Call [`raise_limits`]
/// first.
///
/// # Errors
/// The one thing that stands in the way.
pub fn check_io_uring() -> Result<(), HostProblem> {
    match probe_setup() {
        Ok(()) => {}
        Err(error) => return Err(diagnose(error, KernelFacts::ask())),
    }
    let release = process::kernel_release();
    if parse_release(&release).is_some_and(|version| version < KERNEL_MIN) {
        return Err(HostProblem::KernelTooOld { release });
    }
    match limit(libc::RLIMIT_MEMLOCK) {
        Some((soft, _)) if soft < LOCKED_MEMORY_BYTES_MIN => {
            Err(HostProblem::LockedMemory { limit_bytes: soft })
        }
        _ => Ok(()),
    }
}

/// Makes the smallest ring and closes it.
fn probe_setup() -> io::Result<()> {
    /// Size of `struct io_uring_params`.
    const PARAMS_WORDS: usize = 15;
    let mut params = [0u64; PARAMS_WORDS];
    // SAFETY: the kernel writes only inside the parameters; the descriptor is closed at once.
    unsafe {
        let fd = libc::syscall(libc::SYS_io_uring_setup, 4u32, params.as_mut_ptr());
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        libc::close(i32::try_from(fd).expect("a descriptor fits"));
    }
    Ok(())
}

fn diagnose(error: io::Error, facts: KernelFacts) -> HostProblem {
    let too_old = parse_release(&facts.release).is_some_and(|version| version < KERNEL_MIN);
    let disabled = facts.io_uring_disabled.unwrap_or(0);
    match error.raw_os_error() {
        Some(libc::ENOSYS) if too_old => HostProblem::KernelTooOld {
            release: facts.release,
        },
        // Some filters answer ENOSYS, so that programs fall back.
        Some(libc::ENOSYS) if facts.seccomp => HostProblem::Seccomp,
        Some(libc::ENOSYS) => HostProblem::IoUringMissing {
            release: facts.release,
        },
        Some(libc::ENOMEM) => {
            let limit_bytes = limit(libc::RLIMIT_MEMLOCK).map_or(0, |(soft, _)| soft);
            HostProblem::LockedMemory { limit_bytes }
        }
        Some(libc::EPERM | libc::EACCES) if disabled >= 2 || (disabled == 1 && !facts.root) => {
            HostProblem::IoUringDisabled { value: disabled }
        }
        Some(libc::EPERM | libc::EACCES) if facts.seccomp => HostProblem::Seccomp,
        _ => HostProblem::IoUringRefused(error),
    }
}

/// Major and minor number of a release such as "6.18.44-generic".
fn parse_release(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The limits of this process after raising them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProcessLimits {
    /// Descriptors it may have open: connections and files.
    pub open_files: u64,
    /// Memory it may lock, in bytes; `u64::MAX` is no limit.
    pub locked_memory_bytes: u64,
}

/// Raises what an ordinary user may raise: the soft limits of descriptors and locked memory up to
/// the hard ones.
pub fn raise_limits() -> ProcessLimits {
    ProcessLimits {
        open_files: raise(libc::RLIMIT_NOFILE),
        locked_memory_bytes: raise(libc::RLIMIT_MEMLOCK),
    }
}

fn raise(resource: libc::__rlimit_resource_t) -> u64 {
    let Some((soft, hard)) = limit(resource) else {
        return 0;
    };
    if soft == hard {
        return soft;
    }
    let wanted = libc::rlimit {
        rlim_cur: hard,
        rlim_max: hard,
    };
    // SAFETY: reads one struct. A refusal leaves the limit as it was, which is reported below.
    unsafe { libc::setrlimit(resource, &raw const wanted) };
    limit(resource).map_or(soft, |(soft, _)| soft)
}

/// Soft and hard limit.
fn limit(resource: libc::__rlimit_resource_t) -> Option<(u64, u64)> {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: fills one struct.
    let outcome = unsafe { libc::getrlimit(resource, &raw mut limits) };
    (outcome == 0).then_some((limits.rlim_cur, limits.rlim_max))
}

/// The file system that will hold the data.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DataFileSystem {
    /// Its kind ("ext4", "xfs" …), or its number.
    pub name: String,
    /// Whether it is lost with the host's memory: acknowledged records would be too.
    pub volatile: bool,
}

/// A block as the device wants it.
#[repr(C, align(4096))]
struct AlignedBlock([u8; BLOCK_ALIGN]);

/// Writes and reads one block with `O_DIRECT` in a file without a name in `directory`, or in its
/// nearest ancestor that exists; nothing is left there.
///
/// # Errors
/// [`HostProblem::NoDirectIo`], also when the directory cannot be written at all.
pub fn check_direct_io(directory: &Path) -> Result<DataFileSystem, HostProblem> {
    let existing = directory.ancestors().find(|path| path.is_dir());
    // The empty ancestor of a relative path is the current folder.
    let directory = existing.unwrap_or(Path::new(".")).to_path_buf();
    let (name, volatile) = file_system(&directory);
    match try_direct_io(&directory) {
        Ok(()) => Ok(DataFileSystem { name, volatile }),
        Err(error) => Err(HostProblem::NoDirectIo {
            directory,
            file_system: name,
            error,
        }),
    }
}

fn try_direct_io(directory: &Path) -> io::Result<()> {
    let mut block = Box::new(AlignedBlock([0xa7; BLOCK_ALIGN]));
    let file = open_nameless(directory)?;
    file.write_all_at(&block.0, 0)?;
    file.sync_data()?;
    block.0.fill(0);
    file.read_exact_at(&mut block.0, 0)?;
    if block.0.iter().any(|byte| *byte != 0xa7) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a block came back changed",
        ));
    }
    Ok(())
}

/// Opens a file that has no name, or on file systems that know no such thing, one whose name is
/// removed at once.
fn open_nameless(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let nameless = options
        .clone()
        .custom_flags(libc::O_TMPFILE | libc::O_DIRECT)
        .open(directory);
    match nameless {
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT | libc::EINVAL)
            ) =>
        {
            let path = directory.join(format!(".penstock-probe-{}", std::process::id()));
            let opened = options
                .create_new(true)
                .custom_flags(libc::O_DIRECT)
                .open(&path);
            // The kernel makes the file before it refuses O_DIRECT on it.
            let _ = std::fs::remove_file(&path);
            opened
        }
        other => other,
    }
}

/// Kind of file system, and whether it lives in memory.
fn file_system(directory: &Path) -> (String, bool) {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(directory.as_os_str().as_bytes()) else {
        return ("unknown".to_owned(), false);
    };
    let mut facts = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends in zero, and the kernel fills the struct when it returns 0.
    let kind = unsafe {
        if libc::statfs(path.as_ptr(), facts.as_mut_ptr()) != 0 {
            return ("unknown".to_owned(), false);
        }
        facts.assume_init().f_type
    };
    let name = match kind {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x2fc1_2fc1 => "zfs",
        0xf2f5_2010 => "f2fs",
        0xca45_1a4e => "bcachefs",
        0x794c_7630 => "overlayfs",
        0x6969 => "nfs",
        0x6573_5546 => "fuse",
        0x0102_1994 => "tmpfs",
        0x8584_58f6 => "ramfs",
        other => return (format!("file system {other:#x}"), false),
    };
    (name.to_owned(), matches!(name, "tmpfs" | "ramfs"))
}

#[cfg(test)]
mod tests;
