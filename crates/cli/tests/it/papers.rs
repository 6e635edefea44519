//! docs/papers.md: every number of the five papers has a row, and every command of a row says what the
//! row says it does.

use crate::support::{Scratch, ran, root, wattle};
use std::collections::BTreeSet;

/// What has a number, paper by paper.
const NUMBERED: [(&str, &str, &str); 21] = [
    ("dan-2013", "Fig", "1–13"),
    ("dan-2013", "Table", "1–2"),
    ("dan-2013", "Rule", "1–14"),
    ("dan-2013", "Semantics", "1–2"),
    ("dan-2013", "Theorem", "1–2"),
    ("dan-2013", "Lemma", "1"),
    ("printz-2015", "Fig", "1–2"),
    ("abdulla-2012", "Fig", "1–8"),
    ("abdulla-2012", "Algorithm", "1"),
    ("abdulla-2012", "Table", "1"),
    ("conchon-2017", "Fig", "1–4"),
    ("conchon-2017", "Algorithm", "1"),
    ("conchon-2017", "Lemma", "1"),
    ("conchon-2017", "Theorem", "1"),
    ("calin-2016", "Fig", "1.1–1.4, 2.1–2.21, 3.1–3.10, 4.1–4.6"),
    ("calin-2016", "Fig", "5.1–5.14, C.1"),
    ("calin-2016", "Algorithm", "2.1–2.4, 3.1–3.2, 4.1–4.4"),
    ("calin-2016", "Corollary", "1–3, 23"),
    ("calin-2016", "Lemma", "4, 6–7, 11, 13, 16, 18, 20–21"),
    ("calin-2016", "Lemma", "24–30, 32, 34–36"),
    (
        "calin-2016",
        "Theorem",
        "5, 8–10, 12, 14–15, 17, 19, 22, 31, 33",
    ),
];

/// `2.3–2.5` is 2.3, 2.4 and 2.5.
fn expanded(range: &str) -> Vec<String> {
    let Some((from, to)) = range.split_once('–') else {
        return vec![range.to_string()];
    };
    let last = |n: &str| -> u32 {
        let digits = n.rsplit('.').next().and_then(|d| d.parse().ok());
        digits.unwrap_or_else(|| panic!("a number: {n}"))
    };
    let chapter = from.rsplit_once('.').map_or("", |(chapter, _)| chapter);
    let numbers = last(from)..=last(to);
    numbers
        .map(|n| match chapter {
            "" => n.to_string(),
            _ => format!("{chapter}.{n}"),
        })
        .collect()
}

/// `Figs. 4 (a), 11 (a), Lemma 4` as kinds and numbers.
fn numbers(cell: &str) -> Vec<(String, String)> {
    let mut kind = String::new();
    let mut all = Vec::new();
    for part in cell.split(", ") {
        let mut words = part.split_whitespace().peekable();
        if let Some(word) = words.next_if(|w| {
            w.len() > 2 && w.starts_with(char::is_uppercase) && !w.contains(char::is_numeric)
        }) {
            kind = match word.trim_end_matches('.') {
                "Semantics" => "Semantics",
                "Corollaries" => "Corollary",
                word => word.trim_end_matches('s'),
            }
            .to_string();
        }
        let number = words.next().unwrap_or_else(|| panic!("a number: {cell}"));
        all.extend(expanded(number).into_iter().map(|n| (kind.clone(), n)));
    }
    all
}

struct Row {
    paper: String,
    cells: [String; 4],
}

fn rows(page: &str) -> Vec<Row> {
    let mut paper = String::new();
    let mut rows = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            paper = title.to_string();
        }
        let Some(line) = line.strip_prefix("| ").and_then(|l| l.strip_suffix(" |")) else {
            continue;
        };
        let cells: Vec<String> = line.split(" | ").map(str::to_string).collect();
        let cells: [String; 4] = cells.try_into().unwrap_or_else(|_| panic!("four: {line}"));
        if cells[0] != "number" {
            let paper = paper.clone();
            rows.push(Row { paper, cells });
        }
    }
    rows
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/papers.md")).expect("the page is there")
}

#[test]
fn every_number_of_the_papers_is_there() {
    let text = page();
    assert!(!text.contains("partly"));
    let listed: BTreeSet<(String, String, String)> = (rows(&text).into_iter())
        .flat_map(|row| {
            let found = numbers(&row.cells[0]).into_iter();
            found.map(move |(kind, n)| (row.paper.clone(), kind, n))
        })
        .filter(|(_, kind, _)| kind != "Section" && kind != "Appendix")
        .collect();
    let wanted = NUMBERED.iter().flat_map(|(paper, kind, ranges)| {
        let all = ranges.split(", ").flat_map(expanded);
        all.map(move |n| (paper.to_string(), kind.to_string(), n))
    });
    assert_eq!(listed, wanted.collect());
}

/// What holds was proved and audited, all of it, on every line that says so.
fn audited(out: &str) -> bool {
    let mut holds = out.lines().filter(|l| l.contains("holds on "));
    holds.all(|l| l.ends_with(", audited)"))
}

/// What a row wants to be printed, or not to be.
fn wanted(cell: &str) -> (i32, Vec<(bool, &str)>) {
    let (code, mut rest) = match cell.strip_prefix("exit ") {
        Some(rest) => {
            let (code, rest) = rest.split_once(", ").expect("words after the exit code");
            (code.parse().expect("an exit code"), rest)
        }
        None => (0, cell),
    };
    let mut words = Vec::new();
    while let Some((before, after)) = rest.split_once('`') {
        let (word, after) = after.split_once('`').expect("a closing mark");
        words.push((!before.ends_with("not "), word));
        rest = after;
    }
    assert!(!words.is_empty(), "nothing is wanted: {cell}");
    (code, words)
}

#[test]
fn every_command_of_the_papers_page_says_so() {
    let s = Scratch::new();
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(root().join("examples"))
        .arg(s.path("examples"))
        .status();
    assert!(copied.is_ok_and(|c| c.success()));
    let mut commands = 0;
    for row in rows(&page()) {
        let [number, what, command, says] = &row.cells;
        let about = format!("{}, {number}: {command}", row.paper);
        if command == "—" {
            let why = says.strip_prefix("no program: ");
            assert!(why.is_some_and(|w| w.len() > 20), "{about}: {says}");
            continue;
        }
        let command = command.strip_prefix("`wattle ");
        let command = command.and_then(|c| c.strip_suffix('`'));
        let words = command.expect(&about).split_whitespace();
        let (code, wanted) = wanted(says);
        let r = ran(wattle().args(words).current_dir(s.path("")).output());
        assert_eq!(r.code, code, "{about}\n{}{}", r.out, r.err);
        for (there, word) in wanted {
            assert_eq!(r.out.contains(word), there, "{about}: `{word}`\n{}", r.out);
        }
        assert!(audited(&r.out), "{about}\n{}", r.out);
        assert!(
            code != 3 || what.contains("not"),
            "{about}: no word why: {what}"
        );
        commands += 1;
    }
    assert!(commands > 100, "{commands}");
}

/// The suites that the page names are there.
#[test]
fn the_benches_of_the_papers_page_are_known() {
    let help = ran(wattle().args(["help", "bench"]).output()).out;
    let text = page();
    let named = text.split("`wattle bench ").skip(1);
    let named: BTreeSet<&str> = named.filter_map(|rest| rest.split('`').next()).collect();
    assert!(named.len() >= 4, "{named:?}");
    for suite in named {
        assert!(help.contains(&format!("- {suite}:")), "{suite}\n{help}");
    }
}
