//! Robustness against TSO: a search for attacks (calin-2016 Theorem 10, Fig. 3.4) over SC runs.
//!
//! A row has one more column: what the attack is about so far, an *aside* ([`Aside`]), numbered like
//! everything else; what an event does to it is worked out once.
//!
//! An atomic block or a lock region is a unit: while a thread is inside, nobody else loads or writes,
//! so the thread runs alone (steps on registers and stores into buffers need nothing of it and can
//! come before), and the unit counts as touched as a whole once one of its accesses comes after the
//! attacker's load. Inside an atomic block an attack is complete only where the block ends: a block
//! that gets stuck was never entered. A fault ends the run.
//!
//! Two things make the search small. Steps that touch no memory are taken at once, as are those inside
//! an atomic block; here the lemma of the parent module is simpler, because nobody looks at states: a
//! step on registers commutes with every event of others, whatever becomes of the attack, and its
//! thread can neither attack nor be admitted without it. And what can no longer become an attack is
//! left: an attack ends with another thread's access of the delayed cell, so one must be ahead of a
//! thread that is not frozen (or lie behind, in a unit not yet admitted); it goes on from a load of a
//! cell that another thread may yet write; and the attacker reaches a load only where no step that
//! waits for an empty buffer comes before it. Where no thread has a store ahead that such a load may overtake, no
//! attack begins any more. What is *ahead* is read off the threads' graphs.
//!
//! Before an attack begins the rows are states of SC. Whoever also asks whether SC reaches something bad has
//! its question asked of these: then a step is taken at once only if the question does not see it, by the lemma of the
//! parent module. That whoever holds the lock runs alone loses no state: of the others only steps on registers
//! and fences are enabled meanwhile, which depend on nobody and could come before the lock was taken.

mod ahead;
mod aside;
mod registers;

use super::local::Reduction;
use super::local::seen::Seen;
use super::looked::Looked;
use super::moves::{self, Effect, Lock, Move, Moves, Through, exact_bounds};
use super::rows::{Rows, Stuck};
use crate::AuditError;
use ahead::{Ahead, waits};
use aside::{Admitted, Aside, Deed, Mark, Phase};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::task::Task;
use wattle_memory::{Exact, Fault, FaultKind, MemoryModel, Sc};
use wattle_model::Instance;
use wattle_model::graph::Action;

/// States between two polls.
const POLL: usize = 1 << 10;

/// Whether the program is robust against TSO, whatever its properties; gives the states seen.
pub fn audit_robustness(instance: &Instance, control: &Control<'_>) -> Result<u64, AuditError> {
    let task = Task {
        instance,
        model: MemoryModel::Sc,
        question: None,
        deadlock: false,
    };
    search(&task, false, control)
}

/// The same, and whether the task, of SC, has the answer that nothing bad is reached.
pub fn audit_under_sc(task: &Task<'_>, control: &Control<'_>) -> Result<u64, AuditError> {
    search(task, true, control)
}

fn search(task: &Task<'_>, answers: bool, control: &Control<'_>) -> Result<u64, AuditError> {
    let instance = task.instance;
    if (instance.threads.iter()).any(|t| t.buffered_section().is_some()) {
        let why = "an atomic section that keeps its stores buffered";
        return Err(AuditError::Refused(why.into()));
    }
    let alone = moves::alone(instance)?;
    let reduction = Reduction::of_registers(task, &Seen::of(task));
    let moves = Moves::new(&alone, &exact_bounds(instance), reduction)?;
    let mut search = Search {
        instance,
        task: answers.then_some(task),
        looked: Looked::new(task),
        moves,
        rows: Rows::new(instance.threads.len() + 2 + instance.cells.len()),
        asides: Vec::new(),
        numbers: FxHashMap::default(),
        known: FxHashMap::default(),
        ahead: Ahead::of_all(&instance.threads),
    };
    search.run(control)
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Becomes {
    Aside(u32),
    Nothing,
    Attack,
}

/// What an event leads to.
enum Next {
    Go,
    Stays,
    Attack,
}

struct Search<'i> {
    instance: &'i Instance,
    /// What is asked of states before an attack, if something is.
    task: Option<&'i Task<'i>>,
    looked: Looked<'i>,
    moves: Moves<'i, Sc, Exact>,
    /// A column for each thread, one for the lock, one for the aside, one for each cell.
    rows: Rows,
    asides: Vec<Rc<Aside>>,
    numbers: FxHashMap<Rc<Aside>, u32>,
    known: FxHashMap<(u32, u32, Deed), Becomes>,
    ahead: Vec<Ahead>,
}

impl Search<'_> {
    fn threads(&self) -> usize {
        self.instance.threads.len()
    }

    fn column(&self, cell: usize) -> usize {
        self.threads() + 2 + cell
    }

    fn aside(&self, row: &[u64]) -> u32 {
        self.rows.get(row, self.threads() + 1)
    }

    fn run(&mut self, control: &Control<'_>) -> Result<u64, AuditError> {
        let starts = wattle_memory::reference::starts(self.instance);
        let starts = starts.map_err(|e| AuditError::Refused(e.to_string()))?;
        let before = self.number(Aside {
            phase: Phase::Before,
            unit: BTreeMap::new(),
        });
        for start in &starts {
            self.fitting(|search| {
                let mut row = vec![0; search.rows.words()];
                for t in 0..search.threads() {
                    let entry = search.instance.threads[t].entry;
                    let registers = start.registers[t].clone();
                    let part = search.moves.number(t, entry, registers, ());
                    search.rows.set(&mut row, t, part)?;
                }
                let aside = search.threads() + 1;
                search.rows.set(&mut row, aside, before)?;
                for (c, value) in start.memory.iter().enumerate() {
                    let value = search.moves.values[c].number(*value);
                    let column = search.column(c);
                    search.rows.set(&mut row, column, value)?;
                }
                for t in 0..search.threads() {
                    search.arrive(&mut row, t)?;
                }
                search.rows.insert(&row);
                Ok(())
            })?;
        }
        let mut i = 0;
        while i < self.rows.len() {
            if i.is_multiple_of(POLL) {
                let asides = self.known.len() * 64 + self.asides.len() * 512;
                let progress = Progress {
                    states: self.rows.len() as u64,
                    frontier: (self.rows.len() - i) as u64,
                    memory: self.rows.bytes() + self.moves.bytes() + asides as u64,
                    ..Progress::default()
                };
                control.poll("audit", progress)?;
            }
            if self.rows.is_full() {
                return Err(AuditError::TooMany);
            }
            self.fitting(|search| search.expand(i))?;
            i += 1;
        }
        Ok(self.rows.len() as u64)
    }

    /// Does something with rows until all numbers fit.
    fn fitting(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<(), Stuck>,
    ) -> Result<(), AuditError> {
        loop {
            match work(self) {
                Ok(()) => return Ok(()),
                Err(Stuck::No(error)) => return Err(error),
                Err(Stuck::Narrow(narrow)) => self.rows.widen(narrow),
            }
        }
    }

    fn number(&mut self, aside: Aside) -> u32 {
        if let Some(number) = self.numbers.get(&aside) {
            return *number;
        }
        let (aside, number) = (Rc::new(aside), self.asides.len() as u32);
        self.numbers.insert(Rc::clone(&aside), number);
        self.asides.push(aside);
        number
    }

    fn expand(&mut self, i: usize) -> Result<(), Stuck> {
        let row = self.rows.row(i).to_vec();
        let aside = Rc::clone(&self.asides[self.aside(&row) as usize]);
        if aside.phase == Phase::Before {
            let (rows, n) = (&self.rows, self.threads());
            let part = |t: usize| rows.get(&row, t);
            let value = |c: usize| rows.get(&row, n + 2 + c);
            self.looked.look(&self.moves, part, value, i as u64)?;
        }
        let holder = self.rows.get(&row, self.threads()).checked_sub(1);
        // Whoever holds the lock runs alone, like one inside an atomic block.
        let alone = (0..self.threads()).find(|t| self.is_atomic(&row, *t));
        let alone = alone.or(holder.map(|h| h as usize));
        for t in 0..self.threads() {
            if alone.is_some_and(|a| a != t) {
                continue;
            }
            match &aside.phase {
                Phase::Delaying { attacker, .. } if *attacker == t => {
                    self.attacker(&row, &aside, t)?;
                }
                Phase::Committed { attacker, .. } if *attacker == t => {}
                Phase::Leaving(leaving) if *leaving != t => {}
                phase @ (Phase::Before
                | Phase::Delaying { .. }
                | Phase::Committed { .. }
                | Phase::Leaving(_)) => {
                    self.steps(&row, t)?;
                    if *phase == Phase::Before && alone.is_none() {
                        self.start(&row, t)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether an attack of the thread may still begin.
    fn begins(&self, row: &[u64], t: usize) -> bool {
        let part = self.moves.part(t, self.rows.get(row, t));
        self.ahead[t].begins[part.at.index()]
    }

    fn is_atomic(&self, row: &[u64], t: usize) -> bool {
        self.moves.marks(t, self.rows.get(row, t)).inside_atomic
    }

    fn is_inside(&self, row: &[u64], t: usize) -> bool {
        self.is_atomic(row, t) || self.lock(row, t) == Lock::Mine
    }

    fn lock(&self, row: &[u64], t: usize) -> Lock {
        Lock::of(self.rows.get(row, self.threads()), t)
    }

    /// The steps of a thread that runs under SC.
    fn steps(&mut self, row: &[u64], t: usize) -> Result<(), Stuck> {
        let (part, lock) = (self.rows.get(row, t), self.lock(row, t));
        let menu = self.moves.menu(t, part, lock)?;
        for m in menu.first..menu.first + menu.count {
            let mut next = row.to_vec();
            let a_move = self.moves.list[m as usize];
            match self.step(&mut next, t, &a_move)? {
                Next::Go => {
                    if self.arrive(&mut next, t)? {
                        self.add(&next);
                    }
                }
                Next::Stays => {}
                Next::Attack => return Err(AuditError::NotRobust.into()),
            }
        }
        Ok(())
    }

    /// Takes all steps that are to be taken at once; `false` if the run ends there.
    fn arrive(&mut self, row: &mut [u64], t: usize) -> Result<bool, Stuck> {
        'at: loop {
            let (part, lock) = (self.rows.get(row, t), self.lock(row, t));
            let menu = self.moves.menu(t, part, lock)?;
            for m in menu.first..menu.first + menu.chained {
                let a_move = self.moves.list[m as usize];
                match self.step(row, t, &a_move)? {
                    Next::Go => continue 'at,
                    Next::Stays => {}
                    Next::Attack => return Err(AuditError::NotRobust.into()),
                }
            }
            return Ok(!(menu.chained > 0 && self.is_atomic(row, t)));
        }
    }

    /// A step of a thread that runs under SC; a row that stays is not changed.
    fn step(&mut self, row: &mut [u64], t: usize, a_move: &Move) -> Result<Next, Stuck> {
        let (was, atomic) = (self.is_inside(row, t), self.is_atomic(row, t));
        let n = self.threads();
        match a_move.effect {
            Effect::Own { part, lock } => {
                let is = self.moves.marks(t, part).inside_atomic || lock == Lock::Mine;
                let becomes = match (was, is) {
                    (false, true) => self.becomes(row, t, Deed::Enter),
                    (true, false) => self.becomes(row, t, Deed::Leave),
                    (true, true) | (false, false) => Becomes::Aside(self.aside(row)),
                };
                if becomes == Becomes::Nothing {
                    return Ok(Next::Stays);
                }
                self.rows.set(row, t, part)?;
                match lock {
                    Lock::Free => self.rows.set(row, n, 0)?,
                    Lock::Mine => self.rows.set(row, n, t as u32 + 1)?,
                    Lock::Others => {}
                }
                self.turn(row, t, becomes)
            }
            Effect::Through { cell, table } => {
                let cell = cell as usize;
                let column = self.column(cell);
                let value = self.rows.get(row, column);
                let through = self.moves.through(table, value)?;
                let action = a_move
                    .step
                    .map(|s| &self.instance.threads[t].step(s).action);
                let load = matches!(action, Some(Action::Load { .. }));
                let faulty = match through {
                    Through::Unknown | Through::Disabled => return Ok(Next::Stays),
                    Through::Next { .. } => false,
                    Through::Fault(fault) => match self.fault(row, fault)? {
                        // The access happens, and is the run's last event.
                        FaultKind::ValueOutOfRange { .. } if load => true,
                        FaultKind::Assertion { .. }
                        | FaultKind::IndexOutOfRange { .. }
                        | FaultKind::ValueOutOfRange { .. }
                        | FaultKind::DivisionByZero
                        | FaultKind::ShiftOutOfRange
                        | FaultKind::MachineOverflow => return Ok(Next::Stays),
                    },
                };
                let deed = Deed::Access {
                    cell,
                    mark: if load { Mark::Read } else { Mark::Written },
                    inside: was,
                    atomic,
                };
                let becomes = self.becomes(row, t, deed);
                if becomes == Becomes::Nothing || faulty && becomes != Becomes::Attack {
                    return Ok(Next::Stays);
                }
                if let Through::Next { part, value } = through {
                    self.rows.set(row, t, part)?;
                    self.rows.set(row, column, value)?;
                }
                self.turn(row, t, becomes)
            }
            Effect::Fault(fault) => {
                self.fault(row, fault)?;
                Ok(Next::Stays)
            }
            // There are no drains under SC.
            Effect::Drain { .. } => Ok(Next::Stays),
        }
    }

    /// A step that is a fault: its run ends there, unless that answers what is asked of runs under SC.
    fn fault(&self, row: &[u64], number: u32) -> Result<&FaultKind, Stuck> {
        let (thread, step, kind) = &self.moves.faults[number as usize];
        if *kind == FaultKind::MachineOverflow {
            return Err(AuditError::Other("overflow of the machine".into()).into());
        }
        let before = self.asides[self.aside(row) as usize].phase == Phase::Before;
        if let Some(task) = self.task.filter(|_| before) {
            let (thread, step, kind) = (*thread, *step, kind.clone());
            let fault = Fault { thread, step, kind };
            if !task.ends_at(&fault) {
                let state = self.rows.len() as u64;
                return Err(AuditError::Fault { state, fault }.into());
            }
        }
        Ok(kind)
    }

    /// Puts what the attack has become into a row whose thread has moved on.
    fn turn(&mut self, row: &mut [u64], t: usize, becomes: Becomes) -> Result<Next, Stuck> {
        let aside = match becomes {
            Becomes::Aside(aside) => aside,
            Becomes::Nothing => return Ok(Next::Stays),
            Becomes::Attack => return Ok(Next::Attack),
        };
        let leaving = matches!(self.asides[aside as usize].phase, Phase::Leaving(_));
        if leaving && !self.is_atomic(row, t) {
            return Ok(Next::Attack);
        }
        let column = self.threads() + 1;
        self.rows.set(row, column, aside)?;
        Ok(Next::Go)
    }

    /// A store of a thread begins an attack.
    fn start(&mut self, row: &[u64], t: usize) -> Result<(), Stuck> {
        let (part, lock) = (self.rows.get(row, t), self.lock(row, t));
        let menu = self.moves.menu(t, part, lock)?;
        for m in menu.first..menu.first + menu.count {
            let a_move = self.moves.list[m as usize];
            let action = a_move
                .step
                .map(|s| &self.instance.threads[t].step(s).action);
            let (Effect::Through { cell, table }, Some(Action::Store { .. })) =
                (a_move.effect, action)
            else {
                continue;
            };
            let value = self.rows.get(row, self.column(cell as usize));
            let Through::Next { part, value } = self.moves.through(table, value)? else {
                continue;
            };
            let cell = cell as usize;
            let becomes = self.becomes(row, t, Deed::Start { cell, value });
            self.go_on(row, t, part, becomes)?;
        }
        Ok(())
    }

    /// The attacker's row with another part.
    fn go_on(&mut self, row: &[u64], t: usize, part: u32, becomes: Becomes) -> Result<(), Stuck> {
        let mut next = row.to_vec();
        self.rows.set(&mut next, t, part)?;
        if let Next::Go = self.turn(&mut next, t, becomes)?
            && self.arrive(&mut next, t)?
        {
            self.add(&next);
        }
        Ok(())
    }

    fn attacker(&mut self, row: &[u64], aside: &Aside, t: usize) -> Result<(), Stuck> {
        let Phase::Delaying { private, .. } = &aside.phase else {
            return Ok(());
        };
        let (part, lock) = (self.rows.get(row, t), self.lock(row, t));
        let menu = self.moves.menu(t, part, lock)?;
        let thread = &self.instance.threads[t];
        for m in menu.first..menu.first + menu.count {
            let a_move = self.moves.list[m as usize];
            let Some(step) = a_move.step else { continue };
            let action = &thread.step(step).action;
            if waits(action) {
                continue;
            }
            match a_move.effect {
                Effect::Own { part, .. } => {
                    let same = Becomes::Aside(self.aside(row));
                    self.go_on(row, t, part, same)?;
                }
                Effect::Through { cell, table } => {
                    let cell = cell as usize;
                    let own = private.get(&cell).copied();
                    let value = own.unwrap_or_else(|| self.rows.get(row, self.column(cell)));
                    let (part, value) = match self.moves.through(table, value)? {
                        Through::Next { part, value } => (part, value),
                        Through::Unknown | Through::Disabled => continue,
                        Through::Fault(fault) => {
                            self.fault(row, fault)?;
                            continue;
                        }
                    };
                    if !matches!(action, Action::Load { .. }) {
                        let becomes = self.becomes(row, t, Deed::Keep { cell, value });
                        self.go_on(row, t, part, becomes)?;
                        continue;
                    }
                    if own.is_none() && self.is_ahead(row, t, cell, |a| &a.written) {
                        // The attacker is frozen: forget where it is.
                        let zeros = vec![0; thread.registers.len()];
                        let frozen = self.moves.number(t, thread.entry, zeros, ());
                        let becomes = self.becomes(row, t, Deed::Commit { cell });
                        let mut next = row.to_vec();
                        self.rows.set(&mut next, t, frozen)?;
                        if let Next::Go = self.turn(&mut next, t, becomes)? {
                            self.add(&next);
                        }
                    }
                    let same = Becomes::Aside(self.aside(row));
                    self.go_on(row, t, part, same)?;
                }
                Effect::Fault(fault) => {
                    self.fault(row, fault)?;
                }
                Effect::Drain { .. } => {}
            }
        }
        Ok(())
    }

    /// Whether a thread but `t` has the cell ahead of it.
    fn is_ahead(
        &self,
        row: &[u64],
        t: usize,
        cell: usize,
        what: impl Fn(&Ahead) -> &Vec<BTreeSet<usize>>,
    ) -> bool {
        (0..self.threads()).any(|u| {
            let at = self.moves.part(u, self.rows.get(row, u)).at;
            u != t && what(&self.ahead[u])[at.index()].contains(&cell)
        })
    }

    /// A state to look at, unless it cannot become an attack any more.
    fn add(&mut self, row: &[u64]) {
        let aside = &self.asides[self.aside(row) as usize];
        let alive = match &aside.phase {
            Phase::Leaving(_) => true,
            Phase::Before => {
                self.task.is_some() || (0..self.threads()).any(|t| self.begins(row, t))
            }
            Phase::Delaying {
                attacker, delayed, ..
            } => {
                let part = self.moves.part(*attacker, self.rows.get(row, *attacker));
                self.ahead[*attacker].overtakes[part.at.index()]
                    && self.is_ahead(row, *attacker, *delayed, |a| &a.touched)
            }
            Phase::Committed {
                attacker, delayed, ..
            } => {
                aside.unit.contains_key(delayed)
                    || self.is_ahead(row, *attacker, *delayed, |a| &a.touched)
            }
        };
        if alive {
            self.rows.insert(row);
        }
    }

    /// What a deed makes of the attack.
    fn becomes(&mut self, row: &[u64], t: usize, deed: Deed) -> Becomes {
        let aside = self.aside(row);
        let key = (aside, t as u32, deed);
        if let Some(becomes) = self.known.get(&key) {
            return *becomes;
        }
        let mut next = Aside::clone(&self.asides[aside as usize]);
        let becomes = match next.after(t, deed) {
            Admitted::Yes => Becomes::Aside(self.number(next)),
            Admitted::No => Becomes::Nothing,
            Admitted::Attack => Becomes::Attack,
        };
        self.known.insert(key, becomes);
        becomes
    }
}
