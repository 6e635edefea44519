//! How fast the search is, beside what the machine could do at most: the same store filled with
//! random states of the same size, and a bare open-addressing table. Nothing is printed here.

use crate::clock::Clock;
use crate::explore::{Finished, Observer, Order, Search};
use crate::rounds::{self, Sizes, Subject};
use crate::store::{Key, ROOT, Store, hash};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use wattle_evidence::{Control, Progress, Stop};
use wattle_memory::MemoryModel;
use wattle_memory::compiled::{Code, Flaw, Machine, Reductions, Watched};
use wattle_memory::content::EXACT;
use wattle_memory::reference::Refusal;
use wattle_model::Instance;
use wattle_model::instance::Question;

/// The programs of the benchmark, as `.wtl`, and whether to measure them without reductions too.
pub const PROGRAMS: [(&str, &str, bool); 4] = [
    ("lamport", include_str!("bench/lamport.wtl"), true),
    ("bakery", include_str!("bench/bakery.wtl"), true),
    ("indexer", include_str!("bench/indexer.wtl"), true),
    ("indexer16", include_str!("bench/indexer16.wtl"), false),
];

/// One search, measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    pub states: u64,
    /// Successors offered to the store, new or not.
    pub offered: u64,
    /// Words of a packed state.
    pub words: usize,
    /// Bytes of states, parents and index together.
    pub bytes: u64,
    pub time: Duration,
}

impl Measured {
    pub fn bytes_per_state(&self) -> f64 {
        self.bytes as f64 / self.states.max(1) as f64
    }
}

/// Why there is nothing measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMeasured {
    Refused(Refusal),
    Stopped(Stop),
    /// The program reached its target or a fault.
    CutShort,
}

/// Evaluates the question in every state, as the engine does.
struct Watch<'i> {
    question: Option<&'i Question>,
    code: Option<Code>,
}

impl Observer for Watch<'_> {
    fn fit(&mut self, machine: &Machine<'_>) {
        self.code = self.question.map(|q| machine.condition(&q.target));
    }

    fn look(&mut self, machine: &Machine<'_>, state: &[u64]) -> Result<bool, Flaw> {
        match &self.code {
            Some(code) => Ok(machine.value(code, state).map_err(|flaw| *flaw)? != 0),
            None => Ok(false),
        }
    }

    fn fork(&self) -> Self {
        Watch {
            question: self.question,
            code: self.code.clone(),
        }
    }
}

/// A machine ready to be searched: compiled, and with fields and buffers as wide as they need be.
pub struct Prepared<'i> {
    machine: Machine<'i>,
    question: Option<&'i Question>,
}

impl<'i> Prepared<'i> {
    /// Searches once, to learn the widths.
    pub fn new(
        instance: &'i Instance,
        model: MemoryModel,
        reductions: Reductions,
        control: &Control<'_>,
    ) -> Result<Self, NotMeasured> {
        let question = instance.questions.first();
        let view = Watched::of_question(instance, question);
        let plan = Subject {
            name: "explicit",
            instance,
            model,
            contents: &EXACT,
            view: &view,
            reductions,
            order: Order::BreadthFirst,
            most_buffered: 6,
            compress: false,
        };
        let mut sizes = Sizes::guess(instance, model);
        let watch = || Watch {
            question,
            code: None,
        };
        let outcome = rounds::run(&plan, &mut sizes, control, watch, |_, _, _| ())
            .map_err(NotMeasured::Refused)?;
        match outcome.ended {
            Finished::Exhausted => {}
            Finished::Stopped(stop) => return Err(NotMeasured::Stopped(stop)),
            Finished::Halted(_)
            | Finished::NoValue(..)
            | Finished::Fault { .. }
            | Finished::Narrow(..)
            | Finished::Idle
            | Finished::Short(_) => return Err(NotMeasured::CutShort),
        }
        let machine = plan.machine(&sizes).map_err(NotMeasured::Refused)?;
        Ok(Prepared { machine, question })
    }

    /// Searches all states, breadth-first, from an empty store.
    pub fn search(&self, shortcuts: bool, control: &Control<'_>) -> Result<Measured, NotMeasured> {
        let started = Clock::start();
        let mut search =
            Search::new(&self.machine, Order::BreadthFirst).map_err(NotMeasured::Refused)?;
        search.shortcuts = shortcuts;
        let mut watch = Watch {
            question: self.question,
            code: None,
        };
        let ended = search.run(&mut watch, control);
        let time = started.elapsed();
        match ended {
            Finished::Exhausted => Ok(Measured {
                states: search.store.len() as u64,
                offered: search.count.successors,
                words: self.machine.words,
                bytes: search.store.bytes(),
                time,
            }),
            Finished::Stopped(stop) => Err(NotMeasured::Stopped(stop)),
            Finished::Halted(_)
            | Finished::NoValue(..)
            | Finished::Fault { .. }
            | Finished::Narrow(..)
            | Finished::Idle
            | Finished::Short(_) => Err(NotMeasured::CutShort),
        }
    }
}

/// Random states, the same every time.
struct Random(u64);

impl Random {
    fn fill(&mut self, state: &mut [u64]) {
        for w in state {
            // A counter through a mixing function: no two states are alike.
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *w = z ^ (z >> 31);
        }
    }
}

/// The store's own limit: that many random states put into an empty store, in batches and by the
/// same code as a search does it.
pub fn fill_store(words: usize, states: u64) -> Measured {
    const BATCH: usize = 48;
    let started = Clock::start();
    let mut store = Store::new(words);
    let mut random = Random(1);
    let mut batch = vec![0u64; BATCH * words];
    let mut keys = [Key {
        hash: 0,
        parent: ROOT,
    }; BATCH];
    let mut new = Vec::new();
    let mut left = states;
    while left > 0 {
        let n = (left as usize).min(BATCH);
        for (state, key) in batch.chunks_exact_mut(words).zip(&mut keys).take(n) {
            random.fill(state);
            key.hash = hash(state);
        }
        if store.is_far() {
            for key in &keys[..n] {
                store.prefetch_slot(key.hash);
            }
        }
        store.insert_all(&batch, &keys[..n], &mut new);
        left -= n as u64;
    }
    Measured {
        states: store.len() as u64,
        offered: states,
        words,
        bytes: store.bytes(),
        time: started.elapsed(),
    }
}

/// A table with the states in its slots and nothing else: no numbers, no parents, no order.
pub fn fill_bare_table(words: usize, states: u64) -> Measured {
    let started = Clock::start();
    let mut random = Random(1);
    let mut state = vec![0u64; words];
    let mut table = vec![0u64; 256 * words];
    let mut count = 0u64;
    for _ in 0..states {
        random.fill(&mut state);
        // Zero marks an empty slot.
        state[0] |= 1;
        if (count as usize + 1) * words * 10 > table.len() * 7 {
            let mut larger = vec![0u64; table.len() * 2];
            for old in table.chunks_exact(words).filter(|s| s[0] != 0) {
                put(&mut larger, words, old);
            }
            table = larger;
        }
        count += u64::from(put(&mut table, words, &state));
    }
    Measured {
        states: count,
        offered: states,
        words,
        bytes: table.len() as u64 * 8,
        time: started.elapsed(),
    }
}

fn put(table: &mut [u64], words: usize, state: &[u64]) -> bool {
    let slots = table.len() / words;
    let mut slot = ((u128::from(hash(state)) * slots as u128) >> 64) as usize;
    loop {
        let there = &mut table[slot * words..(slot + 1) * words];
        if there[0] == 0 {
            there.copy_from_slice(state);
            return true;
        }
        if there == state {
            return false;
        }
        slot += 1;
        if slot == slots {
            slot = 0;
        }
    }
}

/// Shorter measurements are repeated.
const LONG_ENOUGH: Duration = Duration::from_millis(200);

/// What is measured, and the head of the table.
pub const HEAD: &str = "\
A row is a complete breadth-first search on one core, the question asked in every state. The program is
compiled and its field widths are found before the clock starts; it starts with an empty store, and with
no menus. `offered` counts successors the store was asked about, new or not. `limit` is the machine's:
20 million distinct random states of the same size put into the same store by the same code, from empty.
`equal` is the same with only as many states as the row has: a small store stays in the processor's cache,
and there the search has to do without waiting for memory too. `bare` is an open-addressing table of
states and nothing else, with as many states as `equal`. Processor time, the best of three; runs shorter
than 0.2 s are repeated.

program   model reductions           states   M/s  B/state  offered/state  limit M/s  search/limit  equal M/s  search/equal  bare M/s";

/// Too many for any cache.
const LIMIT_STATES: u64 = 20_000_000;

/// How fast a large store takes states of each size, measured once.
#[derive(Default)]
pub struct Limit(BTreeMap<usize, f64>);

impl Limit {
    /// Millions of states of that many words a second.
    fn rate(&mut self, words: usize) -> f64 {
        *self.0.entry(words).or_insert_with(|| {
            let best = (0..3).map(|_| fill_store(words, LIMIT_STATES));
            best.map(|m| millions_a_second(m.states, m.time))
                .fold(0.0, f64::max)
        })
    }
}

fn millions_a_second(n: u64, time: Duration) -> f64 {
    n as f64 / time.as_secs_f64().max(1e-9) / 1e6
}

/// 100 million random states in one store: how fast, how large, and the most memory the process had.
pub fn hundred_million() -> String {
    let m = fill_store(2, 100_000_000);
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    let peak = match peak_memory() {
        Some(bytes) => format!("{:.2} GB at most held by the process", gigabytes(bytes)),
        None => "the system does not tell the process's peak".to_string(),
    };
    format!(
        "{} states of {} bytes: {:.1} s, {:.1} bytes per state with parent and index, {:.2} GB; {peak}",
        m.states,
        m.words * 8,
        m.time.as_secs_f64(),
        m.bytes_per_state(),
        gigabytes(m.bytes),
    )
}

/// The most memory this process ever held, as the kernel counts it.
fn peak_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|l| l.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// The rows of one program under one model: with all reductions, without each, without any; each
/// beside a large store, and the store and a bare table with as many states of the same size. Times are
/// of the processor, not of the clock on the wall, and the best of three runs counts: what else the
/// machine does only makes runs slower.
pub fn rows(
    name: &str,
    instance: &Instance,
    model: MemoryModel,
    ablations: bool,
    limit: &mut Limit,
) -> Vec<String> {
    // Processor time comes in ticks of some milliseconds: short runs are repeated and averaged.
    let best = |run: &dyn Fn() -> Option<Measured>| {
        let averaged = (0..3).filter_map(|_| {
            let mut first = run()?;
            let (mut total, mut runs) = (first.time, 1);
            while total < LONG_ENOUGH && runs < 10_000 {
                total += run()?.time;
                runs += 1;
            }
            first.time = total / runs;
            Some(first)
        });
        averaged.min_by_key(|m| m.time)
    };
    let mut rows = Vec::new();
    let configurations = [
        (true, true, true, "all"),
        (true, true, false, "all, no shortcuts"),
        (true, false, true, "no dead registers"),
        (false, true, true, "no chaining"),
        (false, false, true, "neither"),
    ];
    let measured = if ablations { configurations.len() } else { 2 };
    for (chaining, dead_registers, shortcuts, what) in configurations.into_iter().take(measured) {
        let reductions = Reductions {
            chaining,
            dead_registers,
            // What is measured is how fast states are made, so none are left out.
            persistent: false,
            symmetry: false,
        };
        let control = || Control::unlimited().with_timeout(Some(Duration::from_secs(120)));
        let prepared = Prepared::new(instance, model, reductions, &control()).ok();
        let measured = prepared.and_then(|p| best(&|| p.search(shortcuts, &control()).ok()));
        let Some(m) = measured else {
            rows.push(format!(
                "{name:8} {:5} {what:19} not measured: a violation, or no end",
                model.keyword()
            ));
            continue;
        };
        let store = best(&|| Some(fill_store(m.words, m.states)));
        let bare = best(&|| Some(fill_bare_table(m.words, m.states)));
        let rate = |m: Option<Measured>| m.map_or(0.0, |m| millions_a_second(m.states, m.time));
        let (search, of_limit, equal) = (rate(Some(m)), limit.rate(m.words), rate(store));
        rows.push(format!(
            "{name:9} {:5} {what:19} {:9} {search:5.2} {:8.1} {:14.2} {of_limit:10.2} {:12.0}% {equal:10.2} {:12.0}% {:9.2}",
            model.keyword(),
            m.states,
            m.bytes_per_state(),
            m.offered as f64 / m.states.max(1) as f64,
            100.0 * search / of_limit.max(1e-9),
            100.0 * search / equal.max(1e-9),
            rate(bare),
        ));
    }
    rows
}

/// The programs that are searched by several workers, as `.wtl`.
pub const CORES: [(&str, &str); 2] = [
    ("lamport5", include_str!("bench/lamport5.wtl")),
    ("filter5", include_str!("bench/filter5.wtl")),
];

/// What is measured, and the head of the table.
pub const CORES_HEAD: &str = "\
A row is a breadth-first search that ends after 10 million states at the latest (100 with `--hundred-million`), on one worker and then on several,
the question asked in every state; the better of two turns. `wall` is time on the wall, which says something
only on a machine that does nothing else; `processor` is what all threads of the process took together, to a hundredth of a
second. Of so many workers on as many free cores one can expect at most workers × processor of one / processor of all.
`tree` is with compressed states. `B/state` counts everything the search holds. `apart` is as many searches as workers, each alone with
its own states, at the same time: what the machine gives to those who share nothing.

program   model workers     states    wall s  processor s   M/s wall  times faster  at most  B/state";

/// States after which a search has been long enough.
pub const CORES_STATES: u64 = 10_000_000;

/// The processor time of all threads of the process, in hundredths of a second.
fn process_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may have blanks in it.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis(10 * (user + system)))
}

/// How a search of a row goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    Tree,
    Apart,
}

/// The rows of one program under one model.
pub fn cores_rows(name: &str, instance: &Instance, model: MemoryModel, states: u64) -> Vec<String> {
    let question = instance.questions.first();
    let view = Watched::of_question(instance, question);
    let plan = Subject {
        name: "explicit",
        instance,
        model,
        contents: &EXACT,
        view: &view,
        reductions: Reductions {
            // What is measured is how fast states are made, so none are left out.
            persistent: false,
            symmetry: false,
            ..Reductions::ALL
        },
        order: Order::BreadthFirst,
        most_buffered: 6,
        compress: false,
    };
    let search = |workers: usize, compress: bool| {
        let watch = || Watch {
            question,
            code: None,
        };
        let control = Control::unlimited()
            .with_budget(Some(states / 4096 * 1000))
            .with_timeout(Some(Duration::from_secs(3600)))
            .with_workers(workers);
        let mut sizes = Sizes::guess(instance, model);
        let plan = Subject { compress, ..plan };
        let outcome = rounds::run(&plan, &mut sizes, &control, watch, |_, _, _| ()).ok()?;
        Some(outcome.effort)
    };
    // States and bytes of all, time on the wall and of the processor.
    let measure = |(workers, way): (usize, Way)| {
        let (wall, before) = (Instant::now(), process_time());
        let efforts: Vec<Progress> = match way {
            Way::Plain | Way::Tree => vec![search(workers, way == Way::Tree)?],
            Way::Apart => std::thread::scope(|scope| {
                let all: Vec<_> = (0..workers)
                    .map(|_| scope.spawn(|| search(1, false)))
                    .collect();
                let each = all.into_iter().map(|one| one.join().ok()?);
                each.collect::<Option<_>>()
            })?,
        };
        let processor = process_time()?.saturating_sub(before?);
        let states: u64 = efforts.iter().map(|e| e.states).sum();
        let memory: u64 = efforts.iter().map(|e| e.memory).sum();
        Some((wall.elapsed(), processor, states, memory))
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut ways = vec![(1, Way::Plain), (2, Way::Plain)];
    ways.extend((cores > 2).then_some((cores, Way::Plain)));
    ways.extend([(2, Way::Apart), (1, Way::Tree), (2, Way::Tree)]);
    // Each in turn, twice: what else the machine does is likely to hit all of them.
    let turns = [(); 2].map(|()| ways.iter().map(|way| measure(*way)).collect::<Vec<_>>());
    let best = |i: usize| {
        let all = turns.iter().filter_map(|t| t[i]);
        all.min_by_key(|(wall, ..)| *wall)
    };
    let rate = |states: u64, time: Duration| states as f64 / time.as_secs_f64().max(1e-9);
    let Some((wall, processor, states, _)) = best(0) else {
        return vec![format!("{name:9} {:5} not measured", model.keyword())];
    };
    let (rate_of_one, work_of_one) = (rate(states, wall), rate(states, processor));
    let row = |(i, (workers, way)): (usize, &(usize, Way))| {
        let (wall, processor, states, memory) = best(i)?;
        let faster = rate(states, wall) / rate_of_one;
        let at_most = *workers as f64 * rate(states, processor) / work_of_one;
        let kind = match way {
            Way::Plain => "",
            Way::Tree => "tree",
            Way::Apart => "apart",
        };
        Some(format!(
            "{name:9} {:5} {workers:2} {kind:5} {states:9} {:9.2} {:12.2} {:10.2} {faster:13.2} {at_most:8.2} {:8.2}",
            model.keyword(),
            wall.as_secs_f64(),
            processor.as_secs_f64(),
            millions_a_second(states, wall),
            memory as f64 / states.max(1) as f64,
        ))
    };
    ways.iter().enumerate().filter_map(row).collect()
}
