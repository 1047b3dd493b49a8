//! How figures are written for people: one way for every table and picture, with the unit always
//! said. Four significant digits, which is finer than the histograms are.
//!
//! Rates of bytes are decimal (MB = 1,000,000 bytes); MiB is never used in a report.

use super::calendar::date_of;
use std::fmt::Write as _;

/// How the micro sign may be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Micro {
    /// `µs`: a page, or a terminal that shows UTF-8.
    Sign,
    /// `us`: everything else.
    Ascii,
}

/// Whether a terminal shows UTF-8, by the locale's variables as the C library reads them.
#[must_use]
pub fn locale_is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let mut names = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let locale = names.find_map(|name| variable(name).filter(|value| !value.is_empty()));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

impl Micro {
    /// What the terminal can show, by the locale's variables as the C library reads them.
    #[must_use]
    pub fn of_locale(variable: impl Fn(&str) -> Option<String>) -> Micro {
        if locale_is_utf8(variable) {
            Micro::Sign
        } else {
            Micro::Ascii
        }
    }

    /// The unit.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Micro::Sign => "µs",
            Micro::Ascii => "us",
        }
    }

    /// A sentence that was written with `us` and `>=`, as it is to be shown.
    #[must_use]
    pub fn apply(self, text: &str) -> String {
        if self == Micro::Ascii {
            return text.to_owned();
        }
        let words = text.split(' ').map(|word| match word {
            "us" | "us," | "us;" | "us." => word.replacen('u', "µ", 1),
            ">=" => "≥".to_owned(),
            _ => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// "At least".
    #[must_use]
    pub fn at_least(self) -> &'static str {
        match self {
            Micro::Sign => "≥ ",
            Micro::Ascii => ">= ",
        }
    }
}

/// A figure that JSON and a reader can bear: what is not finite, or negative, becomes 0.
#[must_use]
pub fn finite(value: f64) -> f64 {
    if value.is_finite() && value > 0.0 {
        value
    } else {
        0.0
    }
}

/// `part` of `whole`, 0 for nothing of nothing.
#[must_use]
pub fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        finite(part / whole)
    } else {
        0.0
    }
}

/// A latency: `412 µs`, `4.123 ms`, `41.23 ms`, `4.123 s`.
#[must_use]
pub fn latency(us: f64, micro: Micro) -> String {
    let us = finite(us);
    if us < 999.5 {
        let digits = usize::from(us < 100.0 && us.fract() != 0.0);
        format!("{us:.digits$} {}", micro.unit())
    } else if us < 999_950.0 {
        format!("{} ms", four_digits(us / 1e3))
    } else {
        format!("{} s", four_digits(us / 1e6))
    }
}

/// A tick of an axis: `1 ms`, `200 µs`; no digits that say nothing.
#[must_use]
pub fn latency_tick(us: f64) -> String {
    let (value, unit) = if us < 1e3 {
        (us, "µs")
    } else if us < 1e6 {
        (us / 1e3, "ms")
    } else {
        (us / 1e6, "s")
    };
    format!("{} {unit}", trimmed(value, 3))
}

/// A count with its thousands apart.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Something a second: `12,345/s`, `0.25/s`.
#[must_use]
pub fn rate(per_s: f64) -> String {
    format!("{}/s", number(per_s))
}

/// A number of any size: whole from 1,000 on, else with four significant digits.
#[must_use]
pub fn number(value: f64) -> String {
    let value = finite(value);
    if value >= 999.95 {
        return count(whole(value));
    }
    trimmed(value, 3usize.saturating_sub(magnitude(value)))
}

/// A short number for axes and small tiles: `950`, `12.5k`, `1.2M`.
#[must_use]
pub fn short(value: f64) -> String {
    let value = finite(value);
    let (scaled, suffix) = match value {
        v if v >= 999_500_000.0 => (v / 1e9, "G"),
        v if v >= 999_500.0 => (v / 1e6, "M"),
        v if v >= 9_995.0 => (v / 1e3, "k"),
        v if v >= 999.5 => return count(whole(v)),
        v => (v, ""),
    };
    let digits = 2usize.saturating_sub(magnitude(scaled));
    format!("{}{suffix}", trimmed(scaled, digits))
}

/// Bytes a second, decimal.
#[must_use]
pub fn megabytes_per_s(bytes_per_s: f64) -> String {
    format!("{} MB/s", number(finite(bytes_per_s) / 1e6))
}

/// A stretch of time in seconds: `10 s`, `2.5 s`.
#[must_use]
pub fn seconds(ms: u64) -> String {
    format!("{} s", trimmed(ms as f64 / 1e3, 3))
}

/// A share: `99.98 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{} %", trimmed(finite(share) * 100.0, 2))
}

/// A moment, in UTC: `2026-11-30 22:36:00 UTC`.
#[must_use]
pub fn date_time(unix_us: u64) -> String {
    let seconds = unix_us / 1_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let days = i64::try_from(days).expect("a 64-bit count of microseconds has fewer days");
    let (year, month, day_of_month) = date_of(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day_of_month:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Text that is safe inside HTML and SVG.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Control characters are not allowed in XML at all.
            control if control.is_control() && control != '\n' => {
                let _ = write!(escaped, "\\x{:02x}", u32::from(control));
            }
            other => escaped.push(other),
        }
    }
    escaped
}

fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Digits before the point, less one.
fn magnitude(value: f64) -> usize {
    if value >= 1.0 {
        value.log10().floor() as usize
    } else {
        0
    }
}

fn four_digits(value: f64) -> String {
    let digits = 3usize.saturating_sub(magnitude(value));
    format!("{value:.digits$}")
}

/// With at most `digits` decimals, without zeros that say nothing.
fn trimmed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: rule 11. Units are said, "us" stands where the locale cannot show the sign, bytes are
    /// decimal. Method: each form.
    #[test]
    fn rule_11_units() {
        let locale = |name: &'static str, value: &'static str| {
            Micro::of_locale(move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(locale("LANG", "en_GB.UTF-8"), Micro::Sign);
        assert_eq!(locale("LC_ALL", "C.utf8"), Micro::Sign);
        assert_eq!(locale("LC_ALL", "C"), Micro::Ascii);
        assert_eq!(locale("LANG", ""), Micro::Ascii);
        assert_eq!(locale("OTHER", "C.UTF-8"), Micro::Ascii);
        let shadowed =
            Micro::of_locale(|name| Some(if name == "LC_ALL" { "C" } else { "x.UTF-8" }.into()));
        assert_eq!(shadowed, Micro::Ascii);
        for (us, text) in [
            (0.0, "0 us"),
            (412.0, "412 us"),
            (12.34, "12.3 us"),
            (999.6, "1.000 ms"),
            (4123.4, "4.123 ms"),
            (41_234.0, "41.23 ms"),
            (999_960.0, "1.000 s"),
            (3_600_000_000.0, "3600 s"),
            (f64::NAN, "0 us"),
            (-1.0, "0 us"),
        ] {
            assert_eq!(latency(us, Micro::Ascii), text);
        }
        assert_eq!(megabytes_per_s(1_500_000.0), "1.5 MB/s");
        assert_eq!(latency_tick(200.0), "200 µs");
        assert_eq!(latency_tick(1e6), "1 s");
    }

    /// Goal: numbers can be read. Method: each range, and the edges between them.
    #[test]
    fn numbers_can_be_read() {
        assert_eq!(count(0), "0");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(rate(0.25), "0.25/s");
        assert_eq!(rate(99.95), "99.95/s");
        assert_eq!(rate(1_234_567.4), "1,234,567/s");
        assert_eq!(short(950.0), "950");
        assert_eq!(short(1_500.0), "1,500");
        assert_eq!(short(12_500.0), "12.5k");
        assert_eq!(short(1_234_567.0), "1.23M");
        assert_eq!(percent(0.9998), "99.98 %");
        assert_eq!(seconds(2500), "2.5 s");
        assert_eq!(date_time(1_796_079_360_000_000), "2026-11-30 22:56:00 UTC");
        assert_eq!(date_time(951_782_400_000_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(escape("<a b='c\u{7}'>"), "&lt;a b=&#39;c\\x07&#39;&gt;");
    }
}
