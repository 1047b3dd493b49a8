//! `.hgrm`: the percentile distribution as text, in the format that the HdrHistogram plotters read.
//! Values are milliseconds with three decimals, so nothing of a microsecond is lost.
//!
//! One file holds one latency, because that is what plotters overlay: the named file has `response`
//! and its neighbours `NAME.service.hgrm`, `NAME.end_to_end.hgrm`, `NAME.schedule_lag.hgrm` the
//! others, each only if it has samples.
//!
//! ```text
//!        Value     Percentile TotalCount 1/(1-Percentile)
//!
//!        0.081 0.000000000000          1           1.00
//! …
//! #[Mean    =        0.412, StdDeviation   =        0.093]
//! #[Max     =        4.123, Total count    =       120000]
//! #[Buckets =           22, SubBuckets     =         2048]
//! ```

use super::spectrum::Spectrum;
use super::totals::Totals;
use crate::base::units::finite;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Lines for each halving of the distance to 100 %, as other tools write.
const TICKS_PER_HALF: u32 = 5;
/// What the format says of the histogram's own layout: powers of two above the sub-buckets that
/// reach the largest latency, and sub-buckets for three digits.
const BUCKETS: u32 = 22;
const SUB_BUCKETS: u32 = 2048;

/// The files of a run, the named one first.
#[must_use]
pub fn files(path: &Path, totals: &Totals) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for (name, _, spectrum) in totals.latencies() {
        if name == "response" {
            files.push((path.to_path_buf(), text(spectrum)));
        } else if spectrum.count() > 0 {
            files.push((beside(path, name), text(spectrum)));
        }
    }
    files
}

/// `a.hgrm` → `a.service.hgrm`.
fn beside(path: &Path, name: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}.{name}.hgrm"))
}

/// One latency.
#[must_use]
pub fn text(spectrum: &Spectrum) -> String {
    let histogram = spectrum.histogram();
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut below = 0;
    let steps = histogram.iter_quantiles(TICKS_PER_HALF);
    for step in steps.take_while(|_| !histogram.is_empty()) {
        below += step.count_since_last_iteration();
        let value_ms = step.value_iterated_to().min(histogram.max()) as f64 / 1e3;
        let quantile = step.quantile_iterated_to();
        let _ = write!(text, "{value_ms:>12.3} {quantile:>2.12} {below:>10}");
        if quantile < 1.0 {
            let _ = write!(text, " {:>14.2}", 1.0 / (1.0 - quantile));
        }
        text.push('\n');
    }
    let mean_ms = spectrum.mean().map_or(0.0, |(mean, _)| finite(mean)) / 1e3;
    let deviation_ms = if histogram.is_empty() {
        0.0
    } else {
        finite(histogram.stdev()) / 1e3
    };
    let max_ms = histogram.max() as f64 / 1e3;
    let total = histogram.len();
    let _ = writeln!(
        text,
        "#[Mean    = {mean_ms:>12.3}, StdDeviation   = {deviation_ms:>12.3}]\n\
         #[Max     = {max_ms:>12.3}, Total count    = {total:>12}]\n\
         #[Buckets = {BUCKETS:>12}, SubBuckets     = {SUB_BUCKETS:>12}]"
    );
    text
}
