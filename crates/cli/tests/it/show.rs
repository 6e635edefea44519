//! `wattle show`: pictures that are well-formed, the same every time, and say what they should.

use crate::support::{Scratch, root, run};

fn example(name: &str) -> String {
    root().join("examples").join(name).display().to_string()
}

/// The picture, if it is one: every element closed, nothing but elements and escaped text.
fn picture(arguments: &[&str]) -> String {
    let ran = run(arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.out, ran.err);
    let mut open: Vec<String> = Vec::new();
    let mut rest = ran.out.as_str();
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>'), "a stray `>` in {text:?}");
        let references = text.split('&').skip(1);
        for r in references {
            let known = ["lt;", "gt;", "amp;", "quot;"];
            assert!(known.iter().any(|k| r.starts_with(k)), "`&{r}`");
        }
        let (tag, after) = after.split_once('>').expect("a tag ends");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "elements nest");
        } else if !tag.ends_with('/') {
            let name = tag.split_whitespace().next().unwrap_or_default();
            open.push(name.to_string());
        }
        rest = after;
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    assert_eq!(run(arguments).out, ran.out, "not the same twice");
    ran.out
}

/// Boxes of one panel or page: left, top, width, height.
fn boxes(svg: &str) -> Vec<[f64; 4]> {
    let number = |line: &str, name: &str| -> Option<f64> {
        let (_, rest) = line.split_once(&format!("{name}=\""))?;
        rest.split('"').next()?.parse().ok()
    };
    let lines = svg.lines().filter(|l| l.contains("rx="));
    let all = lines.filter_map(|l| {
        Some([
            number(l, " x")?,
            number(l, " y")?,
            number(l, "width")?,
            number(l, "height")?,
        ])
    });
    all.collect()
}

fn overlap(a: &[f64; 4], b: &[f64; 4]) -> bool {
    a[0] < b[0] + b[2] && b[0] < a[0] + a[2] && a[1] < b[1] + b[3] && b[1] < a[1] + a[3]
}

#[test]
fn threads_and_fences_as_a_picture() {
    let file = example("peterson.wtl");
    let plain = picture(&["show", &file, "--as", "svg"]);
    assert!(plain.contains(">critical</text>"), "{plain}");
    // In the author's words.
    assert!(plain.contains(">flag[self] = 1  :9</text>"), "{plain}");
    assert!(!plain.contains(">fence</text>"), "{plain}");
    let fenced = picture(&["show", &file, "--as", "svg", "--fences", "tso"]);
    assert_eq!(fenced.matches(">fence</text>").count(), 1, "one per family");
    for panel in fenced.split("<g ") {
        let all = boxes(panel);
        for (i, a) in all.iter().enumerate() {
            assert!(!all[i + 1..].iter().any(|b| overlap(a, b)), "{a:?}");
        }
    }
    let dot = run(&["show", &file, "--as", "dot", "--fences", "tso"]);
    assert_eq!(
        dot.out.matches("[label=\"fence\", ").count(),
        1,
        "{}",
        dot.out
    );
}

/// Two ways lead to the head of Dekker's loop, and each fence is on one of them.
#[test]
fn fences_are_drawn_on_the_way_that_they_are_on() {
    let dot = run(&[
        "show",
        &example("dekker.wtl"),
        "--as",
        "dot",
        "--fences",
        "tso",
    ]);
    let ends = |line: &str| -> Option<(String, String)> {
        let (from, rest) = line.trim().split_once(" -> ")?;
        Some((from.to_string(), rest.split(' ').next()?.to_string()))
    };
    let fences: Vec<(String, String)> = (dot.out.lines())
        .filter(|l| l.contains("[label=\"fence\", "))
        .filter_map(ends)
        .collect();
    let [a, b] = fences.as_slice() else {
        panic!("two fences: {}", dot.out);
    };
    assert!(a.1 == b.1 && a.0 != b.0, "{fences:?}");
}

#[test]
fn a_run_as_a_picture() {
    let s = Scratch::new();
    let (file, trace) = (example("peterson.wtl"), s.path("trace.json"));
    let checked = run(&["check", &file, "--trace", &trace]);
    assert_eq!(checked.code, 1, "{}", checked.err);
    let svg = picture(&["show", &file, "--as", "svg", "--trace", &trace]);
    assert!(svg.contains("no SC run has this"), "{svg}");
    let all = boxes(&svg);
    assert!(all.len() >= 5, "{svg}");
    for (i, a) in all.iter().enumerate() {
        assert!(!all[i + 1..].iter().any(|b| overlap(a, b)), "{a:?}");
    }
    let dot = run(&["show", &file, "--as", "dot", "--trace", &trace]);
    assert!(
        dot.out.starts_with("digraph happens_before {"),
        "{}",
        dot.out
    );
    // The cycle tells the story of *why*: from the store to the load that overtook it, and back.
    let red: Vec<&str> = (dot.out.lines())
        .filter(|l| l.contains("color=red, penwidth=2"))
        .collect();
    assert_eq!(red.len(), 5, "{}", dot.out);
    let pair = "a0 -> a2 [fontsize=9, label=\"po, reordered\"";
    assert!(red.iter().any(|l| l.contains(pair)), "{}", dot.out);
    // Which of two pending stores is overwritten is not known.
    assert!(!dot.out.contains("\"co\""), "{}", dot.out);
}

/// A store that overtook a store is marked as well.
#[test]
fn reordered_stores_are_marked() {
    let s = Scratch::new();
    let (file, trace) = (example("message-passing.wtl"), s.path("trace.json"));
    let r = run(&["check", &file, "--model", "pso", "--trace", &trace]);
    assert_eq!(r.code, 1, "{}", r.err);
    let dot = run(&["show", &file, "--as", "dot", "--trace", &trace]).out;
    let marked = |l: &&str| l.contains("reordered") && l.contains("color=red");
    assert_eq!(dot.lines().filter(marked).count(), 1, "{dot}");
}

#[test]
fn pictures_need_a_form() {
    let ran = run(&["show", &example("peterson.wtl"), "--fences", "tso"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("--as svg"), "{}", ran.err);
    let ran = run(&[
        "show",
        &example("hyman.wtl"),
        "--as",
        "svg",
        "--fences",
        "tso",
    ]);
    assert_eq!(ran.code, 1, "broken under SC: {}{}", ran.out, ran.err);
}

#[test]
fn every_example_can_be_drawn() {
    let mut drawn = 0;
    for entry in std::fs::read_dir(root().join("examples")).expect("examples") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|e| e == "wtl") {
            picture(&["show", &path.display().to_string(), "--as", "svg"]);
            drawn += 1;
        }
    }
    assert!(drawn > 40, "{drawn}");
}

/// The states of a small program: fewer with more left out, each event between two of them, and a bound.
#[test]
fn states_are_drawn_as_far_as_they_are_few() {
    let file = example("dekker-simple.wtl");
    for model in ["sc", "tso", "pso"] {
        let drawn = ["none", "local", "persistent"].map(|reduce| {
            let arguments = [
                "show", &file, "--as", "states", "--model", model, "--reduce", reduce,
            ];
            let ran = run(&arguments);
            assert_eq!(ran.code, 0, "{}", ran.err);
            let svg = picture(&[&arguments[..], &["--draw", "svg"]].concat());
            let states = ran
                .out
                .lines()
                .filter(|l| l.contains(" [label=") && !l.contains("->"));
            let states = states.count();
            assert_eq!(boxes(&svg).len(), states);
            assert!(
                ran.out.contains(&format!("\"{states} states")),
                "{}",
                ran.out
            );
            states
        });
        assert!(
            drawn[0] > drawn[1] && drawn[1] > drawn[2],
            "{model}: {drawn:?}"
        );
    }
    let large = run(&["show", &example("lamport-fast-3.wtl"), "--as", "states"]);
    assert_eq!(large.code, 3);
    assert!(large.err.contains("more than 400 states"), "{}", large.err);
    let other = run(&["show", &file, "--as", "states", "--reduce", "tso,k=2"]);
    assert_eq!(other.code, 2);
}

/// Graphs speak of the source: no registers of the front-end, and what comes first in the text first.
#[test]
fn thread_graphs_are_in_the_words_of_the_source() {
    let file = root().join("examples/peterson.wtl").display().to_string();
    let r = run(&["show", &file, "--as", "svg"]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(!r.out.contains("_1"), "{}", r.out);
    let place = |text: &str| {
        r.out
            .find(text)
            .unwrap_or_else(|| panic!("{text}\n{}", r.out))
    };
    let order = [
        "read flag[1]",
        "assume flag[1] == 1",
        "read turn",
        "assume turn == 1",
        "skip",
        "flag[self] = 0",
    ];
    let places: Vec<usize> = order.iter().map(|t| place(t)).collect();
    assert!(places.is_sorted(), "{places:?}\n{}", r.out);
}
