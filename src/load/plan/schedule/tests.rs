//! The arithmetic of the schedule against what can be worked out by hand.

use super::*;

const SECOND: u64 = 1_000_000_000;

fn even(rate: f64, seconds: u64) -> Stretch {
    Stretch {
        length_ns: seconds * SECOND,
        rate_start: rate,
        rate_end: rate,
    }
}

fn times(schedule: &Arc<Schedule>, producer: u64, producers: u64, part: (u64, u64)) -> Vec<u64> {
    let mut stream = Stream::new(schedule, producer, producers, part);
    let mut times = Vec::new();
    while let Some((_, time)) = stream.peek() {
        times.push(time);
        stream.advance();
    }
    times
}

/// Goal: an even rate is even, and as many messages as rate × time. Method: one producer, 1,000 a
/// second for two seconds.
#[test]
fn an_even_rate_is_even() {
    let schedule = Schedule::new(&[even(1000.0, 2)], Arrivals::Constant, 0, None);
    let times = times(&Arc::new(schedule), 0, 1, (0, 1));
    assert_eq!(times.len(), 2000);
    for (index, time) in times.iter().enumerate() {
        assert!(
            time.abs_diff(index as u64 * 1_000_000) <= 1,
            "{index}: {time}"
        );
    }
}

/// Goal: the same load however it is split. Method: steps and a ramp, over 1 producer, over 7, and
/// over 7 with two parts each: sorted, the moments are the same.
#[test]
fn a_split_load_is_the_same_load() {
    let ramp = Stretch {
        length_ns: SECOND,
        rate_start: 500.0,
        rate_end: 2500.0,
    };
    let stretches = [even(1000.0, 1), ramp, even(300.0, 1)];
    let schedule = Arc::new(Schedule::new(&stretches, Arrivals::Constant, 0, None));
    let whole = times(&schedule, 0, 1, (0, 1));
    assert_eq!(whole.len(), 1000 + 1500 + 300);
    assert!(whole.is_sorted());
    let mut split: Vec<u64> = (0..7)
        .flat_map(|i| times(&schedule, i, 7, (0, 1)))
        .collect();
    split.sort_unstable();
    assert_eq!(split, whole);
    let mut parts: Vec<u64> = (0..14)
        .flat_map(|i| times(&schedule, i / 2, 7, (i % 2, 2)))
        .collect();
    parts.sort_unstable();
    assert_eq!(parts, whole);
}

/// Goal: a ramp grows evenly. Method: from 0+ to 2,000 a second in a second, half of the time has a
/// quarter of the messages.
#[test]
fn a_ramp_grows_evenly() {
    let ramp = Stretch {
        length_ns: SECOND,
        rate_start: 1e-6,
        rate_end: 2000.0,
    };
    let schedule = Arc::new(Schedule::new(&[ramp], Arrivals::Constant, 0, None));
    let times = times(&schedule, 0, 1, (0, 1));
    assert!((999..=1001).contains(&times.len()));
    let first_half = times.iter().filter(|time| **time < SECOND / 2).count();
    assert!((249..=251).contains(&first_half), "{first_half}");
}

/// Goal: a load limited by number has exactly that number, shared out. Method: 10 over 4.
#[test]
fn a_number_is_shared_out() {
    let stretch = even(1000.0, 3600);
    let schedule = Arc::new(Schedule::new(&[stretch], Arrivals::Constant, 0, Some(10)));
    let counts: Vec<usize> = (0..4)
        .map(|producer| times(&schedule, producer, 4, (0, 1)).len())
        .collect();
    assert_eq!(counts, [3, 3, 2, 2]);
}

/// Goal: what is found equals what is walked. Method: skip to moments all over the schedule, with
/// both kinds of arrivals, beside a walk.
#[test]
fn skipping_equals_walking() {
    for arrivals in [Arrivals::Constant, Arrivals::Poisson] {
        let stretches = [even(1000.0, 1), even(77.0, 2)];
        let schedule = Arc::new(Schedule::new(&stretches, arrivals, 9, None));
        let times = times(&schedule, 2, 3, (1, 2));
        let mut stream = Stream::new(&schedule, 2, 3, (1, 2));
        let mut before = 0;
        for end in (0..=3 * SECOND).step_by(70_000_001).chain([u64::MAX]) {
            let walked = times.iter().filter(|time| **time < end).count() as u64;
            before += stream.skip_until(end);
            assert_eq!(before, walked, "{arrivals:?} {end}");
        }
    }
}

/// Goal: Poisson arrivals have the rate that was asked for and depend on the seed only. Method: the
/// number of messages over 50 seconds, within five standard deviations; twice the same seed.
#[test]
fn poisson_arrivals_keep_the_rate() {
    let schedule = |seed| {
        Arc::new(Schedule::new(
            &[even(2000.0, 50)],
            Arrivals::Poisson,
            seed,
            None,
        ))
    };
    let all = |seed| -> Vec<u64> {
        let schedule = schedule(seed);
        (0..4)
            .flat_map(|i| times(&schedule, i, 4, (0, 1)))
            .collect()
    };
    let (first, again, other) = (all(1), all(1), all(2));
    assert_eq!(first, again);
    assert_ne!(first, other);
    let off = (first.len() as f64 - 100_000.0).abs();
    assert!(off < 5.0 * 100_000f64.sqrt(), "{off}");
}

/// Goal: the time of a message ahead is the one it will have. Method: compare with the walk.
#[test]
fn looking_ahead_agrees() {
    let schedule = Arc::new(Schedule::new(
        &[even(1000.0, 1)],
        Arrivals::Constant,
        0,
        None,
    ));
    let times = times(&schedule, 1, 2, (0, 1));
    let stream = Stream::new(&schedule, 1, 2, (0, 1));
    assert_eq!(stream.time_ahead(0), Some(times[0]));
    assert_eq!(stream.time_ahead(499), Some(times[499]));
    assert_eq!(stream.time_ahead(500), None);
}
