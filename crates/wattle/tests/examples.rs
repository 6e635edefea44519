//! Every program in `examples/` gives the answers its header promises (`examples/README.md` says how
//! to read it). Violations are replayed and proofs audited on the way.

use std::fs;
use std::path::{Path, PathBuf};
use wattle::{Language, MemoryModel, Options, Verdict, check};

/// Searches that cannot end stop here.
const MEMORY: u64 = 32 << 20;

#[derive(Debug)]
struct Expected {
    /// From 0; a file without properties has one answer all the same.
    property: usize,
    model: MemoryModel,
    holds: bool,
    /// What exact search says instead, if it cannot know.
    explicit: Option<String>,
}

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the examples are there")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "wtl"))
        .collect();
    files.sort();
    files
}

/// The `expect` lines of a header, or what is wrong with them.
fn expected(text: &str) -> Result<Vec<Expected>, String> {
    let mut all = Vec::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("// expect") else {
            continue;
        };
        let (number, answers) = rest.split_once(": ").ok_or(line)?;
        let property = match number.trim() {
            "" => 0,
            n => n.parse::<usize>().map_err(|e| e.to_string())? - 1,
        };
        for answer in answers.split(", ") {
            let mut words = answer.splitn(3, ' ');
            let model = match words.next() {
                Some("sc") => MemoryModel::Sc,
                Some("tso") => MemoryModel::Tso,
                Some("pso") => MemoryModel::Pso,
                _ => return Err(answer.to_string()),
            };
            let holds = match words.next() {
                Some("holds") => true,
                Some("violated") => false,
                _ => return Err(answer.to_string()),
            };
            let explicit = match words.next() {
                None => None,
                Some(remark) => {
                    let inner = remark.strip_prefix("(explicit: ");
                    let inner = inner.and_then(|r| r.strip_suffix(')')).ok_or(answer)?;
                    Some(inner.to_string())
                }
            };
            all.push(Expected {
                property,
                model,
                holds,
                explicit,
            });
        }
    }
    Ok(all)
}

/// One answer that is not as promised, in words.
fn wrong(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("readable");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let parsed = wattle::parse(Language::Wtl, &text);
    let Some(program) = &parsed.program else {
        return vec![parsed.render(&name, &text)];
    };
    let promised = match expected(&text) {
        Ok(all) => all,
        Err(e) => return vec![format!("{name}: cannot read `{e}`")],
    };
    let questions = program.properties.len().max(1);
    if promised.len() != 3 * questions {
        return vec![format!("{name}: one line per property, three models each")];
    }
    if !text.contains("\n// source: ") {
        return vec![format!("{name}: no source")];
    }
    let mut found = Vec::new();
    for e in &promised {
        let options = Options {
            models: vec![e.model],
            engine: Some("explicit".to_string()),
            memory: e.explicit.is_some().then_some(MEMORY),
            explain: false,
            ..Options::default()
        };
        let verdict = match check(program, &options) {
            Ok(checked) => match checked.results.into_iter().nth(e.property) {
                Some(Ok(finding)) => finding.judged.verdict,
                other => return vec![format!("{name}: {other:?}")],
            },
            Err(error) => return vec![format!("{name}: {error}")],
        };
        let right = match (&verdict, e.explicit.as_deref()) {
            (Verdict::Holds { .. }, _) => e.holds,
            (Verdict::Violated { .. }, _) => !e.holds,
            (Verdict::Bounded { .. }, remark) => remark == Some("bounded"),
            (Verdict::Undecided { .. }, remark) => remark == Some("undecided"),
        };
        if !right {
            found.push(format!("{name}: promised {e:?}, found {verdict:?}"));
        }
    }
    found
}

#[test]
fn examples_answer_as_promised() {
    let files = examples();
    assert!(files.len() >= 40, "only {} examples", files.len());
    let wrong: Vec<String> = files.iter().flat_map(|f| wrong(f)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
