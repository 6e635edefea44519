//! What two threads of a state look like, and whether a set of views has it.

use super::assume::Logic;
use super::witness::has;
use super::world::{ANY, Frame, NONE, Pending, Pos, ROOM, Sort, Store, World};
use super::{AuditError, Views, model_of};
use rustc_hash::FxHashSet;
use wattle_evidence::related::{Met, Stored};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;

/// A set of views.
pub struct Looks<'a> {
    frame: Frame<'a>,
    /// How many cells the system has, without witnesses.
    cells: usize,
    known: FxHashSet<World>,
}

/// Worlds that a state may stand for, with what is not known of it; more are not gone through.
const MOST: usize = 4_000;

impl<'a> Looks<'a> {
    pub fn new(
        system: &'a ArraySystem,
        model: MemoryModel,
        certificate: &Views,
    ) -> Result<Self, AuditError> {
        let model = model_of(system, model, certificate.model, &certificate.cells)?;
        let frame = Frame::new(system, model, certificate)?;
        let mut known = FxHashSet::default();
        for bytes in certificate.each()? {
            known.insert(frame.canonical(&frame.read(bytes)?));
        }
        let cells = system.cells.len();
        Ok(Looks {
            frame,
            cells,
            known,
        })
    }

    /// Two threads that look like no view.
    pub fn excludes(&self, state: &Met<'_>) -> Option<String> {
        for x in 1..=state.threads {
            for y in x + 1..=state.threads {
                if !self.may_be_known(state, [x, y]) {
                    return Some(format!("threads {x} and {y} look like no view"));
                }
            }
        }
        None
    }

    fn may_be_known(&self, state: &Met<'_>, two: [u8; 2]) -> bool {
        let Some(world) = self.world(state, two) else {
            return true;
        };
        // No numbers are compared here.
        let logic = Logic::new(&self.frame, true, &|_| false);
        // What is not known may be anything; a store that stands alone may stand for several.
        let unknown = world.memory.iter().flatten().filter(|p| **p == ANY).count();
        if unknown > 4 {
            return true;
        }
        let all = logic.settled(world);
        if all.len() > MOST || logic.cramped.get() {
            return true;
        }
        all.into_iter().any(|w| self.repeated(w, 0))
    }

    fn repeated(&self, w: World, from: usize) -> bool {
        let entries: Vec<(usize, usize)> = (0..w.pending.len())
            .flat_map(|t| (0..w.pending[t].len()).map(move |i| (t, i)))
            .collect();
        let Some((t, i)) = entries.get(from).copied() else {
            return self.known.contains(&self.frame.canonical(&w));
        };
        let mut more = w.clone();
        more.pending[t][i].repeated = true;
        self.repeated(w, from + 1) || self.repeated(more, from + 1)
    }

    /// The two threads with all that is known; nothing if a buffer cannot be told.
    fn world(&self, state: &Met<'_>, two: [u8; 2]) -> Option<World> {
        let frame = &self.frame;
        let mut w = frame.blank(2);
        let mut numbers: Vec<i64> = frame.anchors.clone();
        let elements = |arity: u8| -> Vec<Vec<u8>> {
            match arity {
                0 => vec![Vec::new()],
                1 => two.iter().map(|t| vec![*t]).collect(),
                _ => {
                    let pairs = two
                        .iter()
                        .flat_map(|a| two.iter().map(move |b| vec![*a, *b]));
                    pairs.collect()
                }
            }
        };
        let cells: Vec<Vec<Option<i64>>> = frame
            .system
            .cells
            .iter()
            .enumerate()
            .map(|(c, cell)| {
                let all = elements(cell.arity).into_iter();
                let known = |of: Vec<u8>| (state.value)(c as u16, &of);
                match c < self.cells {
                    true => all.map(known).collect(),
                    false => vec![None],
                }
            })
            .collect();
        let buffers: Vec<&Vec<Vec<Stored>>> = two
            .iter()
            .map(|t| state.pending.get(usize::from(*t) - 1))
            .collect::<Option<_>>()?;
        let number = |c: usize| matches!(frame.sorts[c], Sort::Number(_));
        let counted = cells.iter().enumerate().filter(|(c, _)| number(*c));
        numbers.extend(counted.flat_map(|(_, values)| values.iter().flatten()));
        let stores = buffers.iter().flat_map(|b| b.iter().flatten());
        numbers.extend(stores.filter(|s| number(usize::from(s.0))).map(|s| s.2));
        numbers.sort_unstable();
        numbers.dedup();
        let rank = |v: i64| (numbers.partition_point(|n| *n < v) as Pos + 1) * ROOM;
        let thread = |t: u8| Pos::from(t) * ROOM;
        let position = |c: usize, v: i64| match frame.sorts[c] {
            Sort::Finite(_) => v as Pos,
            Sort::Thread if v == 0 => NONE,
            Sort::Thread => v as Pos * ROOM,
            Sort::Number(_) => rank(v),
        };
        w.me = two.map(thread).to_vec();
        w.anchors = frame.anchors.iter().map(|a| rank(*a)).collect();
        for (c, values) in cells.iter().enumerate() {
            for (element, v) in w.memory[c].iter_mut().zip(values) {
                *element = v.map_or(ANY, |v| position(c, v));
            }
        }
        for (t, buffer) in buffers.iter().enumerate() {
            for entry in *buffer {
                let store = |(cell, of, value): &Stored| Store {
                    cell: *cell,
                    of: of.iter().map(|t| thread(*t)).collect(),
                    value: position(usize::from(*cell), *value),
                };
                let stores: Vec<Store> = entry.iter().map(store).collect();
                match w.pending[t].last_mut() {
                    Some(p) if p.stores == stores => p.repeated = true,
                    _ => w.pending[t].push(Pending {
                        stores,
                        repeated: false,
                    }),
                }
            }
        }
        if let Some(witness) = &frame.witness {
            let cell = usize::from(witness.cell);
            let values = (1..=state.threads).map(|t| (state.value)(witness.cell, &[t]));
            let values: Vec<i64> = values.collect::<Option<_>>()?;
            let all = (1..=state.threads).zip(values);
            let mut all = all.filter(|(_, v)| has(witness, position(cell, *v)));
            let first = all.next().map(|(t, _)| t);
            let last = all.next_back().map(|(t, _)| t).or(first);
            frame.set_witnesses(&mut w, [first, last].map(|t| t.map_or(NONE, thread)));
        }
        for (cell, of) in frame.named(&w) {
            let value = (state.value)(cell, &[(of / ROOM) as u8]);
            let value = value.map_or(ANY, |v| position(usize::from(cell), v));
            w.looked.push((cell, vec![of], value));
        }
        Some(w)
    }
}
