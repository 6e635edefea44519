//! calin-2016, Figs. 5.5, 5.6 and 5.8: the bounded model checker CBMC on the same programs, where it is on the search path.
//!
//! A program is written as C: places are labels, cells are global variables of their own, fences are CBMC's. A thread may stop
//! wherever it may have to wait, wherever a loop begins and where the property looks, and says where it has stopped; the
//! property is that no threads say what they must not. So a bad state is reached under TSO if and only if the
//! assertion fails, within the loop iterations that CBMC unrolls: it is asked with 1, 2, 3, … of them until it fails.

use std::fmt::{Formatter, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wattle_model::graph::{Action, Section};
use wattle_model::instance::{Address, Fact, Initial, Instance, Step, Thread};
use wattle_model::{Expr, Fence, LocationId, Op2, RegisterId};

/// More iterations than the programs of the thesis need, and the longest that is waited for one answer.
const UNWOUND: u32 = 24;
const PATIENCE: Duration = Duration::from_secs(60);

/// The version, if the program is there.
pub fn version() -> Option<String> {
    let told = Command::new("cbmc").arg("--version").output().ok()?;
    let text = String::from_utf8(told.stdout).ok()?;
    Some(text.split_whitespace().next()?.to_string())
}

/// What CBMC says of the first property under TSO.
pub enum CbmcAnswer {
    /// It fails with so many iterations; how long all questions took.
    Fails(u32, Duration),
    /// It does not, with so many.
    Passes(u32),
    TooLong(u32),
    /// The program has no plain counterpart in C, or CBMC did not read it.
    Not,
}

pub fn ask(instance: &Instance) -> CbmcAnswer {
    let Some(text) = text(instance) else {
        return CbmcAnswer::Not;
    };
    let path = std::env::temp_dir().join(format!("wattle-bench-{}.c", std::process::id()));
    if std::fs::write(&path, text).is_err() {
        return CbmcAnswer::Not;
    }
    let begin = Instant::now();
    let mut told = CbmcAnswer::Passes(UNWOUND);
    for n in 1..=UNWOUND {
        match one(&path, n) {
            Some(false) => continue,
            Some(true) => told = CbmcAnswer::Fails(n, begin.elapsed()),
            None if begin.elapsed() >= PATIENCE => told = CbmcAnswer::TooLong(n),
            None => told = CbmcAnswer::Not,
        }
        break;
    }
    let _ = std::fs::remove_file(&path);
    told
}

/// Whether the assertion fails; none if there was no answer.
fn one(path: &std::path::Path, unwind: u32) -> Option<bool> {
    let mut child = Command::new("cbmc")
        .args(["--mm", "tso", "--unwind", &unwind.to_string()])
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().ok()? {
            return match status.code()? {
                0 => Some(false),
                10 => Some(true),
                _ => None,
            };
        }
        if begin.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The program as C, with the first property as an assertion.
pub fn text(instance: &Instance) -> Option<String> {
    let question = instance.questions.first()?;
    let mut looked: Vec<Vec<LocationId>> = vec![Vec::new(); instance.threads.len()];
    let bad = condition(&question.target, &mut looked)?;
    let mut out = String::from("#include <pthread.h>\nint nondet_int(void);\n");
    for (c, cell) in instance.cells.iter().enumerate() {
        writeln!(out, "int c{c} = {};", value(&cell.init)?).ok()?;
    }
    for (t, thread) in instance.threads.iter().enumerate() {
        writeln!(out, "int at{t};\nvoid *t{t}(void *unused) {{").ok()?;
        for (r, register) in thread.registers.iter().enumerate() {
            writeln!(out, "  int r{r} = {};", value(&register.init)?).ok()?;
        }
        writeln!(out, "  goto L{};", thread.entry.index()).ok()?;
        for l in (0..thread.locations.len()).map(LocationId::new) {
            location(&mut out, t, thread, l, looked[t].contains(&l))?;
        }
        writeln!(out, "}}").ok()?;
    }
    writeln!(out, "int main() {{").ok()?;
    for t in 0..instance.threads.len() {
        writeln!(out, "  pthread_t p{t}; pthread_create(&p{t}, 0, t{t}, 0);").ok()?;
    }
    writeln!(out, "  __CPROVER_assert(!{bad}, \"property\");\n}}").ok()?;
    Some(out)
}

fn value(init: &Initial) -> Option<i64> {
    match init {
        Initial::Value(v) => Some(*v),
        Initial::Any => None,
    }
}

/// Only what says where threads are, and never where they are not: they may have stopped anywhere.
fn condition(e: &Expr<Fact>, looked: &mut [Vec<LocationId>]) -> Option<String> {
    match e {
        Expr::Atom(Fact::At(t, at)) => {
            looked[t.index()].extend(at);
            let one = |l: &LocationId| format!("at{} == {}", t.index(), l.index() + 1);
            let all: Vec<String> = at.iter().map(one).collect();
            Some(format!("({})", all.join(" || ")))
        }
        Expr::Binary(op @ (Op2::And | Op2::Or), a, b) => {
            let (a, b) = (condition(a, looked)?, condition(b, looked)?);
            Some(format!("({a} {} {b})", op.symbol()))
        }
        Expr::Atom(_) | Expr::Const(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => None,
    }
}

fn location(out: &mut String, t: usize, thread: &Thread, l: LocationId, seen: bool) -> Option<()> {
    let steps: Vec<&Step> = thread.outgoing(l).iter().map(|s| thread.step(*s)).collect();
    let stop = format!("{{ at{t} = {}; return 0; }}", l.index() + 1);
    writeln!(out, "L{}:", l.index()).ok()?;
    let Some((last, others)) = steps.split_last() else {
        return writeln!(out, "  {stop}").ok();
    };
    let waits = steps.iter().any(|s| matches!(s.action, Action::Assume(_)));
    let comes_back = |s: &Step| s.target == l && s.source.index() >= l.index();
    let inside = thread.atomic[l.index()];
    if !inside && (seen || waits || thread.steps.iter().any(comes_back)) {
        writeln!(out, "  if (nondet_int()) {stop}").ok()?;
    }
    for step in others {
        let to = step.target.index();
        writeln!(
            out,
            "  if (nondet_int()) {{ {} goto L{to}; }}",
            statement(step)?
        )
        .ok()?;
    }
    writeln!(out, "  {} goto L{};", statement(last)?, last.target.index()).ok()
}

const FULL: &str = "__CPROVER_fence(\"WWfence\", \"RRfence\", \"RWfence\", \"WRfence\");";

fn statement(step: &Step) -> Option<String> {
    Some(match &step.action {
        Action::Skip => ";".into(),
        Action::Assign { register, value } => format!("r{} = {};", register.index(), local(value)?),
        Action::Assume(e) => format!("__CPROVER_assume({});", local(e)?),
        Action::Load { register, place } => {
            accessed(place, &|cell| format!("r{} = {cell};", register.index()))?
        }
        Action::Store { place, value } => {
            let value = local(value)?;
            accessed(place, &|cell| format!("{cell} = {value};"))?
        }
        Action::Fence(Fence::Full) => FULL.into(),
        Action::AtomicBegin(Section::Drained) => format!("{FULL} __CPROVER_atomic_begin();"),
        Action::AtomicEnd => format!("__CPROVER_atomic_end(); {FULL}"),
        Action::Fence(Fence::Store)
        | Action::AtomicBegin(Section::Buffered)
        | Action::Havoc { .. }
        | Action::Assert { .. }
        | Action::Lock
        | Action::Unlock => return None,
    })
}

/// Every cell is a variable: CBMC takes an array for one place.
fn accessed(place: &Address, with: &dyn Fn(&str) -> String) -> Option<String> {
    match place {
        Address::Cell(c) => Some(with(&format!("c{}", c.index()))),
        Address::Computed {
            base,
            length,
            index,
        } => {
            let index = local(index)?;
            let one = |i: u32| {
                let cell = with(&format!("c{}", base.0 + i));
                format!("if ({index} == {i}) {{ {cell} }} else ")
            };
            let all: String = (0..*length).map(one).collect();
            Some(format!("{all} __CPROVER_assume(0);"))
        }
    }
}

/// Casts are written differently there.
fn local(e: &Expr<RegisterId>) -> Option<String> {
    let leaf = |r: &RegisterId, f: &mut Formatter<'_>| write!(f, "r{}", r.index());
    let text = format!("({})", e.display(&leaf));
    let foreign = [
        "u1(", "u2(", "u4(", "u8(", "i8(", "u32(", "i32(", "u64(", "i64(",
    ];
    (!foreign.iter().any(|f| text.contains(f))).then_some(text)
}
