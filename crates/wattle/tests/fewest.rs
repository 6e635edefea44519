//! "Fewer do not suffice" is said of the source text: for random programs every smaller set of places
//! in the text is tried. The text alone is changed here; nothing is known of sites and locations.

use std::fmt::Write;
use wattle::fences::{FenceOptions, fences, write};
use wattle::{Control, Language, MemoryModel, Options, Outcome, Program, Verdict, check};
use wattle_random::{Rng, setting};

/// A line of text, or a place where a fence can be written.
enum Line {
    Text(String),
    Gap,
}

/// One of two threads: what it stores to, and its register.
struct Side {
    stores: &'static str,
    register: &'static str,
}

/// Where statements are.
#[derive(Clone, Copy)]
struct Inside {
    depth: usize,
    /// In a loop that has rounds.
    looped: bool,
}

impl Side {
    fn statements(&self, random: &mut Rng, number: usize, at: Inside, out: &mut Vec<Line>) {
        out.push(Line::Gap);
        for _ in 0..number {
            let cell = *random.pick(&["x", "y"]);
            let value = random.below(2);
            let within = |random: &mut Rng, out: &mut Vec<Line>, least: usize, looped: bool| {
                let number = least + random.below(3 - least);
                let depth = at.depth - 1;
                self.statements(random, number, Inside { depth, looped }, out);
            };
            let inside = |random: &mut Rng, out: &mut Vec<Line>, least: usize| {
                within(random, out, least, at.looped);
            };
            let rounds = |random: &mut Rng, out: &mut Vec<Line>, least: usize| {
                within(random, out, least, true);
            };
            // A jump that a test decides upon leaves what follows to be reached.
            if at.looped && random.below(8) == 0 {
                let jump = *random.pick(&["break", "continue"]);
                out.push(text(format!("if {cell} == {value} {{")));
                out.push(Line::Gap);
                if random.below(2) == 0 {
                    out.push(text(format!("{} = 1;", self.stores)));
                    out.push(Line::Gap);
                }
                out.push(text(format!("{jump};")));
                out.push(text("}"));
                out.push(Line::Gap);
                continue;
            }
            match random.below(if at.depth > 0 { 13 } else { 5 }) {
                0..=3 => out.push(text(format!("{} = {};", self.stores, value + 1))),
                4 => out.push(text(format!("{} = {cell};", self.register))),
                5 => {
                    out.push(text(format!("if {cell} == {value} {{")));
                    inside(random, out, 1);
                    out.push(text("}"));
                }
                6 => {
                    out.push(text(format!("if {} == {value} {{", self.register)));
                    inside(random, out, 1);
                    out.push(text("} else {"));
                    inside(random, out, 1);
                    out.push(text("}"));
                }
                7 | 8 => {
                    out.push(text(format!("while {cell} == {value} {{")));
                    rounds(random, out, 0);
                    out.push(text("}"));
                }
                9 => {
                    out.push(text("loop {"));
                    rounds(random, out, 1);
                    out.push(text(format!("if {cell} == {value} {{ break; }}")));
                    out.push(text("}"));
                }
                10 => {
                    out.push(text(format!("for i{} in 0..1 {{", out.len())));
                    rounds(random, out, 1);
                    out.push(text("}"));
                }
                11 => {
                    out.push(text("choose {"));
                    inside(random, out, 1);
                    out.push(text("} or {"));
                    inside(random, out, 1);
                    out.push(text("}"));
                }
                // A loop that is none to the eye, or a way past something.
                _ => {
                    let label = format!("l{}", out.len());
                    let jump = format!("if {cell} == {value} {{ goto {label}; }}");
                    if random.below(2) == 0 {
                        out.push(text(format!("{label}:")));
                        inside(random, out, 1);
                        out.push(text(jump));
                    } else {
                        out.push(text(jump));
                        inside(random, out, 1);
                        out.push(text(format!("{label}:")));
                    }
                }
            }
            out.push(Line::Gap);
        }
    }

    fn thread(
        &self,
        (name, first, last): (&str, &str, &str),
        random: &mut Rng,
        out: &mut Vec<Line>,
    ) {
        out.push(text(format!(
            "thread {name} {{ local {}, t; {first}",
            self.register
        )));
        let number = 1 + random.below(2);
        let at = Inside {
            depth: 2,
            looped: false,
        };
        self.statements(random, number, at, out);
        out.push(text(last));
        out.push(text("}"));
    }
}

fn text(line: impl Into<String>) -> Line {
    Line::Text(line.into())
}

/// Two threads that may both miss each other's store (TSO); or one that says that it has stored, and one
/// that believes it (PSO).
fn lines(seed: u64, model: MemoryModel) -> Vec<Line> {
    let mut random = Rng::new(seed);
    let mut out = vec![text("shared x, y, z;")];
    let p = Side {
        stores: "x",
        register: "r",
    };
    let q = Side {
        stores: "y",
        register: "s",
    };
    let property = match model {
        MemoryModel::Pso => {
            p.thread(("p", "", "z = 1;"), &mut random, &mut out);
            q.thread(("q", "t = z;", "s = x;"), &mut random, &mut out);
            "finally !(q.t == 1 && q.s == 0);"
        }
        MemoryModel::Tso | MemoryModel::Sc => {
            p.thread(("p", "", "r = y;"), &mut random, &mut out);
            q.thread(("q", "", "s = x;"), &mut random, &mut out);
            "finally !(p.r == 0 && q.s == 0);"
        }
    };
    out.push(text(property));
    out
}

fn with_fences(lines: &[Line], at: &[usize]) -> String {
    let (mut out, mut place) = (String::new(), 0);
    for line in lines {
        match line {
            Line::Text(text) => {
                let _ = writeln!(out, "{text}");
            }
            Line::Gap => {
                if at.contains(&place) {
                    out.push_str("fence;\n");
                }
                place += 1;
            }
        }
    }
    out
}

fn parse(text: &str) -> Program {
    let program = wattle::parse(Language::Wtl, text).program;
    program.unwrap_or_else(|| panic!("{text}"))
}

fn holds(text: &str, model: MemoryModel) -> bool {
    let options = Options {
        models: vec![model],
        engine: Some("explicit".into()),
        audit: wattle_auditor::AuditPolicy::Never,
        explain: false,
        ..Options::default()
    };
    let checked = check(&parse(text), &options).expect("it can be asked");
    let holds = |f: &wattle::Finding| matches!(f.judged.verdict, Verdict::Holds { .. });
    checked.findings().all(holds)
}

/// The first set of so many places that repairs the program. A full fence does what any fence does.
fn repaired(lines: &[Line], model: MemoryModel, number: usize) -> Option<Vec<usize>> {
    let places = lines.iter().filter(|l| matches!(l, Line::Gap)).count();
    let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..number {
        let longer = |set: Vec<usize>| {
            let from = set.last().map_or(0, |last| last + 1);
            (from..places).map(move |place| [&set[..], &[place]].concat())
        };
        sets = sets.into_iter().flat_map(longer).collect();
    }
    sets.into_iter()
        .find(|set| holds(&with_fences(lines, set), model))
}

#[test]
fn fewer_do_not_suffice() {
    let seed = setting("WATTLE_SEED", 1);
    let programs = setting("WATTLE_PROGRAMS", 300);
    let (mut asked, mut several) = (0, 0u64);
    for n in 0..programs {
        let model = match n % 2 {
            0 => MemoryModel::Tso,
            _ => MemoryModel::Pso,
        };
        let lines = lines(seed.wrapping_mul(1_000_003) + n, model);
        let bare = with_fences(&lines, &[]);
        let program = parse(&bare);
        let wanted = FenceOptions::new(model).in_text(Language::Wtl, &bare);
        let (options, control) = (Options::default(), Control::unlimited());
        let found = fences(&program, &wanted, &options, &control).expect("it can be asked");
        let Outcome::Fixed { fixes, .. } = found.outcome else {
            continue;
        };
        let fix = &fixes[0];
        let told = fix.sites.len();
        if told == 0 {
            continue;
        }
        (asked, several) = (asked + 1, several + u64::from(told > 1));
        let written = write(
            Language::Wtl,
            &bare,
            &program,
            fix,
            &wanted,
            &options,
            &control,
        );
        let written = written.unwrap_or_else(|e| panic!("program {n}: {e}\n{bare}"));
        let count = written.matches("fence").count();
        assert_eq!(
            told, count,
            "program {n}: what is told is written\n{bare}\n{written}"
        );
        for fewer in 0..told {
            if let Some(set) = repaired(&lines, model, fewer) {
                let better = with_fences(&lines, &set);
                panic!("program {n}: {fewer} suffice\n{better}\nand not only\n{written}");
            }
        }
    }
    println!("{asked} programs need fences, {several} more than one");
    assert!(
        asked * 10 > programs && several * 40 > programs,
        "{several} of {asked}"
    );
}
