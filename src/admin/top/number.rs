//! Numbers for people: three significant digits, in as few columns as that takes, so that they
//! never push their neighbours. Units are decimal (k = 1,000).

use crate::base::units::locale_is_utf8;

/// Which characters the terminal can show.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Glyphs {
    /// Blocks, arrows and µ; letters and digits otherwise.
    pub unicode: bool,
}

/// Eight heights.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Glyphs {
    /// What the locale of the environment can show.
    #[must_use]
    pub fn of_locale(variable: impl Fn(&str) -> Option<String>) -> Glyphs {
        Glyphs {
            unicode: locale_is_utf8(variable),
        }
    }

    /// One cell for a share of 1: a block's height, or tenths as a digit.
    #[must_use]
    pub fn cell(self, share: f64) -> char {
        let share = share.clamp(0.0, 1.0);
        if self.unicode {
            BLOCKS[((share * 8.0) as usize).min(7)]
        } else {
            char::from_digit(((share * 10.0) as u32).min(9), 10).unwrap_or('?')
        }
    }

    /// Points at a row that stands out.
    #[must_use]
    pub fn arrow(self) -> char {
        if self.unicode { '←' } else { '<' }
    }

    /// Marks the column that rows are sorted by.
    #[must_use]
    pub fn sorted(self) -> char {
        if self.unicode { '▾' } else { 'v' }
    }

    /// A time span: "380µs", "1.48ms", "18.2ms", "1.20s". At most six columns.
    #[must_use]
    pub fn span(self, ns: u64) -> String {
        let micro = if self.unicode { "µs" } else { "us" };
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, micro)];
        for (size, unit) in units {
            // What would round up to a thousand of a unit is one of the next.
            if ns as f64 >= size as f64 * 0.9995 {
                return format!("{}{unit}", digits(ns as f64 / size as f64));
            }
        }
        format!("{ns}ns")
    }
}

/// Three significant digits of a number below 1,000.
fn digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A rate or an amount: "0", "1.48", "212", "1.48k", "21.2M". At most five columns.
#[must_use]
pub fn three(value: f64) -> String {
    if value < 0.005 {
        return "0".to_owned();
    }
    let mut scaled = value;
    for unit in ["", "k", "M", "G", "T"] {
        if scaled < 999.5 {
            return format!("{}{unit}", digits(scaled));
        }
        scaled /= 1000.0;
    }
    format!("{scaled:.0}P")
}

/// A number of things: whole below 1,000.
#[must_use]
pub fn count(value: u64) -> String {
    if value < 1000 {
        value.to_string()
    } else {
        three(value as f64)
    }
}

/// How long something has run: "3d04h", "4h12m", "12m05s", "45s".
#[must_use]
pub fn age(ms: u64) -> String {
    let (s, m, h) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match (h / 24, h, m) {
        (0, 0, 0) => format!("{s}s"),
        (0, 0, _) => format!("{m}m{:02}s", s % 60),
        (0, ..) => format!("{h}h{:02}m", m % 60),
        (days, ..) => format!("{days}d{:02}h", h % 24),
    }
}

/// The time of day of a Unix time, in UTC: "12:01:07Z".
#[must_use]
pub fn time_of_day(unix_ms: i64) -> String {
    let second = unix_ms.div_euclid(1000).rem_euclid(86_400);
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    format!("{h:02}:{m:02}:{s:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: three digits, never wider than the column, and no number between two units. Method:
    /// the edges.
    #[test]
    fn numbers_keep_to_their_columns() {
        let shown = [
            (0.0, "0"),
            (0.004, "0"),
            (0.5, "0.50"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.96, "100"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (1480.0, "1.48k"),
            (212_345.0, "212k"),
            (999_600.0, "1.00M"),
            (1.6e6, "1.60M"),
        ];
        for (value, text) in shown {
            assert_eq!(three(value), text);
        }
        let mut value = 0.001;
        while value < 1e15 {
            assert!(three(value).len() <= 5, "{value}: {}", three(value));
            value *= 1.0007;
        }
        assert_eq!((count(999), count(8192)), ("999".into(), "8.19k".into()));
    }

    /// Goal: spans keep to six columns and change units where they round. Method: the edges.
    #[test]
    fn spans_keep_to_their_columns() {
        let (plain, full) = (Glyphs { unicode: false }, Glyphs { unicode: true });
        assert_eq!(plain.span(380_000), "380us");
        assert_eq!(full.span(380_000), "380µs");
        assert_eq!(plain.span(999_600), "1.00ms");
        assert_eq!(plain.span(18_240_000), "18.2ms");
        assert_eq!(plain.span(1_200_000_000), "1.20s");
        assert_eq!(plain.span(0), "0ns");
        let mut ns = 1;
        while ns < 60_000_000_000 {
            assert!(full.span(ns).chars().count() <= 6, "{}", full.span(ns));
            ns += ns / 100 + 1;
        }
    }

    /// Goal: ages, times, cells and locales as a person expects them.
    #[test]
    fn the_rest_reads_well() {
        assert_eq!(age(45_000), "45s");
        assert_eq!(age(725_000), "12m05s");
        assert_eq!(age(15_120_000), "4h12m");
        assert_eq!(age(273_600_000), "3d04h");
        assert_eq!(time_of_day(43_267_999), "12:01:07Z");
        let full = Glyphs { unicode: true };
        assert_eq!((full.cell(0.0), full.cell(0.999)), ('▁', '█'));
        let plain = Glyphs { unicode: false };
        assert_eq!(
            (plain.cell(0.04), plain.cell(0.55), plain.cell(7.0)),
            ('0', '5', '9')
        );
        let locale = |name: &str| (name == "LANG").then(|| "de_DE.UTF-8".to_owned());
        assert!(Glyphs::of_locale(locale).unicode);
        let overruled = |name: &str| match name {
            "LC_ALL" => Some("C".to_owned()),
            other => locale(other),
        };
        assert!(!Glyphs::of_locale(overruled).unicode);
    }
}
