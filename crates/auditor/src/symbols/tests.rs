//! A step over symbols, evaluated in a model, is the step of the machine.

use super::{Path, Symbols, Value};
use std::collections::BTreeMap;
use wattle_logic::{Answer, Formula, Model, Native, Solver, Var, eq};
use wattle_memory::content::Entry;
use wattle_memory::layout::Epochs;
use wattle_memory::reference::{Machine, State, StateOf};
use wattle_memory::rules::Stuck;
use wattle_memory::{Bounds, Exact, FaultKind, Layout, Pso, Sc, Tso};
use wattle_model::graph::{Action, Section};
use wattle_model::{
    ArithmeticError, Count, Counts, Domain, Expr, Instance, Numbers, Op1, Op2, ThreadId, Type,
};
use wattle_random::{Rng, Shape, program, wild};

/// A layout whose exact buffers can be mapped from one domain to another.
trait Mapped: Layout {
    fn map<V: Clone + std::fmt::Debug + Eq + Ord + std::hash::Hash, W>(
        buffer: &Self::Buffer<Exact<V>>,
        each: &mut dyn FnMut(&V) -> W,
    ) -> Self::Buffer<Exact<W>>
    where
        W: Clone + std::fmt::Debug + Eq + Ord + std::hash::Hash;
}

impl Mapped for Sc {
    fn map<V, W>((): &(), _: &mut dyn FnMut(&V) -> W) {}
}

fn mapped<V, W>(content: &Exact<V>, each: &mut dyn FnMut(&V) -> W) -> Exact<W> {
    Exact(content.0.iter().map(|(c, v)| (*c, each(v))).collect())
}

impl Mapped for Tso {
    fn map<V, W>(buffer: &Exact<V>, each: &mut dyn FnMut(&V) -> W) -> Exact<W> {
        mapped(buffer, each)
    }
}

impl Mapped for Pso {
    fn map<V, W>(buffer: &Epochs<Exact<V>>, each: &mut dyn FnMut(&V) -> W) -> Epochs<Exact<W>> {
        let epochs = buffer.epochs.iter();
        Epochs {
            epochs: epochs
                .map(|e| e.iter().map(|(c, b)| (*c, mapped(b, each))).collect())
                .collect(),
            fenced: buffer.fenced,
        }
    }
}

fn map_state<L: Mapped, V, W>(
    state: &StateOf<L, Exact<V>>,
    each: &mut dyn FnMut(&V) -> W,
) -> StateOf<L, Exact<W>>
where
    V: Clone + std::fmt::Debug + Eq + Ord + std::hash::Hash,
    W: Clone + std::fmt::Debug + Eq + Ord + std::hash::Hash,
{
    State {
        locations: state.locations.clone(),
        registers: (state.registers.iter())
            .map(|row| row.iter().map(&mut *each).collect())
            .collect(),
        memory: state.memory.iter().map(&mut *each).collect(),
        buffers: state.buffers.iter().map(|b| L::map(b, each)).collect(),
        holder: state.holder,
    }
}

/// What was compared, by construct.
type Seen = BTreeMap<String, u64>;

fn operators<A>(e: &Expr<A>, seen: &mut Vec<String>) {
    match e {
        Expr::Const(_) | Expr::Atom(_) => {}
        Expr::Unary(op, a) => {
            seen.push(match op {
                Op1::Neg => "neg".into(),
                Op1::Not => "not".into(),
                Op1::BitNot => "bitnot".into(),
                Op1::Wrap { .. } => "wrap".into(),
            });
            operators(a, seen);
        }
        Expr::Binary(op, a, b) => {
            seen.push(op.symbol().into());
            operators(a, seen);
            operators(b, seen);
        }
        Expr::Ite(c, a, b) => {
            seen.push("?:".into());
            for e in [c, a, b] {
                operators(e, seen);
            }
        }
    }
}

fn constructs(
    action: &wattle_model::graph::Action<wattle_model::RegisterId, wattle_model::instance::Address>,
) -> Vec<String> {
    let mut seen = Vec::new();
    let kind = match action {
        Action::Skip => "skip",
        Action::Assign { value, .. } => {
            operators(value, &mut seen);
            "assign"
        }
        Action::Havoc { .. } => "havoc",
        Action::Assume(e) => {
            operators(e, &mut seen);
            "assume"
        }
        Action::Assert { condition, .. } => {
            operators(condition, &mut seen);
            "assert"
        }
        Action::Load { .. } => "load",
        Action::Store { value, .. } => {
            operators(value, &mut seen);
            "store"
        }
        Action::Fence(_) => "fence",
        Action::AtomicBegin(Section::Drained) => "begin",
        Action::AtomicBegin(Section::Buffered) => "begin buffered",
        Action::AtomicEnd => "end",
        Action::Lock => "lock",
        Action::Unlock => "unlock",
    };
    seen.push(kind.into());
    seen
}

fn random_value(rng: &mut Rng, ty: Type) -> i64 {
    let v = match rng.below(4) {
        0 => rng.between(-300, 300),
        _ => rng.between(-3, 4),
    };
    ty.admit(v).unwrap_or_else(|| {
        let (lo, hi) = ty.bounds().unwrap_or((0, 0));
        rng.between(lo, hi.min(lo.saturating_add(5)))
    })
}

fn state<L: Layout>(instance: &Instance, rng: &mut Rng) -> StateOf<L, Exact> {
    let bounds = Bounds::uniform((), instance.cells.len());
    let cells = instance.cells.iter();
    let memory = cells.map(|c| random_value(rng, c.ty)).collect();
    let mut buffers = Vec::new();
    for _ in &instance.threads {
        let mut buffer = L::empty::<Exact>(&bounds);
        for _ in 0..rng.below(3) {
            if rng.one_in(3) {
                L::store_fence::<Exact>(&mut buffer, &bounds);
            }
            if !instance.cells.is_empty() {
                let c = rng.below(instance.cells.len());
                let v = random_value(rng, instance.cells[c].ty);
                let entry: Entry = (wattle_model::CellId::new(c), v);
                let put = L::put::<Exact, _>(&mut Numbers, &mut buffer, &bounds, entry);
                assert!(put.is_ok());
            }
        }
        buffers.push(buffer);
    }
    let threads = instance.threads.iter();
    State {
        locations: instance.threads.iter().map(|t| t.entry).collect(),
        registers: threads
            .map(|t| {
                t.registers
                    .iter()
                    .map(|r| random_value(rng, r.ty))
                    .collect()
            })
            .collect(),
        memory,
        buffers,
        holder: match rng.below(3) {
            0 => Some(ThreadId::new(rng.below(instance.threads.len()))),
            _ => None,
        },
    }
}

/// What a step gives, as numbers.
#[derive(Debug, PartialEq)]
enum Result_<S> {
    Blocked,
    Next(S),
    Fault(FaultKind),
}

/// The one path that the values can take, and what is at its end there.
fn evaluated<T>(fixed: &[Formula], paths: Vec<Path<T>>) -> (T, Model) {
    let mut found = Vec::new();
    for path in paths {
        let query = [fixed, &path.when].concat();
        match Native::new().check(&query) {
            Answer::Sat(model) => found.push((path.then, model)),
            Answer::Unsat(_) => {}
            Answer::Unknown(why) => panic!("{why:?}"),
        }
    }
    assert_eq!(found.len(), 1, "exactly one path fits the values");
    found.remove(0)
}

fn number(model: &Model, v: &Value) -> i64 {
    match v {
        Value::Number(t) => t.eval(model).to_i64().expect("a machine word"),
        Value::Truth(f) => i64::from(f.eval(model)),
        Value::OneOf(..) => panic!("nothing here forgets"),
    }
}

fn compare<L: Mapped>(instance: &Instance, rng: &mut Rng, seen: &mut Seen) {
    let bounds = vec![Bounds::uniform((), instance.cells.len()); instance.threads.len()];
    let machine = Machine::<L, Exact>::without_choices(instance, bounds.clone());
    let symbolic = Machine::<L, Exact<Value>>::without_choices(instance, bounds);
    for t in instance.thread_ids() {
        let thread = instance.thread(t);
        for s in (0..thread.steps.len()).map(wattle_model::StepId::new) {
            let mut before = state::<L>(instance, rng);
            before.locations[t.index()] = thread.step(s).source;
            if thread.atomic[thread.step(s).source.index()] {
                before.buffers[t.index()] =
                    L::empty::<Exact>(&Bounds::uniform((), instance.cells.len()));
            }
            let mut symbols = Symbols::default();
            let mut fixed = Vec::new();
            let terms = map_state::<L, i64, Value>(&before, &mut |v| {
                let few = (-8..8).contains(v).then(|| vec![*v, *v + 1]);
                let x: Var = symbols.fresh();
                if let Some(few) = few {
                    symbols.few(x, few);
                }
                fixed.push(eq(x, *v));
                x.into()
            });
            let chosen = match &thread.step(s).action {
                Action::Havoc { .. } => {
                    let v = rng.between(-2, 3);
                    let x = symbols.fresh();
                    fixed.push(eq(x, v));
                    Some((v, Value::from(x)))
                }
                _ => None,
            };
            let given = chosen.as_ref().map(|c| c.0);
            let expected = match machine.enabled(&mut Numbers, &before, t, s) {
                false => Result_::Blocked,
                true => match machine.take(&mut Numbers, &before, t, s, given) {
                    Ok(next) => Result_::Next(next),
                    Err(Stuck::Fault(FaultKind::MachineOverflow)) => continue,
                    Err(Stuck::Fault(kind)) => Result_::Fault(kind),
                    Err(Stuck::Full) => panic!("exact buffers are never full"),
                    Err(Stuck::Refused(never)) => match never {},
                },
            };
            let paths = symbols.explore(|d| {
                symbolic.enabled(d, &terms, t, s).then(|| {
                    let value = chosen.as_ref().map(|c| c.1.clone());
                    symbolic.take(d, &terms, t, s, value)
                })
            });
            let (then, model) = evaluated(&fixed, paths.expect("few paths"));
            let value = |v: &Value| number(&model, v);
            let got = match then {
                None => Result_::Blocked,
                Some(Ok(next)) => {
                    Result_::Next(map_state::<L, Value, i64>(&next, &mut |v| value(v)))
                }
                Some(Err(Stuck::Refused(_))) => {
                    *seen.entry("refused".into()).or_default() += 1;
                    continue;
                }
                Some(Err(Stuck::Full)) => panic!("exact buffers are never full"),
                Some(Err(Stuck::Fault(kind))) => Result_::Fault(match kind {
                    FaultKind::Assertion { message } => FaultKind::Assertion { message },
                    FaultKind::IndexOutOfRange { index, length } => FaultKind::IndexOutOfRange {
                        index: value(&index),
                        length,
                    },
                    FaultKind::ValueOutOfRange { value: v, lo, hi } => {
                        let value = value(&v);
                        FaultKind::ValueOutOfRange { value, lo, hi }
                    }
                    FaultKind::DivisionByZero => FaultKind::DivisionByZero,
                    FaultKind::ShiftOutOfRange => FaultKind::ShiftOutOfRange,
                    FaultKind::MachineOverflow => continue,
                }),
            };
            assert_eq!(got, expected, "{:?}", thread.step(s).action);
            for construct in constructs(&thread.step(s).action) {
                *seen.entry(construct).or_default() += 1;
            }
            *seen
                .entry(match got {
                    Result_::Blocked => "blocked".into(),
                    Result_::Next(_) => "next".into(),
                    Result_::Fault(_) => "fault".into(),
                })
                .or_default() += 1;
        }
        let before = state::<L>(instance, rng);
        let mut symbols = Symbols::default();
        let mut values = Vec::new();
        let terms = map_state::<L, i64, Value>(&before, &mut |v| {
            let x = symbols.fresh();
            values.push((x, wattle_logic::Int::from(*v)));
            x.into()
        });
        let model: Model = values.into_iter().collect();
        let after = |d| machine.drain(&mut Numbers, &before, t, d);
        let expected: Vec<_> = machine.drains(&before, t).iter().map(after).collect();
        let drains = symbolic.drains(&terms, t);
        let after = drains
            .iter()
            .map(|d| symbolic.drain(&mut symbols, &terms, t, d));
        let got: Vec<_> = after
            .map(|s| map_state::<L, Value, i64>(&s, &mut |v| number(&model, v)))
            .collect();
        assert_eq!(got, expected);
        *seen.entry("drain".into()).or_default() += got.len() as u64;
    }
}

#[test]
fn the_step_of_a_random_program_is_the_same_over_symbols() {
    let mut seen = Seen::new();
    let shape = Shape {
        faults: true,
        threads: 2,
        ..Shape::default()
    };
    for seed in 0..1000 {
        let program = match seed % 2 {
            0 => program(seed, &shape),
            _ => wild(seed),
        };
        let counts = program.families.iter().filter(|f| f.count == Count::Any);
        let counts = Counts(counts.map(|f| (f.name.clone(), 2)).collect());
        let Ok(instance) = program.instantiate(&counts) else {
            continue;
        };
        if instance.threads.is_empty() {
            continue;
        }
        let mut rng = Rng::new(seed);
        compare::<Sc>(&instance, &mut rng, &mut seen);
        compare::<Tso>(&instance, &mut rng, &mut seen);
        compare::<Pso>(&instance, &mut rng, &mut seen);
    }
    println!("{seen:?}");
    let wanted = "skip assign havoc assume assert load store fence begin end lock unlock drain \
                  blocked next fault neg not bitnot wrap ?: + - * / % & | ^ << >> == != < <= > >= && ||";
    for construct in wanted.split_whitespace() {
        let n = seen.get(construct).copied().unwrap_or(0);
        assert!(n > 0, "`{construct}` was never compared");
    }
    let refused = seen.get("refused").copied().unwrap_or(0);
    assert!(refused * 4 < seen["next"], "{refused} refused");
}

/// Each operator on every pair of small numbers, with the right one, the left one, both or neither
/// known to the domain.
#[test]
fn every_operator_on_small_numbers() {
    let all = [
        Op2::Add,
        Op2::Sub,
        Op2::Mul,
        Op2::Div,
        Op2::Rem,
        Op2::BitAnd,
        Op2::BitOr,
        Op2::BitXor,
        Op2::Shl,
        Op2::Shr,
        Op2::Eq,
        Op2::Ne,
        Op2::Lt,
        Op2::Le,
        Op2::Gt,
        Op2::Ge,
        Op2::And,
        Op2::Or,
    ];
    for op in all {
        for a in -5..=5i64 {
            for b in -5..=5i64 {
                for known in 0..4 {
                    let expected = op.apply(a, b);
                    let mut symbols = Symbols::default();
                    let mut fixed = Vec::new();
                    let mut operand = |v: i64, constant: bool| match constant {
                        true => symbols.constant(v),
                        false => {
                            let x = symbols.fresh();
                            symbols.few(x, vec![v - 1, v, v + 1]);
                            fixed.push(eq(x, v));
                            x.into()
                        }
                    };
                    let x = operand(a, known & 1 == 1);
                    let y = operand(b, known & 2 == 2);
                    let paths = symbols.explore(|d| d.binary(op, x.clone(), y.clone()));
                    let (then, model) = evaluated(&fixed, paths.expect("few paths"));
                    let got = match then {
                        Ok(v) => Ok(number(&model, &v)),
                        Err(wattle_model::NoValue::Error(e)) => Err(e),
                        Err(wattle_model::NoValue::Refused(r)) => panic!("{op:?} {a} {b}: {r:?}"),
                    };
                    if expected != Err(ArithmeticError::Overflow) {
                        assert_eq!(got, expected, "{a} {} {b}", op.symbol());
                    }
                }
            }
        }
    }
    // A number of which nothing is known, and any other.
    let all = [Op2::BitAnd, Op2::BitOr, Op2::BitXor];
    let others = [
        0,
        1,
        4,
        5,
        6,
        12,
        0x1ff,
        0xffff_fffc,
        i64::MAX,
        i64::MIN,
        i64::MIN + 9,
    ];
    for (op, a) in all
        .iter()
        .flat_map(|op| (-20..=20i64).map(move |a| (*op, a * 37)))
    {
        for k in others.iter().flat_map(|k| [*k, !*k]) {
            for left in [false, true] {
                let mut symbols = Symbols::default();
                let x = symbols.fresh();
                let k_said = symbols.constant(k);
                let paths = symbols.explore(|d| match left {
                    true => d.binary(op, x.into(), k_said.clone()),
                    false => d.binary(op, k_said.clone(), x.into()),
                });
                let (then, model) = evaluated(&[eq(x, a)], paths.expect("few paths"));
                let got = then.map(|v| number(&model, &v));
                assert_eq!(got.ok(), op.apply(a, k).ok(), "{a} {} {k}", op.symbol());
            }
        }
    }
    // At the ends of 64 bits numbers go round as the machine's do.
    let ends = [i64::MIN, i64::MIN + 1, -1, 0, 3, i64::MAX - 1, i64::MAX];
    for (op, a) in [Op2::Add, Op2::Sub, Op2::Mul]
        .iter()
        .flat_map(|op| ends.map(|a| (*op, a)))
    {
        for (b, signed) in ends.iter().flat_map(|b| [(*b, true), (*b, false)]) {
            let cut = Op1::Wrap { bits: 64, signed };
            let mut symbols = Symbols::default();
            let x = symbols.fresh();
            let paths = symbols.explore(|d| {
                let b = d.constant(b);
                d.modular(op, x.into(), b).and_then(|v| d.unary(cut, v))
            });
            let (then, model) = evaluated(&[eq(x, a)], paths.expect("few paths"));
            let got = then.map(|v| number(&model, &v)).ok();
            assert_eq!(got, op.apply_modular(a, b).ok(), "{a} {} {b}", op.symbol());
        }
    }
    for bits in [1u8, 2, 3, 8] {
        for signed in [false, true] {
            for a in -20..=20i64 {
                let op = Op1::Wrap { bits, signed };
                let mut symbols = Symbols::default();
                let x = symbols.fresh();
                let paths = symbols.explore(|d| d.unary(op, x.into()));
                let (then, model) = evaluated(&[eq(x, a)], paths.expect("few paths"));
                let got = then.map(|v| number(&model, &v));
                assert_eq!(got.ok(), op.apply(a).ok(), "{op:?} of {a}");
            }
        }
    }
}

/// A number known to lie between bounds is cut where it may lie outside, and only there.
#[test]
fn numbers_are_cut_at_the_ends_of_their_range() {
    for (bits, signed) in [1u8, 2, 3].iter().flat_map(|b| [(*b, true), (*b, false)]) {
        let op = Op1::Wrap { bits, signed };
        for (lo, hi) in (-9..=9i64).flat_map(|lo| (lo..=9).map(move |hi| (lo, hi))) {
            for a in [lo, hi] {
                let mut symbols = Symbols::default();
                let x = symbols.between(Some((lo, hi)));
                let paths = symbols.explore(|d| d.unary(op, x.into()));
                let (then, model) = evaluated(&[eq(x, a)], paths.expect("few paths"));
                let got = then.map(|v| number(&model, &v));
                assert_eq!(got.ok(), op.apply(a).ok(), "{op:?} of {a} in {lo}..{hi}");
            }
        }
    }
    for op in [Op2::Shl, Op2::Shr] {
        for by in [-1, 0, 1, 5, 62, 63, 64] {
            let mut symbols = Symbols::default();
            let x = symbols.fresh();
            let paths = symbols.explore(|d| {
                let by = d.constant(by);
                d.binary(op, x.into(), by)
            });
            let (then, model) = evaluated(&[eq(x, 1)], paths.expect("few paths"));
            match (then, op.apply(1, by)) {
                // 2^63 is no machine word.
                (Ok(_), Err(ArithmeticError::Overflow)) => {}
                (Ok(v), said) => assert_eq!(Ok(number(&model, &v)), said, "{op:?} {by}"),
                (Err(wattle_model::NoValue::Error(e)), said) => assert_eq!(Err(e), said),
                (Err(wattle_model::NoValue::Refused(r)), _) => panic!("{op:?} {by}: {r:?}"),
            }
        }
    }
}
