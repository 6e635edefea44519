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

use super::local::{extent, for_each_fact};
use rustc_hash::FxHashMap;
use wattle_evidence::task::Task;
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact, Thread};
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
        self.shapes[class].of_shape[i]
            .get(shape as usize)
            .copied()
            .flatten()
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

/// Cells that one names where the other names another.
fn differences(a: &Thread, b: &Thread) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (a, b) in a.steps.iter().zip(&b.steps) {
        let cells = match (&a.action, &b.action) {
            (Action::Load { place: a, .. }, Action::Load { place: b, .. })
            | (Action::Store { place: a, .. }, Action::Store { place: b, .. }) => (a, b),
            (_, _) => continue,
        };
        if let (Address::Cell(c), Address::Cell(d)) = cells
            && c != d
            && !pairs.contains(&(c.index(), d.index()))
            && !pairs.contains(&(d.index(), c.index()))
        {
            pairs.push((c.index(), d.index()));
        }
    }
    pairs
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
        let cells = (0..instance.cells.len()).all(|c| {
            let there = &instance.cells[self.cell(c)];
            instance.cells[c].ty == there.ty
        });
        let threads = instance.threads.iter().enumerate();
        let mut threads = threads.map(|(t, thread)| (thread, &instance.threads[self.thread(t)]));
        cells
            && threads.all(|(thread, there)| self.renames(thread, there))
            && task.question().is_none_or(|q| {
                let before = words(&q.target, &|t| t, &|c| c);
                let after = words(&q.target, &|t| self.thread(t), &|c| self.cell(c));
                before.is_some() && before == after
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

    fn action(&self, action: &Action<RegisterId, Address>) -> Option<Action<RegisterId, Address>> {
        let mut action = action.clone();
        match &mut action {
            Action::Load { place, .. } | Action::Store { place, .. } => match place {
                Address::Cell(c) => *c = CellId::new(self.cell(c.index())),
                Address::Computed { .. } => {
                    if extent(place).any(|c| self.cell(c) != c) {
                        return None;
                    }
                }
            },
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => {}
        }
        Some(action)
    }
}

/// A condition, renamed, in an order of operands that does not depend on names' order in the text. None if
/// it has an operation that may have no value.
fn words(
    e: &Expr<Fact>,
    thread: &dyn Fn(usize) -> usize,
    cell: &dyn Fn(usize) -> usize,
) -> Option<Vec<String>> {
    let mut indexed = false;
    for_each_fact(e, &mut |fact| {
        indexed |= matches!(fact, Fact::CellAt { .. })
    });
    if indexed {
        return None;
    }
    let name = |t: ThreadId| thread(t.index());
    let part = |e: &Expr<Fact>| words(e, thread, cell).map(|w| w.join(" "));
    Some(match e {
        Expr::Const(c) => vec![format!("{c}")],
        Expr::Atom(Fact::Cell(c)) => vec![format!("cell {}", cell(c.index()))],
        Expr::Atom(Fact::Register(t, r)) => vec![format!("register {} {}", name(*t), r.index())],
        Expr::Atom(Fact::At(t, at)) => vec![format!("at {} {at:?}", name(*t))],
        Expr::Atom(Fact::CellAt { .. }) => return None,
        Expr::Unary(Op1::Not, a) => vec!["not (".into(), part(a)?, ")".into()],
        Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, _) => return None,
        Expr::Binary(op, a, b) => {
            let sorted = match op {
                Op2::And | Op2::Or => {
                    let mut all = Vec::new();
                    let mut work = vec![&**a, &**b];
                    while let Some(e) = work.pop() {
                        match e {
                            Expr::Binary(inner, a, b) if inner == op => {
                                work.extend([&**a, &**b]);
                            }
                            other @ (Expr::Const(_)
                            | Expr::Atom(_)
                            | Expr::Unary(..)
                            | Expr::Binary(..)
                            | Expr::Ite(..)) => all.push(part(other)?),
                        }
                    }
                    all.sort();
                    all
                }
                Op2::Eq | Op2::Ne => {
                    let mut both = vec![part(a)?, part(b)?];
                    both.sort();
                    both
                }
                Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge => vec![part(a)?, part(b)?],
                Op2::Add
                | Op2::Sub
                | Op2::Mul
                | Op2::Div
                | Op2::Rem
                | Op2::BitAnd
                | Op2::BitOr
                | Op2::BitXor
                | Op2::Shl
                | Op2::Shr => return None,
            };
            vec![format!("{op:?} ({})", sorted.join(") ("))]
        }
        Expr::Ite(c, a, b) => vec![format!("if ({}) ({}) ({})", part(c)?, part(a)?, part(b)?)],
    })
}
