//! Days and dates of the Gregorian calendar, UTC.

/// Days from 0000-03-01 to 1970-01-01: counted from there, a leap day is the last of its year.
const EPOCH_DAYS: i64 = 719_468;
/// Days in the 400 years after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;

/// Year, month and day of the month of a day, counted from 1970-01-01.
#[must_use]
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: dates around leap days and eras are right. Method: known days.
    #[test]
    fn known_days() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_787, (2026, 11, 30)),
            (-719_468, (0, 3, 1)),
        ] {
            assert_eq!(date_of(days), date);
        }
    }
}
