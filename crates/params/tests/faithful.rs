//! Programs and the array-based systems they are translated to: the same states with one, two and three
//! threads, for random families and for every example. What is proved for any number of threads then holds
//! for these, and what is broken with so many threads is.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::path::{Path, PathBuf};
use wattle_memory::MemoryModel;
use wattle_model::{Count, Program};
use wattle_params::lower::faithful::{Comparison, Limits, compare};
use wattle_params::lower::lower;
use wattle_params::{Options, Outcome, replays};

/// What a random family may use.
struct Kind {
    /// A second family of threads.
    two: bool,
    /// A counter of threads.
    counter: bool,
}

/// A small program as text, so that a failure can be read and kept.
fn random_program(seed: u64) -> String {
    let mut r = SmallRng::seed_from_u64(seed);
    let kind = Kind {
        two: r.random_bool(0.25),
        counter: r.random_bool(0.2),
    };
    let mut text = String::from(
        "shared x: 0..2, y, z = 1, flag[t], owner: t = none, wide: 0..40, byte: u8 = 255;\n\
         shared next[t]: t = none, slot[2], coin: 0..1 = any;\n",
    );
    if kind.counter {
        text += "shared left = count(t);\n";
    }
    text += &format!(
        "thread t[*] {{\n    local r: 0..3, s, q: t = none;\n{}}}\n",
        block(&mut r, &kind, 0, true)
    );
    if kind.two {
        text += &format!(
            "thread u[*] {{\n    local r: 0..3, s;\n{}}}\n",
            block(&mut r, &kind, 0, false)
        );
    }
    text += match r.random_range(0..7) {
        0 => "never x == 2;\n",
        1 => "never t[i].r == 1 && t[j].r == 1;\n",
        2 => "never t[i]@here && t[j]@here;\n",
        3 => "always y <= 1;\n",
        4 => "never t[i]@here && flag[i] == 1;\n",
        5 => "never t[i].s == 2 && y == 0;\n",
        _ => "never t[i]@here && x == 1;\n",
    };
    match text.contains("here:") {
        true => text,
        false => text.replacen(
            "    local r: 0..3, s, q: t = none;\n",
            "    local r: 0..3, s, q: t = none;\n    here: skip;\n",
            1,
        ),
    }
}

fn block(r: &mut SmallRng, kind: &Kind, depth: usize, first: bool) -> String {
    let mut text = String::new();
    let mut label = depth == 0 && first;
    for _ in 0..r.random_range(1..=if depth == 0 { 5 } else { 2 }) {
        if label && r.random_bool(0.3) {
            label = false;
            text += "    here: skip;\n";
        }
        text += &statement(r, kind, depth, first);
    }
    text
}

fn statement(r: &mut SmallRng, kind: &Kind, depth: usize, first: bool) -> String {
    let any = |r: &mut SmallRng, list: &[&str]| list[r.random_range(0..list.len())].to_string();
    let condition = |r: &mut SmallRng| {
        let own = ["r == 0", "r > 1", "s != 1", "r == s", "s <= 0 || r == 1"];
        let of_t = ["q == self", "q == none", "flag[self] == 1", "owner == self"];
        match first && r.random_bool(0.4) {
            true => any(r, &of_t),
            false => match r.random_bool(0.3) {
                true => any(r, &["x == 0", "y > 0", "z == 1", "x == y"]),
                false => any(r, &own),
            },
        }
    };
    let nested = depth < 2;
    let line = match r.random_range(0..20) {
        0 | 1 => any(
            r,
            &["x = 1;", "x = 2;", "y = 1;", "z = 0;", "y = r;", "x = s;"],
        ),
        2 | 3 => any(r, &["r = x;", "s = y;", "r = z;", "s = x;", "s = wide;"]),
        4 => any(
            r,
            &[
                "r = r + 1;",
                "s = 1 - r;",
                "r = 0;",
                "s = r;",
                "r = any 0..1;",
            ],
        ),
        5 => any(r, &["fence;", "fence store;", "skip;"]),
        6 => any(
            r,
            &[
                "x = x + 1;",
                "y = y + 1;",
                "wide = wide + 30;",
                "byte = byte + 1;",
                "s = byte;",
            ],
        ),
        7 => any(
            r,
            &[
                "r = cas(x, 0, 1);",
                "s = swap(z, 0);",
                "s = fetch_add(y, 1);",
            ],
        ),
        8 => format!("assume {};", condition(r)),
        9 => format!("assert {};", any(r, &["r < 3", "s >= 0", "r + s < 4"])),
        10 => format!("await {};", condition(r)),
        11 if first => any(
            r,
            &[
                "flag[self] = 1;",
                "owner = self;",
                "q = owner;",
                "q = self;",
                "owner = none;",
                "q = none;",
            ],
        ),
        12 if first => any(
            r,
            &[
                "if q != none { flag[q] = 1; }",
                "flag[self] = r;",
                "r = cas(owner, none, self);",
                "flag[q] = 1;",
                "if q == self { y = 1; }",
            ],
        ),
        13 if first && kind.counter => any(
            r,
            &[
                "atomic { s = left; left = s - 1; }",
                "s = left; if s == 0 { y = 1; }",
                "left = 0;",
                "left = count(t);",
                "s = left; if s == count(t) { x = 1; }",
            ],
        ),
        14 if nested => format!(
            "if {} {{\n{}    }} else {{\n{}    }}",
            condition(r),
            block(r, kind, depth + 1, first),
            block(r, kind, depth + 1, first)
        ),
        15 if nested => format!(
            "atomic {{\n{}    }}",
            any(
                r,
                &[
                    "r = x; x = 1;",
                    "s = y; y = s + 1;",
                    "y = 1; z = 0;",
                    "if x == 0 { x = 2; }",
                    "assume z == 1; z = 0;",
                    "r = z; assume r == 1;"
                ]
            )
        ),
        16 if nested => format!(
            "choose {{ {} }} or {{ {} }}",
            any(r, &["x = 1;", "skip;", "r = 1;"]),
            any(r, &["y = 1;", "r = x;", "assume r == 0;"])
        ),
        17 => any(
            r,
            &[
                "slot[r] = 1;",
                "s = slot[x];",
                "s = slot[1];",
                "r = coin;",
                "coin = 1 - coin;",
                "while r < 2 { r = r + 1; }",
                "loop { if x == 1 { break; } r = z; }",
                "while x == 0 { if z == 0 { break; } }",
            ],
        ),
        18 if first => any(
            r,
            &[
                "q = next[self];",
                "next[self] = q;",
                "if q != none { next[q] = self; }",
                "q = swap(owner, self);",
                "if q != none { if q < self { x = 1; } }",
                "q = 0;",
                "q = 0; if q != self { s = flag[q]; }",
                "if flag[self] == 1 && x == 0 { y = 1; }",
            ],
        ),
        19 if first && depth == 0 => "q = 0; loop { if q != self { await flag[q] == 0; } if q == count(t) - 1 { break; } q = q + 1; }".to_string(),
        _ => any(r, &["r = y;", "s = z;"]),
    };
    format!("    {line}\n")
}

const SMALL: Limits = Limits {
    states: 800,
    program_states: 1600,
    buffer: 2,
};

/// How often the comparison said what.
#[derive(Debug, Default)]
struct Tally {
    same: usize,
    coarser: usize,
    too_large: usize,
    refused: usize,
    states: usize,
    holds: usize,
    violated: usize,
    undecided: usize,
}

fn check(
    name: &str,
    program: &Program,
    sizes: &[(MemoryModel, u32)],
    limits: Limits,
    decide: bool,
    tally: &mut Tally,
) {
    let questions = match program.properties.len() {
        0 => vec![None],
        n => (0..n).map(Some).collect(),
    };
    for question in questions {
        let Ok(lowered) = lower(program, question) else {
            tally.refused += 1;
            continue;
        };
        let mut bad: Vec<(MemoryModel, u32, bool)> = Vec::new();
        for (model, threads) in sizes {
            let (model, threads) = (*model, *threads);
            match compare(program, &lowered, question, model, threads, limits, &|| {
                false
            }) {
                Comparison::Same {
                    states,
                    exact,
                    bad: found,
                } => {
                    tally.same += 1;
                    tally.states += states;
                    tally.coarser += usize::from(!exact);
                    bad.push((model, threads, found));
                }
                Comparison::TooLarge => tally.too_large += 1,
                Comparison::Different(what) => panic!("{model}: {what}\n{name}"),
            }
        }
        if decide {
            for model in MemoryModel::ALL {
                let bad: Vec<(u32, bool)> = bad
                    .iter()
                    .filter(|(m, ..)| *m == model)
                    .map(|(_, n, b)| (*n, *b))
                    .collect();
                any_number(name, &lowered.system, model, &bad, tally);
            }
        }
    }
}

/// Decides the system for any number of threads and holds the answer against what few threads did.
fn any_number(
    name: &str,
    system: &wattle_model::array::ArraySystem,
    model: MemoryModel,
    bad: &[(u32, bool)],
    tally: &mut Tally,
) {
    let options = Options {
        small_first: false,
        guess: false,
        ..Options::default()
    };
    let polled = std::cell::Cell::new(0usize);
    let stop = |held: usize| {
        polled.set(polled.get() + usize::from(held > 0));
        polled.get() > 40 || held > 150
    };
    match wattle_params::check(system, model, options, &stop).0 {
        Outcome::Holds(_) => {
            tally.holds += 1;
            let wrong = bad.iter().find(|(_, bad)| *bad);
            assert!(
                wrong.is_none(),
                "{model}: holds, but not with {wrong:?} threads\n{name}"
            );
        }
        Outcome::Violated(run) => {
            tally.violated += 1;
            assert!(replays(system, model, &run), "{model}: no run\n{name}");
        }
        Outcome::Undecided(_) => tally.undecided += 1,
        Outcome::Refused(u) => panic!("{model}: {}\n{name}", u.message),
    }
}

#[test]
fn three_thousand_random_programs() {
    let count = std::env::var("WATTLE_FAMILIES")
        .ok()
        .and_then(|s| s.parse().ok());
    let mut tally = Tally::default();
    for seed in 0..count.unwrap_or(3000) {
        let text = random_program(seed);
        let parsed = wattle_syntax::wtl::parse(&text);
        let Some(program) = parsed.program else {
            panic!("seed {seed}\n{text}\n{:?}", parsed.diagnostics);
        };
        let mut sizes: Vec<(MemoryModel, u32)> = Vec::new();
        for model in MemoryModel::ALL {
            sizes.extend([(model, 1), (model, 2)]);
        }
        if seed % 4 == 0 {
            sizes.push((MemoryModel::ALL[(seed / 4 % 3) as usize], 3));
        }
        check(
            &format!("seed {seed}\n{text}"),
            &program,
            &sizes,
            SMALL,
            true,
            &mut tally,
        );
    }
    println!("{tally:?}");
    assert!(tally.same > 3 * tally.too_large, "{tally:?}");
    assert!(
        tally.undecided * 10 < tally.holds + tally.violated,
        "{tally:?}"
    );
    // Identifiers that start with no thread in particular may be any in the system.
    assert!(tally.coarser * 10 < tally.same, "{tally:?}");
}

fn examples(folder: &str, ending: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(folder);
    let files = std::fs::read_dir(root).expect("the examples");
    let mut files: Vec<PathBuf> = files.map(|f| f.expect("an entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == ending));
    files.sort();
    files
}

#[test]
fn every_example() {
    let limits = Limits {
        states: 12_000,
        program_states: 12_000,
        buffer: 2,
    };
    let mut tally = Tally::default();
    let asm = examples("x86", "asm").into_iter();
    let wtl = examples("families", "wtl")
        .into_iter()
        .chain(examples("", "wtl"));
    for file in asm.chain(wtl) {
        let text = std::fs::read_to_string(&file).expect("an example");
        let name = file.display().to_string();
        let program = match name.ends_with(".asm") {
            true => wattle_syntax::x86::parse(&text).program,
            false => wattle_syntax::wtl::parse(&text).program,
        };
        let mut program = program.expect("an example parses");
        let open = program.families.iter().any(|f| f.count == Count::Any);
        if !open {
            // As `--threads NAME=*` would have it.
            let fixed = program.families.iter_mut();
            let many = fixed.filter(|f| matches!(f.count, Count::Fixed(_)));
            many.for_each(|f| f.count = Count::Any);
        }
        let sizes: Vec<(MemoryModel, u32)> = MemoryModel::ALL
            .iter()
            .flat_map(|m| [(*m, 1), (*m, 2)])
            .collect();
        check(&name, &program, &sizes, limits, false, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.same > 50, "{tally:?}");
}
