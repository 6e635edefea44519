//! Threads that can change places: of states that differ only in who is who one is enough.
//!
//! A *swap* exchanges two threads, and cells in pairs. It is an automorphism if the program with every thread and
//! cell renamed by it is the same program, and the question the same question. That is what is checked:
//! the program is renamed and compared. (Which cells to pair is guessed from where two threads differ.) Swaps of
//! neighbours generate all permutations of a class of threads.
//!
//! *Lemma.* If p is an automorphism and a bad state or fault can be reached from s, then one can from p(s), by
//! the permuted run. So if every event of the stored state of an orbit leads to an orbit that is stored, nothing bad can
//! be reached from the initial states. The events that are enough in the stored state ([`super::enough`]) are enough
//! there; that nobody is put off for ever is seen from the numbers of stored states, in the same way.
//!
//! The state that is stored is the one whose threads are sorted; that it is the same for all of an orbit
//! matters for nothing but their number.

mod guessed;

use guessed::differences;
use rustc_hash::FxHashMap;
use wattle_evidence::task::Task;
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact, Thread, balanced};
use wattle_model::{CellId, Expr, Instance, LocationId, Op1, Op2, RegisterId, ThreadId};

/// Threads that can change places, and the cells that go with each, in the same order.
#[derive(Debug, Default)]
pub struct Class {
    pub threads: Vec<usize>,
    pub own: Vec<Vec<usize>>,
}

/// A thread's part with its own cells numbered from 0: location, registers, pending stores.
pub type Shape = (LocationId, Vec<i64>, Vec<(Cell, i64)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    Own(usize),
    Shared(usize),
}

/// The classes of a program, and which parts are the same for different threads of a class.
#[derive(Debug, Default)]
pub struct Alike {
    pub classes: Vec<Class>,
    /// Per class.
    shapes: Vec<Shapes>,
}

#[derive(Debug, Default)]
struct Shapes {
    all: Vec<Shape>,
    numbers: FxHashMap<Shape, u32>,
    /// Per thread of the class: the shape of a part, the part of a shape.
    of_part: Vec<Vec<Option<u32>>>,
    of_shape: Vec<Vec<Option<u32>>>,
}

impl Alike {
    /// None if there are none.
    pub fn new(task: &Task<'_>) -> Option<Self> {
        if task.deadlock {
            return None;
        }
        let mut classes: Vec<Class> = Vec::new();
        for t in 0..task.instance.threads.len() {
            let joined = classes.last_mut().is_some_and(|c| c.join(task, t));
            if !joined {
                classes.push(Class {
                    threads: vec![t],
                    own: Vec::new(),
                });
            }
        }
        // The epochs of PSO are not told apart in shapes.
        let told = |c: &Class| task.model != MemoryModel::Pso || !fences(task.instance, c);
        classes.retain(|c| c.threads.len() > 1 && told(c));
        // Of two threads each may name what goes with the other. (Of three nobody does: the other two change places, too.)
        for class in &mut classes {
            if let [a, b] = &mut class.own[..] {
                (*a, *b) = ([&a[..], b].concat(), [&b[..], a].concat());
            }
        }
        let shapes = |c: &Class| Shapes {
            of_part: vec![Vec::new(); c.threads.len()],
            of_shape: vec![Vec::new(); c.threads.len()],
            ..Shapes::default()
        };
        let shapes = classes.iter().map(shapes).collect();
        (!classes.is_empty()).then_some(Alike { classes, shapes })
    }

    pub fn shape(&self, class: usize, number: u32) -> &Shape {
        &self.shapes[class].all[number as usize]
    }

    /// The number of the shape of a part of the i-th thread of a class.
    pub fn number(
        &mut self,
        class: usize,
        i: usize,
        part: u32,
        make: impl FnOnce(&dyn Fn(CellId) -> Cell) -> Shape,
    ) -> u32 {
        let shapes = &mut self.shapes[class];
        if let Some(Some(number)) = shapes.of_part[i].get(part as usize) {
            return *number;
        }
        let own = &self.classes[class].own[i];
        let shape = make(
            &|c: CellId| match own.iter().position(|o| *o == c.index()) {
                Some(k) => Cell::Own(k),
                None => Cell::Shared(c.index()),
            },
        );
        let next = shapes.all.len() as u32;
        let number = *shapes.numbers.entry(shape.clone()).or_insert(next);
        if number == next {
            shapes.all.push(shape);
        }
        put(&mut shapes.of_part[i], part, number);
        put(&mut shapes.of_shape[i], number, part);
        number
    }

    /// The i-th thread's part of a shape, if it has been met.
    pub fn part(&self, class: usize, i: usize, shape: u32) -> Option<u32> {
        *self.shapes[class].of_shape[i].get(shape as usize)?
    }

    pub fn is_part(&mut self, class: usize, i: usize, shape: u32, part: u32) {
        put(&mut self.shapes[class].of_part[i], part, shape);
        put(&mut self.shapes[class].of_shape[i], shape, part);
    }

    /// A cell of a shape, as the i-th thread has it.
    pub fn cell(&self, class: usize, i: usize, cell: Cell) -> CellId {
        match cell {
            Cell::Own(k) => CellId::new(self.classes[class].own[i][k]),
            Cell::Shared(c) => CellId::new(c),
        }
    }
}

fn put(list: &mut Vec<Option<u32>>, at: u32, value: u32) {
    if list.len() <= at as usize {
        list.resize(at as usize + 1, None);
    }
    list[at as usize] = Some(value);
}

fn fences(instance: &Instance, class: &Class) -> bool {
    let store = Action::Fence(wattle_model::Fence::Store);
    let threads = class.threads.iter().map(|t| &instance.threads[*t]);
    threads
        .flat_map(|t| &t.steps)
        .any(|step| step.action == store)
}

impl Class {
    /// Takes the thread in, if it can change places with the last one.
    fn join(&mut self, task: &Task<'_>, t: usize) -> bool {
        let Some(last) = self.threads.last().copied() else {
            return false;
        };
        let threads = &task.instance.threads;
        let pairs = differences(&threads[last], &threads[t]);
        let (mine, new): (Vec<usize>, Vec<usize>) = pairs.iter().copied().unzip();
        let swap = Swap {
            threads: (last, t),
            pairs,
        };
        let fits = self.own.last().is_none_or(|own| *own == mine);
        if !fits || !swap.is_automorphism(task) {
            return false;
        }
        if self.own.is_empty() {
            self.own.push(mine);
        }
        self.threads.push(t);
        self.own.push(new);
        true
    }
}

struct Swap {
    threads: (usize, usize),
    pairs: Vec<(usize, usize)>,
}

impl Swap {
    fn thread(&self, t: usize) -> usize {
        match self.threads {
            (a, b) if t == a => b,
            (a, b) if t == b => a,
            (_, _) => t,
        }
    }

    fn cell(&self, c: usize) -> usize {
        let there = self.pairs.iter().find_map(|(a, b)| match c {
            c if c == *a => Some(*b),
            c if c == *b => Some(*a),
            _ => None,
        });
        there.unwrap_or(c)
    }

    fn is_automorphism(&self, task: &Task<'_>) -> bool {
        let instance = task.instance;
        let mut met = std::collections::BTreeSet::new();
        let mut all = self.pairs.iter().flat_map(|(a, b)| [*a, *b]);
        // Each cell is in one pair: the swap is its own inverse.
        if !all.all(|c| met.insert(c)) {
            return false;
        }
        let ty = |c: usize| instance.cells[c].ty;
        let cells = (0..instance.cells.len()).all(|c| ty(c) == ty(self.cell(c)));
        let threads = instance.threads.iter().enumerate();
        let mut threads = threads.map(|(t, thread)| (thread, &instance.threads[self.thread(t)]));
        cells
            && threads.all(|(thread, there)| self.renames(thread, there))
            && task.question().is_none_or(|q| {
                let after = self.condition(&q.target);
                // Renamed twice it is as before.
                let before = after.as_ref().and_then(|e| self.condition(e));
                let both = [before, after].map(|e| sorted(&e?));
                both[0].is_some() && both[0] == both[1]
            })
    }

    /// The one thread with its cells renamed is the other.
    fn renames(&self, thread: &Thread, there: &Thread) -> bool {
        let registers = thread.registers.iter().map(|r| (r.ty, r.init));
        let mut steps = thread.steps.iter().zip(&there.steps);
        registers.eq(there.registers.iter().map(|r| (r.ty, r.init)))
            && thread.steps.len() == there.steps.len()
            && thread.locations.len() == there.locations.len()
            && (thread.entry, &thread.atomic, &thread.direct)
                == (there.entry, &there.atomic, &there.direct)
            && steps.all(|(a, b)| {
                (a.source, a.target) == (b.source, b.target)
                    && self.action(&a.action).as_ref() == Some(&b.action)
            })
    }

    fn condition(&self, e: &Expr<Fact>) -> Option<Expr<Fact>> {
        let renamed = e.substitute(&mut |fact| match fact {
            Fact::Cell(c) => Ok(Expr::Atom(Fact::Cell(CellId::new(self.cell(c.index()))))),
            Fact::Register(t, r) => Ok(Expr::Atom(Fact::Register(self.id(*t), *r))),
            Fact::At(t, at) => Ok(Expr::Atom(Fact::At(self.id(*t), at.clone()))),
            Fact::CellAt { .. } | Fact::Seen(..) => Err(()),
        });
        renamed.ok()
    }

    fn id(&self, t: ThreadId) -> ThreadId {
        ThreadId::new(self.thread(t.index()))
    }

    fn action(&self, action: &Action<RegisterId, Address>) -> Option<Action<RegisterId, Address>> {
        let mut action = action.clone();
        if let Action::Load { place, .. } | Action::Store { place, .. } = &mut action {
            match place {
                Address::Cell(c) => *c = CellId::new(self.cell(c.index())),
                place if place.extent().any(|c| self.cell(c) != c) => return None,
                Address::Computed { .. } => {}
            }
        }
        Some(action)
    }
}

/// A condition with operands whose order does not matter in an order of their own. None if it has an operation that
/// may have no value.
fn sorted(e: &Expr<Fact>) -> Option<Expr<Fact>> {
    Some(match e {
        Expr::Const(_) | Expr::Atom(Fact::Cell(_) | Fact::Register(..) | Fact::At(..)) => e.clone(),
        Expr::Unary(Op1::Not, a) => Expr::unary(Op1::Not, sorted(a)?),
        Expr::Atom(Fact::CellAt { .. } | Fact::Seen(..))
        | Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, _) => return None,
        Expr::Binary(op @ (Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge), a, b) => {
            Expr::binary(*op, sorted(a)?, sorted(b)?)
        }
        Expr::Binary(op @ (Op2::And | Op2::Or | Op2::Eq | Op2::Ne), a, b) => {
            // What is nested in the same operator belongs to one list, but for comparisons.
            let nests = matches!(op, Op2::And | Op2::Or);
            let (mut all, mut work) = (Vec::new(), vec![&**b, &**a]);
            while let Some(e) = work.pop() {
                if let Expr::Binary(inner, a, b) = e
                    && nests
                    && inner == op
                {
                    work.extend([&**b, &**a]);
                } else {
                    all.push(sorted(e)?);
                }
            }
            all.sort();
            return balanced(all, |a, b| Expr::binary(*op, a, b));
        }
        // Arithmetic.
        Expr::Binary(..) => return None,
        Expr::Ite(c, a, b) => Expr::ite(sorted(c)?, sorted(a)?, sorted(b)?),
    })
}
