//! Compressed states against states as they are: the same states, the same runs, for any number of workers.

use crate::common::{Taste, rng, sample};
use crate::shortcuts::{Marked, Nothing};
use std::collections::BTreeSet;
use wattle_evidence::Control;
use wattle_memory::compiled::{Machine, Ranges, Reductions, Watched};
use wattle_memory::content::EXACT;
use wattle_memory::{Event, MemoryModel};
use wattle_search::Order;
use wattle_search::explore::{Finished, Observer, Search};

/// What a search knows when it ends, and the run to where it ended.
#[derive(Debug, PartialEq)]
struct Seen {
    ended: Finished,
    states: BTreeSet<Vec<u64>>,
    count: usize,
    run: Option<Vec<Event>>,
}

fn search(
    machine: &Machine<'_>,
    compress: bool,
    workers: usize,
    mut look: impl Observer,
) -> Option<Seen> {
    let mut search = Search::new(machine, Order::BreadthFirst).ok()?;
    search.worth_it = 3;
    if compress {
        search.compress();
    }
    let control = Control::unlimited().with_workers(workers);
    let ended = search.run(&mut look, &control);
    let mut states = BTreeSet::new();
    search.all_until(|state| {
        states.insert(state.to_vec());
        false
    });
    let run = match ended {
        Finished::Halted(number) => search.run_to(number),
        Finished::Fault { state, .. } => search.run_to_fault(state),
        _ => None,
    };
    let found = matches!(ended, Finished::Halted(_) | Finished::Fault { .. });
    assert_eq!(found, run.is_some(), "a run was not rebuilt");
    let exhausted = ended == Finished::Exhausted;
    Some(Seen {
        ended,
        // What comes after the end depends on how much was done at once.
        count: if exhausted { search.len() } else { 0 },
        states: if exhausted { states } else { BTreeSet::new() },
        run: run.map(|run| run.events),
    })
}

#[test]
fn compressed_states_are_the_same() {
    let mut rng = rng(23);
    let (mut runs, mut longest, mut owed) = (0, 0, 0);
    for number in 1..=300 {
        let s = sample(&mut rng, Taste::number(number));
        let Ok(instance) = s.program().instance() else {
            continue;
        };
        let view = Watched::of_question(&instance, instance.questions.first());
        let ranges = Ranges::infer(&instance);
        let slots = vec![2; instance.threads.len()];
        for model in [MemoryModel::Sc, MemoryModel::Tso] {
            let local = Reductions {
                persistent: false,
                ..Reductions::ALL
            };
            for reductions in [local, Reductions::NONE, Reductions::ALL] {
                let machine =
                    Machine::new(&instance, model, &view, reductions, &EXACT, &ranges, &slots);
                let Ok(machine) = machine else { continue };
                let shown = || wattle_model::print::to_wtl(&s.program());
                let all = |compress, workers| {
                    let nothing = search(&machine, compress, workers, Nothing)?;
                    let some = search(&machine, compress, workers, Marked(number % 512))?;
                    Some([nothing, some])
                };
                let (Some(plain), Some(one)) = (all(false, 1), all(true, 1)) else {
                    continue;
                };
                for workers in [2, 3] {
                    let several = all(true, workers);
                    assert_eq!(several.as_ref(), Some(&one), "{model}\n{}", shown());
                }
                // Which states are expanded again is decided in another way.
                match machine.leaves_out() {
                    false => assert_eq!(plain, one, "{model}\n{}", shown()),
                    true => owed += usize::from(plain[0].count != one[0].count),
                }
                for run in one.iter().filter_map(|seen| seen.run.as_ref()) {
                    runs += 1;
                    longest = longest.max(run.len());
                }
            }
        }
    }
    println!("{runs} runs, the longest of {longest} events; {owed} times other states");
    assert!(runs > 100 && longest > 12, "{runs} {longest}");
}
