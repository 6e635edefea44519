//! A program with holes, and the code that fills them.

use crate::bits::{Base, E, VarId};
use crate::build::{Builder, Call, Stub};
use crate::graph::{Access, Graph, Op, Origin, RAX};
use crate::image::Image;
use crate::layout::{self, Seen};
use crate::listing::Listing;
use crate::memory::{Fields, Kind, follows_null, spot};
use crate::passes::{self, effective};
use crate::world::{Contents, Copies, Object, Refusal, World};
use crate::{Problem, emit, private, shown, signs, split, together};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::{
    Count, Expr, Family, FamilyId, Init, Length, Local, Op2, Program, RegionId, Span, Type,
    validate,
};
use wattle_syntax::Diagnostic;
use wattle_syntax::wtl::{self, Link, Size};

/// A program with its code, and the text that places in it speak of: the program's own, then the code.
pub struct Filled {
    pub program: Program,
    pub listing: Listing,
}

/// Why the holes of a program could not be filled.
#[derive(Debug)]
pub struct Unfilled {
    pub diagnostics: Vec<Diagnostic>,
    /// Functions that are called and are not there, as the linker calls them.
    pub missing: BTreeSet<String>,
}

/// Fills the holes of a program with the code of an image. The code's lines come after those of the text.
pub fn fill(program: Program, link: &Link, image: Image, text: &str) -> Result<Filled, Unfilled> {
    // First where threads keep what only they touch.
    let keep = private::candidates(&program, link, &looked_at(&program));
    // With one alone no offset leads from it into another; without a property it may be asked what is in it.
    if keep.len() == 1 && !program.properties.is_empty() {
        let mut world = World::new(image.clone());
        world.keep = keep;
        if let Ok(filled) = filled(program.clone(), link, &mut world, text) {
            return Ok(filled);
        }
    }
    let mut world = World::new(image);
    filled(program, link, &mut world, text).map_err(|diagnostics| Unfilled {
        diagnostics,
        missing: std::mem::take(&mut world.missing),
    })
}

fn filled(
    mut program: Program,
    link: &Link,
    world: &mut World,
    text: &str,
) -> Result<Filled, Vec<Diagnostic>> {
    let first = link.calls.first().map_or(Span::NONE, |c| c.span);
    let told = |world: &World, refusals: Vec<Refusal>| -> Vec<Diagnostic> {
        let all: BTreeSet<Refusal> = refusals.into_iter().collect();
        let all = all.into_iter().take(20);
        all.map(|r| Diagnostic::error(first, world.describe(&r)))
            .collect()
    };
    let mut rounds = 0;
    let (mut graphs, fields, kinds, seen, mut refusals) = loop {
        let Laid {
            mut graphs,
            fields,
            mut kinds,
            mut refusals,
        } = lay(&program, link, world)?;
        if !refusals.is_empty() && graphs.is_empty() {
            return Err(told(world, refusals));
        }
        rounds += 1;
        let more = rounds < 8 && shown::more(&graphs, &kinds, world);
        // Of what a thread keeps to itself nobody else gets the address.
        let mut shown = world.shown.values().flatten();
        if !world.keep.is_empty() && shown.any(|(_, end)| *end > private::START) {
            let what = "an address of what a thread keeps to itself".to_string();
            let address = None;
            return Err(told(world, vec![Refusal { address, what }]));
        }
        if more || rounds < 8 && together::together(&graphs, &kinds, &fields, world) {
            world.again();
            continue;
        }
        let mut seen = accesses(&graphs, &kinds, &mut refusals);
        let parts = split::parts(&seen);
        if !parts.is_empty() && refusals.is_empty() {
            let looked = looked_at(&program);
            let looked = (0..world.objects.len()).filter(|k| {
                world.objects[*k]
                    .region
                    .is_some_and(|r| looked.contains(&r))
            });
            let loaded = split::loaded(&seen, &parts, &looked.collect());
            for (graph, kinds) in graphs.iter_mut().zip(&kinds) {
                let of = |v: VarId| kinds.get(&v).copied().unwrap_or(Kind::Number);
                let spot = |at: &Access| spot(&at.address, &of);
                refusals.extend(split::split(graph, &parts, &loaded, &spot, world));
                refusals.extend(passes::simplify(graph, &fields, &world.objects));
            }
            kinds = all_kinds(&graphs, &fields, world);
            seen = accesses(&graphs, &kinds, &mut refusals);
        }
        refusals.extend(shown::unwritten(&graphs, &kinds, &seen, world));
        // What was taken for granted of memory must be true of the program as it is now, where every store
        // goes to a place that is known.
        let last = self::fields(&mut graphs, world, &stored(&program, world));
        if refusals.is_empty() && !fields.covers(&last) {
            refusals.push(Refusal {
                address: None,
                what: "what is stored where becomes known too late".to_string(),
            });
        }
        break (graphs, fields, kinds, seen, refusals);
    };
    if !refusals.is_empty() {
        return Err(told(world, refusals));
    }
    let mut layout = match layout::layout(&seen, &fields, world, &mut program) {
        Ok(layout) => layout,
        Err(refusals) => return Err(told(world, refusals)),
    };
    let looked = looked_at(&program);
    graphs.iter_mut().for_each(passes::without_waiting);
    let numbers = |g: usize, at: &Access| layout.numbers(at, &kinds[g]);
    let bits = passes::narrow(&mut graphs, &numbers, &looked);
    graphs.iter_mut().for_each(passes::finish);
    graphs.iter_mut().for_each(close_sections);
    let kinds = all_kinds(&graphs, &fields, world);
    let signs = signs::signs(&graphs, &|g, at| layout.numbers(at, &kinds[g]));
    layout.settle(signs.regions, &bits, &mut program);
    let listing = Listing::new(&graphs, world, text);
    let span = |o: Origin| listing.span(o);
    let regions: BTreeSet<String> = program.regions.iter().map(|r| r.name.clone()).collect();
    let families = program.families.iter_mut().zip(&graphs).zip(&signs.vars);
    for (((family, graph), signs), kinds) in families.zip(kinds) {
        let memory = emit::Memory {
            objects: &world.objects,
            layout: &layout,
            regions: &regions,
        };
        if let Err(more) = emit::emit(family, graph, kinds, signs, memory, &span) {
            refusals.extend(more);
        }
    }
    if !refusals.is_empty() {
        return Err(told(world, refusals));
    }
    let program = program.canonical();
    let invalid: Vec<Diagnostic> = (validate(&program).into_iter().take(20))
        .map(|i| Diagnostic::error(i.span, i.message))
        .collect();
    match invalid.is_empty() {
        true => Ok(Filled { program, listing }),
        false => Err(invalid),
    }
}

/// Graphs of all families, with what is known of memory.
struct Laid {
    graphs: Vec<Graph>,
    fields: Fields,
    kinds: Vec<BTreeMap<VarId, Kind>>,
    refusals: Vec<Refusal>,
}

/// Lays out all families and simplifies them. Without graphs what was refused is all there is.
fn lay(program: &Program, link: &Link, world: &mut World) -> Result<Laid, Vec<Diagnostic>> {
    objects(program, link, world)?;
    shown::declare(world);
    let stubs: BTreeMap<String, Stub> = (link.skipped.iter())
        .map(|(n, havoc)| (n.clone(), if *havoc { Stub::Havoc } else { Stub::Skip }))
        .collect();
    let functions = functions(link, world)?;
    let mut graphs = Vec::new();
    let mut refusals = Vec::new();
    for number in 0..program.families.len() {
        let family = FamilyId::new(number);
        let (graph, more) = graph(family, program, link, &functions, &stubs, world)?;
        graphs.push(graph);
        refusals.extend(more);
    }
    if !refusals.is_empty() {
        return Ok(Laid {
            graphs: Vec::new(),
            fields: Fields::default(),
            kinds: Vec::new(),
            refusals,
        });
    }
    let stored = stored(program, world);
    let mut fields = fields(&mut graphs, world, &stored);
    let mut walks = false;
    for graph in &mut graphs {
        refusals.extend(passes::simplify(graph, &fields, &world.objects));
        walks |= passes::rebase(graph);
    }
    if walks {
        // More is known of where stores go.
        fields = self::fields(&mut graphs, world, &stored);
        for graph in &mut graphs {
            refusals.extend(passes::simplify(graph, &fields, &world.objects));
        }
    }
    let mut kinds = all_kinds(&graphs, &fields, world);
    for (graph, kinds) in graphs.iter_mut().zip(&mut kinds) {
        if failures(graph, kinds, &world.objects) {
            refusals.extend(passes::simplify(graph, &fields, &world.objects));
            *kinds = self::kinds(graph, &fields, world);
        }
    }
    Ok(Laid {
        graphs,
        fields,
        kinds,
        refusals,
    })
}

/// Objects the harness itself stores to.
fn stored(program: &Program, world: &World) -> BTreeSet<usize> {
    use wattle_model::{Place, program::Action};
    let mut all = BTreeSet::new();
    for s in program.families.iter().flat_map(|f| &f.steps) {
        if let Action::Store { place, .. } = &s.action {
            let to = |o: &Object| match place {
                Place::Region(r, _) => o.region == Some(*r),
                Place::Memory(_) => true,
            };
            all.extend((0..world.objects.len()).filter(|k| to(&world.objects[*k])));
        }
    }
    all
}

/// Regions the program itself looks at: they keep all their bits.
fn looked_at(program: &Program) -> BTreeSet<RegionId> {
    use wattle_model::{Observation, Place, program::Action};
    let mut all = BTreeSet::new();
    // Who looks at an address may look at anything.
    let mut anywhere = false;
    fn observed(e: &Expr<Observation>, all: &mut BTreeSet<RegionId>, anywhere: &mut bool) {
        e.for_each_atom(&mut |o| match o {
            Observation::Cell(r, index) | Observation::Seen(_, r, index) => {
                all.insert(*r);
                observed(index, all, anywhere);
            }
            Observation::Memory(_) => *anywhere = true,
            Observation::AddressOf(r) => {
                all.insert(*r);
            }
            Observation::Register(..)
            | Observation::At(..)
            | Observation::Index(_)
            | Observation::Count(_) => {}
        });
    }
    let conditions = program.properties.iter().map(|p| &p.condition);
    for c in conditions.chain(&program.predicates) {
        observed(&c.expr, &mut all, &mut anywhere);
    }
    for t in &program.temporal {
        t.for_each_condition(&mut |e| observed(e, &mut all, &mut anywhere));
    }
    for s in program.families.iter().flat_map(|f| &f.steps) {
        if let Action::Load { place, .. } | Action::Store { place, .. } = &s.action {
            match place {
                Place::Region(r, _) => drop(all.insert(*r)),
                Place::Memory(_) => anywhere = true,
            }
        }
    }
    if anywhere {
        all.extend((0..program.regions.len()).map(RegionId::new));
    }
    all
}

/// Memory the program declares for the code.
fn objects(program: &Program, link: &Link, world: &mut World) -> Result<(), Vec<Diagnostic>> {
    let mut wrong = Vec::new();
    for m in &link.memory {
        let region = program.region(m.region);
        let size = match &m.size {
            Size::Bytes(n) => *n,
            Size::Struct(name) => match world.lines.size_of(name) {
                Some(n) if n > 0 && n <= 1 << 20 => n,
                _ => {
                    let d = Diagnostic::error(
                        m.span,
                        format!("the size of `struct {name}` is not known"),
                    );
                    wrong.push(d.hint("compile with `-g`, or say it: `object(8)`"));
                    continue;
                }
            },
        };
        let copies = match region.length {
            Length::Scalar => Copies::One,
            Length::PerThread(f) => Copies::PerThread(f),
            Length::Array(n) => Copies::Array(n),
        };
        let init = match &region.init {
            Init::All(Expr::Const(0)) => Some(Vec::new()),
            Init::Each(all) => all
                .iter()
                .map(|e| e.as_const().and_then(|c| u8::try_from(c).ok()))
                .collect::<Option<Vec<u8>>>(),
            Init::All(_) | Init::Any => None,
        };
        let Some(init) = init.filter(|i| i.len() as u64 <= size) else {
            let d = Diagnostic::error(m.span, "these are no first bytes of the object");
            wrong.push(d.hint("a list of at most as many numbers from 0 to 255 as it has bytes"));
            continue;
        };
        world.objects.push(Object {
            name: region.name.clone(),
            size,
            copies,
            contents: vec![Contents {
                init,
                ..Contents::default()
            }],
            start: None,
            span: m.span,
            constant: false,
            region: Some(m.region),
            stack: None,
        });
        private::keep(world, world.objects.len() - 1);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn functions(link: &Link, world: &World) -> Result<BTreeMap<String, u64>, Vec<Diagnostic>> {
    let mut all = BTreeMap::new();
    let mut wrong = Vec::new();
    for c in &link.calls {
        match world.image.function(&c.function) {
            Ok(s) => drop(all.insert(c.function.clone(), s.address)),
            Err(p) => wrong.push(diagnostic(c.function_span, p)),
        }
    }
    if wrong.is_empty() {
        Ok(all)
    } else {
        Err(wrong)
    }
}

pub fn diagnostic(span: Span, p: Problem) -> Diagnostic {
    let d = Diagnostic::error(span, p.what);
    match p.hint {
        Some(hint) => d.hint(hint),
        None => d,
    }
}

/// A family's graph with its calls laid out.
fn graph(
    id: FamilyId,
    program: &Program,
    link: &Link,
    functions: &BTreeMap<String, u64>,
    stubs: &BTreeMap<String, Stub>,
    world: &mut World,
) -> Result<(Graph, Vec<Refusal>), Vec<Diagnostic>> {
    let declared: BTreeMap<_, _> = (world.objects.iter().enumerate())
        .filter_map(|(k, o)| Some((o.region?, k)))
        .collect();
    let family = program.family(id);
    let shown = shown::of(id, world);
    let mut builder = Builder::new(world, stubs, id);
    builder.graph.vars.shown = shown;
    for l in &family.locations {
        let n = builder.graph.node();
        builder.graph.nodes[n].labels = l.labels.clone();
        builder.graph.nodes[n].origin = Some(Origin::Text(l.span)).filter(|_| l.span.is_some());
    }
    builder.graph.entry = family.entry.index();
    let end = |k: &usize, at: &i64| at + builder.world.objects[*k].size as i64;
    let kept = builder.world.kept.iter().map(|(k, at)| (*at, end(k, at)));
    builder.graph.vars.kept = kept.collect();
    let mut wrong = Vec::new();
    for s in &family.steps {
        let (source, target) = (s.source.index(), s.target.index());
        let origin = Origin::Text(s.span);
        let Some(number) = wtl::as_hole(&s.action) else {
            builder
                .graph
                .edge(source, Op::Model(s.action.clone()), target, origin);
            continue;
        };
        let call = &link.calls[number];
        // A call is no place to stay at: the code has its own.
        let mut at = builder.graph.then(source, Op::Nop, origin);
        let mut arguments = Vec::new();
        for a in &call.arguments {
            match address(a, program, &declared, builder.world) {
                Ok(Some(e)) => arguments.push(e),
                Ok(None) => {
                    if let Some(c) = a.as_const() {
                        arguments.push(E::constant(c as u64, 64));
                        continue;
                    }
                    let width = bits(a, family);
                    let to = builder.graph.vars.fresh(width, "argument");
                    let value = a.clone();
                    at = builder.graph.then(at, Op::Import { to, value }, origin);
                    if width < 64 {
                        // How many threads there are may still be said otherwise.
                        let whole = builder.graph.vars.fresh(64, "argument");
                        let (to_all, value) = (whole, a.clone());
                        at = (builder.graph).then(at, Op::Import { to: to_all, value }, origin);
                        let same = E::same(E::Var(whole, 64), E::Var(to, width).zext(64));
                        let why = "more threads than the code was read for".to_string();
                        at = builder.graph.then(at, Op::Assert(same, why), origin);
                    }
                    arguments.push(E::Var(to, width).zext(64));
                }
                Err(what) => wrong.push(Diagnostic::error(call.span, what)),
            }
        }
        let back = builder.call(
            at,
            &Call {
                function: functions[&call.function],
                arguments,
                origin,
            },
        );
        match call.result {
            None => builder.graph.edge(back, Op::Nop, target, origin),
            Some(to) => {
                let value = result(family.registers[to.index()].ty);
                builder
                    .graph
                    .edge(back, Op::Export { to, value }, target, origin);
            }
        }
    }
    builder.resolve();
    builder.begin();
    match wrong.is_empty() {
        true => Ok((builder.graph, builder.refusals)),
        false => Err(wrong),
    }
}

/// How many bits an argument that is a number needs.
fn bits(argument: &Expr<Local>, family: &Family) -> u32 {
    let most = match argument {
        Expr::Atom(Local::SelfIndex) => match family.count {
            Count::Fixed(n) => i64::from(n.saturating_sub(1)),
            Count::One => 0,
            Count::Any => i64::MAX,
        },
        Expr::Atom(Local::Register(r)) => match family.registers[r.index()].ty {
            Type::Range { lo: 0.., hi } => hi,
            Type::Wrap {
                bits,
                signed: false,
            } if bits < 64 => (1 << bits) - 1,
            _ => i64::MAX,
        },
        _ => i64::MAX,
    };
    match most {
        i64::MAX => 64,
        most => (64 - most.leading_zeros()).max(1),
    }
}

/// As much of `rax` as the register that takes it has bits.
fn result(ty: Type) -> E {
    let rax = E::Var(RAX, 64);
    match ty {
        Type::Wrap { bits: 1..=8, .. } => rax.extract(0, 8),
        Type::Wrap { bits: 9..=16, .. } => rax.extract(0, 16),
        Type::Wrap { bits: 17..=32, .. } => rax.extract(0, 32),
        Type::Range { lo: 0, hi: 0..=255 } => rax.extract(0, 8),
        Type::Range { lo: 0, hi } if hi <= i64::from(u32::MAX) => rax.extract(0, 32),
        Type::Wrap { .. } | Type::Range { .. } | Type::Int | Type::Thread(_) => rax,
    }
}

/// An argument that is an address; `None` if it is a number.
fn address(
    e: &Expr<Local>,
    program: &Program,
    declared: &BTreeMap<RegionId, usize>,
    world: &World,
) -> Result<Option<E>, String> {
    let objects = &world.objects;
    let mut addresses = false;
    e.for_each_atom(&mut |a| addresses |= matches!(a, Local::AddressOf(_)));
    if !addresses {
        return Ok(None);
    }
    let object = |a: &Expr<Local>| match a {
        Expr::Atom(Local::AddressOf(r)) => match declared.get(r) {
            Some(k) => Ok(*k),
            None => {
                let name = &program.region(*r).name;
                Err(format!(
                    "`{name}` is no memory of the code; declare it as `shared {name}: object(8);`"
                ))
            }
        },
        _ => Err("this address cannot be given to the code".to_string()),
    };
    match e {
        Expr::Atom(Local::AddressOf(_)) => {
            let k = object(e)?;
            Ok(Some(match objects[k].copies {
                Copies::One => E::Address(Base::Object(k), 0),
                Copies::PerThread(_) | Copies::Array(_) => E::Address(Base::Element(k, 0), 0),
            }))
        }
        Expr::Binary(Op2::Add, a, b) => match (object(a)?, &**b) {
            (k, Expr::Atom(Local::SelfIndex)) if objects[k].copies != Copies::One => {
                Ok(Some(match world.kept.get(&k) {
                    Some(at) => E::Address(Base::Stack, *at),
                    None => E::Address(Base::Own(k), 0),
                }))
            }
            (k, Expr::Const(n)) if objects[k].copies == Copies::One => {
                Ok(Some(E::Address(Base::Object(k), *n)))
            }
            (k, Expr::Const(n)) => {
                let n = u32::try_from(*n).map_err(|_| "this is no element".to_string())?;
                Ok(Some(E::Address(Base::Element(k, n), 0)))
            }
            _ => Err("an element is chosen by `self` or by a number".to_string()),
        },
        _ => Err("this address cannot be given to the code".to_string()),
    }
}

/// What fields hold, from all stores of all threads, until nothing changes.
///
/// Where nothing else is stored than what was there at first holds that for ever. That is supposed of everything, and taken back where
/// a store is found: in the end every store that can be carried out if it is true leaves it true, and so it
/// is, from the first step on.
fn fields(graphs: &mut [Graph], world: &World, stored: &BTreeSet<usize>) -> Fields {
    let mut fields = Fields::of_harness(stored);
    loop {
        let before = fields.clone();
        for graph in graphs.iter_mut() {
            let solved = passes::solve(graph, &fields, &world.objects);
            let mut vars = std::mem::take(&mut graph.vars);
            for (n, node) in graph.nodes.iter().enumerate() {
                let Some(facts) = &solved.facts[n] else {
                    continue;
                };
                for edge in &node.out {
                    let op = effective(&edge.op, facts, &mut vars, &fields, &world.objects);
                    let Op::Store { at, value } = op else {
                        continue;
                    };
                    let of = |v: VarId| facts.kind_of(&E::Var(v, 64));
                    let to = spot(&at.address, &of);
                    // Following null is no store.
                    if to.is_some() || !follows_null(&at.address, &of) {
                        let stored = (facts.kind_of(&value), &value);
                        fields.learn(&world.objects, to.as_ref(), at.bytes, stored);
                    }
                }
            }
            graph.vars = vars;
        }
        if fields == before {
            return fields;
        }
    }
}

fn all_kinds(graphs: &[Graph], fields: &Fields, world: &World) -> Vec<BTreeMap<VarId, Kind>> {
    graphs.iter().map(|g| kinds(g, fields, world)).collect()
}

fn kinds(graph: &Graph, fields: &Fields, world: &World) -> BTreeMap<VarId, Kind> {
    emit::kinds(graph, &|at, kinds| {
        let of = |v: VarId| kinds.get(&v).copied().unwrap_or(Kind::Null);
        match spot(&at.address, &of) {
            Some(s) if s.index.is_none() => {
                fields.kind(&world.objects, (s.object, s.offset), at.bytes)
            }
            Some(_) => Kind::Number,
            None => Kind::Null,
        }
    })
}

/// Following what can only be null is a failure of the program, and so is leaving an object that the harness
/// declared; whether there was such an access. What comes after a variable of the file is another one, perhaps:
/// that is refused later.
fn failures(graph: &mut Graph, kinds: &BTreeMap<VarId, Kind>, objects: &[Object]) -> bool {
    let of = |v: VarId| kinds.get(&v).copied().unwrap_or(Kind::Number);
    let outside = |at: &Access| {
        let s = spot(&at.address, &of).filter(|s| s.index.is_none())?;
        let o = &objects[s.object];
        let end = s.offset.checked_add(i64::from(at.bytes));
        let inside = s.offset >= 0 && end.is_some_and(|e| e as u64 <= o.size);
        (!inside && o.start.is_none() && o.stack.is_none()).then(|| {
            format!(
                "{} bytes at offset {} are outside of `{}`, which has {}",
                at.bytes, s.offset, o.name, o.size
            )
        })
    };
    let mut any = false;
    for n in graph.reached() {
        for k in 0..graph.nodes[n].out.len() {
            let why = match &graph.nodes[n].out[k].op {
                Op::Load { at, .. } | Op::Store { at, .. } if follows_null(&at.address, &of) => {
                    Some("a null pointer is followed".to_string())
                }
                Op::Load { at, .. } | Op::Store { at, .. } => outside(at),
                _ => None,
            };
            if let Some(why) = why {
                let end = graph.node();
                let edge = &mut graph.nodes[n].out[k];
                edge.op = Op::Assert(E::bool(false), why);
                edge.to = end;
                any = true;
            }
        }
    }
    any
}

/// Where a locked instruction has failed nobody goes on, but no section is left open.
fn close_sections(graph: &mut Graph) {
    use wattle_model::program::Action;
    let mut open: BTreeMap<usize, Origin> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut work = vec![(graph.entry, false)];
    while let Some((n, within)) = work.pop() {
        if !seen.insert((n, within)) {
            continue;
        }
        for edge in &graph.nodes[n].out {
            let after = match &edge.op {
                Op::Begin | Op::Model(Action::AtomicBegin(_)) => true,
                Op::End | Op::Model(Action::AtomicEnd) => false,
                _ => within,
            };
            if after && graph.nodes[edge.to].out.is_empty() {
                open.insert(edge.to, edge.origin);
            }
            work.push((edge.to, after));
        }
    }
    for (n, origin) in open {
        graph.then(n, Op::End, origin);
    }
}

/// Every access of shared memory; what points nowhere is refused.
fn accesses(
    graphs: &[Graph],
    kinds: &[BTreeMap<VarId, Kind>],
    refusals: &mut Vec<Refusal>,
) -> Vec<Seen> {
    let mut seen = Vec::new();
    for (graph, kinds) in graphs.iter().zip(kinds) {
        accesses_of(graph, kinds, &mut seen, refusals);
    }
    seen
}

fn accesses_of(
    graph: &Graph,
    kinds: &BTreeMap<VarId, Kind>,
    seen: &mut Vec<Seen>,
    refusals: &mut Vec<Refusal>,
) {
    for edge in graph
        .reached()
        .into_iter()
        .flat_map(|n| &graph.nodes[n].out)
    {
        let at = match &edge.op {
            Op::Load { at, .. } | Op::Store { at, .. } => at,
            _ => continue,
        };
        let address = match edge.origin {
            Origin::Code(a) => Some(a),
            Origin::Text(_) => None,
        };
        if let Op::Store { value, .. } = &edge.op {
            let mut own = false;
            value.for_each(&mut |e| own |= matches!(e, E::Address(Base::Stack, _)));
            if own {
                let what = "the address of a variable that only this thread has is stored where others see it; that is \
                            not supported";
                refusals.push(Refusal {
                    address,
                    what: what.to_string(),
                });
            }
        }
        let of = |v: VarId| kinds.get(&v).copied().unwrap_or(Kind::Number);
        match spot(&at.address, &of) {
            Some(spot) => seen.push(Seen {
                spot,
                bytes: at.bytes,
                address,
                load: matches!(edge.op, Op::Load { .. }),
            }),
            None => {
                let what = match &at.address {
                    E::Address(Base::Stack, _) => {
                        "an access of the stack that is not aligned to its word"
                    }
                    E::Unknown(_) => "what this address points at is never defined",
                    _ => "what this address points at is not known",
                };
                let what = format!("{what}: {}", at.address);
                refusals.push(Refusal { address, what });
            }
        }
    }
}
