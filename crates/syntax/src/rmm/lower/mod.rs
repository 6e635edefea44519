//! [`File`] to a model: a family per `process` block, one property per forbidden tuple.

mod target;
mod unread;

use super::ast::{Declaration, Domain, File, Labelled, Leaf, Location, Process, Statement};
use super::scope::{Block, Memory, init, membership, range, ty, unknown, within};
use crate::diagnostics::Diagnostic;
use crate::flow::{Flow, junction};
use crate::tokens::{MAX_ERRORS, Named, clip};
use wattle_model::program::{Action, Local, Register};
use wattle_model::{
    Condition, Count, Expr, Family, FamilyId, Fence, IndexId, IndexVariable, Init, LocationId,
    Observation, Op2, Program, Property, PropertyKind, RegisterId, Span, ThreadIndex, ThreadRef,
};

pub(super) fn program(file: &File, diagnostics: &mut Vec<Diagnostic>) -> Option<Program> {
    let mut memory = Memory::new(file);
    let blocks = memory.blocks.clone();
    let single = blocks.len() == 1;
    let names: Vec<String> = blocks
        .iter()
        .map(|b| match (single, b.count) {
            (true, 2..) => memory.names.unique("P"),
            (_, 1) => memory.names.unique(&format!("P{}", b.first)),
            _ => memory.names.unique(&format!("P{}_", b.first)),
        })
        .collect();
    let mut families = Vec::new();
    for ((process, block), name) in file.processes.iter().zip(blocks).zip(names) {
        let lower = Lower {
            memory: &memory,
            process,
            block,
            registers: Vec::new(),
            domains: Vec::new(),
            temporaries: Vec::new(),
            flow: Flow::default(),
            locked: false,
            diagnostics: &mut *diagnostics,
        };
        families.push(lower.family(name));
    }
    let properties = rows(file, &memory, &families, diagnostics);
    let predicates = predicates(file, &memory, diagnostics);
    (!families.is_empty()).then_some(Program {
        regions: memory.regions,
        families,
        properties,
        temporal: Vec::new(),
        predicates,
    })
}

/// Forbidden tuples: label by label, process by process.
fn rows(
    file: &File,
    memory: &Memory,
    families: &[Family],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Property> {
    let threads: Vec<ThreadRef> = memory
        .blocks
        .iter()
        .flat_map(|b| {
            (0..b.count).map(|i| ThreadRef {
                family: FamilyId::new(b.index),
                index: ThreadIndex::Number(i),
            })
        })
        .collect();
    let mut properties = Vec::new();
    for row in &file.forbidden {
        if row.labels.len() != threads.len() {
            let (given, wanted) = (row.labels.len(), threads.len());
            let message = format!("a forbidden tuple of {given} labels for {wanted} processes");
            let d = Diagnostic::error(row.span, message);
            diagnostics.push(d.expected("a label or `*` for each process, in order"));
            continue;
        }
        let mut parts = Vec::new();
        for ((label, span), thread) in row.labels.iter().zip(&threads) {
            let Some(label) = label else { continue };
            let family = &families[thread.family.index()];
            let labels = family.locations.iter().flat_map(|l| &l.labels);
            if labels.clone().any(|l| l == label) {
                parts.push(Expr::Atom(Observation::At(thread.clone(), label.clone())));
            } else if diagnostics.len() < MAX_ERRORS {
                let what = format!("label in process `{}`:", family.name);
                diagnostics.push(unknown(&what, label, *span, labels.map(String::as_str)));
            }
        }
        properties.push(Property {
            kind: PropertyKind::Never,
            condition: Condition {
                indices: Vec::new(),
                expr: junction(Op2::And, parts).unwrap_or(Expr::TRUE),
            },
            span: row.span,
        });
    }
    properties
}

/// Hints over registers: one condition per block that has all of them.
fn predicates(file: &File, memory: &Memory, diagnostics: &mut Vec<Diagnostic>) -> Vec<Condition> {
    let mut all = Vec::new();
    for predicate in &file.predicates {
        let mut used = false;
        for (block, process) in memory.blocks.iter().zip(&file.processes) {
            let family = FamilyId::new(block.index);
            let thread = ThreadRef {
                family,
                index: match block.count {
                    1 => ThreadIndex::Number(0),
                    _ => ThreadIndex::Variable(IndexId(0)),
                },
            };
            let expr: Result<_, ()> = predicate.substitute(&mut |leaf| match leaf {
                Leaf::Register(name, _) => {
                    let found = process.registers.iter().position(|r| r.name == *name);
                    let register = RegisterId::new(found.ok_or(())?);
                    Ok(Expr::Atom(Observation::Register(thread.clone(), register)))
                }
                _ => Err(()),
            });
            if let Ok(expr) = expr {
                used = true;
                let index = IndexVariable {
                    name: "i".into(),
                    family,
                };
                let many = block.count > 1;
                all.push(Condition {
                    indices: many.then_some(index).into_iter().collect(),
                    expr,
                });
            }
        }
        if !used {
            diagnostics.push(Diagnostic::warning(
                first_span(predicate),
                "this predicate speaks of registers that no process has together; it is not used",
            ));
        }
    }
    all
}

fn first_span(e: &Expr<Leaf>) -> Span {
    let mut span = Span::NONE;
    e.for_each_atom(&mut |leaf| {
        if let Leaf::Register(_, s) = leaf
            && !span.is_some()
        {
            span = *s;
        }
    });
    span
}

/// One block on its way to a family.
struct Lower<'a> {
    memory: &'a Memory,
    process: &'a Process,
    block: Block,
    registers: Vec<Register>,
    /// Domains of the registers, temporaries included.
    domains: Vec<Domain>,
    /// Registers that take loaded values to be looked at, one per domain.
    temporaries: Vec<RegisterId>,
    flow: Flow,
    /// Inside a `locked` block.
    locked: bool,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Lower<'_> {
    fn family(mut self, name: String) -> Family {
        for r in &self.process.registers {
            let taken: Vec<String> = self.registers.iter().map(|r| r.name.clone()).collect();
            let wanted = match r.name.starts_with(|c: char| c.is_ascii_digit()) {
                true => format!("r{}", r.name),
                false => r.name.clone(),
            };
            let name = self.memory.names.free(&wanted, &taken);
            self.register(name, r.domain, init(r), r.span);
        }
        let entry = self.flow.location();
        let end = self.flow.location();
        let process = self.process;
        self.list(&process.body, entry, end);
        let diagnostics = self.diagnostics;
        let graph = self.flow.finish(entry, |flow, label, span| {
            if diagnostics.len() < MAX_ERRORS {
                diagnostics.push(unknown("label", label, span, flow.label_names()));
            }
        });
        let mut family = Family {
            name,
            count: match self.block.count {
                1 => Count::One,
                n => Count::Fixed(n),
            },
            registers: self.registers,
            locations: graph.locations,
            steps: graph.steps,
            entry: graph.entry,
            span: self.process.span,
        };
        unread::settle(&mut family);
        family
    }

    fn register(&mut self, name: String, domain: Domain, init: Init, span: Span) -> RegisterId {
        let id = RegisterId::new(self.registers.len());
        self.domains.push(domain);
        self.registers.push(Register {
            name,
            ty: ty(domain),
            init,
            span,
        });
        id
    }

    /// A register of this domain that no statement of the program names.
    fn temporary(&mut self, domain: Domain) -> RegisterId {
        let fits = |r: &&RegisterId| self.domains[r.index()] == domain;
        if let Some(r) = self.temporaries.iter().find(fits) {
            return *r;
        }
        let taken: Vec<String> = self.registers.iter().map(|r| r.name.clone()).collect();
        let name = self.memory.names.free("seen", &taken);
        let start = domain.map_or(0, |(lo, hi)| 0.clamp(lo, hi));
        let id = self.register(name, domain, Init::All(Expr::Const(start)), Span::NONE);
        self.temporaries.push(id);
        id
    }

    fn report(&mut self, d: Diagnostic) {
        if self.diagnostics.len() < MAX_ERRORS {
            self.diagnostics.push(d);
        }
    }

    /// Lays the statements between two locations.
    fn list(&mut self, list: &[Labelled], from: LocationId, to: LocationId) {
        let mut at = from;
        for (i, s) in list.iter().enumerate() {
            let next = match i + 1 == list.len() {
                true => to,
                false => self.flow.location(),
            };
            self.labelled(s, at, next);
            at = next;
        }
        if list.is_empty() {
            self.flow.step(from, to, Action::Skip, Span::NONE);
        }
    }

    fn labelled(&mut self, s: &Labelled, from: LocationId, to: LocationId) {
        if let Some((label, span)) = &s.label {
            if self.locked {
                self.report(Diagnostic::error(*span, "a label inside a locked block"));
            }
            if let Some(before) = self.flow.label(from, label, *span) {
                let message = format!("the label `{}` is defined twice", clip(label));
                let hint = format!("it is already at line {}", before.line);
                self.report(Diagnostic::error(*span, message).hint(hint));
            }
        }
        self.flow.starts(from, s.span);
        self.statement(s, from, to);
    }

    fn statement(&mut self, s: &Labelled, from: LocationId, to: LocationId) {
        let span = s.span;
        match &s.statement {
            Statement::Nop | Statement::LoadFence => self.flow.step(from, to, Action::Skip, span),
            Statement::Fence => {
                let action = match self.locked {
                    true => Action::Skip,
                    false => Action::Fence(Fence::Full),
                };
                self.flow.step(from, to, action, span);
            }
            Statement::StoreFence => {
                let action = match self.locked {
                    true => Action::Skip,
                    false => Action::Fence(Fence::Store),
                };
                self.flow.step(from, to, action, span);
            }
            Statement::Goto((label, at)) => {
                if self.locked {
                    self.report(Diagnostic::error(*at, "a jump inside a locked block"));
                }
                self.flow.jump(from, label, *at);
            }
            Statement::Assume(e) => {
                if let Some(e) = self.expr(e) {
                    self.flow.step(from, to, Action::Assume(e), span);
                }
            }
            Statement::Assign(register, value) => self.assign(register, value, span, from, to),
            Statement::Load(register, location) => self.load(register, location, span, from, to),
            Statement::Await(location, value) => self.wait(location, value, span, from, to),
            Statement::Write(location, value) => self.write(location, value, span, from, to),
            Statement::OrderedWrite(location, value) => {
                let fence = || Action::Fence(Fence::Store);
                let before = self.flow.then(from, fence(), span);
                let after = self.flow.location();
                self.write(location, value, span, before, after);
                self.flow.step(after, to, fence(), span);
            }
            Statement::Cas(location, old, new) => self.cas(location, (old, new), span, from, to),
            Statement::If(condition, then, otherwise) => {
                let Some(c) = self.expr(condition) else {
                    return;
                };
                let start = self.flow.then(from, Action::Assume(c.clone()), span);
                self.labelled(then, start, to);
                let c = Action::Assume(c.negate());
                match otherwise {
                    Some(s) => {
                        let start = self.flow.then(from, c, span);
                        self.labelled(s, start, to);
                    }
                    None => self.flow.step(from, to, c, span),
                }
            }
            Statement::While(condition, body) => {
                if self.locked {
                    self.report(Diagnostic::error(span, "a loop inside a locked block"));
                }
                let Some(c) = self.expr(condition) else {
                    return;
                };
                let start = self.flow.then(from, Action::Assume(c.clone()), span);
                self.labelled(body, start, from);
                self.flow.step(from, to, Action::Assume(c.negate()), span);
            }
            Statement::Either(branches) => self.choice(branches, from, to),
            Statement::Locked(branches) => self.lock(branches, span, from, to),
            Statement::Block(list) => self.list(list, from, to),
        }
    }

    /// All branches leave the same location, so one that could come back to its start, or that is
    /// empty, gets a start of its own.
    fn choice(&mut self, branches: &[Vec<Labelled>], from: LocationId, to: LocationId) {
        for branch in branches {
            let start = match needs_start(branch) {
                true => self.flow.then(from, Action::Skip, Span::NONE),
                false => from,
            };
            self.list(branch, start, to);
        }
    }

    /// A locked block drains the buffer if it writes; one that only reads once is that read.
    fn lock(&mut self, branches: &[Vec<Labelled>], span: Span, from: LocationId, to: LocationId) {
        let (reads, writes) = branches
            .iter()
            .map(|b| accesses(b))
            .fold((0, 0), |(r, w), (s, x)| (r.max(s), w.max(x)));
        if self.locked || (writes == 0 && reads <= 1) {
            self.choice(branches, from, to);
            return;
        }
        if writes == 0 {
            self.report(
                Diagnostic::warning(
                    span,
                    "this locked block only reads; here it drains the buffer too",
                )
                .hint("Memorax does not drain the buffer for locked blocks without a write"),
            );
        }
        let inside = self.flow.then(
            from,
            Action::AtomicBegin(wattle_model::Section::Drained),
            span,
        );
        let end = self.flow.location();
        self.locked = true;
        self.choice(branches, inside, end);
        self.locked = false;
        self.flow.step(end, to, Action::AtomicEnd, span);
    }

    fn assign(
        &mut self,
        register: &Named,
        value: &Expr<Leaf>,
        span: Span,
        from: LocationId,
        to: LocationId,
    ) {
        let (Some(register), Some(value)) = (self.known(register), self.expr(value)) else {
            return;
        };
        let domain = self.domains[register.index()];
        let fits = membership(&value, self.range(&value), domain);
        let at = self.guard(from, fits, span);
        self.flow
            .step(at, to, Action::Assign { register, value }, span);
    }

    fn load(
        &mut self,
        register: &Named,
        location: &Location,
        span: Span,
        from: LocationId,
        to: LocationId,
    ) {
        let (Some(register), Some(target)) = (self.known(register), self.target(location)) else {
            return;
        };
        let domain = self.domains[register.index()];
        let loaded = target.domain();
        let at = self.guard(from, target.exists, span);
        if within(loaded, domain) {
            let place = target.place;
            self.flow
                .step(at, to, Action::Load { register, place }, span);
            return;
        }
        let seen = self.temporary(loaded);
        let load = Action::Load {
            register: seen,
            place: target.place,
        };
        let at = self.flow.then(at, load, span);
        let value = Expr::Atom(Local::Register(seen));
        let at = self.guard(at, membership(&value, loaded, domain), span);
        self.flow
            .step(at, to, Action::Assign { register, value }, span);
    }

    fn wait(
        &mut self,
        location: &Location,
        value: &Expr<Leaf>,
        span: Span,
        from: LocationId,
        to: LocationId,
    ) {
        let (Some(target), Some(value)) = (self.target(location), self.expr(value)) else {
            return;
        };
        let seen = self.temporary(target.domain());
        let at = self.guard(from, target.exists, span);
        let load = Action::Load {
            register: seen,
            place: target.place,
        };
        let at = self.flow.then(at, load, span);
        let equal = Expr::binary(Op2::Eq, Expr::Atom(Local::Register(seen)), value);
        self.flow.step(at, to, Action::Assume(equal), span);
    }

    fn write(
        &mut self,
        location: &Location,
        value: &Expr<Leaf>,
        span: Span,
        from: LocationId,
        to: LocationId,
    ) {
        let (Some(target), Some(value)) = (self.target(location), self.expr(value)) else {
            return;
        };
        let fits = target.admits(&value, self.range(&value));
        let at = self.guard(from, target.exists, span);
        let at = self.guard(at, fits, span);
        let place = target.place;
        self.flow.step(at, to, Action::Store { place, value }, span);
    }

    fn cas(
        &mut self,
        location: &Location,
        (old, new): (&Expr<Leaf>, &Expr<Leaf>),
        span: Span,
        from: LocationId,
        to: LocationId,
    ) {
        let (Some(target), Some(old), Some(new)) =
            (self.target(location), self.expr(old), self.expr(new))
        else {
            return;
        };
        let seen = self.temporary(target.domain());
        let fits = target.admits(&new, self.range(&new));
        let at = self.guard(from, target.exists, span);
        let mut at = self.guard(at, fits, span);
        if !self.locked {
            at = self.flow.then(
                at,
                Action::AtomicBegin(wattle_model::Section::Drained),
                span,
            );
        }
        let load = Action::Load {
            register: seen,
            place: target.place.clone(),
        };
        let at = self.flow.then(at, load, span);
        let equal = Expr::binary(Op2::Eq, Expr::Atom(Local::Register(seen)), old);
        let at = self.flow.then(at, Action::Assume(equal), span);
        let store = Action::Store {
            place: target.place,
            value: new,
        };
        if self.locked {
            self.flow.step(at, to, store, span);
        } else {
            let at = self.flow.then(at, store, span);
            self.flow.step(at, to, Action::AtomicEnd, span);
        }
    }

    fn guard(
        &mut self,
        from: LocationId,
        condition: Option<Expr<Local>>,
        span: Span,
    ) -> LocationId {
        match condition {
            None => from,
            Some(c) => self.flow.then(from, Action::Assume(c), span),
        }
    }

    fn known(&mut self, (name, span): &Named) -> Option<RegisterId> {
        let registers: &[Declaration] = &self.process.registers;
        if let Some(i) = registers.iter().position(|r| r.name == *name) {
            return Some(RegisterId::new(i));
        }
        let known = registers.iter().map(|r| r.name.as_str());
        let d = unknown("register", &format!("${name}"), *span, known);
        self.report(d.expected("a register declared under `registers`"));
        None
    }

    fn expr(&mut self, e: &Expr<Leaf>) -> Option<Expr<Local>> {
        let block = self.block;
        let mut failed = false;
        let found = block.resolve(e, &mut |leaf| {
            let Leaf::Register(name, span) = leaf else {
                return Ok(Expr::Const(0));
            };
            match self.known(&(name.clone(), *span)) {
                Some(r) => Ok(Expr::Atom(Local::Register(r))),
                None => {
                    failed = true;
                    Err(())
                }
            }
        });
        found.ok().filter(|_| !failed)
    }

    fn range(&self, e: &Expr<Local>) -> Domain {
        range(e, &|leaf| match leaf {
            Local::Register(r) => self.domains[r.index()],
            Local::SelfIndex => Some((0, i64::from(self.block.count) - 1)),
            _ => None,
        })
    }
}

/// Whether a branch of a choice needs a start of its own: see [`Lower::choice`].
fn needs_start(branch: &[Labelled]) -> bool {
    let Some(first) = branch.first() else {
        return false;
    };
    first.label.is_some()
        || match &first.statement {
            Statement::While(..) | Statement::Goto(_) => true,
            Statement::Block(list) => needs_start(list),
            _ => false,
        }
}

/// Reads and writes on the longest way through.
fn accesses(list: &[Labelled]) -> (usize, usize) {
    let most = |branches: &[Vec<Labelled>]| {
        let each = branches.iter().map(|b| accesses(b));
        each.fold((0, 0), |(r, w), (s, x)| (r.max(s), w.max(x)))
    };
    let one = |s: &Labelled| accesses(std::slice::from_ref(s));
    let each = list.iter().map(|s| match &s.statement {
        Statement::Load(..) | Statement::Await(..) => (1, 0),
        Statement::Write(..) | Statement::OrderedWrite(..) => (0, 1),
        Statement::Cas(..) => (1, 1),
        Statement::If(_, a, b) => {
            let (a, b) = (one(a), b.as_deref().map_or((0, 0), one));
            (a.0.max(b.0), a.1.max(b.1))
        }
        Statement::While(_, body) => one(body),
        Statement::Either(branches) | Statement::Locked(branches) => most(branches),
        Statement::Block(list) => accesses(list),
        _ => (0, 0),
    });
    each.fold((0, 0), |(r, w), (s, x)| (r + s, w + x))
}
