//! Goal: no crash, at any instant, loses, changes, invents or reorders what the journal promised
//! (reliability.md: R2, R7, R10's determinism, R20).
//!
//! Method: scripts run on a simulated disk that records every event (`script`); from the recording
//! all disks a power cut could leave are built (`explore`), recovered and compared with what was
//! promised by then (`ledger`). Some images carry the next generation: a crash during or after the
//! recovery from a crash. `planted` proves that the harness sees each mistake it is there for, and
//! `rot` turns bits.
//!
//! `PENSTOCK_IMAGES` sets how many images are recovered altogether, `PENSTOCK_SEED` the first seed.

mod batch;
mod explore;
mod failing;
mod ledger;
mod planted;
mod rot;
mod script;

use explore::{Effort, Explorer, Findings};
use penstock::env::sim::{Bug, Fault, FaultPlan, OpKind, Rule};
use penstock::journal::CommitMode;
use script::{Promise, Script, Step};

/// Images of a plain `cargo test`, all tests of this file together.
const IMAGES_DEFAULT: u64 = 50_000;

/// How many images to recover altogether.
fn images() -> u64 {
    number("PENSTOCK_IMAGES").unwrap_or(IMAGES_DEFAULT)
}

/// The first seed.
pub fn seed() -> u64 {
    number("PENSTOCK_SEED").unwrap_or(1)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
    )
}

/// Explores one script from an empty disk.
pub fn explore(script: &Script, seed: u64, effort: Effort, bugs: &[Bug]) -> Findings {
    let mut explorer = Explorer {
        script,
        seed,
        bugs,
        effort,
        rng: fastrand::Rng::with_seed(seed),
        findings: Findings::default(),
    };
    explorer.generation(&script::empty_disk(), &Promise::none(), 1);
    explorer.findings
}

/// Adds up campaigns and fails on the first violation.
#[derive(Default)]
struct Total {
    images: u64,
    twice: u64,
    generations: u64,
    exhausted: u64,
    sampled: u64,
}

impl Total {
    fn add(&mut self, name: &str, findings: &Findings) {
        self.images += findings.images;
        self.twice += findings.twice;
        self.generations += findings.generations;
        self.exhausted += findings.exhausted;
        self.sampled += findings.sampled;
        let violations = &findings.violations;
        assert!(violations.is_empty(), "{name}: {}", violations.join("\n"));
    }

    fn show(&self, name: &str, started: std::time::Instant) {
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{name}: {} images ({:.0}/s), {} recovered twice, {} runs, {} instants exhausted, \
             {} sampled",
            self.images,
            self.images as f64 / seconds,
            self.twice,
            self.generations,
            self.exhausted,
            self.sampled
        );
    }
}

fn append(lane: i32, body_bytes: usize) -> Step {
    Step::Append {
        lane,
        records: 3,
        body_bytes,
    }
}

/// Short scripts that each show one shape of life, with small sets of undecided sectors.
fn short_scripts() -> Vec<(&'static str, Vec<Step>)> {
    let settled = |steps: &[Step]| {
        let pairs = steps.iter().flat_map(|step| [*step, Step::Settle]);
        pairs.collect::<Vec<_>>()
    };
    let many: Vec<Step> = (0..48).map(|index| append(index % 5, 100)).collect();
    let wide: Vec<Step> = (0..40).map(|index| append(index % 2, 9_000)).collect();
    vec![
        ("nothing", vec![]),
        ("one", settled(&[append(0, 10)])),
        ("one by one", settled(&many)),
        (
            "burst",
            [many.clone(), vec![Step::Settle], many.clone()].concat(),
        ),
        ("rolls", wide.clone()),
        ("rolls one by one", settled(&wide)),
        (
            "seals",
            settled(&[
                append(0, 10),
                Step::Idle,
                append(1, 10),
                Step::Idle,
                append(0, 10),
            ]),
        ),
        (
            "states",
            settled(&[
                Step::State { body_bytes: 30 },
                append(0, 5_000),
                Step::State { body_bytes: 5_000 },
            ]),
        ),
        (
            "checkpoint",
            [many.clone(), vec![Step::Checkpoint], many.clone()].concat(),
        ),
        ("checkpoints", {
            let round = [wide[..12].to_vec(), vec![Step::Checkpoint]].concat();
            [round.clone(), round.clone(), round].concat()
        }),
        ("recycling", {
            let mut steps = Vec::new();
            for lane in 0..4 {
                steps.extend((0..16).map(|_| append(lane, 9_000)));
                steps.extend([Step::Drop { lane }, Step::Checkpoint, Step::Checkpoint]);
            }
            steps
        }),
        ("close", vec![append(0, 10), append(1, 10), Step::Close]),
        ("idle close", vec![append(0, 10), Step::Idle, Step::Close]),
    ]
}

/// Every script, in both modes of commit; small sets of choices exhaustively, at every instant.
#[test]
fn short_scripts_survive_every_crash() {
    let started = std::time::Instant::now();
    let mut total = Total::default();
    let scripts = short_scripts();
    let effort = Effort {
        images_per_run: images() / 2 / (2 * scripts.len() as u64),
        every_instant: true,
        twice_every: 7,
        generation_every: u64::MAX,
        generations_max: 1,
    };
    let mut seed = seed();
    // Another seed is another order of completion: new instants, new choices.
    while total.images < images() / 2 {
        for (name, steps) in &scripts {
            for mode in [CommitMode::Dsync, CommitMode::Fdatasync] {
                let mut script = Script::new(steps.clone());
                script.mode = mode;
                total.add(name, &explore(&script, seed, effort, &[]));
            }
        }
        seed += 1;
    }
    total.show("short scripts", started);
}

/// Random scripts under random limits; some images carry up to two more generations.
#[test]
fn random_scripts_survive_crashes_and_crashes_of_recovery() {
    let started = std::time::Instant::now();
    let mut total = Total::default();
    let mut seed = seed();
    let effort = Effort {
        images_per_run: 400,
        every_instant: true,
        twice_every: 11,
        generation_every: 53,
        generations_max: 3,
    };
    while total.images < images() / 2 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let length = rng.usize(4..64);
        let script = Script::random(&mut rng, length);
        total.add("random script", &explore(&script, seed, effort, &[]));
        seed += 1;
    }
    total.show("random scripts", started);
}

/// Ten seeds twice: equal traces, equal promises.
#[test]
fn ten_seeds_twice_give_equal_traces() {
    let mut traces = std::collections::BTreeSet::new();
    for seed in seed()..seed() + 10 {
        let script = Script::random(&mut fastrand::Rng::with_seed(seed), 60);
        let run = || {
            let run = script::run(&script, seed, &script::empty_disk(), &Promise::none(), &[]);
            let run = run.unwrap_or_else(|failure| panic!("PENSTOCK_SEED={seed}: {failure}"));
            (
                run.trace,
                format!("{:?}", run.events),
                run.value.items.len(),
            )
        };
        let (first, second) = (run(), run());
        assert!(
            first == second,
            "PENSTOCK_SEED={seed}: two runs of one seed differ"
        );
        traces.insert(first.0);
    }
    assert_eq!(traces.len(), 10, "every seed has its own trace");
}

/// The canary: under a disk that lies about flushes an honest journal must lose data, and the
/// harness must say so. If this test fails, all the others prove nothing.
#[test]
fn canary_lying_flushes_are_noticed() {
    let steps = (0..40).flat_map(|index| [append(index % 3, 500), Step::Settle]);
    let mut script = Script::new(steps.collect());
    script.mode = CommitMode::Fdatasync;
    script.faults = FaultPlan::none().and(Rule {
        kind: OpKind::Sync,
        path_contains: Some("journal-".to_owned()),
        nth: 6,
        times: u64::MAX / 2,
        fault: Fault::Lie,
    });
    let effort = Effort {
        images_per_run: 1_000,
        every_instant: true,
        twice_every: u64::MAX,
        generation_every: u64::MAX,
        generations_max: 1,
    };
    let findings = explore(&script, seed(), effort, &[]);
    let lost = findings
        .violations
        .iter()
        .any(|violation| violation.contains("LOST"));
    assert!(lost, "a lying disk must be noticed: {findings:?}");
}
