//! Chance that can be repeated: every draw follows from the seed, the producer and the message's
//! number, so that a load is the same however it is split over workers and processes.

/// Mixes a number so that neighbours have nothing in common (the finisher of SplitMix64).
#[must_use]
pub fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The draw that belongs to one message for one purpose.
#[must_use]
pub fn draw(seed: u64, purpose: u64, producer: u64, message: u64) -> u64 {
    mix(
        mix(seed ^ purpose.rotate_left(32) ^ producer.wrapping_mul(0xd6e8_feb8_6659_fd93))
            ^ message,
    )
}

/// A stream of draws.
#[derive(Clone, Debug)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Chance {
        Chance { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let drawn = mix(self.state);
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    /// The next number in 0..1, never 1.
    pub fn next_unit(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// The next gap of a Poisson process whose mean gap is 1.
    pub fn next_gap(&mut self) -> f64 {
        // 1 - u is never 0, so the logarithm is finite.
        -(1.0 - self.next_unit()).ln()
    }
}

/// A draw as a number in 0..1, never 1.
#[must_use]
pub fn unit(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1u64 << 53) as f64
}

/// A draw as a number below `bound` (at least 1).
#[must_use]
pub fn below(draw: u64, bound: u64) -> u64 {
    ((u128::from(draw) * u128::from(bound)) >> 64) as u64
}

/// Ranks 1 to `count`, rank r as often as r^-exponent: by rejection from the area under the curve
/// (W. Hörmann and G. Derflinger, 1996), so that no table is needed and any exponent above 0 will
/// do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zipf {
    count: f64,
    exponent: f64,
    area_first: f64,
    area_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// The distribution.
    ///
    /// # Panics
    /// There is no rank, or the exponent is not a positive number.
    #[must_use]
    pub fn new(count: u64, exponent: f64) -> Zipf {
        assert!(count > 0 && exponent > 0.0 && exponent.is_finite());
        let mut zipf = Zipf {
            count: count as f64,
            exponent,
            area_first: 0.0,
            area_last: 0.0,
            shortcut: 0.0,
        };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(zipf.count + 0.5);
        zipf.shortcut = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    /// How many ranks there are.
    #[must_use]
    pub fn ranks(&self) -> u64 {
        self.count as u64
    }

    /// The rank, from 1, that follows from a draw.
    #[must_use]
    pub fn rank(&self, draw: u64) -> u64 {
        let mut chance = Chance::new(draw);
        loop {
            let u = self.area_last + chance.next_unit() * (self.area_first - self.area_last);
            let x = self.area_inverse(u);
            let rank = x.round().clamp(1.0, self.count);
            let near = rank - x <= self.shortcut;
            if near || u >= self.area(rank + 0.5) - self.height(rank) {
                return rank as u64;
            }
        }
    }

    fn height(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of `height`, up to a constant.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over(log * (1.0 - self.exponent)) * log
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.exponent)).max(-1.0);
        (ln_1p_over(t) * area).exp()
    }
}

/// (e^x - 1) / x, also near 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x * 0.5
    }
}

/// ln(1 + x) / x, also near 0.
fn ln_1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x * 0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: ranks come as often as the law says. Method: exponents below, at and above 1; the
    /// share of each of the first ranks among many seeded draws, against the exact sum, within
    /// five standard deviations.
    #[test]
    fn zipf_follows_its_law() {
        for exponent in [0.5, 1.0, 1.3] {
            let (count, draws) = (1000u64, 200_000u64);
            let zipf = Zipf::new(count, exponent);
            let mut seen = vec![0u64; 1001];
            for message in 0..draws {
                seen[zipf.rank(draw(42, 1, 7, message)) as usize] += 1;
            }
            assert_eq!(seen[0], 0);
            let total: f64 = (1..=count).map(|rank| (rank as f64).powf(-exponent)).sum();
            for rank in [1usize, 2, 3, 10, 100] {
                let share = (rank as f64).powf(-exponent) / total;
                let expected = share * draws as f64;
                let deviation = (expected * (1.0 - share)).sqrt();
                let off = (seen[rank] as f64 - expected).abs();
                assert!(off < 5.0 * deviation, "{exponent} {rank}: {off}");
            }
        }
        assert_eq!(Zipf::new(1, 1.0).rank(99), 1);
    }

    /// Goal: gaps have the mean and the spread of a Poisson process. Method: the mean and variance
    /// of many seeded gaps, both 1.
    #[test]
    fn gaps_are_exponential() {
        let mut chance = Chance::new(3);
        let gaps: Vec<f64> = (0..100_000).map(|_| chance.next_gap()).collect();
        let mean = gaps.iter().sum::<f64>() / 1e5;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
        assert!(gaps.iter().all(|gap| *gap >= 0.0 && gap.is_finite()));
    }

    /// Goal: draws fill their range and never leave it. Method: the ends of a small one.
    #[test]
    fn draws_stay_in_range() {
        assert_eq!((below(0, 10), below(u64::MAX, 10)), (0, 9));
        assert_eq!(below(u64::MAX, 1), 0);
        assert!(unit(u64::MAX) < 1.0);
        assert_ne!(draw(1, 0, 0, 0), draw(1, 0, 0, 1));
        assert_ne!(draw(1, 0, 0, 0), draw(1, 0, 1, 0));
    }
}
