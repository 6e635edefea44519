//! Engines side by side, with an outcome that does not depend on the machine.
//!
//! Every engine runs on a thread of its own and has a clock that its polls drive: so many virtual
//! microseconds from one poll to the next, however long they took. The one whose clock shows least
//! when it has decided wins, in a tie the earlier one of the plan; whoever is past that is told to
//! stop, whoever is not may go on until it is. So who answers, and with what, is a property of the
//! program. An engine that is ahead of the slowest waits for it, which keeps the clocks honest: no
//! core is spent on work that is going to lose.
//!
//! A proof whose audit did not end, or that takes something for granted, counts as decided only after the
//! same time once more and a moment: who has a better one by then is preferred. Who is likely to have a better one (its
//! *hope*) is waited for longer.
//!
//! The first of the plan gets a head start, because most programs are small and need no race: against some a
//! longer one than against others. If it has a proof by then, its audit may go on alone for a while. Whoever
//! has a proof is waited for while it is audited, up to eight times as long as it was searched for. Who is done at once
//! or not for long is waited for at its beginning; if it is not done, it waits in turn until the others have had as long.
//! So is a search through all states that is likely to be over soon, since fewer and fewer are left to expand: for three quarters of the
//! time it has had at most, and again when it has had twice as long.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wattle_evidence::{Control, Pace, Progress, Stop};

/// One who runs.
pub struct Runner<E> {
    pub engine: E,
    /// What the work from one poll to the next counts, in virtual microseconds.
    pub tick: u64,
    /// The same while its proof is audited.
    pub audit: u64,
    /// How much faster than others' its clock runs: it gets one part in so many.
    pub handicap: u64,
    /// Polls the first has before this one begins: those of a search that has just begun are short.
    pub head_start: u64,
    /// Microseconds of its search for which all others wait; its clock counts them when they are over.
    pub free: u64,
    /// Microseconds for which a proof that takes something for granted waits for it besides.
    pub hope: u64,
}

/// How one run ended, for the race.
pub trait Ended {
    /// Whether nobody else is needed any more.
    fn is_decided(&self) -> bool;

    /// Whether nothing better can come: not so where a proof's audit did not end, or where it takes
    /// something for granted.
    fn is_final(&self) -> bool {
        true
    }
}

/// Microseconds of an audit that begins within the head start and may go on alone.
const HEAD_START_AUDIT: u64 = 100_000;
/// So many times the search may an audit take while the others wait: who has a proof is likely to be
/// done before them, and what they do meanwhile would be in vain.
const AUDIT_SHARE: u64 = 8;
/// What polls while a proof is audited, and while a run is made shorter.
const AUDITS: [&str; 2] = ["audit", "translation"];
const SHORTENS: &str = "minimise";
/// What polls while states are searched, and what that counts at least, whoever searches them on the way.
const SEARCHES: (&str, u64) = ("explicit", 700);
/// How long who goes through all states has searched before it is waited for since it is likely to be over soon.
const LONG_ENOUGH: u64 = 100_000;
/// Microseconds for which a better proof is waited for at least. A proof with a condition is no answer to whoever asked
/// (exit code 3): with 20 ms locks in C had one where `counting` does without.
const MOMENT: u64 = 100_000;
/// How far one may be ahead of the slowest.
const SLACK: u64 = 4_000;
/// Between two looks at the outside world while waiting.
const WAIT: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    /// Ended without a decision.
    Gone,
    Decided,
}

#[derive(Clone, Copy)]
struct Lane {
    clock: u64,
    /// What the engine had done at its last poll.
    done: u64,
    /// Microseconds its search has left for nothing, and has had.
    free: u64,
    lent: u64,
    /// What it is waited for with a proof that is not final, and whether its own is.
    hope: u64,
    is_final: bool,
    /// The most states that were left to expand, and how long it has to have searched before it is waited for.
    most_left: u64,
    waited_from: u64,
    /// Its clock stood still when it was last looked at: the others wait.
    holds: bool,
    /// Microseconds it has searched, and audited what it found.
    searched: u64,
    audited: u64,
    memory: u64,
    state: State,
}

struct Track<'t> {
    lanes: Mutex<Vec<Lane>>,
    moved: Condvar,
    control: &'t Control<'t>,
}

/// Runs all and gives how they ended, or only how the winner did.
pub fn race<E: Sync, T: Ended + Send>(
    runners: &[Runner<E>],
    control: &Control<'_>,
    run: impl Fn(&Runner<E>, &Control<'_>) -> T + Sync,
) -> Vec<(usize, T)> {
    if let [only] = runners {
        return vec![(0, run(only, control))];
    }
    let waiting = Lane {
        clock: 0,
        done: 0,
        free: 0,
        lent: 0,
        hope: 0,
        is_final: true,
        most_left: 0,
        waited_from: LONG_ENOUGH,
        holds: false,
        searched: 0,
        audited: 0,
        memory: 0,
        state: State::Waiting,
    };
    let lanes = runners.iter().map(|r| Lane {
        hope: r.hope,
        ..waiting
    });
    let track = Track {
        lanes: Mutex::new(lanes.collect()),
        moved: Condvar::new(),
        control,
    };
    let ended: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::new());
    let one = |i: usize, launch: Option<&(dyn Fn(u64) + Sync)>| {
        let Runner {
            tick,
            audit,
            handicap,
            ..
        } = runners[i];
        let clock = Clock {
            track: &track,
            i,
            tick,
            audit,
            handicap,
            alone: Mutex::new(launch.map(|launch| Alone {
                launch,
                polls: 0,
                audit: HEAD_START_AUDIT,
            })),
        };
        let leave = Leave(&track, i);
        if i > 0 && clock.wait(track.lock()) == Err(Stop::Cancelled) {
            return;
        }
        let outcome = run(&runners[i], &control.stage(Duration::MAX).with_pace(&clock));
        if outcome.is_decided() {
            // What was done since the last poll is not known, but not nothing.
            let paid = track.lock()[i].free >= tick;
            track.lock()[i].clock += if paid { 0 } else { tick * handicap };
            if let (false, Some(launch)) = (outcome.is_final(), launch) {
                // It is waited for a better one, so somebody has to look for it.
                launch(u64::MAX);
            }
            let lane = &mut track.lock()[i];
            lane.is_final = outcome.is_final();
            if !lane.is_final {
                lane.clock = lane.clock.saturating_mul(2).saturating_add(MOMENT);
            }
            lane.state = State::Decided;
        }
        drop(leave);
        let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.push((i, outcome));
    };
    std::thread::scope(|scope| {
        let launch = |polls: u64| {
            // Not one by one: the first would run ahead of those still to come.
            let mut lanes = track.lock();
            let now = lanes.first().map_or(0, |l| l.clock);
            let mut begin = Vec::new();
            for (i, (lane, runner)) in lanes.iter_mut().zip(runners).enumerate().skip(1) {
                if lane.state != State::Waiting || runner.head_start > polls {
                    continue;
                }
                // Getting ready may take as long as the first poll: who has a handicap pays before.
                let pays = match runner.handicap > 1 && runner.free == 0 {
                    true => runner.tick,
                    false => 0,
                };
                lane.clock = now + pays * runner.handicap;
                lane.state = State::Running;
                lane.free = runner.free;
                lane.holds = runner.free > 0;
                begin.push(i);
            }
            drop(lanes);
            for i in begin {
                scope.spawn(move || one(i, None));
            }
        };
        if let Some(first) = track.lock().first_mut() {
            first.state = State::Running;
        }
        one(0, Some(&launch));
        if track.needs_the_others() {
            launch(u64::MAX);
        }
    });
    let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.sort_by_key(|(i, _)| *i);
    match track.winner() {
        Some(winner) => ended.into_iter().filter(|(i, _)| *i == winner).collect(),
        None => ended,
    }
}

impl Lane {
    /// Whether the end is near: so many states are expanded, and so many more are known.
    fn look_ahead(&mut self, done: u64, left: u64) {
        if done < self.done {
            // It has begun anew.
            self.most_left = 0;
        }
        self.most_left = self.most_left.max(left);
        if left < self.most_left / 16 * 15 && self.searched >= self.waited_from {
            self.free = self.free.max(self.searched / 4 * 3);
            self.waited_from = 2 * self.searched;
        }
    }
}

impl Track<'_> {
    fn lock(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn winner(&self) -> Option<usize> {
        winner(&self.lock())
    }

    /// Whether the first has ended without a decision.
    fn needs_the_others(&self) -> bool {
        let lanes = self.lock();
        lanes.first().is_some_and(|l| l.state == State::Gone)
    }
}

fn winner(lanes: &[Lane]) -> Option<usize> {
    let decided = |is_final: bool| {
        let all = (0..lanes.len()).filter(move |i| lanes[*i].state == State::Decided);
        all.filter(move |i| lanes[*i].is_final == is_final)
    };
    let first = |i: &usize| (lanes[*i].clock, *i);
    let other = decided(false).min_by_key(first);
    // Those for which it waits, if it does not come first.
    let waits = |i: &usize| other.is_none_or(|o| !is_first(lanes, o, *i));
    decided(true).filter(waits).min_by_key(first).or(other)
}

/// Whether one who has decided comes before another one, who may still be about to.
fn is_first(lanes: &[Lane], decided: usize, other: usize) -> bool {
    let hope = match lanes[decided].is_final {
        true => 0,
        false => lanes[other].hope,
    };
    (lanes[decided].clock.saturating_add(hope), decided) < (lanes[other].clock, other)
}

/// Takes a runner out of the race however it ends, so that nobody waits for it.
struct Leave<'t>(&'t Track<'t>, usize);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let lane = &mut self.0.lock()[self.1];
        if lane.state != State::Decided {
            lane.state = State::Gone;
        }
        lane.memory = 0;
        self.0.moved.notify_all();
    }
}

struct Clock<'t> {
    track: &'t Track<'t>,
    i: usize,
    tick: u64,
    audit: u64,
    handicap: u64,
    /// Present while somebody has not begun, at the first one.
    alone: Mutex<Option<Alone<'t>>>,
}

/// What the first one has done before all others have begun.
struct Alone<'t> {
    /// Starts those that begin after so many polls.
    launch: &'t (dyn Fn(u64) + Sync),
    polls: u64,
    /// Microseconds left to its audit.
    audit: u64,
}

/// What starts those that begin after so many polls, and the polls.
type Launch<'t> = (&'t (dyn Fn(u64) + Sync), u64);

impl Pace for Clock<'_> {
    fn tick(&self, worker: &'static str, progress: Progress) -> Result<(), Stop> {
        let mut lanes = self.track.lock();
        let done = progress.states.saturating_sub(progress.frontier);
        let same = done > 0 || progress.frontier > 0;
        let audits = AUDITS.contains(&worker);
        let lane = &mut lanes[self.i];
        let (spent, free) = match audits {
            true => {
                lane.audited += self.audit;
                (self.audit, lane.audited <= AUDIT_SHARE * lane.searched)
            }
            // It has found a run: what is left is to tell it well.
            false if worker == SHORTENS => (0, true),
            false => {
                // Searches begin with a poll, and begin anew now and then: nothing is done by then.
                let idle = same && lane.done == 0 && done == 0;
                let tick = match worker == SEARCHES.0 {
                    true => self.tick.max(SEARCHES.1),
                    false => self.tick,
                };
                let spent = if idle { 0 } else { tick };
                lane.searched += spent;
                if worker == SEARCHES.0 {
                    lane.look_ahead(done, progress.frontier);
                }
                match lane.free >= tick {
                    true => {
                        lane.free -= spent;
                        lane.lent += spent;
                        (spent, true)
                    }
                    // What was had for nothing is paid back.
                    false => (spent + std::mem::take(&mut lane.lent), false),
                }
            }
        };
        lane.done = done;
        lane.holds = free;
        let spent = if free { 0 } else { spent };
        let now = lanes[self.i].clock + spent * self.handicap;
        lanes[self.i].clock = now;
        lanes[self.i].memory = progress.memory;
        self.track.moved.notify_all();
        if let Some((launch, polls)) = self.over(audits, spent, &lanes) {
            drop(lanes);
            launch(polls);
            lanes = self.track.lock();
        }
        self.wait(lanes)
    }

    fn is_over(&self) -> bool {
        // If somebody is about to move, the next look will tell.
        let lanes = self.track.lanes.try_lock();
        lanes.is_ok_and(|lanes| self.is_beaten(&lanes))
    }
}

impl<'t> Clock<'t> {
    /// Whether somebody has decided who comes before this one, whatever it does from now on.
    fn is_beaten(&self, lanes: &[Lane]) -> bool {
        winner(lanes).is_some_and(|w| is_first(lanes, w, self.i))
    }

    /// Waits for those that are behind; says if it is enough.
    fn wait(&self, mut lanes: MutexGuard<'_, Vec<Lane>>) -> Result<(), Stop> {
        let now = lanes[self.i].clock;
        loop {
            if self.is_beaten(&lanes) {
                return Err(Stop::Cancelled);
            }
            if self.track.control.budget().is_some_and(|b| now > b) {
                return Err(Stop::Budget);
            }
            if self.is_too_much(&lanes) {
                return Err(Stop::Memory);
            }
            let others = (0..lanes.len()).filter(|j| *j != self.i);
            let running = others.filter(|j| lanes[*j].state == State::Running);
            let slowest = running.map(|j| lanes[j].clock).min();
            let held = lanes.iter().any(|l| l.holds && l.state == State::Running);
            let ahead = held || slowest.is_some_and(|s| now > s + SLACK);
            // Nobody who holds the others waits for them.
            let ahead = ahead && !lanes[self.i].holds;
            if !ahead || self.track.control.stop().is_some() {
                return Ok(());
            }
            let woken = self.track.moved.wait_timeout(lanes, WAIT);
            lanes = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What starts others, and how many polls are over; not once all have begun.
    fn over(&self, audits: bool, spent: u64, lanes: &[Lane]) -> Option<Launch<'t>> {
        let mut slot = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let alone = slot.as_mut()?;
        match audits {
            true => alone.audit = alone.audit.saturating_sub(spent),
            false => alone.polls += u64::from(spent > 0),
        }
        if alone.audit == 0 {
            alone.polls = u64::MAX;
        }
        let (launch, polls) = (alone.launch, alone.polls);
        if !lanes.iter().skip(1).any(|l| l.state == State::Waiting) {
            *slot = None;
            return None;
        }
        Some((launch, polls))
    }

    /// Together they use more than there is: the last of the plan makes room.
    fn is_too_much(&self, lanes: &[Lane]) -> bool {
        let Some(limit) = self.track.control.memory_limit() else {
            return false;
        };
        let running = |j: &usize| lanes[*j].state == State::Running;
        let is_last = (0..lanes.len()).rfind(running) == Some(self.i);
        let is_alone = (0..lanes.len()).filter(running).count() == 1;
        let used: u64 = lanes.iter().map(|l| l.memory).sum();
        // What engines say they use is less than what they use.
        is_last && !is_alone && used > limit / 4 * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use wattle_evidence::{Answer, Engine, Reason, Refusal, Task};

    /// Polls so often, waits so long at each, and then decides or not.
    struct Fake {
        name: &'static str,
        polls: u64,
        wait: Duration,
        decides: bool,
    }

    impl Engine for Fake {
        fn name(&self) -> &'static str {
            self.name
        }

        fn accepts(&self, _: &Task<'_>) -> Result<(), Refusal> {
            Ok(())
        }

        fn run(&self, _: &Task<'_>, control: &Control<'_>) -> Answer {
            let mut decided = self.decides;
            for _ in 0..self.polls {
                std::thread::sleep(self.wait);
                if control.poll(self.name, Progress::default()).is_err() {
                    decided = false;
                    break;
                }
            }
            let reason = match decided {
                true => Reason::Other("decided".into()),
                false => Reason::Other("stopped".into()),
            };
            let effort = Progress::default();
            Answer::Undecided { reason, effort }
        }
    }

    struct Over(bool);

    impl Ended for Over {
        fn is_decided(&self) -> bool {
            self.0
        }
    }

    /// Decides after so many polls; whether checked.
    struct Proof {
        checked: bool,
    }

    impl Ended for Proof {
        fn is_decided(&self) -> bool {
            true
        }

        fn is_final(&self) -> bool {
            self.checked
        }
    }

    #[test]
    fn an_unchecked_proof_waits_for_a_checked_one_as_long_as_it_took_and_a_moment() {
        for (unchecked, checked, winner) in [
            (100, 150, 1),
            (100, 280, 1),
            (100, 350, 0),
            (100, 60, 1),
            // The second has not begun when the first is done.
            (1, 80, 1),
            (1, 200, 0),
        ] {
            let runners = [unchecked, checked].map(|polls: u64| Runner {
                engine: polls,
                tick: 1000,
                audit: 1000,
                handicap: 1,
                head_start: 2,
                free: 0,
                hope: 0,
            });
            let ended = race(&runners, &Control::unlimited(), |runner, control| {
                for _ in 0..runner.engine {
                    if control.poll("fake", Progress::default()).is_err() {
                        break;
                    }
                }
                let checked = runner.engine == checked;
                Proof { checked }
            });
            let won: Vec<usize> = ended.into_iter().map(|(i, _)| i).collect();
            assert_eq!(won, vec![winner], "{unchecked} {checked}");
        }
    }

    /// Who wins, with these waits in microseconds.
    fn winners(fakes: &[(u64, u64, bool)]) -> Vec<usize> {
        let instance = wattle_model::Program::default().instance();
        let instance = instance.expect("an empty program");
        let task = Task {
            instance: &instance,
            model: wattle_memory::MemoryModel::Tso,
            question: None,
            deadlock: false,
        };
        let fakes: Vec<Fake> = fakes
            .iter()
            .map(|(polls, wait, decides)| Fake {
                name: "fake",
                polls: *polls,
                wait: Duration::from_micros(*wait),
                decides: *decides,
            })
            .collect();
        let runners: Vec<Runner<&Fake>> = fakes
            .iter()
            .map(|engine| Runner {
                engine,
                tick: 1000,
                audit: 1000,
                handicap: 1,
                head_start: 2,
                free: 0,
                hope: 0,
            })
            .collect();
        let ended = race(&runners, &Control::unlimited(), |runner, control| {
            let answer = runner.engine.run(&task, control);
            Over(
                matches!(answer, Answer::Undecided { reason: Reason::Other(r), .. } if r == "decided"),
            )
        });
        ended.into_iter().map(|(i, _)| i).collect()
    }

    #[test]
    fn the_winner_is_who_polled_least_however_long_it_took() {
        for waits in [[0, 900, 0], [900, 0, 300], [50, 50, 900]] {
            let [a, b, c] = waits;
            let fakes = [(60, a, true), (20, b, true), (40, c, true)];
            assert_eq!(winners(&fakes), vec![1], "{waits:?}");
        }
    }

    #[test]
    fn in_a_tie_the_first_wins() {
        for waits in [(0, 500), (500, 0)] {
            // The second starts when the first has had its head start of two polls.
            let fakes = [(22, waits.0, true), (20, waits.1, true)];
            assert_eq!(winners(&fakes), vec![0], "{waits:?}");
        }
    }

    /// Who wins: the first has decided after so many polls as this worker with this progress, the second after ten of
    /// its own.
    fn beside_ten(worker: &'static str, polls: u64, progress: Progress) -> usize {
        let runners = [false, true].map(|own| Runner {
            engine: own,
            tick: 100,
            audit: 100,
            handicap: 1,
            head_start: 0,
            free: 0,
            hope: 0,
        });
        let ended = race(&runners, &Control::unlimited(), |runner, control| {
            let (worker, polls, progress) = match runner.engine {
                true => ("fake", 10, Progress::default()),
                false => (worker, polls, progress),
            };
            Over((0..polls).all(|_| control.poll(worker, progress).is_ok()))
        });
        assert_eq!(ended.len(), 1);
        ended[0].0
    }

    #[test]
    fn who_searches_states_on_the_way_pays_for_it() {
        let fresh = Progress::default();
        assert_eq!(beside_ten("fake", 8, fresh), 0);
        assert_eq!(beside_ten(SEARCHES.0, 8, fresh), 1);
        assert_eq!(beside_ten(SEARCHES.0, 1, fresh), 0);
    }

    #[test]
    fn only_what_begins_is_no_work() {
        let (begins, goes_on) = (Progress::default(), Progress::of(100));
        let begins = Progress {
            states: 1,
            frontier: 1,
            ..begins
        };
        assert_eq!(beside_ten("fake", 40, begins), 0);
        assert_eq!(beside_ten("fake", 40, goes_on), 1);
    }

    #[test]
    fn who_does_not_decide_leaves_the_field() {
        assert_eq!(winners(&[(0, 0, false), (30, 10, true)]), vec![1]);
        assert_eq!(winners(&[(5, 10, false), (30, 10, true)]), vec![1]);
        assert_eq!(winners(&[(5, 0, false), (3, 0, false)]), vec![0, 1]);
    }

    /// How many polls each does until the given one, who polls so often, has decided.
    fn polls(handicaps: &[u64], winner: usize, until: u64, worker: &'static str) -> Vec<u64> {
        let runners: Vec<Runner<usize>> = handicaps
            .iter()
            .enumerate()
            .map(|(engine, handicap)| Runner {
                engine,
                tick: 1000,
                audit: 1000,
                handicap: *handicap,
                head_start: 24,
                free: 0,
                hope: 0,
            })
            .collect();
        let counted: Vec<AtomicU64> = handicaps.iter().map(|_| AtomicU64::new(0)).collect();
        let ended = race(&runners, &Control::unlimited(), |runner, control| {
            let count = &counted[runner.engine];
            while control.poll(worker, Progress::default()).is_ok() {
                let n = count.fetch_add(1, Ordering::Relaxed) + 1;
                if runner.engine == winner && n == until {
                    return Over(true);
                }
            }
            Over(false)
        });
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0].0, winner);
        counted.into_iter().map(AtomicU64::into_inner).collect()
    }

    #[test]
    fn all_together_do_at_most_three_times_the_work_of_the_winner() {
        // Head start, slack, and a poll of everybody.
        const MORE: u64 = 24 + 6 * 5;
        for (handicaps, winner) in [
            (&[1, 2, 2, 2][..], 0),
            (&[16, 16, 16, 16, 1, 1], 4),
            (&[16, 16, 16, 16, 1, 1], 5),
        ] {
            for until in [100, 1000, 5000] {
                let polls = polls(handicaps, winner, until, "fake");
                let all: u64 = polls.iter().sum();
                assert!(all <= 3 * until + MORE, "{polls:?}");
            }
        }
    }

    #[test]
    fn who_has_a_shorter_head_start_against_it_begins_sooner() {
        let begun: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
        let runners: Vec<Runner<usize>> = [0, 2, 24]
            .iter()
            .enumerate()
            .map(|(engine, head_start)| Runner {
                engine,
                tick: 1000,
                audit: 1000,
                handicap: 1,
                head_start: *head_start,
                free: 0,
                hope: 0,
            })
            .collect();
        for (until, wins) in [(1, 0), (10, 1), (60, 1)] {
            begun.iter().for_each(|b| b.store(0, Ordering::Relaxed));
            let ended = race(&runners, &Control::unlimited(), |runner, control| {
                begun[runner.engine].store(1, Ordering::Relaxed);
                // The second needs five polls, the first as many as is said, the third never decides.
                let wanted = [until, 5, u64::MAX][runner.engine];
                for _ in 0..wanted {
                    if control.poll("fake", Progress::default()).is_err() {
                        return Over(false);
                    }
                }
                Over(true)
            });
            assert_eq!(ended.iter().map(|(i, _)| *i).collect::<Vec<_>>(), [wins]);
            let begun: Vec<u64> = begun.iter().map(|b| b.load(Ordering::Relaxed)).collect();
            assert_eq!(begun, [1, u64::from(until > 2), 0], "{until}");
        }
    }

    #[test]
    fn who_is_waited_for_at_its_beginning_costs_the_others_nothing() {
        for (needs, wins) in [(10, 1), (16, 1), (40, 0)] {
            let did = AtomicU64::new(0);
            let runners = [0, 16_000].map(|free| Runner {
                engine: usize::from(free > 0),
                tick: 1000,
                audit: 1000,
                handicap: 2,
                head_start: 2,
                free,
                hope: 0,
            });
            let ended = race(&runners, &Control::unlimited(), |runner, control| {
                // The first needs 20 polls.
                for _ in 0..[20, needs][runner.engine] {
                    if control.poll("fake", Progress::default()).is_err() {
                        return Over(false);
                    }
                    did.fetch_add(u64::from(runner.engine == 0), Ordering::Relaxed);
                }
                Over(true)
            });
            assert_eq!(ended.iter().map(|(i, _)| *i).collect::<Vec<_>>(), [wins]);
            let did = did.into_inner();
            assert!(did <= 4 || wins == 0, "{did} polls beside {needs}");
        }
    }

    #[test]
    fn who_is_about_to_have_seen_all_is_waited_for() {
        type Left = fn(u64, u64) -> u64;
        let falls: Left = |n, end| 4 * n * (end - n) / end;
        let grows: Left = |n, _| n;
        let stays: Left = |n, _| if n < 200 { n } else { 180 };
        // What a search has left after so many polls, when it ends, when the other one does, who wins, and how often each may poll.
        for (left, end, needs, wins, most) in [
            (falls, 400, 500, 0, [400, 270]),
            (grows, 400, 500, 0, [400, 420]),
            (falls, 400, 100, 1, [120, 100]),
            (stays, 2000, 500, 1, [875, 500]),
        ] {
            let polls = [0, 1].map(|_| AtomicU64::new(0));
            let runners = [0, 1].map(|engine: usize| Runner {
                engine,
                tick: 1000,
                audit: 1000,
                handicap: 1,
                head_start: 2,
                free: 0,
                hope: 0,
            });
            let ended = race(&runners, &Control::unlimited(), |runner, control| {
                for n in 1..=[end, needs][runner.engine] {
                    let frontier = 64 * left(n, end);
                    let progress = Progress {
                        states: 64 * n + frontier,
                        frontier,
                        ..Progress::default()
                    };
                    let name = ["explicit", "fake"][runner.engine];
                    if control.poll(name, progress).is_err() {
                        return Over(false);
                    }
                    polls[runner.engine].store(n, Ordering::Relaxed);
                }
                Over(true)
            });
            assert_eq!(ended.iter().map(|(i, _)| *i).collect::<Vec<_>>(), [wins]);
            let polls = polls.map(AtomicU64::into_inner);
            assert!(polls[0] <= most[0] && polls[1] <= most[1], "{polls:?}");
        }
    }

    #[test]
    fn who_has_a_handicap_pays_before_it_begins() {
        assert_eq!(polls(&[1, 1, 64], 1, 20, "fake")[2], 0);
    }

    #[test]
    fn an_audit_may_go_on_alone() {
        assert_eq!(polls(&[1, 1], 0, 90, "audit"), vec![90, 0]);
        assert!(polls(&[1, 1], 0, 200, "audit")[1] > 50);
    }

    #[test]
    fn who_makes_a_run_shorter_is_waited_for() {
        assert_eq!(polls(&[1, 1], 0, 900, "minimise"), vec![900, 0]);
    }

    #[test]
    fn a_short_run_needs_no_race() {
        assert_eq!(winners(&[(1, 0, true), (0, 0, true)]), vec![0]);
    }
}
