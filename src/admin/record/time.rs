//! Times as people write them: milliseconds, dates, ages. UTC throughout.

use crate::base::calendar::date_of;

const DAY_MS: i64 = 86_400_000;

/// Reads a time: milliseconds since 1970; `2026-11-30`, `2026-11-30T19:30[:00[.123]][Z|+02:00]`; or
/// an age such as `-90s`, `-15m`, `-2h`, `-7d`. Returns milliseconds since 1970.
///
/// # Errors
/// What is expected.
pub fn parse(text: &str, now_ms: i64) -> Result<i64, String> {
    let problem = || {
        format!(
            "`{text}` is no time: write milliseconds since 1970, a date such as 2026-11-30 or \
             2026-11-30T19:30:00Z, or an age such as -15m or -2h"
        )
    };
    if let Some(age) = text.strip_prefix('-') {
        let split = age.find(|c: char| !c.is_ascii_digit()).unwrap_or(age.len());
        let number: i64 = age[..split].parse().map_err(|_| problem())?;
        let unit_ms = match &age[split..] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => DAY_MS,
            _ => return Err(problem()),
        };
        let age_ms = number.checked_mul(unit_ms).ok_or_else(problem)?;
        return Ok(now_ms.saturating_sub(age_ms).max(0));
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_err(|_| problem());
    }
    date_time(text).ok_or_else(problem)
}

fn date_time(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.splitn(3, '-');
    let year = number(parts.next()?, 4)?;
    let month = number(parts.next()?, 2)?;
    let day = number(parts.next()?, 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days_in_month).contains(&day) {
        return None;
    }
    let day_ms = days_from_civil(year, month, day) * DAY_MS;
    Some(day_ms + time.map_or(Some(0), time_of_day)?)
}

/// Milliseconds since midnight, UTC.
fn time_of_day(text: &str) -> Option<i64> {
    let (clock, offset_ms) = match text.find(['Z', '+', '-']) {
        None => (text, 0),
        Some(at) if &text[at..] == "Z" => (&text[..at], 0),
        Some(at) => {
            let (hours, minutes) = text[at + 1..].split_once(':')?;
            let offset = (number(hours, 2)? * 60 + number(minutes, 2)?) * 60_000;
            (
                &text[..at],
                if &text[at..=at] == "-" {
                    -offset
                } else {
                    offset
                },
            )
        }
    };
    let (clock, milliseconds) = match clock.split_once('.') {
        None => (clock, 0),
        Some((clock, fraction)) => {
            let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
            (clock, number(&digits, 3)?)
        }
    };
    let mut parts = clock.splitn(3, ':');
    let hours = number(parts.next()?, 2)?;
    let minutes = number(parts.next()?, 2)?;
    let seconds = parts.next().map_or(Some(0), |text| number(text, 2))?;
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    Some(((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds - offset_ms)
}

/// A number of exactly so many digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    let right = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if right { text.parse().ok() } else { None }
}

/// Days since 1970-01-01 (Howard Hinnant's algorithm: years begin in March, so that the leap day is
/// the last).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Writes a time as `2026-11-30T19:30:00.000Z`.
#[must_use]
pub fn iso(unix_ms: i64) -> String {
    let (year, month, day) = date_of(unix_ms.div_euclid(DAY_MS));
    let ms = unix_ms.rem_euclid(DAY_MS);
    let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
    let (seconds, ms) = (ms / 1000 % 60, ms % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: dates mean what they say. Method: known instants, both ways.
    #[test]
    fn dates_mean_what_they_say() {
        for (text, expected) in [
            ("1970-01-01", 0),
            ("2000-02-29T12:00Z", 951_825_600_000),
            ("2026-11-30T19:30:00.5Z", 1_796_067_000_500),
            ("2026-11-30T21:30:00.5+02:00", 1_796_067_000_500),
            ("2026-11-30 14:00:00-05:30", 1_796_067_000_000),
            ("1796067000500", 1_796_067_000_500),
            ("-90s", 1_000_000 - 90_000),
            ("-7d", 0),
        ] {
            assert_eq!(parse(text, 1_000_000), Ok(expected), "{text}");
        }
        assert_eq!(iso(1_796_067_000_500), "2026-11-30T19:30:00.500Z");
        assert_eq!(iso(-1), "1969-12-31T23:59:59.999Z");
        for day in (0..40_000).step_by(17) {
            assert_eq!(parse(&iso(day * DAY_MS), 0), Ok(day * DAY_MS));
        }
    }

    /// Goal: what is no time is refused.
    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "-",
            "-5",
            "-5w",
            "2026-02-29",
            "2026-13-01",
            "26-1-1",
            "2026-11-30T25:00",
        ] {
            assert!(parse(text, 0).is_err(), "{text}");
        }
    }
}
