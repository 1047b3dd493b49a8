//! `penstock probe`: what this machine can do by itself, to hold the broker's figures against.
//! Scratch files of bounded size, two at most at once; nothing else is touched, nothing is left.

use super::cli::ProbeArgs;
use super::error::AdminError;
use super::output::{self, Output};
use crate::env::probe::{AlignedBytes, ScratchFile, free_bytes, loopback_echo};
use crate::env::process;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::Arc;

const SMALL_BYTES: usize = 4 << 10;
const LARGE_BYTES: usize = 1 << 20;
/// Writes at once, as the journal's default `commit_depth`.
const DEPTH: u64 = 4;
const SIZE_MIB_MIN: u64 = 16;
const SIZE_MIB_MAX: u64 = 16 << 10;
const SECONDS_MAX: u64 = 60;

/// Every measurement.
const NAMES: [&str; 11] = [
    "write_4k_fdatasync",
    "write_4k_dsync",
    "write_1m_fdatasync",
    "write_1m_dsync_x4",
    "write_1m",
    "read_1m",
    "read_1m_x4",
    "write_1m_dsync_x4_new",
    "crc32c_1m",
    "copy_1m",
    "loopback_echo_1k",
];
/// How many of them, from the front, use the file that was written before.
const NAMES_ON_FILE: usize = 7;

/// One measurement.
struct Row {
    /// Stable name, for JSON.
    key: &'static str,
    /// What was done.
    what: &'static str,
    bytes_each: usize,
    times: Histogram<u64>,
    elapsed_ns: u64,
    fio: Option<String>,
}

impl Row {
    fn per_second(&self) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a rate needs no more than 50 bits"
        )]
        let rate = self.times.len() as f64 / (self.elapsed_ns.max(1) as f64 / 1e9);
        rate
    }

    fn bytes_per_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a size of at most a megabyte")]
        let bytes = self.bytes_each as f64;
        self.per_second() * bytes
    }
}

/// Runs the verb.
///
/// # Errors
/// The folder cannot be written, or has too little room.
pub fn run(args: &ProbeArgs, out: &mut Output) -> Result<(), AdminError> {
    let size_mib = args.size_mib.clamp(SIZE_MIB_MIN, SIZE_MIB_MAX);
    let for_ns = args.seconds.clamp(1, SECONDS_MAX) * 1_000_000_000;
    let folder = &args.directory;
    if let Some(unknown) = args
        .only
        .iter()
        .find(|name| !NAMES.contains(&name.as_str()))
    {
        return Err(AdminError::Usage(format!(
            "{unknown} is no measurement: there are {}",
            NAMES.join(", ")
        )));
    }
    let failed =
        |error: io::Error| AdminError::Failed(format!("probe of {}: {error}", folder.display()));
    let free = free_bytes(folder).map_err(failed)?;
    // Two files may be there at once, and as much as one stays free.
    if free / 3 < size_mib << 20 {
        return Err(AdminError::Failed(format!(
            "{} has {} MiB free, and a probe of {size_mib} MiB must leave as much: free some, or \
             use --size-mib",
            folder.display(),
            free >> 20
        )));
    }
    let file = ScratchFile::create(folder).map_err(failed)?;
    let probe = Probe {
        file: &file,
        blocks: size_mib,
        for_ns,
        folder,
        size_mib,
        only: &args.only,
    };
    let rows = probe.rows().map_err(failed)?;
    if args.json {
        out.json(&document(&rows, folder, size_mib, file.is_direct()))?;
    } else {
        print(&rows, folder, size_mib, file.is_direct(), out)?;
    }
    out.flush()
}

struct Probe<'a> {
    file: &'a ScratchFile,
    /// Large blocks in the file.
    blocks: u64,
    for_ns: u64,
    folder: &'a Path,
    size_mib: u64,
    /// Names of what is wanted; none for all.
    only: &'a [String],
}

impl Probe<'_> {
    fn rows(&self) -> io::Result<Vec<Row>> {
        if NAMES[..NAMES_ON_FILE].iter().any(|name| self.wants(name)) {
            self.prepare()?;
        }
        let mut rows = Vec::new();
        if self.wants("write_4k_fdatasync") || self.wants("write_4k_dsync") {
            progress("4 KiB writes");
            rows.extend(self.small_writes()?);
        }
        progress("1 MiB writes");
        self.large_writes(&mut rows)?;
        progress("reads");
        self.reads(&mut rows)?;
        progress("memory and loopback");
        self.memory(&mut rows)?;
        if self.wants("loopback_echo_1k") {
            rows.push(self.loopback()?);
        }
        // Small writes are measured as a pair.
        rows.retain(|row| self.wants(row.key));
        Ok(rows)
    }

    fn wants(&self, key: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == key)
    }

    fn large_writes(&self, rows: &mut Vec<Row>) -> io::Result<()> {
        let large = AlignedBytes::random(LARGE_BYTES);
        if self.wants("write_1m_fdatasync") {
            rows.push(self.row(
                "write_1m_fdatasync",
                "1 MiB write, then fdatasync",
                LARGE_BYTES,
                Some("--rw=write --bs=1m --fdatasync=1"),
                |position| {
                    self.file.write_at(&large, position)?;
                    self.file.sync_data()
                },
            )?);
        }
        if self.wants("write_1m_dsync_x4") {
            let what = "1 MiB write with O_DSYNC, 4 at once";
            rows.push(self.parallel("write_1m_dsync_x4", what, false)?);
        }
        if self.wants("write_1m_dsync_x4_new") {
            rows.push(self.new_places()?);
        }
        if self.wants("write_1m") {
            rows.push(self.row(
                "write_1m",
                "1 MiB write, no flush",
                LARGE_BYTES,
                Some("--rw=write --bs=1m"),
                |position| self.file.write_at(&large, position),
            )?);
        }
        Ok(())
    }

    fn reads(&self, rows: &mut Vec<Row>) -> io::Result<()> {
        let mut buffer = AlignedBytes::random(LARGE_BYTES);
        if self.wants("read_1m") {
            rows.push(self.row(
                "read_1m",
                "1 MiB read",
                LARGE_BYTES,
                Some("--rw=read --bs=1m"),
                |position| self.file.read_at(&mut buffer, position),
            )?);
        }
        if self.wants("read_1m_x4") {
            rows.push(self.parallel("read_1m_x4", "1 MiB read, 4 at once", true)?);
        }
        Ok(())
    }

    fn memory(&self, rows: &mut Vec<Row>) -> io::Result<()> {
        let large = AlignedBytes::random(LARGE_BYTES);
        if self.wants("crc32c_1m") {
            let what = "CRC-32C of 1 MiB in memory";
            rows.push(self.row("crc32c_1m", what, LARGE_BYTES, None, |_| {
                std::hint::black_box(crc32c::crc32c(std::hint::black_box(large.as_slice())));
                Ok(())
            })?);
        }
        if self.wants("copy_1m") {
            let mut copy = vec![0; LARGE_BYTES];
            let what = "copy of 1 MiB in memory";
            rows.push(self.row("copy_1m", what, LARGE_BYTES, None, |_| {
                copy.copy_from_slice(std::hint::black_box(large.as_slice()));
                std::hint::black_box(&copy);
                Ok(())
            })?);
        }
        Ok(())
    }

    /// Large durable writes to space that is taken and was never written, as a log's are: each
    /// place once, in one file after the other, of which the making is not counted.
    fn new_places(&self) -> io::Result<Row> {
        let bytes = Arc::new(AlignedBytes::random(LARGE_BYTES));
        let (mut times, mut elapsed_ns) = (histogram(), 0);
        while elapsed_ns < self.for_ns {
            let file = ScratchFile::create(self.folder)?;
            file.allocate(self.blocks * LARGE_BYTES as u64)?;
            let blocks = self.blocks;
            let start = process::monotonic_ns();
            let mut threads = Vec::new();
            let (sender, lanes) = flume::unbounded();
            for lane in 0..DEPTH {
                let (file, bytes, sender) = (file.durable()?, Arc::clone(&bytes), sender.clone());
                threads.push(process::spawn_thread("probe", move || {
                    // The receiver outlives every thread: it is joined below.
                    let _ = sender.send(write_once(&file, &bytes, lane, blocks));
                })?);
            }
            for thread in threads {
                thread
                    .join()
                    .map_err(|_| io::Error::other("a measuring thread panicked"))?;
                let lane_times = lanes.recv().map_err(io::Error::other)??;
                times.add(&lane_times).map_err(io::Error::other)?;
            }
            elapsed_ns += process::monotonic_ns() - start;
        }
        Ok(Row {
            key: "write_1m_dsync_x4_new",
            what: "1 MiB write with O_DSYNC, 4 at once, new places",
            bytes_each: LARGE_BYTES,
            times,
            elapsed_ns,
            fio: None,
        })
    }

    /// Writes the whole file once: blocks that were never written are slower, and what is measured
    /// on them has a name of its own.
    fn prepare(&self) -> io::Result<()> {
        progress("preparing the file");
        let large = AlignedBytes::random(LARGE_BYTES);
        for block in 0..self.blocks {
            self.file.write_at(&large, block * LARGE_BYTES as u64)?;
        }
        self.file.sync_data()
    }

    /// The two ways to make a small write durable, in turn, so that a noisy moment hits both alike.
    fn small_writes(&self) -> io::Result<[Row; 2]> {
        let small = AlignedBytes::random(SMALL_BYTES);
        let durable = self.file.durable()?;
        let row = |key, what, flags| {
            let fio = Some(self.fio(flags, 1));
            Row {
                key,
                what,
                bytes_each: SMALL_BYTES,
                times: histogram(),
                elapsed_ns: 0,
                fio,
            }
        };
        let mut rows = [
            row(
                "write_4k_fdatasync",
                "4 KiB write, then fdatasync",
                "--rw=write --bs=4k --fdatasync=1",
            ),
            row(
                "write_4k_dsync",
                "4 KiB write with O_DSYNC",
                "--rw=write --bs=4k --sync=dsync",
            ),
        ];
        let positions = self.blocks * (LARGE_BYTES / SMALL_BYTES) as u64;
        let start = process::monotonic_ns();
        let mut then = start;
        let mut index = 0u64;
        while then - start < 2 * self.for_ns {
            let position = index % positions * SMALL_BYTES as u64;
            let turn = usize::from(!index.is_multiple_of(2));
            if turn == 0 {
                self.file.write_at(&small, position)?;
                self.file.sync_data()?;
            } else {
                durable.write_at(&small, position)?;
            }
            let now = process::monotonic_ns();
            rows[turn].times.saturating_record(now - then);
            rows[turn].elapsed_ns += now - then;
            then = now;
            index += 1;
        }
        Ok(rows)
    }

    fn row(
        &self,
        key: &'static str,
        what: &'static str,
        bytes_each: usize,
        fio: Option<&str>,
        mut step: impl FnMut(u64) -> io::Result<()>,
    ) -> io::Result<Row> {
        let (times, elapsed_ns) = measure(self.for_ns, self.blocks, 0, 1, bytes_each, &mut step)?;
        let fio = fio.map(|flags| self.fio(flags, 1));
        Ok(Row {
            key,
            what,
            bytes_each,
            times,
            elapsed_ns,
            fio,
        })
    }

    /// Large transfers from several threads, each with blocks of its own.
    fn parallel(&self, key: &'static str, what: &'static str, read: bool) -> io::Result<Row> {
        let start = process::monotonic_ns();
        let results = Arc::new(flume::unbounded());
        let mut threads = Vec::new();
        for lane in 0..DEPTH {
            let file = if read {
                self.file.again()?
            } else {
                self.file.durable()?
            };
            let (for_ns, blocks) = (self.for_ns, self.blocks);
            let results = Arc::clone(&results);
            threads.push(process::spawn_thread("probe", move || {
                let mut buffer = AlignedBytes::random(LARGE_BYTES);
                let result = measure(for_ns, blocks, lane, DEPTH, LARGE_BYTES, &mut |position| {
                    if read {
                        file.read_at(&mut buffer, position)
                    } else {
                        file.write_at(&buffer, position)
                    }
                });
                // The receiver outlives every thread: it is joined below.
                let _ = results.0.send(result);
            })?);
        }
        let mut times = histogram();
        for thread in threads {
            thread
                .join()
                .map_err(|_| io::Error::other("a measuring thread panicked"))?;
            let (lane_times, _) = results.1.recv().map_err(io::Error::other)??;
            times.add(&lane_times).map_err(io::Error::other)?;
        }
        let elapsed_ns = process::monotonic_ns() - start;
        let flags = if read {
            "--rw=read --bs=1m"
        } else {
            "--rw=write --bs=1m --sync=dsync"
        };
        let fio = Some(self.fio(flags, DEPTH));
        Ok(Row {
            key,
            what,
            bytes_each: LARGE_BYTES,
            times,
            elapsed_ns,
            fio,
        })
    }

    fn loopback(&self) -> io::Result<Row> {
        let mut times = histogram();
        let start = process::monotonic_ns();
        for time in loopback_echo(1024, self.for_ns.min(1_000_000_000))? {
            times.saturating_record(time);
        }
        let elapsed_ns = process::monotonic_ns() - start;
        let what = "1 KiB echo over loopback TCP";
        Ok(Row {
            key: "loopback_echo_1k",
            what,
            bytes_each: 1024,
            times,
            elapsed_ns,
            fio: None,
        })
    }

    fn fio(&self, flags: &str, jobs: u64) -> String {
        format!(
            "fio --name=probe --directory={} --size={}M --direct=1 {flags} --ioengine=psync \
             --numjobs={jobs} --group_reporting --time_based --runtime={} --overwrite=1",
            self.folder.display(),
            self.size_mib / jobs,
            self.for_ns / 1_000_000_000
        )
    }
}

/// Repeats `step` over the file, block by block: every `stride`-th large block from `first` on,
/// small transfers one after another within them.
fn measure(
    for_ns: u64,
    blocks: u64,
    first: u64,
    stride: u64,
    bytes_each: usize,
    step: &mut impl FnMut(u64) -> io::Result<()>,
) -> io::Result<(Histogram<u64>, u64)> {
    let mut times = histogram();
    let each = bytes_each as u64;
    let per_block = LARGE_BYTES as u64 / each;
    let lane_blocks = (blocks / stride).max(1);
    let start = process::monotonic_ns();
    let mut then = start;
    let mut index = 0u64;
    while then - start < for_ns {
        let block = first + (index / per_block % lane_blocks) * stride;
        step(block * LARGE_BYTES as u64 + index % per_block * each)?;
        let now = process::monotonic_ns();
        times.saturating_record(now - then);
        then = now;
        index += 1;
    }
    Ok((times, then - start))
}

/// Writes every place of a lane once.
fn write_once(
    file: &ScratchFile,
    bytes: &AlignedBytes,
    lane: u64,
    blocks: u64,
) -> io::Result<Histogram<u64>> {
    let mut times = histogram();
    let mut then = process::monotonic_ns();
    for block in (lane..blocks).step_by(DEPTH as usize) {
        file.write_at(bytes, block * LARGE_BYTES as u64)?;
        let now = process::monotonic_ns();
        times.saturating_record(now - then);
        then = now;
    }
    Ok(times)
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(100, 60_000_000_000, 3).expect("the bounds are valid constants")
}

fn progress(what: &str) {
    if output::watched() {
        output::note(&format!("probe: {what} …"));
    }
}

/// Which commit mode this disk does faster, in words.
fn advice(rows: &[Row]) -> Option<String> {
    let p50 = |key: &str| {
        let row = rows.iter().find(|row| row.key == key)?;
        Some(row.times.value_at_quantile(0.5))
    };
    let (flush, dsync) = (p50("write_4k_fdatasync")?, p50("write_4k_dsync")?);
    let (better, worse) = (flush.min(dsync), flush.max(dsync));
    if (worse - better) * 10 < better {
        return Some("commit_mode: both modes are equal here, within 10 %".into());
    }
    let mode = if dsync < flush { "dsync" } else { "fdatasync" };
    Some(format!(
        "commit_mode = {mode} is the faster here, by {} %",
        (worse - better) * 100 / worse
    ))
}

fn microseconds(ns: u64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a minute of nanoseconds has 36 bits"
    )]
    let us = ns as f64 / 1000.0;
    us
}

fn document(rows: &[Row], folder: &Path, size_mib: u64, direct: bool) -> Value {
    let items = rows.iter().map(|row| {
        json!({
            "name": row.key,
            "what": row.what,
            "bytes_each": row.bytes_each,
            "count": row.times.len(),
            "per_second": rounded(row.per_second()),
            "bytes_per_second": rounded(row.bytes_per_second()),
            "p50_us": microseconds(row.times.value_at_quantile(0.5)),
            "p99_us": microseconds(row.times.value_at_quantile(0.99)),
            "p99_9_us": microseconds(row.times.value_at_quantile(0.999)),
            "max_us": microseconds(row.times.max()),
            "fio": row.fio,
        })
    });
    json!({
        "directory": folder.display().to_string(),
        "size_mib": size_mib,
        "direct": direct,
        "kernel": process::kernel_release(),
        "measurements": items.collect::<Vec<_>>(),
        "advice": advice(rows),
    })
}

fn rounded(value: f64) -> f64 {
    value.round()
}

fn print(
    rows: &[Row],
    folder: &Path,
    size_mib: u64,
    direct: bool,
    out: &mut Output,
) -> Result<(), AdminError> {
    let cache = if direct {
        "O_DIRECT"
    } else {
        "through the page cache: no O_DIRECT here"
    };
    out.line(&format!(
        "{}  scratch file of {size_mib} MiB, {cache}, kernel {}\n",
        folder.display(),
        process::kernel_release()
    ))?;
    let mut table = output::table(&["measurement", "per s", "MB/s", "p50 us", "p99 us", "max us"]);
    for row in rows {
        table.add_row([
            comfy_table::Cell::new(row.what),
            output::number(format!("{:.0}", row.per_second())),
            output::number(format!("{:.1}", row.bytes_per_second() / 1e6)),
            output::number(format!(
                "{:.1}",
                microseconds(row.times.value_at_quantile(0.5))
            )),
            output::number(format!(
                "{:.1}",
                microseconds(row.times.value_at_quantile(0.99))
            )),
            output::number(format!("{:.1}", microseconds(row.times.max()))),
        ]);
    }
    out.table(&table)?;
    if let Some(advice) = advice(rows) {
        out.line(&format!("\n{advice}"))?;
    }
    if let Some(fio) = rows.iter().find_map(|row| row.fio.as_ref()) {
        out.line(&format!("Repeat the first with: {fio}"))?;
    }
    Ok(())
}
