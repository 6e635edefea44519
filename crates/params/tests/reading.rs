//! What a `.cub` file is read as means what its text means: random formulas, written down with as few
//! parentheses as Cubicle's grammar needs, are evaluated here from their tree and by the machine from what the
//! reader made of the text, in many states, as guards and as bad states.

use std::collections::BTreeSet;
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;
use wattle_params::machine::{Candidates, Machine, State};
use wattle_random::Rng;

#[derive(Clone, Debug)]
enum F {
    Truth(bool),
    /// Two terms and how they are compared.
    Compared(&'static str, T, T),
    Not(Box<F>),
    And(Box<F>, Box<F>),
    Or(Box<F>, Box<F>),
    Implies(Box<F>, Box<F>),
    Equivalent(Box<F>, Box<F>),
    If(Box<[F; 3]>),
    Quantified(Quantifier, Vec<String>, Box<F>),
    /// A predicate, by its number, of threads.
    Call(usize, Vec<String>),
}

#[derive(Clone, Copy, Debug)]
struct Quantifier {
    all: bool,
    other: bool,
}

#[derive(Clone, Debug)]
enum T {
    Thread(String),
    /// A cell with its threads.
    Cell(&'static str, Vec<String>),
    /// A value, as it is written and as it is stored.
    Value(String, i64),
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Place,
    Truth,
    Thread,
    Number,
}

const CELLS: [(&str, usize, Kind); 7] = [
    ("PC", 1, Kind::Place),
    ("Told", 2, Kind::Truth),
    ("Three", 3, Kind::Truth),
    ("Next", 1, Kind::Thread),
    ("Turn", 0, Kind::Thread),
    ("Flag", 0, Kind::Truth),
    ("Count", 0, Kind::Number),
];

const DECLARED: &str = "type place = Here | There | Gone
array PC[proc] : place
array Told[proc, proc] : bool
array Three[proc, proc, proc] : bool
array Next[proc] : proc
var Turn : proc
var Flag : bool
var Count : int
";

/// Makes formulas.
struct Maker {
    rng: Rng,
    /// For each predicate its parameters and body.
    predicates: Vec<(Vec<String>, F)>,
}

impl Maker {
    fn thread(&mut self, known: &[String]) -> String {
        self.rng.pick(known).clone()
    }

    fn atom(&mut self, known: &[String]) -> F {
        if !self.predicates.is_empty() && self.rng.one_in(4) {
            let number = self.rng.below(self.predicates.len());
            let count = self.predicates[number].0.len();
            if count == 0 || !known.is_empty() {
                let args = (0..count).map(|_| self.thread(known)).collect();
                return F::Call(number, args);
            }
        }
        if self.rng.one_in(16) {
            return F::Truth(self.rng.one_in(2));
        }
        let possible: Vec<_> = CELLS
            .into_iter()
            .filter(|(_, arity, kind)| (*arity == 0 && *kind != Kind::Thread) || !known.is_empty())
            .collect();
        let (name, arity, kind) = *self.rng.pick(&possible);
        let args = (0..arity).map(|_| self.thread(known)).collect();
        let cell = T::Cell(name, args);
        let equal = ["=", "<>"];
        let ordered = ["=", "<>", "<", "<=", ">", ">="];
        let (operators, value) = match kind {
            Kind::Place => {
                let names = ["Here", "There", "Gone"];
                let n = self.rng.below(3);
                (&equal[..], T::Value(names[n].into(), n as i64))
            }
            Kind::Truth => {
                let n = self.rng.below(2);
                (&equal[..], T::Value(["False", "True"][n].into(), n as i64))
            }
            Kind::Thread => {
                let value = match self.rng.one_in(4) {
                    true => T::Cell("Turn", Vec::new()),
                    false => T::Thread(self.thread(known)),
                };
                let operators = if self.rng.one_in(3) {
                    &ordered[..]
                } else {
                    &equal[..]
                };
                (operators, value)
            }
            Kind::Number => {
                let n = self.rng.between(0, 2);
                (&ordered[..], T::Value(n.to_string(), n))
            }
        };
        let operator = *self.rng.pick(operators);
        match self.rng.one_in(2) {
            true => F::Compared(operator, cell, value),
            false => F::Compared(operator, value, cell),
        }
    }

    /// `quantifiers` are those that may be used, sometimes one within another.
    fn formula(&mut self, known: &[String], depth: usize, quantifiers: &[Quantifier]) -> F {
        if depth == 0 || self.rng.one_in(5) {
            return self.atom(known);
        }
        let kind = self.rng.below(8);
        let mut part =
            |quantifiers: &[Quantifier]| Box::new(self.formula(known, depth - 1, quantifiers));
        match kind {
            0 => F::Not(part(quantifiers)),
            1 => F::Or(part(quantifiers), part(quantifiers)),
            2 => F::Implies(part(quantifiers), part(quantifiers)),
            3 => F::Equivalent(part(quantifiers), part(quantifiers)),
            4 => F::If(Box::new([
                *part(quantifiers),
                *part(quantifiers),
                *part(quantifiers),
            ])),
            5 if !quantifiers.is_empty() => {
                let quantifier = *self.rng.pick(quantifiers);
                let count = if quantifier.other {
                    1
                } else {
                    1 + self.rng.below(2)
                };
                let bound: Vec<String> = (0..count).map(|i| format!("z{i}")).collect();
                let known = [known, &bound].concat();
                let inner = if self.rng.one_in(2) { quantifiers } else { &[] };
                let body = self.formula(&known, depth - 1, inner);
                F::Quantified(quantifier, bound, Box::new(body))
            }
            _ => F::And(part(quantifiers), part(quantifiers)),
        }
    }
}

/// The formula as text, where one of this level is needed: 0 for all of it, 1 what `||` joins, 2 what `&&` joins, 3 what
/// stands for itself. A quantifier reaches as far as it can, so it stands bare only at the end.
fn written(f: &F, level: usize, last: bool) -> String {
    let (own, bare) = match f {
        F::Implies(..) | F::Equivalent(..) => (0, true),
        F::Or(..) => (1, true),
        F::And(..) => (2, true),
        F::Quantified(..) => (3, last),
        F::Truth(_) | F::Compared(..) | F::Not(_) | F::If(_) | F::Call(..) => (3, true),
    };
    if own < level || !bare {
        return format!("({})", written(f, 0, true));
    }
    let two = |a: &F, how: &str, b: &F, left: usize, right: usize| {
        let (a, b) = (written(a, left, false), written(b, right, last));
        format!("{a} {how} {b}")
    };
    match f {
        F::Truth(b) => b.to_string(),
        F::Compared(how, a, b) => format!("{} {how} {}", term(a), term(b)),
        F::Not(a) => format!("not {}", written(a, 3, last)),
        F::And(a, b) => two(a, "&&", b, 3, 2),
        F::Or(a, b) => two(a, "||", b, 2, 1),
        F::Implies(a, b) => two(a, "=>", b, 1, 0),
        F::Equivalent(a, b) => two(a, "<=>", b, 1, 0),
        F::If(parts) => {
            let [c, a, b] = &**parts;
            let (c, a, b) = (
                written(c, 0, true),
                written(a, 0, true),
                written(b, 3, last),
            );
            format!("if {c} then {a} else {b}")
        }
        F::Quantified(q, bound, body) => {
            let word = if q.all { "forall" } else { "exists" };
            let other = if q.other { "_other" } else { "" };
            let bound = bound.join(" <> ");
            format!("{word}{other} {bound}. {}", written(body, 0, true))
        }
        F::Call(number, args) => format!("said{number}({})", args.join(", ")),
    }
}

fn term(t: &T) -> String {
    match t {
        T::Thread(name) | T::Value(name, _) => name.clone(),
        T::Cell(name, args) if args.is_empty() => (*name).to_string(),
        T::Cell(name, args) => format!("{name}[{}]", args.join(", ")),
    }
}

/// A state and what formulas say of it.
struct World<'m> {
    machine: &'m Machine<'m>,
    state: &'m State,
    predicates: &'m [(Vec<String>, F)],
    /// The parameters' threads: nobody of these is another.
    params: Vec<u8>,
}

type Env = Vec<(String, u8)>;

impl World<'_> {
    fn value(&self, t: &T, env: &Env) -> i64 {
        let thread = |name: &String| {
            let known = env.iter().rev().find(|(n, _)| n == name);
            known.unwrap_or_else(|| panic!("{name}")).1
        };
        match t {
            T::Thread(name) => i64::from(thread(name)),
            T::Value(_, value) => *value,
            T::Cell(name, args) => {
                let args: Vec<u8> = args.iter().map(thread).collect();
                self.state.values[place(self.machine, name, &args)]
            }
        }
    }

    fn holds(&self, f: &F, env: &Env) -> bool {
        self.says(f, env, true)
    }

    /// Whether the formula holds, or (not `yes`) its contrary, in which every comparison is turned round: neither
    /// where the order of nobody matters.
    fn says(&self, f: &F, env: &Env, yes: bool) -> bool {
        match f {
            F::Truth(b) => *b == yes,
            F::Compared(how, a, b) => {
                let cell = |t: &T| matches!(t, T::Cell("Turn" | "Next", _));
                let threads = cell(a) || cell(b);
                let (a, b) = (self.value(a, env), self.value(b, env));
                let nobody = threads && (a == 0 || b == 0);
                let holds = match *how {
                    "=" => return (a == b) == yes,
                    "<>" => return (a != b) == yes,
                    "<" => a < b,
                    "<=" => a <= b,
                    ">" => a > b,
                    _ => a >= b,
                };
                !nobody && holds == yes
            }
            F::Not(a) => self.says(a, env, !yes),
            F::And(a, b) | F::Or(a, b) => match matches!(f, F::And(..)) == yes {
                true => self.says(a, env, yes) && self.says(b, env, yes),
                false => self.says(a, env, yes) || self.says(b, env, yes),
            },
            F::Implies(a, b) => match yes {
                true => self.says(a, env, false) || self.holds(b, env),
                false => self.holds(a, env) && self.says(b, env, false),
            },
            F::Equivalent(a, b) => {
                self.holds(a, env) && self.says(b, env, yes)
                    || self.says(a, env, false) && self.says(b, env, !yes)
            }
            F::If(parts) => {
                let [c, a, b] = &**parts;
                self.holds(c, env) && self.says(a, env, yes)
                    || self.says(c, env, false) && self.says(b, env, yes)
            }
            F::Quantified(q, bound, body) => {
                let nobody: &[u8] = if q.other { &self.params } else { &[] };
                let mut found = different(self.machine.threads, bound.len(), nobody).into_iter();
                let with = |chosen: &Vec<u8>| {
                    let chosen = bound.iter().cloned().zip(chosen.iter().copied());
                    env.iter().cloned().chain(chosen).collect::<Env>()
                };
                match q.all == yes {
                    true => found.all(|c| self.says(body, &with(&c), yes)),
                    false => found.any(|c| self.says(body, &with(&c), yes)),
                }
            }
            F::Call(number, args) => {
                let (params, body) = &self.predicates[*number];
                let args = args.iter().map(|a| {
                    let known = env.iter().rev().find(|(n, _)| n == a);
                    known.expect("a thread").1
                });
                self.says(body, &params.iter().cloned().zip(args).collect(), yes)
            }
        }
    }
}

fn place(machine: &Machine<'_>, name: &str, args: &[u8]) -> usize {
    let cell = machine.system.cells.iter().position(|c| c.name == name);
    machine.position(cell.expect("a cell") as u16, args)
}

/// All choices of so many different threads, none of them one of these.
fn different(threads: u8, count: usize, but: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        let longer = |c: Vec<u8>| {
            let free = (1..=threads).filter(|t| !c.contains(t) && !but.contains(t));
            let free: Vec<u8> = free.collect();
            free.into_iter().map(move |t| [&c[..], &[t]].concat())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

fn state(machine: &Machine<'_>, rng: &mut Rng) -> State {
    let least = i64::from(!machine.system.may_be_nobody());
    let threads = i64::from(machine.threads);
    let mut values = Vec::new();
    for position in 0..machine.size() {
        let (cell, _) = machine.cell_at(position);
        let name = &machine.system.cells[usize::from(cell)].name;
        let kind = CELLS.iter().find(|(n, ..)| n == name).expect("a cell").2;
        values.push(match kind {
            Kind::Place | Kind::Number => rng.between(0, 2),
            Kind::Truth => rng.between(0, 1),
            Kind::Thread => rng.between(least, threads),
        });
    }
    State {
        values: values.into(),
        buffers: vec![Vec::new(); usize::from(machine.threads)],
    }
}

fn names(letters: &[&str], count: usize) -> Vec<String> {
    letters[..count].iter().map(ToString::to_string).collect()
}

#[test]
fn formulas_mean_what_they_say() {
    let all = |all, other| Quantifier { all, other };
    let in_guards = [
        all(true, false),
        all(true, true),
        all(false, false),
        all(false, true),
    ];
    let (mut read, mut refused, mut told) = (0, 0, [0; 2]);
    for seed in 0..600 {
        let mut maker = Maker {
            rng: Rng::new(seed),
            predicates: Vec::new(),
        };
        for _ in 0..maker.rng.below(3) {
            let count = maker.rng.below(3);
            let params = names(&["v", "w"], count);
            let body = maker.formula(&params, 2, &[]);
            maker.predicates.push((params, body));
        }
        let count = maker.rng.below(4);
        let bad = names(&["a", "b", "c"], count);
        let unsafe_when = maker.formula(&bad, 3, &[all(false, false)]);
        let count = maker.rng.below(4);
        let params = names(&["p", "q", "r"], count);
        let guard = maker.formula(&params, 3, &in_guards);
        let cases = [
            maker.formula(&params, 2, &in_guards),
            maker.formula(&params, 2, &in_guards),
            maker.formula(&[&params[..], &names(&["j"], 1)].concat(), 2, &in_guards),
        ];
        let nobody = maker.rng.one_in(3);
        let tried = Tried {
            predicates: maker.predicates,
            bad: (bad, unsafe_when),
            guard: (params, guard),
            cases,
        };
        let text = tried.text(nobody);
        let Some(system) = wattle_syntax::cubicle::parse(&text).system else {
            refused += 1;
            continue;
        };
        read += 1;
        for threads in 1..=3 {
            compare(&system, threads, &tried, &text, &mut told);
        }
    }
    assert!(
        read > 300 && refused < 300,
        "{read} read, {refused} refused"
    );
    assert!(told.iter().all(|n| *n > 2_000), "{told:?}");
}

/// A bad condition and a transition, each with its parameters, and when the transition stores what.
struct Tried {
    predicates: Vec<(Vec<String>, F)>,
    bad: (Vec<String>, F),
    guard: (Vec<String>, F),
    cases: [F; 3],
}

impl Tried {
    fn text(&self, nobody: bool) -> String {
        let mut text = DECLARED.to_string();
        for (n, (params, body)) in self.predicates.iter().enumerate() {
            let body = written(body, 0, true);
            text += &format!("predicate said{n} ({}) {{ {body} }}\n", params.join(", "));
        }
        let none = if nobody { " && Turn <> x" } else { "" };
        let [one, two, each] = &self.cases;
        text += &format!(
            "init (x) {{ PC[x] = Here{none} }}\nunsafe ({}) {{ {} }}\ntransition go ({})\nrequires {{ {} }}\n",
            self.bad.0.join(" "),
            written(&self.bad.1, 0, true),
            self.guard.0.join(" "),
            written(&self.guard.1, 0, true)
        );
        text += &format!(
            "{{ Count := case | {} : 7 | {} : 8 | _ : 9; PC[j] := case | {} : Gone | _ : PC[j]; ",
            written(one, 0, true),
            written(two, 0, true),
            written(each, 0, true)
        );
        // The first thread chosen is seen in the next state.
        if let Some(p) = self.guard.0.first() {
            text += &format!("Turn := {p}; ");
        }
        text + "}\n"
    }
}

/// The bad states and the steps of some states.
fn compare(system: &ArraySystem, threads: u8, tried: &Tried, text: &str, told: &mut [usize; 2]) {
    let machine = Machine::new(system, MemoryModel::Sc, threads);
    let candidates = Candidates::of(system);
    let mut rng = Rng::new(u64::from(threads));
    for _ in 0..30 {
        let mut state = state(&machine, &mut rng);
        let world = |params: &[u8], state: &State, f: &F, names: &[String], each: Option<u8>| {
            let named = names.iter().cloned().zip(params.iter().copied());
            let env = named.chain(each.map(|t| ("j".into(), t))).collect();
            let world = World {
                machine: &machine,
                state,
                predicates: &tried.predicates,
                params: params.to_vec(),
            };
            world.holds(f, &env)
        };
        let (bad, unsafe_when) = &tried.bad;
        let mut choices = different(threads, bad.len(), &[]).into_iter();
        let is_bad = choices.any(|c| world(&c, &state, unsafe_when, bad, None));
        assert_eq!(machine.bad(&state).is_some(), is_bad, "{state:?}\n{text}");
        let (params, guard) = &tried.guard;
        let choices = different(threads, params.len(), &[]).into_iter();
        let able = choices.filter(|c| world(c, &state, guard, params, None));
        let next: BTreeSet<Vec<i64>> = able
            .map(|c| {
                let [one, two, each] = &tried.cases;
                let mut next = state.values.to_vec();
                next[place(&machine, "Count", &[])] = match () {
                    () if world(&c, &state, one, params, None) => 7,
                    () if world(&c, &state, two, params, None) => 8,
                    () => 9,
                };
                for j in 1..=threads {
                    if world(&c, &state, each, params, Some(j)) {
                        next[place(&machine, "PC", &[j])] = 2;
                    }
                }
                if let Some(first) = c.first() {
                    next[place(&machine, "Turn", &[])] = i64::from(*first);
                }
                next
            })
            .collect();
        let mut found = BTreeSet::new();
        machine.successors(&mut state, &candidates, &mut |_, s| {
            found.insert(s.values.to_vec());
        });
        assert_eq!(found, next, "{state:?}\n{text}");
        told[usize::from(is_bad)] += 1;
    }
}
