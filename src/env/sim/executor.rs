//! A seeded executor for `!Send` tasks: the order of everything is the seed's.
//!
//! One uniformly random task among the ready ones is polled at a time. Time is virtual: a poll
//! costs [`POLL_COST_NS`], and when nothing is ready the clock jumps to the next timer. Bounds turn
//! a livelock (too many polls), a deadlock (nothing ready, no timer) and a hang (virtual time runs
//! out) into failures. Every decision is mixed into a trace hash: equal seeds, equal traces.

use super::disk::DiskState;
use super::fault::FaultPlan;
use super::media::{Event, Media, OpId};
use super::planted::Bug;
use super::{Core, SimEnv};
use crate::env::Env;
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Virtual nanoseconds a poll costs, so that a loop that waits for time to pass ends.
const POLL_COST_NS: u64 = 100;
/// Default bound on polls of one run.
const POLLS_MAX: u64 = 20_000_000;
/// Default bound on virtual time of one run.
const VIRTUAL_TIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// Why a simulation failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Failure {
    /// Nothing is ready and no timer is set, but the main task has not ended.
    Deadlock,
    /// The poll budget is used up: something spins.
    Livelock,
    /// The virtual time is used up: something waits for ever.
    OutOfTime,
    /// A task panicked: the task and the message.
    Panic(String, String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Deadlock => f.write_str("deadlock: nothing is ready and no timer is set"),
            Failure::Livelock => f.write_str("livelock: the poll budget is used up"),
            Failure::OutOfTime => f.write_str("hang: the virtual time is used up"),
            Failure::Panic(task, message) => write!(f, "task {task} panicked: {message}"),
        }
    }
}

/// A simulation, before it runs.
pub struct Sim {
    seed: u64,
    media: Media,
    faults: FaultPlan,
    planted: Vec<Bug>,
    instant: bool,
    recorded: bool,
    capacity_bytes: u64,
    polls_max: u64,
    virtual_time_max: Duration,
}

/// What a finished simulation leaves.
pub struct Run<T> {
    /// What the main task returned.
    pub value: T,
    /// Hash of every decision; equal seeds give equal traces.
    pub trace: u64,
    /// Polls made.
    pub polls: u64,
    /// Virtual nanoseconds passed.
    pub elapsed_ns: u64,
    /// The disk before the run.
    pub before: Media,
    /// Everything that happened to the disk (empty if the run was not recorded).
    pub events: Vec<Event>,
    /// The disk after the run.
    pub after: Media,
    /// The fault plan with its counts.
    pub faults: FaultPlan,
}

impl Sim {
    /// A simulation with an empty disk, random latencies, no fault and a recorded disk.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            media: Media::new(),
            faults: FaultPlan::none(),
            planted: Vec::new(),
            instant: false,
            recorded: true,
            capacity_bytes: u64::MAX,
            polls_max: POLLS_MAX,
            virtual_time_max: VIRTUAL_TIME_MAX,
        }
    }

    /// Starts on this disk.
    #[must_use]
    pub fn disk(mut self, media: Media) -> Self {
        self.media = media;
        self
    }

    /// Lets operations fail by this plan.
    #[must_use]
    pub fn faults(mut self, plan: FaultPlan) -> Self {
        self.faults = plan;
        self
    }

    /// Switches a planted bug on.
    #[must_use]
    pub fn plant(mut self, bug: Bug) -> Self {
        self.planted.push(bug);
        self
    }

    /// Every disk operation completes at once: for the recovery of many images.
    #[must_use]
    pub fn instant(mut self) -> Self {
        self.instant = true;
        self
    }

    /// The disk's events are not kept.
    #[must_use]
    pub fn unrecorded(mut self) -> Self {
        self.recorded = false;
        self
    }

    /// Size of the simulated file system.
    #[must_use]
    pub fn capacity_bytes(mut self, bytes: u64) -> Self {
        self.capacity_bytes = bytes;
        self
    }

    /// Bound on polls.
    #[must_use]
    pub fn polls_max(mut self, polls: u64) -> Self {
        self.polls_max = polls;
        self
    }

    /// Bound on virtual time.
    #[must_use]
    pub fn virtual_time_max(mut self, time: Duration) -> Self {
        self.virtual_time_max = time;
        self
    }

    /// Runs `body` to its end.
    ///
    /// # Panics
    /// If the simulation fails, naming the seed.
    pub fn run<T: 'static, F: Future<Output = T> + 'static>(
        self,
        body: impl FnOnce(Env) -> F,
    ) -> Run<T> {
        let seed = self.seed;
        match self.try_run(body) {
            Ok(run) => run,
            Err(failure) => panic!("simulation with PENSTOCK_SEED={seed} failed: {failure}"),
        }
    }

    /// Runs `body` to its end, or to a failure of the simulation.
    pub fn try_run<T: 'static, F: Future<Output = T> + 'static>(
        self,
        body: impl FnOnce(Env) -> F,
    ) -> Result<Run<T>, Failure> {
        let before = self.media.clone();
        let (polls_max, time_max) = (self.polls_max, self.virtual_time_max);
        let core = Rc::new(Core {
            executor: Executor::new(self.seed),
            disk: RefCell::new(DiskState::new(self.media, self.faults, self.recorded)),
            planted: self.planted,
            instant: self.instant,
            capacity_bytes: self.capacity_bytes,
        });
        let result: Rc<RefCell<Option<T>>> = Rc::new(RefCell::new(None));
        let body = body(Env::simulated(SimEnv {
            core: Rc::clone(&core),
        }));
        let slot = Rc::clone(&result);
        let main = async move {
            let value = body.await;
            *slot.borrow_mut() = Some(value);
        };
        core.executor.spawn("main", Box::pin(main));
        let outcome = core.drive(|| result.borrow().is_some(), polls_max, time_max);
        core.executor.drop_tasks();
        outcome?;
        let value = result.borrow_mut().take().expect("the main task has ended");
        let state = std::mem::take(&mut *core.disk.borrow_mut());
        let executor = &core.executor;
        Ok(Run {
            value,
            trace: executor.state.borrow().trace,
            polls: executor.state.borrow().polls,
            elapsed_ns: executor.now_ns(),
            before,
            events: state.events,
            after: state.media,
            faults: state.faults,
        })
    }
}

/// What happens when a timer fires.
pub(super) enum Action {
    /// A task wakes.
    Wake(Waker),
    /// A disk operation ends.
    Disk(OpId),
}

/// A timer's identity: its deadline in nanoseconds and a number.
pub(super) type TimerKey = (u64, u64);

type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    name: &'static str,
    future: LocalFuture,
    waker: Arc<TaskWaker>,
}

struct TaskWaker {
    id: u64,
    queued: AtomicBool,
    ready: Arc<Mutex<Vec<u64>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.ready
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(self.id);
        }
    }
}

struct State {
    rng: fastrand::Rng,
    now_ns: u64,
    trace: u64,
    polls: u64,
    task_next: u64,
    timer_next: u64,
    tasks: BTreeMap<u64, Task>,
    timers: BTreeMap<TimerKey, Action>,
}

/// Tasks, timers, chance and the trace.
pub(super) struct Executor {
    state: RefCell<State>,
    ready: Arc<Mutex<Vec<u64>>>,
}

impl Executor {
    fn new(seed: u64) -> Self {
        let state = State {
            rng: fastrand::Rng::with_seed(seed),
            now_ns: 1,
            trace: 0xcbf2_9ce4_8422_2325,
            polls: 0,
            task_next: 0,
            timer_next: 0,
            tasks: BTreeMap::new(),
            timers: BTreeMap::new(),
        };
        Self {
            state: RefCell::new(state),
            ready: Arc::new(Mutex::new(Vec::new())),
        }
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.state.borrow().now_ns
    }

    /// Draws from the seed; the number drawn is part of the trace by what it decides.
    pub(super) fn chance<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.state.borrow_mut().rng)
    }

    /// Mixes a fact into the trace.
    pub(super) fn trace(&self, fact: u64) {
        self.state.borrow_mut().mix(fact);
    }

    pub(super) fn spawn(&self, name: &'static str, future: LocalFuture) {
        let mut state = self.state.borrow_mut();
        let id = state.task_next;
        state.task_next += 1;
        let ready = Arc::clone(&self.ready);
        let waker = Arc::new(TaskWaker {
            id,
            queued: AtomicBool::new(false),
            ready,
        });
        waker.wake_by_ref();
        state.tasks.insert(
            id,
            Task {
                name,
                future,
                waker,
            },
        );
    }

    pub(super) fn timer(&self, delay_ns: u64, action: Action) -> TimerKey {
        let mut state = self.state.borrow_mut();
        let key = (state.now_ns.saturating_add(delay_ns), state.timer_next);
        state.timer_next += 1;
        state.timers.insert(key, action);
        key
    }

    /// Replaces the waker of a timer that has not fired; whether it has not.
    pub(super) fn rewake(&self, key: TimerKey, waker: &Waker) -> bool {
        match self.state.borrow_mut().timers.get_mut(&key) {
            Some(action) => {
                *action = Action::Wake(waker.clone());
                true
            }
            None => false,
        }
    }

    pub(super) fn cancel(&self, key: TimerKey) {
        let cancelled = self.state.borrow_mut().timers.remove(&key);
        drop(cancelled);
    }

    /// The next due action; with `jump`, time passes until there is one.
    fn due(&self, jump: bool) -> Option<Action> {
        let mut state = self.state.borrow_mut();
        let key = *state.timers.keys().next()?;
        if key.0 > state.now_ns {
            if !jump {
                return None;
            }
            state.now_ns = key.0;
            state.mix(key.0);
        }
        state.timers.remove(&key)
    }

    /// Picks a ready task and polls it; `None` if none is ready.
    fn poll_one(&self) -> Option<Result<(), Failure>> {
        let mut task = loop {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            if ready.is_empty() {
                return None;
            }
            let mut state = self.state.borrow_mut();
            let index = state.rng.usize(0..ready.len());
            let id = ready.swap_remove(index);
            if let Some(task) = state.tasks.remove(&id) {
                state.mix(id);
                state.polls += 1;
                state.now_ns += POLL_COST_NS;
                break task;
            }
        };
        task.waker.queued.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&task.waker));
        let mut context = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| task.future.as_mut().poll(&mut context)));
        match polled {
            Ok(Poll::Pending) => {
                self.state.borrow_mut().tasks.insert(task.waker.id, task);
                Some(Ok(()))
            }
            Ok(Poll::Ready(())) => Some(Ok(())),
            Err(payload) => {
                let name = task.name.to_owned();
                Some(Err(Failure::Panic(name, panic_text(payload.as_ref()))))
            }
        }
    }

    /// Ends all tasks; their destructors may still spawn and wake.
    fn drop_tasks(&self) {
        loop {
            let mut state = self.state.borrow_mut();
            let tasks = std::mem::take(&mut state.tasks);
            let timers = std::mem::take(&mut state.timers);
            drop(state);
            if tasks.is_empty() && timers.is_empty() {
                return;
            }
            drop((tasks, timers));
        }
    }
}

impl State {
    fn mix(&mut self, fact: u64) {
        let mixed = (self.trace ^ fact).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.trace = mixed.rotate_left(29) ^ mixed;
    }
}

impl Core {
    /// Polls until `done`, or until a bound is met.
    fn drive(
        &self,
        done: impl Fn() -> bool,
        polls_max: u64,
        time_max: Duration,
    ) -> Result<(), Failure> {
        let time_max_ns = u64::try_from(time_max.as_nanos()).unwrap_or(u64::MAX);
        while !done() {
            while let Some(action) = self.executor.due(false) {
                self.fire(action);
            }
            if let Some(polled) = self.executor.poll_one() {
                polled?;
            } else {
                match self.executor.due(true) {
                    Some(action) => self.fire(action),
                    None => return Err(Failure::Deadlock),
                }
            }
            let state = self.executor.state.borrow();
            if state.polls > polls_max {
                return Err(Failure::Livelock);
            }
            if state.now_ns > time_max_ns {
                return Err(Failure::OutOfTime);
            }
        }
        Ok(())
    }

    fn fire(&self, action: Action) {
        match action {
            Action::Wake(waker) => waker.wake(),
            Action::Disk(op) => self.disk_op_ends(op),
        }
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without text".to_owned()
    }
}
