//! Remembered menus and diamonds closed once, against the search that runs every step and offers every
//! successor: breadth-first the same states, numbers and parents.

use crate::common::{Taste, rng, sample};
use wattle_evidence::Control;
use wattle_memory::MemoryModel;
use wattle_memory::compiled::{Flaw, Machine, Menus, Ranges, Reductions, Watched};
use wattle_memory::content::EXACT;
use wattle_model::Instance;
use wattle_search::Order;
use wattle_search::explore::{Count, Finished, Observer, Search};
use wattle_search::store::hash;

pub struct Nothing;

impl Observer for Nothing {
    fn look(&mut self, _: &Machine<'_>, _: &[u64]) -> Result<bool, Flaw> {
        Ok(false)
    }

    fn fork(&self) -> Self {
        Nothing
    }
}

/// Everything a search knows when it ends.
#[derive(Debug, PartialEq)]
struct Seen {
    ended: Finished,
    states: Vec<(Vec<u64>, u32)>,
    full: Vec<bool>,
    offered: u64,
    count: Count,
}

fn search(machine: &Machine<'_>, order: Order, shortcuts: bool) -> Option<Seen> {
    search_with(machine, order, shortcuts, 1, Nothing)
}

fn search_with(
    machine: &Machine<'_>,
    order: Order,
    shortcuts: bool,
    workers: usize,
    mut look: impl Observer,
) -> Option<Seen> {
    let mut search = Search::new(machine, order).ok()?;
    search.shortcuts = shortcuts;
    search.worth_it = 3;
    let control = Control::unlimited().with_workers(workers);
    let ended = search.run(&mut look, &control);
    let numbers = 0..search.store.len() as u32;
    let states = numbers.map(|i| (search.store.state(i).to_vec(), search.store.parent(i)));
    Some(Seen {
        ended,
        states: states.collect(),
        full: search.notes.full.clone(),
        offered: search.count.successors,
        count: search.count,
    })
}

/// Searches with wider and wider fields until every value fits.
fn both(
    instance: &Instance,
    model: MemoryModel,
    reductions: Reductions,
    order: Order,
) -> Option<(Seen, Seen)> {
    let view = Watched::of_question(instance, instance.questions.first());
    let mut ranges = Ranges::infer(instance);
    let slots = vec![3; instance.threads.len()];
    loop {
        let machine =
            Machine::new(instance, model, &view, reductions, &EXACT, &ranges, &slots).ok()?;
        let plain = search(&machine, order, false)?;
        if let Finished::Narrow(slot, value) = plain.ended {
            let short = search(&machine, order, true)?;
            assert_eq!(short.ended, plain.ended);
            ranges.widen(slot, machine.type_of(slot), value);
            continue;
        }
        return Some((plain, search(&machine, order, true)?));
    }
}

#[test]
fn the_states_their_numbers_and_their_parents_are_the_same() {
    let mut rng = rng(5);
    let (mut all, mut offered) = (0, 0);
    for number in 1..=4_000 {
        let s = sample(&mut rng, Taste::number(number));
        let Ok(instance) = s.program().instance() else {
            continue;
        };
        for model in MemoryModel::ALL {
            for reductions in [Reductions::ALL, Reductions::NONE] {
                let breadth_first = both(&instance, model, reductions, Order::BreadthFirst);
                let depth_first = both(&instance, model, reductions, Order::DepthFirst);
                let shown = || wattle_model::print::to_wtl(&s.program());
                if let Some((plain, short)) = breadth_first {
                    assert_eq!(plain.ended, short.ended, "{model}\n{}", shown());
                    // A fault ends a search in the middle of a batch.
                    if plain.ended == Finished::Exhausted {
                        assert_eq!(plain.states, short.states, "{model}\n{}", shown());
                        assert_eq!(plain.full, short.full, "{model}\n{}", shown());
                    }
                    assert!(short.offered <= plain.offered);
                    all += plain.offered;
                    offered += short.offered;
                }
                if let Some((plain, short)) = depth_first {
                    assert_eq!(plain.ended, short.ended, "{model}\n{}", shown());
                    assert_eq!(plain.states, short.states, "{model}\n{}", shown());
                }
            }
        }
    }
    println!("{all} successors, {offered} offered");
    assert!(
        offered * 10 < all * 9,
        "{offered} of {all}: hardly any sleep"
    );
}

/// Ends the search at states with a hash like this.
pub struct Marked(pub u64);

impl Observer for Marked {
    fn look(&mut self, _: &Machine<'_>, state: &[u64]) -> Result<bool, Flaw> {
        Ok(hash(state) % 512 == self.0)
    }

    fn fork(&self) -> Self {
        Marked(self.0)
    }
}

/// However many workers there are, and wherever the search ends.
#[test]
fn any_number_of_workers_does_the_same() {
    let mut rng = rng(11);
    let (mut ends, mut left_out) = ([0; 3], 0);
    for number in 1..=240 {
        let s = sample(&mut rng, Taste::number(number));
        let Ok(instance) = s.program().instance() else {
            continue;
        };
        let view = Watched::of_question(&instance, instance.questions.first());
        let ranges = Ranges::infer(&instance);
        let slots = vec![2; instance.threads.len()];
        for model in [MemoryModel::Sc, MemoryModel::Tso] {
            for reductions in [Reductions::ALL, Reductions::NONE] {
                let machine =
                    Machine::new(&instance, model, &view, reductions, &EXACT, &ranges, &slots);
                let Ok(machine) = machine else { continue };
                let shown = || wattle_model::print::to_wtl(&s.program());
                let all = |workers| {
                    let nothing =
                        search_with(&machine, Order::BreadthFirst, true, workers, Nothing)?;
                    let some = Marked(number % 512);
                    let some = search_with(&machine, Order::BreadthFirst, true, workers, some)?;
                    let plain =
                        search_with(&machine, Order::BreadthFirst, false, workers, Nothing)?;
                    Some([nothing, some, plain])
                };
                let (Some(mut one), Some(mut two), Some(mut three)) = (all(1), all(2), all(3))
                else {
                    continue;
                };
                let others = two.iter_mut().chain(&mut three);
                for seen in one.iter_mut().chain(others) {
                    left_out += seen.count.left_out;
                    match seen.ended {
                        Finished::Exhausted => ends[0] += 1,
                        Finished::Halted(last) => {
                            // What comes after the one it ends with depends on how much was done at once.
                            seen.states.truncate(last as usize + 1);
                            (seen.offered, seen.count) = (0, Count::default());
                            ends[1] += 1;
                        }
                        _ => ends[2] += 1,
                    }
                    if seen.ended != Finished::Exhausted {
                        seen.full.clear();
                    }
                }
                assert_eq!(one, two, "{model}\n{}", shown());
                assert_eq!(one, three, "{model}\n{}", shown());
            }
        }
    }
    println!("{ends:?} ends; {left_out} states with events left out");
    assert!(
        ends.iter().all(|n| *n > 50) && left_out > 1_000,
        "{ends:?} {left_out}"
    );
}

/// Numbers of menus mean the same to all workers, or nothing.
#[test]
fn what_one_worker_learnt_all_know() {
    let text = "shared x: 0..2, y: 0..2;
        thread p { x = 1; y = 2; }
        thread q { y = 1; x = 2; }
        never x == 1 && y == 1;";
    let program = wattle_syntax::wtl::parse(text).program;
    let instance = program.and_then(|p| p.instance().ok()).expect("it is fine");
    let view = Watched::of_question(&instance, instance.questions.first());
    let ranges = Ranges::infer(&instance);
    let exact = Reductions::NONE;
    let machine = Machine::new(
        &instance,
        MemoryModel::Tso,
        &view,
        exact,
        &EXACT,
        &ranges,
        &[2, 2],
    );
    let machine = machine.expect("it is small");
    let mut search = Search::new(&machine, Order::BreadthFirst).expect("it begins");
    search.run(&mut Nothing, &Control::unlimited());
    let state = |n: u32| [search.store.state(n)[0]];
    let mut notes = machine.notes();
    let mut workers = [0, 1, 2].map(|worker| Menus::<1>::new(&machine, worker, 3));
    let mut learn = |menus: &mut Menus<1>, t: usize, n: u32| {
        let found = menus.find(&machine, t, &state(n), &mut notes);
        found.expect("nothing is too narrow")
    };
    let agree =
        |workers: &mut [Menus<1>; 3]| Menus::agree(&mut workers.iter_mut().collect::<Vec<_>>());
    let number = learn(&mut workers[1], 0, 0);
    assert!(!workers[0].knows(number));
    agree(&mut workers);
    for menus in &workers {
        assert!(menus.knows(number));
        assert_eq!(menus.menu(number).mask, workers[1].menu(number).mask);
    }
    // They learn different things under the same number: nobody is to believe it.
    let last = search.store.len() as u32 - 1;
    let two = [
        learn(&mut workers[0], 1, 0),
        learn(&mut workers[2], 0, last),
    ];
    assert_eq!(two[0], two[1]);
    agree(&mut workers);
    for menus in &workers {
        assert!(!menus.knows(two[0]) && !menus.knows(number));
    }
    // One of them is followed.
    let known = learn(&mut workers[0], 1, 0);
    assert!(workers.iter().all(|menus| menus.knows(known)));
}
