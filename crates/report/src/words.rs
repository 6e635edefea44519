//! Steps and events in the program's own words.

use wattle_memory::Event;
use wattle_memory::reference::Snapshot;
use wattle_model::graph::{Action, Section};
use wattle_model::instance::{Address, Initial, Step, Thread};
use wattle_model::{CellId, Expr, Fence, Instance, LocationId, RegisterId, ThreadId};

/// Front-ends call the registers they need in between `_1`, `_2`, …
pub fn is_temporary(name: &str) -> bool {
    let digits = name.strip_prefix('_').unwrap_or("x");
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The value of a register expression in a state.
pub fn value(state: &Snapshot, thread: ThreadId, e: &Expr<RegisterId>) -> Option<i64> {
    let registers = &state.registers[thread.index()];
    e.eval(&|r: &RegisterId| registers[r.index()]).ok()
}

/// The cell an operand means in a state.
pub fn cell(state: &Snapshot, thread: ThreadId, place: &Address) -> Option<CellId> {
    match place {
        Address::Cell(c) => Some(*c),
        Address::Computed {
            base,
            length,
            index,
        } => {
            let index = u32::try_from(value(state, thread, index)?).ok()?;
            (index < *length).then(|| CellId(base.0 + index))
        }
    }
}

/// A step for graphs: the author's text where a statement is one step, else what it does. Without a source the
/// text is empty.
pub fn written(source: &str, instance: &Instance, thread: &Thread, step: &Step) -> String {
    let place = |s: &Step| (s.span.start, s.span.end);
    let alone = thread.steps.iter().filter(|s| place(s) == place(step));
    let whole = match &step.action {
        Action::Load { register, .. } => !is_temporary(&thread.registers[register.index()].name),
        Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assert { .. }
        | Action::Store { .. }
        | Action::Fence(_)
        | Action::Lock
        | Action::Unlock => true,
        Action::Assume(_) | Action::AtomicBegin(_) | Action::AtomicEnd => false,
    };
    let text = source.get(step.span.start as usize..step.span.end as usize);
    let text = text.map(|t| t.trim_end_matches(';').trim());
    match text {
        Some(text)
            if whole
                && step.span.is_some()
                && alone.count() == 1
                && !text.is_empty()
                && !text.contains('\n') =>
        {
            text.to_string()
        }
        _ => self::step(instance, thread, step),
    }
}

/// What a step does, without a state: for graphs.
pub fn step(instance: &Instance, thread: &Thread, step: &Step) -> String {
    let standing = Standing {
        instance,
        thread,
        at: step.source,
        depth: DEEPEST,
    };
    let e = |e: &Expr<RegisterId>| standing.expression(e);
    let r = |r: &RegisterId| thread.registers[r.index()].name.as_str();
    let p = |p: &Address| standing.place(p);
    match &step.action {
        Action::Skip => "skip".into(),
        Action::Assign { register, value } => format!("{} = {}", r(register), e(value)),
        Action::Havoc {
            register,
            range: Some((lo, hi)),
        } => format!("{} = any {lo}..{hi}", r(register)),
        Action::Havoc { register, .. } => format!("{} = any", r(register)),
        Action::Assume(c) => format!("assume {}", e(c)),
        Action::Assert { condition, .. } => format!("assert {}", e(condition)),
        Action::Load { register, place } if is_temporary(r(register)) => {
            format!("read {}", p(place))
        }
        Action::Load { register, place } => format!("{} = {}", r(register), p(place)),
        Action::Store { place, value } => format!("{} = {}", p(place), e(value)),
        Action::Fence(Fence::Full) => "fence".into(),
        Action::Fence(Fence::Store) => "fence store".into(),
        Action::AtomicBegin(Section::Drained) => "atomic begin".into(),
        Action::AtomicBegin(Section::Buffered) => "atomic buffered begin".into(),
        Action::AtomicEnd => "atomic end".into(),
        Action::Lock => "lock".into(),
        Action::Unlock => "unlock".into(),
    }
}

/// Where an expression stands, for those who look for what its registers hold.
#[derive(Clone, Copy)]
struct Standing<'i> {
    instance: &'i Instance,
    thread: &'i Thread,
    at: LocationId,
    /// How far registers of front-ends are still looked through.
    depth: usize,
}

const DEEPEST: usize = 4;
/// How many steps back their values are looked for.
const BACK: usize = 32;

impl Standing<'_> {
    /// An expression with the registers' names; what a front-end put into a register of its own is shown
    /// in its place.
    fn expression(self, e: &Expr<RegisterId>) -> String {
        let leaf = |r: &RegisterId, f: &mut std::fmt::Formatter<'_>| {
            let name = &self.thread.registers[r.index()].name;
            let meant = (self.depth > 0 && is_temporary(name)).then(|| self.meaning(*r));
            f.write_str(meant.flatten().as_deref().unwrap_or(name))
        };
        e.display(&leaf).to_string()
    }

    /// What a register holds here, if all ways here say the same.
    fn meaning(self, r: RegisterId) -> Option<String> {
        let mut found: Option<&Step> = None;
        let (mut met, mut next) = (vec![self.at], 0);
        while let Some(at) = met.get(next).copied() {
            next += 1;
            let mut incoming = self
                .thread
                .steps
                .iter()
                .filter(|s| s.target == at)
                .peekable();
            if next > BACK || incoming.peek().is_none() {
                return None;
            }
            for step in incoming {
                match step.action.written() == Some(r) {
                    true if found.is_some_and(|f| !std::ptr::eq(f, step)) => return None,
                    true => found = Some(step),
                    false if met.contains(&step.source) => {}
                    false => met.push(step.source),
                }
            }
        }
        let step = found?;
        let there = Standing {
            at: step.source,
            depth: self.depth - 1,
            ..self
        };
        if let Some(place) = step.action.loaded() {
            return Some(there.place(place));
        }
        let Action::Assign { value, .. } = &step.action else {
            return None;
        };
        let text = there.expression(value);
        let is_leaf = matches!(value, Expr::Const(_) | Expr::Atom(_));
        Some(if is_leaf { text } else { format!("({text})") })
    }

    fn place(self, place: &Address) -> String {
        match place {
            Address::Cell(c) => self.instance.cell(*c).name.clone(),
            Address::Computed { base, index, .. } => {
                let name = match self.instance.cells.get(base.index()) {
                    Some(cell) => cell.name.split('[').next().unwrap_or_default(),
                    None => "memory",
                };
                format!("{name}[{}]", self.expression(index))
            }
        }
    }
}

/// What an event did, with the values it saw. `after` is missing if the event is a fault.
pub fn event(
    instance: &Instance,
    event: &Event,
    before: &Snapshot,
    after: Option<&Snapshot>,
) -> String {
    let (t, id) = match event {
        Event::Drain { cell, value, .. } => {
            return format!("drain {} = {value}", instance.cell(*cell).name);
        }
        Event::Step { thread, step, .. } => (*thread, *step),
    };
    let thread = instance.thread(t);
    let taken = thread.step(id);
    let plain = || step(instance, thread, taken);
    let got = |r: &RegisterId| after.map(|s| s.registers[t.index()][r.index()]);
    let name = |r: &RegisterId| thread.registers[r.index()].name.as_str();
    match &taken.action {
        Action::Store { place, value: e } => match (cell(before, t, place), value(before, t, e)) {
            (Some(c), Some(v)) => format!("{} = {v}", instance.cell(c).name),
            _ => plain(),
        },
        Action::Load { register, place } => match (cell(before, t, place), got(register)) {
            (Some(c), Some(v)) if is_temporary(name(register)) => {
                format!("{} → {v}", instance.cell(c).name)
            }
            (Some(c), Some(v)) => {
                format!("{} = {} → {v}", name(register), instance.cell(c).name)
            }
            _ => plain(),
        },
        Action::Assign { register, value: e } => match (e, got(register)) {
            (Expr::Const(_), _) | (_, None) => plain(),
            (_, Some(v)) => format!("{} → {v}", plain()),
        },
        Action::Havoc { register, .. } => match got(register) {
            Some(v) => format!("{} = any → {v}", name(register)),
            None => plain(),
        },
        _ => plain(),
    }
}

/// The initial values that the program leaves open, as chosen by a run.
pub fn choices(instance: &Instance, start: &Snapshot) -> Vec<String> {
    let mut open = Vec::new();
    for (c, v) in instance.cells.iter().zip(&start.memory) {
        if c.init == Initial::Any {
            open.push(format!("{} = {v}", c.name));
        }
    }
    for (t, values) in instance.threads.iter().zip(&start.registers) {
        for (r, v) in t.registers.iter().zip(values) {
            if r.init == Initial::Any && !is_temporary(&r.name) {
                open.push(format!("{}.{} = {v}", t.name, r.name));
            }
        }
    }
    open
}

/// `[x=1 y=2]`, or nothing for an empty buffer.
pub fn buffer(instance: &Instance, entries: &[(CellId, i64)]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let entry = |(c, v): &(CellId, i64)| format!("{}={v}", instance.cell(*c).name);
    format!(
        "[{}]",
        entries.iter().map(entry).collect::<Vec<_>>().join(" ")
    )
}

/// `a`, `a and b`, `a, b and c`
pub fn all(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = parts.collect();
    match (parts.pop(), parts.as_slice()) {
        (None, _) => String::new(),
        (Some(last), []) => last,
        (Some(last), before) => format!("{} and {last}", before.join(", ")),
    }
}
