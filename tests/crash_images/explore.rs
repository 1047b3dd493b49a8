//! Builds the crash images of a recorded run, recovers each, and judges what came back.
//!
//! A crash at an instant may leave any choice of undecided sectors, lengths and names. Instants
//! whose choices are a part of the next instant's are only met at their extremes; the others are
//! enumerated when small, sampled by the seed when large.

use crate::ledger::{ACKNOWLEDGED, APPLIED, Content, Item, Ledger, NOTE_VALUE, OPENED, expected};
use crate::script::{self, DIR, Generation, Promise, Script};
use penstock::env::Env;
use penstock::env::sim::{Bug, CrashPoints, Event, Media, Run, Sim};
use penstock::journal::Journal;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

/// What recovery made of an image.
pub struct Recovered {
    /// The machine's content.
    pub content: Content,
    /// The disk afterwards.
    pub after: Run<Result<Content, String>>,
}

/// Counts and verdicts of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Images recovered.
    pub images: u64,
    /// Images recovered twice.
    pub twice: u64,
    /// Runs of a script, the first included.
    pub generations: u64,
    /// Operations that were made to fail.
    pub hits: u64,
    /// Instants whose every choice was tried.
    pub exhausted: u64,
    /// Instants whose choices were sampled.
    pub sampled: u64,
    /// What broke, at most a few; empty is good.
    pub violations: Vec<String>,
}

/// How thoroughly to look.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// About this many images for one run, spread evenly over its instants.
    pub images_per_run: u64,
    /// Also meet, at their extremes, the instants whose choices the next instant includes.
    pub every_instant: bool,
    /// Of the images, one in so many is recovered twice.
    pub twice_every: u64,
    /// Of the images, one in so many gets another generation on top (a crash after, and during,
    /// recovery), while generations are left.
    pub generation_every: u64,
    /// Generations that may follow one another.
    pub generations_max: u32,
}

/// Violations kept; more would say nothing new.
const VIOLATIONS_MAX: usize = 5;

/// One walk through crashes, with everything it needs to know.
pub struct Explorer<'run> {
    pub script: &'run Script,
    pub seed: u64,
    pub bugs: &'run [Bug],
    pub effort: Effort,
    pub rng: fastrand::Rng,
    pub findings: Findings,
}

impl Explorer<'_> {
    /// Runs the script on `disk`, then every crash of that run, recursively.
    pub fn generation(&mut self, disk: &Media, promise: &Promise, depth: u32) {
        let seed = self.rng.u64(..);
        self.findings.generations += 1;
        let script = match depth {
            1 => self.script.clone(),
            _ => self.script.later(),
        };
        let run = match script::run(&script, seed, disk, promise, self.bugs) {
            Ok(run) => run,
            Err(failure) => return self.violation("the run failed", &failure),
        };
        self.findings.hits += run.faults.hits();
        for fault in &run.value.faults {
            self.violation("while running", fault);
        }
        if run.value.faults.is_empty() || !self.bugs.is_empty() {
            self.crashes(&run, promise, depth);
        }
    }

    fn crashes(&mut self, run: &Run<Generation>, before: &Promise, depth: u32) {
        let items: Rc<[Item]> = Rc::from(run.value.items.as_slice());
        let mut promise = before.clone();
        let limit = self.effort.images_per_run / last_chances(run).max(1);
        let mut points = CrashPoints::new(&run.before, &run.events);
        while let Some(event) = points.step() {
            if let Event::Mark(note) = event {
                learn(&mut promise, &items, *note);
            }
            let next = run.events.get(points.index());
            let last_chance = next.is_none_or(|next| points.media().settled_by(next));
            if !last_chance && !self.effort.every_instant {
                continue;
            }
            let limit = if last_chance { limit.max(2) } else { 2 };
            self.instant(points.media(), &promise, limit, points.index(), depth);
            if self.gave_up() {
                return;
            }
        }
    }

    fn instant(&mut self, media: &Media, promise: &Promise, limit: u64, at: usize, depth: u32) {
        let undecided = media.undecided();
        match undecided.choices() <= limit {
            true => self.findings.exhausted += 1,
            false => self.findings.sampled += 1,
        }
        for choice in undecided.some(limit, &mut self.rng) {
            let image = media.crash(&undecided, &choice);
            if let Err(fault) = self.image(image, promise, depth) {
                let files = files(&media.crash(&undecided, &choice));
                let place = format!("crash at event {at}, choice {choice:?}, {files}");
                self.violation(&place, &fault);
                if self.gave_up() {
                    return;
                }
            }
        }
        if self.rng.u8(0..8) == 0 {
            let killed = media.killed(&mut self.rng);
            if let Err(fault) = self.kill(killed, promise, depth) {
                self.violation(&format!("kill at event {at}"), &fault);
            }
        }
    }

    /// The process dies, the next one recovers and serves, and then the power fails: what was
    /// served must still be there.
    fn kill(&mut self, killed: Media, promise: &Promise, depth: u32) -> Result<(), String> {
        self.findings.images += 1;
        let recovered = recover(
            self.script,
            killed.clone(),
            !promise.made,
            self.rng.u64(..),
            self.bugs,
        )?;
        judge(promise, &recovered.content)?;
        self.again(&recovered)?;
        let deeper = depth < self.effort.generations_max;
        if deeper && self.rng.u64(0..self.effort.generation_every) < 8 {
            self.generation(&killed, promise, depth + 1);
        }
        Ok(())
    }

    fn image(&mut self, image: Media, promise: &Promise, depth: u32) -> Result<(), String> {
        self.findings.images += 1;
        let recovered = recover(
            self.script,
            image.clone(),
            !promise.made,
            self.rng.u64(..),
            self.bugs,
        )?;
        judge(promise, &recovered.content)?;
        if self.findings.images.is_multiple_of(self.effort.twice_every) {
            self.again(&recovered)?;
        }
        let deeper = depth < self.effort.generations_max;
        if deeper
            && self
                .findings
                .images
                .is_multiple_of(self.effort.generation_every)
        {
            self.generation(&image, promise, depth + 1);
        }
        Ok(())
    }

    /// A crash right after a recovery: a second recovery must find the same.
    fn again(&mut self, recovered: &Recovered) -> Result<(), String> {
        self.findings.twice += 1;
        let after = &recovered.after.after;
        let undecided = after.undecided();
        let choice = undecided.sample(&mut self.rng);
        let image = after.crash(&undecided, &choice);
        let again = recover(self.script, image, false, self.rng.u64(..), self.bugs);
        let again = again.map_err(|fault| format!("second recovery: {fault}"))?;
        if again.content != recovered.content {
            return Err(format!(
                "a second recovery found {} items, the first {}",
                again.content.applied, recovered.content.applied
            ));
        }
        Ok(())
    }

    fn gave_up(&self) -> bool {
        self.findings.violations.len() >= VIOLATIONS_MAX
    }

    fn violation(&mut self, place: &str, fault: &str) {
        if !self.gave_up() {
            let text = format!("PENSTOCK_SEED={}: {place}: {fault}", self.seed);
            self.findings.violations.push(text);
        }
    }
}

/// The files of the journal on an image, for a failure's text.
fn files(image: &Media) -> String {
    let files = image.files(Path::new(DIR)).into_iter();
    files
        .map(|(name, _, len)| format!("{name} ({len})"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Instants after which something becomes durable: their choices include those of the instants
/// before them.
fn last_chances(run: &Run<Generation>) -> u64 {
    let mut points = CrashPoints::new(&run.before, &run.events);
    let mut count = 1;
    while points.step().is_some() {
        let next = run.events.get(points.index());
        count += u64::from(next.is_some_and(|next| points.media().settled_by(next)));
    }
    count
}

/// Takes a note of the run into the promise.
fn learn(promise: &mut Promise, items: &Rc<[Item]>, note: u64) {
    let value = note & NOTE_VALUE;
    match note & !NOTE_VALUE {
        // From here on everything found was shown to somebody, and new items follow it.
        OPENED => {
            *promise = Promise {
                items: Rc::clone(items),
                required: value,
                made: true,
            };
        }
        ACKNOWLEDGED => promise.required = promise.required.max(value),
        // What the machine applied may have been read. Replay, before the journal is open, applies
        // too, but shows nothing to anybody yet.
        APPLIED if Rc::ptr_eq(&promise.items, items) => {
            promise.required = promise.required.max(value);
        }
        _ => {}
    }
}

/// Opens the journal on an image.
pub fn recover(
    script: &Script,
    image: Media,
    create: bool,
    seed: u64,
    bugs: &[Bug],
) -> Result<Recovered, String> {
    let mut sim = Sim::new(seed).disk(image).instant().unrecorded();
    for bug in bugs {
        sim = sim.plant(*bug);
    }
    let config = script.config(create);
    let run = sim.try_run(move |env: Env| async move {
        let ledger = Rc::new(RefCell::new(Ledger::default()));
        let opened = Journal::open(env, config, ledger.clone()).await;
        let (_journal, _report) = opened.map_err(|error| format!("recovery refused: {error}"))?;
        let mut ledger = ledger.borrow_mut();
        if let Some(fault) = ledger.faults.pop() {
            return Err(fault);
        }
        if ledger.damaged > 0 {
            return Err("recovery reports damage after a mere crash".to_owned());
        }
        Ok(std::mem::take(&mut ledger.content))
    });
    let run = run.map_err(|failure| format!("recovery: {failure}"))?;
    let content = run.value.clone()?;
    Ok(Recovered {
        content,
        after: run,
    })
}

/// Whether what came back keeps the promise: a prefix of what was staged, with all that was
/// promised.
pub fn judge(promise: &Promise, found: &Content) -> Result<(), String> {
    if found.applied < promise.required {
        return Err(format!(
            "LOST: {} items came back, {} were promised",
            found.applied, promise.required
        ));
    }
    let count = usize::try_from(found.applied).expect("a script is short");
    if count > promise.items.len() {
        return Err(format!(
            "INVENTED: {count} items came back of {}",
            promise.items.len()
        ));
    }
    if *found != expected(&promise.items, count) {
        return Err(format!(
            "CHANGED: the first {count} items are not what was staged"
        ));
    }
    Ok(())
}
