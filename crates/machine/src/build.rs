//! From functions to a graph: the code a thread runs, calls inlined.
//!
//! A node is an instruction in a context, the calls that led to it. After `cmpxchg` what follows is laid
//! out twice, for success and for failure, until a branch has looked at it: no flag has to be remembered.

use crate::bits::{Base, E, VarId};
use crate::graph::{self, ARGUMENTS, Graph, Op, Origin, RAX, RSP};
use crate::lift::{Lift, Micro, Next};
use crate::markers::{Marker, marker};
use crate::private;
use crate::thread;
use crate::world::{self, Refusal, World};
use std::collections::BTreeMap;
use wattle_model::FamilyId;
use wattle_model::program::Action;

/// Larger graphs are refused.
const MAX_NODES: usize = 1 << 14;
const MAX_DEPTH: usize = 64;
/// How many instructions the outcome of a `cmpxchg` is remembered.
const REMEMBERED: u8 = 40;

/// Where an address of the code that is no code stands for "back to the harness".
const HOME: i64 = 1;

/// Functions the harness gives a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stub {
    /// Nothing happens, nothing comes back.
    Skip,
    /// Nothing happens in memory; any number comes back.
    Havoc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub address: u64,
    context: usize,
    outcome: Option<(bool, u8)>,
}

struct Context {
    parent: Option<usize>,
    /// Where the call returns to.
    back: u64,
    function: u64,
    depth: usize,
}

pub struct Builder<'w> {
    pub world: &'w mut World,
    pub graph: Graph,
    pub refusals: Vec<Refusal>,
    pub stubs: &'w BTreeMap<String, Stub>,
    pub(crate) family: FamilyId,
    contexts: Vec<Context>,
    known: BTreeMap<(usize, u64, u64), usize>,
    nodes: BTreeMap<Key, usize>,
    work: Vec<Key>,
    /// Jumps and calls whose targets are computed.
    pub(crate) computed: Vec<Computed>,
}

/// A jump or a call to wherever an expression says.
pub(crate) struct Computed {
    pub at: usize,
    pub next: Next,
    pub after: u64,
    pub on: Key,
}

/// A call of the harness.
pub struct Call {
    pub function: u64,
    /// 64 bits each.
    pub arguments: Vec<E>,
    pub origin: Origin,
}

impl<'w> Builder<'w> {
    pub fn new(world: &'w mut World, stubs: &'w BTreeMap<String, Stub>, family: FamilyId) -> Self {
        Builder {
            family,
            world,
            graph: Graph::default(),
            refusals: Vec::new(),
            stubs,
            contexts: Vec::new(),
            known: BTreeMap::new(),
            nodes: BTreeMap::new(),
            work: Vec::new(),
            computed: Vec::new(),
        }
    }

    /// Lays out a call from a node; where it returns is given back, with the result in `rax`.
    pub fn call(&mut self, from: usize, call: &Call) -> usize {
        let home = self.graph.node();
        let origin = call.origin;
        let mut at = from;
        // The harness's values first: they are made of its own registers.
        for (k, v) in ARGUMENTS.iter().enumerate() {
            let value = call.arguments.get(k).cloned().unwrap_or(E::Unknown(64));
            at = self.graph.then(at, Op::Assign(*v, value), origin);
        }
        for v in graph::state() {
            if ARGUMENTS.contains(&v) || v == RSP {
                continue;
            }
            let width = self.graph.vars.width(v);
            at = self
                .graph
                .then(at, Op::Assign(v, E::Unknown(width)), origin);
        }
        let top = E::Address(Base::Stack, -8);
        at = self.graph.then(at, Op::Assign(RSP, top.clone()), origin);
        let store = Op::Store {
            at: crate::graph::Access {
                address: top,
                bytes: 8,
                locked: false,
            },
            value: E::Address(Base::Code, HOME),
        };
        at = self.graph.then(at, store, origin);
        self.contexts.push(Context {
            parent: None,
            back: home as u64,
            function: call.function,
            depth: 0,
        });
        let key = Key {
            address: call.function,
            context: self.contexts.len() - 1,
            outcome: None,
        };
        let start = self.node(key);
        self.graph.edge(at, Op::Nop, start, origin);
        self.run();
        home
    }

    pub(crate) fn refuse(&mut self, address: u64, what: impl Into<String>) {
        let refusal = Refusal::at(address, what);
        if self.refusals.len() < 20 && !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }

    pub(crate) fn refuse_as_too_large(&mut self, address: u64) {
        self.refuse(
            address,
            "the program is too large once its calls are inlined",
        );
    }

    /// The function that is called first.
    pub(crate) fn first(&self) -> u64 {
        self.contexts.first().map_or(0, |c| c.function)
    }

    pub(crate) fn node(&mut self, key: Key) -> usize {
        if let Some(known) = self.nodes.get(&key) {
            return *known;
        }
        let n = self.graph.node();
        self.graph.nodes[n].origin = Some(Origin::Code(key.address));
        self.nodes.insert(key, n);
        self.work.push(key);
        n
    }

    pub(crate) fn run(&mut self) {
        while let Some(key) = self.work.pop() {
            if self.graph.nodes.len() > MAX_NODES {
                self.refuse_as_too_large(key.address);
                self.work.clear();
                return;
            }
            if let Err(what) = self.instruction(key) {
                self.refuse(key.address, what);
            }
        }
    }

    fn instruction(&mut self, key: Key) -> Result<(), String> {
        let from = self.nodes[&key];
        let (i, offsets) = self.world.decode(key.address)?;
        let mut addresses = world::ahead(self.world, &i);
        let image = &self.world.image;
        let mut lift = Lift::new(image, &mut addresses, &mut self.graph.vars, offsets);
        let next = lift.instruction(&i)?;
        let ops = lift.ops();
        let mut ends = vec![(from, None)];
        self.lay(&mut ends, &ops, Origin::Code(key.address));
        let after = i.next_ip();
        for (at, told) in ends {
            let outcome = match (told, key.outcome) {
                (Some(bit), _) => Some((bit, REMEMBERED)),
                (None, Some((_, 0)) | None) => None,
                (None, Some((bit, n))) => Some((bit, n - 1)),
            };
            let on = Key { outcome, ..key };
            self.follow(at, &next, after, on)?;
        }
        Ok(())
    }

    /// Lays operations out behind every end.
    fn lay(&mut self, ends: &mut Vec<(usize, Option<bool>)>, ops: &[Micro], origin: Origin) {
        for op in ops {
            match op {
                Micro::Op(op) => {
                    for (at, _) in ends.iter_mut() {
                        *at = self.graph.then(*at, op.clone(), origin);
                    }
                }
                Micro::Either(orders) => {
                    for (at, _) in ends.iter_mut() {
                        let joined = self.graph.node();
                        for order in orders {
                            let mut end = *at;
                            for op in order {
                                end = self.graph.then(end, op.clone(), origin);
                            }
                            self.graph.edge(end, Op::Nop, joined, origin);
                        }
                        *at = joined;
                    }
                }
                Micro::If(condition, yes, no) => {
                    let mut all = Vec::new();
                    for (at, _) in ends.iter() {
                        for (bit, branch) in [(true, yes), (false, no)] {
                            let c = match bit {
                                true => condition.clone(),
                                false => condition.clone().inverted(),
                            };
                            let start = self.graph.then(*at, Op::Assume(c), origin);
                            let mut inner = vec![(start, Some(bit))];
                            self.lay(&mut inner, branch, origin);
                            all.extend(inner.into_iter().map(|(at, _)| (at, Some(bit))));
                        }
                    }
                    *ends = all;
                }
            }
        }
    }

    pub(crate) fn follow(
        &mut self,
        at: usize,
        next: &Next,
        after: u64,
        on: Key,
    ) -> Result<(), String> {
        let origin = Origin::Code(on.address);
        match next {
            Next::Fall => self.go(at, after, on),
            Next::Branch(condition, target) => {
                let plain = Key {
                    outcome: None,
                    ..on
                };
                let taken = self.node(Key {
                    address: *target,
                    ..plain
                });
                let other = self.node(Key {
                    address: after,
                    ..plain
                });
                self.graph
                    .edge(at, Op::Assume(condition.clone()), taken, origin);
                let refused = condition.clone().inverted();
                self.graph.edge(at, Op::Assume(refused), other, origin);
            }
            Next::Trap(why) => self.fail(at, why.clone(), origin),
            Next::Jump(E::Address(Base::Code, target)) => {
                let target = *target as u64;
                match self.meaning(target)? {
                    Some(meaning) => {
                        if let Some(at) = self.mark(at, meaning, origin) {
                            self.back(at, on);
                        }
                    }
                    None => self.go(at, target, on),
                }
            }
            Next::Call(E::Address(Base::Code, target)) => {
                let target = *target as u64;
                match self.meaning(target)? {
                    Some(meaning) => {
                        if let Some(at) = self.mark(at, meaning, origin) {
                            self.go(at, after, on);
                        }
                    }
                    None => self.enter(at, target, after, on)?,
                }
            }
            Next::Jump(_) | Next::Call(_) => self.computed.push(Computed {
                at,
                next: next.clone(),
                after,
                on,
            }),
            Next::Return => self.back(at, on),
        }
        Ok(())
    }

    fn go(&mut self, at: usize, address: u64, on: Key) {
        let to = self.node(Key { address, ..on });
        self.graph.edge(at, Op::Nop, to, Origin::Code(on.address));
    }

    pub(crate) fn fail(&mut self, at: usize, why: String, origin: Origin) {
        let end = self.graph.node();
        self.graph
            .edge(at, Op::Assert(E::bool(false), why), end, origin);
    }

    /// What a called address means if it is not to be entered.
    fn meaning(&mut self, target: u64) -> Result<Option<Marker>, String> {
        let Some(name) = self.world.function_name(target).map(str::to_string) else {
            return Ok(None);
        };
        let plain = crate::image::plain_name(&name);
        // As in calls, the end of a path is enough; who says more of it is meant.
        let said = |s: &&String| {
            **s == name
                || plain
                    .strip_suffix(s.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
        };
        let said = self.stubs.keys().filter(said).max_by_key(|s| s.len());
        match said.and_then(|s| self.stubs.get(s)) {
            Some(Stub::Skip) => return Ok(Some(Marker::Nothing)),
            Some(Stub::Havoc) => return Ok(Some(Marker::Any)),
            None => {}
        }
        match marker(&name) {
            Some(m) => Ok(Some(m)),
            None if self.world.image.externs.contains_key(&target) => {
                let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let said = match plain.chars().all(word) {
                    true => plain.clone(),
                    false => format!("`{plain}`"),
                };
                let more = match plain == name {
                    true => "",
                    false => "add the library that defines it (`object \"lib….rlib\";`), or ",
                };
                self.world.missing.insert(name);
                Err(format!(
                    "`{plain}` is called but not defined in this file; {more}say “skip {said};” or “havoc {said};” if it does nothing to shared memory"
                ))
            }
            None => Ok(None),
        }
    }

    /// Does what a marker says; `None` if nothing comes after.
    fn mark(&mut self, at: usize, marker: Marker, origin: Origin) -> Option<usize> {
        let argument = E::Var(ARGUMENTS[0], 64).extract(0, 32);
        let truth = E::same(argument, E::constant(0, 32)).inverted();
        let mut result = E::Unknown(64);
        let mut at = match marker {
            Marker::Label(name) => {
                let here = self.graph.then(at, Op::Nop, origin);
                self.graph.nodes[here].labels.push(name);
                self.graph.nodes[here].origin = Some(origin);
                self.graph.then(here, Op::Model(Action::Skip), origin)
            }
            Marker::Assert => {
                let why = "`wattle_assert` failed".to_string();
                self.graph.then(at, Op::Assert(truth, why), origin)
            }
            Marker::Assume => self.graph.then(at, Op::Assume(truth), origin),
            Marker::Any => {
                let any = self.graph.vars.fresh(32, "any");
                result = E::Var(any, 32).zext(64);
                self.graph.then(at, Op::Havoc(any), origin)
            }
            Marker::Nothing => at,
            Marker::Library(_)
            | Marker::Syscall
            | Marker::Nanosleep
            | Marker::Errno
            | Marker::Itself
            | Marker::Argument => {
                let (at, back) = self.system(at, &marker, origin);
                result = back;
                at
            }
            Marker::Fails(why) => {
                self.fail(at, why, origin);
                return None;
            }
        };
        // The result is first: it may be made of an argument.
        for v in graph::state().filter(|v| clobbered(*v)) {
            let value = match v == RAX {
                true => result.clone(),
                false => E::Unknown(self.graph.vars.width(v)),
            };
            at = self.graph.then(at, Op::Assign(v, value), origin);
        }
        Some(at)
    }

    /// Gives the thread's variables their first values, before anything else.
    pub fn begin(&mut self) {
        let entry = self.graph.entry;
        let origin = Origin::Text(wattle_model::Span::NONE);
        let mut at = self.graph.node();
        self.graph.entry = at;
        let kept = private::words(self.world, self.family);
        for (address, value) in thread::words(self.world).into_iter().chain(kept) {
            let store = Op::Store {
                at: crate::graph::Access {
                    address,
                    bytes: value.width() / 8,
                    locked: false,
                },
                value,
            };
            at = self.graph.then(at, store, origin);
        }
        self.graph.edge(at, Op::Nop, entry, origin);
    }

    /// Enters a function of the file.
    fn enter(&mut self, at: usize, function: u64, after: u64, on: Key) -> Result<(), String> {
        let mut up = Some(on.context);
        while let Some(c) = up {
            if self.contexts[c].function == function {
                let name = self.world.place(function);
                return Err(format!("`{name}` calls itself: recursion is not supported"));
            }
            up = self.contexts[c].parent;
        }
        let depth = self.contexts[on.context].depth + 1;
        if depth > MAX_DEPTH {
            return Err(format!("calls are nested more than {MAX_DEPTH} deep"));
        }
        let fresh = self.contexts.len();
        let context = *self
            .known
            .entry((on.context, after, function))
            .or_insert(fresh);
        if context == fresh {
            self.contexts.push(Context {
                parent: Some(on.context),
                back: after,
                function,
                depth,
            });
        }
        let origin = Origin::Code(on.address);
        let below = E::Var(RSP, 64).plus(-8);
        let at = self.graph.then(at, Op::Assign(RSP, below), origin);
        let store = Op::Store {
            at: crate::graph::Access {
                address: E::Var(RSP, 64),
                bytes: 8,
                locked: false,
            },
            value: E::Address(Base::Code, after as i64),
        };
        let at = self.graph.then(at, store, origin);
        let key = Key {
            address: function,
            context,
            ..on
        };
        let to = self.node(key);
        self.graph.edge(at, Op::Nop, to, origin);
        Ok(())
    }

    /// Returns to whoever called.
    fn back(&mut self, at: usize, on: Key) {
        let origin = Origin::Code(on.address);
        let popped = self.graph.vars.fresh(64, "back");
        let load = Op::Load {
            to: popped,
            at: crate::graph::Access {
                address: E::Var(RSP, 64),
                bytes: 8,
                locked: false,
            },
        };
        let at = self.graph.then(at, load, origin);
        let above = E::Var(RSP, 64).plus(8);
        let at = self.graph.then(at, Op::Assign(RSP, above), origin);
        let Context { parent, back, .. } = self.contexts[on.context];
        let address = match parent {
            Some(_) => back as i64,
            None => HOME,
        };
        let same = E::same(E::Var(popped, 64), E::Address(Base::Code, address));
        let why = "the return address is not known to be where the call left it";
        let at = self.graph.then(at, Op::Require(same, why.into()), origin);
        match parent {
            Some(context) => {
                let to = self.node(Key {
                    address: back,
                    context,
                    ..on
                });
                self.graph.edge(at, Op::Nop, to, origin);
            }
            None => self.graph.edge(at, Op::Nop, back as usize, origin),
        }
    }
}

/// Registers a function may leave with any value.
fn clobbered(v: VarId) -> bool {
    // rax rcx rdx rsi rdi r8 r9 r10 r11, the flags, and all vectors
    matches!(v.0, 0 | 1 | 2 | 6..=11 | 16..)
}
