//! Every test of the suite of herd's x86 tests: number of final states, the states themselves,
//! observation and verdict, under SC, TSO and PSO, by the reference machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use wattle_evidence::Control;
use wattle_litmus::{Summary, answer, observed_facts};
use wattle_memory::reference::{Machine, Outcome, evaluate};
use wattle_memory::{Exact, Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::Instance;
use wattle_syntax::litmus::{LitmusTest, parse_test};

fn suite() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites/litmus-x86");
    if root.is_dir() {
        return Some(root);
    }
    println!("skipped: the suite litmus-x86 is not there");
    None
}

fn final_states<L: Layout>(instance: &Instance, test: &LitmusTest) -> BTreeSet<Vec<i64>>
where
    L::Buffer<Exact>: Clone + Ord,
{
    let items = observed_facts(instance, test);
    let machine = Machine::<L, Exact>::new(instance, ()).expect("a machine");
    let mut work: Vec<_> = machine
        .starts()
        .expect("starts")
        .iter()
        .map(|s| machine.initial(s))
        .collect();
    let mut seen: BTreeSet<_> = work.iter().cloned().collect();
    let mut found = BTreeSet::new();
    while let Some(state) = work.pop() {
        if machine.is_final(&state) {
            found.insert(
                items
                    .iter()
                    .map(|e| evaluate(&state, e).expect("a value"))
                    .collect(),
            );
        }
        for event in machine.events(&state) {
            match machine.apply(&state, &event) {
                Outcome::Next(next) => {
                    if seen.insert(next.clone()) {
                        work.push(next);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
    found
}

#[test]
fn agrees_with_the_expected_answers() {
    let Some(root) = suite() else { return };
    let states = std::fs::read_to_string(root.join("states.json")).expect("states.json");
    let states: BTreeMap<String, serde_json::Value> = serde_json::from_str(&states).expect("JSON");
    let table = std::fs::read_to_string(root.join("expected.csv")).expect("expected.csv");
    let mut wrong = Vec::new();
    let mut conditions = 0;
    for row in table.lines().skip(1) {
        let columns: Vec<&str> = row.split(',').collect();
        let file = format!("{}.litmus", columns[0]);
        let text = std::fs::read_to_string(root.join(&file)).expect("a test");
        let parsed = parse_test(&text);
        let (Some(program), Some(test)) = (&parsed.program, &parsed.test) else {
            let all = parsed.diagnostics.iter().map(|d| d.render(&file, &text));
            wrong.push(all.collect::<String>());
            continue;
        };
        let instance = program.instance().expect("an instance");
        for (i, model) in ["sc", "tso", "pso"].iter().enumerate() {
            let found = match *model {
                "sc" => final_states::<Sc>(&instance, test),
                "tso" => final_states::<Tso>(&instance, test),
                _ => final_states::<Pso>(&instance, test),
            };
            let s = Summary::new(&parsed.name, test, &found);
            let quick = answer(&parsed, MemoryModel::ALL[i], &Control::unlimited());
            match quick {
                Ok(quick) if quick.complete() && quick.summary == s => {}
                other => wrong.push(format!("{file} {model}: the search says {other:?}")),
            }
            let answer = format!(
                "{},{},{},{}",
                s.quantifier.keyword(),
                s.states.len(),
                s.observation(),
                if s.holds() { "Ok" } else { "No" }
            );
            let at = 2 + 3 * i;
            let expected = format!("{},{}", columns[1], columns[at..at + 3].join(","));
            if answer != expected {
                wrong.push(format!("{file} {model}: {answer}, expected {expected}"));
            }
            let entry = &states[columns[0]];
            if let Some(all) = entry[*model].as_array() {
                let expected: BTreeSet<&str> = all.iter().filter_map(|s| s.as_str()).collect();
                let lines: Vec<String> = s
                    .states
                    .iter()
                    .map(|x| s.state_line(x).to_string())
                    .collect();
                let given: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
                if given != expected {
                    wrong.push(format!("{file} {model}: {given:?}, expected {expected:?}"));
                }
            }
            conditions += usize::from(entry["cond"].as_str() == Some(&test.text));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    println!("{conditions} conditions print as herd prints them");
}

/// Prints how long all tests take under TSO, parsing included, beside herd's time for them.
#[test]
fn all_tests_at_once() {
    let Some(root) = suite() else { return };
    let table = std::fs::read_to_string(root.join("expected.csv")).expect("expected.csv");
    let mut herd = 0.0;
    let mut texts = Vec::new();
    for row in table.lines().skip(1) {
        let columns: Vec<&str> = row.split(',').collect();
        herd += columns[11].parse::<f64>().unwrap_or(0.0);
        texts.push(
            std::fs::read_to_string(root.join(format!("{}.litmus", columns[0]))).expect("a test"),
        );
    }
    let start = std::time::Instant::now();
    let mut states = 0;
    for text in &texts {
        let parsed = parse_test(text);
        let found = answer(&parsed, MemoryModel::Tso, &Control::unlimited()).expect("an answer");
        states += found.summary.states.len();
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} tests, {states} final states: {seconds:.3} s, herd7 {herd:.2} s, 1/{:.0}",
        texts.len(),
        herd / seconds
    );
}
