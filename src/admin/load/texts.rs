//! What people write for rates, times, sizes and keys.

use crate::base::record_batch::Codec;
use crate::limits;
use crate::load::plan::chance::Zipf;
use crate::load::plan::message::{Keys, Sizes};

/// Exponent of Zipf's law where none is given: the classical one.
const ZIPF_EXPONENT: f64 = 1.0;

/// Messages a second.
pub fn rate(text: &str) -> Result<f64, String> {
    let problem = || format!("`{text}` is no rate: 5000, 20k and 1.5M are");
    let (number, unit) = match text.trim().strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => match text.trim().strip_suffix('M') {
            Some(number) => (number, 1e6),
            None => (text.trim(), 1.0),
        },
    };
    let rate = number.parse::<f64>().map_err(|_| problem())? * unit;
    if rate > 0.0 && rate <= f64::from(limits::LOAD_RATE_MAX) {
        Ok(rate)
    } else {
        Err(problem())
    }
}

/// A length of time, in nanoseconds.
pub fn time_ns(text: &str) -> Result<u64, String> {
    let problem = || format!("`{text}` is no time: 500ms, 10s, 5m and 1h are");
    let text = text.trim();
    let digits =
        text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == 'µ');
    let unit_ns = match &text[digits.len()..] {
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "" | "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(problem()),
    };
    let number: f64 = digits.parse().map_err(|_| problem())?;
    let time = number * unit_ns;
    // A year is more than anybody waits.
    if (0.0..3.2e16).contains(&time) {
        Ok(time as u64)
    } else {
        Err(problem())
    }
}

/// A number of bytes.
pub fn bytes(text: &str) -> Result<usize, String> {
    let problem = || format!("`{text}` is no size: 100, 1KiB and 64kB are");
    let units = [
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("kB", 1_000),
        ("B", 1),
    ];
    let text = text.trim();
    let (number, unit) = units
        .iter()
        .find_map(|(unit, bytes)| text.strip_suffix(unit).map(|number| (number, *bytes)))
        .unwrap_or((text, 1usize));
    let number: usize = number.trim_end().parse().map_err(|_| problem())?;
    let size = number.checked_mul(unit).ok_or_else(problem)?;
    if size <= limits::MESSAGE_BYTES_HARD_MAX {
        Ok(size)
    } else {
        Err(format!(
            "`{text}` is more than the {} bytes any broker takes",
            limits::MESSAGE_BYTES_HARD_MAX
        ))
    }
}

/// Two things with `..` between them.
pub fn range<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<(T, T), String> {
    let (first, last) = text
        .split_once("..")
        .ok_or_else(|| format!("`{text}` is no range: A..B is"))?;
    Ok((read(first)?, read(last)?))
}

/// Sizes of payloads.
pub fn sizes(text: &str) -> Result<Sizes, String> {
    let ordered = |(least, most): (usize, usize)| {
        if least <= most {
            Ok((least, most))
        } else {
            Err(format!("`{text}` ends before it begins"))
        }
    };
    if let Some(rest) = text.strip_prefix("zipf:") {
        let (rest, exponent) = match rest.split_once(':') {
            Some((rest, exponent)) => (rest, positive(exponent)?),
            None => (rest, ZIPF_EXPONENT),
        };
        let (least, most) = ordered(range(rest, bytes)?)?;
        let zipf = Zipf::new((most - least) as u64 + 1, exponent);
        return Ok(Sizes::Zipf(least, zipf));
    }
    if text.contains("..") {
        let (least, most) = ordered(range(text, bytes)?)?;
        return Ok(Sizes::Uniform(least, most));
    }
    if !text.contains(['*', ',']) {
        return bytes(text).map(Sizes::Fixed);
    }
    let mut sum = 0;
    let mut list = Vec::new();
    for part in text.split(',') {
        let (size, weight) = match part.split_once('*') {
            Some((size, weight)) => (size, count(weight)?),
            None => (part, 1),
        };
        sum += weight;
        list.push((bytes(size)?, sum));
    }
    Ok(Sizes::Weighted(list))
}

/// How keys are chosen.
pub fn keys(text: &str) -> Result<Keys, String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    match kind {
        "none" => Ok(Keys::None),
        "spread" => Ok(Keys::Spread),
        "round-robin" => Ok(Keys::RoundRobin(count(rest)?)),
        "uniform" => Ok(Keys::Uniform(count(rest)?)),
        "zipf" => {
            let (number, exponent) = match rest.split_once(':') {
                Some((number, exponent)) => (number, positive(exponent)?),
                None => (rest, ZIPF_EXPONENT),
            };
            Ok(Keys::Zipf(Zipf::new(count(number)?, exponent)))
        }
        _ => Err(format!(
            "`{text}` is none of none, spread, round-robin:N, uniform:N, zipf:N[:EXPONENT]"
        )),
    }
}

/// CPUs of the workers, of those that are allowed.
pub fn cpus(text: Option<&str>, allowed: &[usize]) -> Result<Vec<usize>, String> {
    let Some(text) = text else {
        return Ok(allowed.to_vec());
    };
    if let Ok(number) = text.parse::<usize>() {
        if number == 0 || number > limits::CORES_MAX {
            return Err(format!("{number} workers are not possible"));
        }
        return Ok((0..number).map(|i| allowed[i % allowed.len()]).collect());
    }
    let mut cpus = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let read = |cpu: &str| {
            cpu.parse::<usize>()
                .ok()
                .filter(|cpu| allowed.contains(cpu))
                .ok_or_else(|| format!("CPU `{cpu}` is not one this process may use"))
        };
        cpus.extend(read(first)?..=read(last)?);
    }
    if cpus.is_empty() {
        return Err(format!("`{text}` names no CPU"));
    }
    Ok(cpus)
}

/// Part I of N, counted from 0.
pub fn part(text: &str) -> Result<(u32, u32), String> {
    let problem = || format!("`{text}` is no part: 1/2 and 2/2 are");
    let (index, parts) = text.split_once('/').ok_or_else(problem)?;
    let index: u32 = index.parse().map_err(|_| problem())?;
    let parts: u32 = parts.parse().map_err(|_| problem())?;
    if index >= 1 && index <= parts {
        Ok((index - 1, parts))
    } else {
        Err(problem())
    }
}

/// The codec of a flag.
pub fn codec(compression: crate::admin::cli::CompressionArg) -> Codec {
    use crate::admin::cli::CompressionArg;
    match compression {
        CompressionArg::None => Codec::None,
        CompressionArg::Gzip => Codec::Gzip,
        CompressionArg::Snappy => Codec::Snappy,
        CompressionArg::Lz4 => Codec::Lz4,
        CompressionArg::Zstd => Codec::Zstd,
    }
}

fn count(text: &str) -> Result<u64, String> {
    let number = text.trim().parse::<u64>();
    number
        .ok()
        .filter(|number| (1..=1 << 32).contains(number))
        .ok_or_else(|| format!("`{text}` is no number above 0"))
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>();
    number
        .ok()
        .filter(|number| *number > 0.0 && *number <= 10.0)
        .ok_or_else(|| format!("`{text}` is no exponent between 0 and 10"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what people write is understood, and nonsense is refused. Method: a few of each.
    #[test]
    fn texts_are_understood() {
        assert_eq!(rate("1.5M"), Ok(1_500_000.0));
        assert_eq!(rate("20k"), Ok(20_000.0));
        for nonsense in ["", "0", "-1", "fast", "1e99", "NaN", "inf"] {
            assert!(rate(nonsense).is_err(), "{nonsense}");
        }
        assert_eq!(time_ns("1.5s"), Ok(1_500_000_000));
        assert_eq!(time_ns("250us"), Ok(250_000));
        assert_eq!(time_ns("2m"), Ok(120_000_000_000));
        assert!(time_ns("soon").is_err() && time_ns("-1s").is_err());
        assert_eq!(sizes("1KiB"), Ok(Sizes::Fixed(1024)));
        assert_eq!(sizes("100..200"), Ok(Sizes::Uniform(100, 200)));
        assert_eq!(
            sizes("100*9,1kB*1"),
            Ok(Sizes::Weighted(vec![(100, 9), (1000, 10)]))
        );
        assert!(sizes("200..100").is_err() && sizes("17MiB").is_err());
        assert_eq!(keys("uniform:7"), Ok(Keys::Uniform(7)));
        assert!(keys("uniform").is_err() && keys("zipf:10:0").is_err());
        assert_eq!(cpus(Some("3"), &[4, 5]), Ok(vec![4, 5, 4]));
        assert_eq!(cpus(Some("5,"), &[4, 5]), Ok(vec![5]));
        assert_eq!(cpus(Some("4-5"), &[4, 5]), Ok(vec![4, 5]));
        assert!(cpus(Some("6,"), &[4, 5]).is_err());
        assert_eq!(part("2/3"), Ok((1, 3)));
        assert!(part("0/3").is_err() && part("4/3").is_err() && part("1").is_err());
    }
}
