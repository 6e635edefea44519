//! Programs of two parts that have nothing to do with each other: the plan says what the explicit search of
//! the whole says, its proofs pass the audit, and none does after it has been tampered with.

use std::fmt::Write;
use wattle::plan;
use wattle::{MemoryModel, Options};
use wattle_auditor::audit;
use wattle_evidence::{Certificate, Control, Proof, Task, Verdict};
use wattle_model::Instance;
use wattle_random::Rng;

/// Two threads over two cells, with one register each.
fn pair(random: &mut Rng, cells: [&str; 2], threads: [&str; 2], out: &mut String) {
    for name in threads {
        let _ = writeln!(out, "thread {name} {{\n  local r: 0..2;");
        for _ in 0..2 + random.below(2) {
            let cell = cells[random.below(2)];
            let value = random.below(3);
            let _ = match random.below(6) {
                0 | 1 => writeln!(out, "  {cell} = {value};"),
                2 | 3 => writeln!(out, "  r = {cell};"),
                4 => writeln!(out, "  fence;"),
                _ => writeln!(out, "  atomic {{ r = {cell}; {cell} = {value}; }}"),
            };
        }
        let _ = writeln!(out, "  end: skip;\n}}");
    }
}

fn text(seed: u64) -> String {
    let mut random = Rng::new(seed);
    let mut out = String::from("shared a: 0..2, b: 0..2, c: 0..2, d: 0..2;\n");
    pair(&mut random, ["a", "b"], ["p", "q"], &mut out);
    pair(&mut random, ["c", "d"], ["s", "t"], &mut out);
    let mut fact = |threads: [&str; 2], cells: [&str; 2]| match random.below(3) {
        0 => format!("{} == {}", cells[random.below(2)], random.below(3)),
        1 => format!("{}@end", threads[random.below(2)]),
        _ => format!("{}.r != {}", threads[random.below(2)], random.below(3)),
    };
    for kind in ["never", "never", "reachable", "finally"] {
        let left = fact(["p", "q"], ["a", "b"]);
        let right = fact(["s", "t"], ["c", "d"]);
        let more = fact(["p", "q"], ["a", "b"]);
        let _ = match kind == "finally" {
            true => writeln!(out, "finally !({left} && {right});"),
            false => writeln!(out, "{kind} {left} && ({right} || !({more}));"),
        };
    }
    out
}

fn instance(text: &str) -> Instance {
    let program = wattle_syntax::wtl::parse(text).program;
    let program = program.unwrap_or_else(|| panic!("{text}"));
    program.instance().expect("a fixed number of threads")
}

fn task(instance: &Instance, model: MemoryModel, question: usize) -> Task<'_> {
    Task {
        instance,
        model,
        question: Some(question),
        deadlock: false,
    }
}

/// What matters of a verdict, and the certificate if there is one.
fn said(verdict: &Verdict) -> (&'static str, Option<&Certificate>) {
    match verdict {
        Verdict::Holds {
            proof: Proof::Certificate(c),
            ..
        } => ("holds", Some(c)),
        Verdict::Holds { .. } => ("holds", None),
        Verdict::Violated { .. } => ("violated", None),
        Verdict::HoldsIf { .. } | Verdict::Bounded { .. } | Verdict::Undecided { .. } => ("", None),
    }
}

#[test]
fn parts_say_what_the_whole_says() {
    let (mut by_parts, mut forged) = (0, 0);
    let alone = Options {
        engine: Some("explicit".into()),
        ..Options::default()
    };
    let control = Control::unlimited();
    for seed in 0..24 {
        let text = text(seed);
        let instance = instance(&text);
        for model in MemoryModel::ALL {
            for question in 0..instance.questions.len() {
                let task = task(&instance, model, question);
                let apart = plan::run(&task, &Options::default(), &control).expect("sound");
                let whole = plan::run(&task, &alone, &control).expect("sound");
                let (ours, proof) = said(&apart.judged.verdict);
                let theirs = said(&whole.judged.verdict).0;
                assert_eq!(ours, theirs, "{model}, question {question} of\n{text}");
                by_parts += u32::from(apart.engine == "parts");
                if let Some(Certificate::Parts(parts)) = proof {
                    for i in 0..parts.excluded_by.len() {
                        let mut other = parts.clone();
                        other.excluded_by[i] = parts.parts.len() as u32;
                        assert!(audit(&task, &Certificate::Parts(other), &control).is_err());
                        forged += 1;
                    }
                    let mut fewer = parts.clone();
                    fewer.parts.pop();
                    assert!(audit(&task, &Certificate::Parts(fewer), &control).is_err());
                    let mut unproved = parts.clone();
                    unproved.parts.iter_mut().for_each(|p| p.proof = None);
                    assert!(audit(&task, &Certificate::Parts(unproved), &control).is_err());
                }
            }
        }
    }
    println!("{by_parts} answers by parts, {forged} forged proofs refused");
    assert!(by_parts > 100 && forged > 20);
}

#[test]
fn what_is_not_independent_is_refused() {
    let apart =
        "shared x: bool, y: bool; thread p { x = 1; } thread q { y = 1; } never x == 1 && y == 2;";
    let joined = "shared x: bool, y: bool; thread p { x = 1; } thread q { local r: bool; r = x; y = r; } never x == 1 && y == 2;";
    let [apart, joined] = [apart, joined].map(instance);
    let control = Control::unlimited();
    let two = task(&apart, MemoryModel::Tso, 0);
    let outcome = plan::run(&two, &Options::default(), &control).expect("sound");
    assert_eq!(outcome.engine, "parts");
    let proof = said(&outcome.judged.verdict).1.expect("a certificate");
    assert!(audit(&two, proof, &control).is_ok());
    let one = task(&joined, MemoryModel::Tso, 0);
    let refused = audit(&one, proof, &control).expect_err("they share x");
    assert!(refused.to_string().contains("not independent"), "{refused}");
}
