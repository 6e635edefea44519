//! What programs read fits the committed schema.

use crate::support::{Scratch, root, run, schema};
use serde_json::Value;

fn check_schema() -> Value {
    schema_of("check")
}

fn schema_of(command: &str) -> Value {
    let path = root().join(format!("schema/{command}.schema.json"));
    let text = std::fs::read_to_string(path).expect("the schema is committed");
    serde_json::from_str(&text).expect("the schema is JSON")
}

fn output(arguments: &[&str]) -> Value {
    let r = run(arguments);
    serde_json::from_str(&r.out).unwrap_or_else(|e| panic!("{e}: {}", r.out))
}

/// The output, which fits the schema of its command.
fn valid(arguments: &[&str]) -> Value {
    let value = output(arguments);
    let errors = schema::errors(&schema_of(arguments[0]), &value);
    assert!(errors.is_empty(), "{arguments:?}: {errors:#?}\n{value:#}");
    value
}

const SB: &str = "shared x, y;
thread p { local a; x = 1; a = y; }
thread q { local b; y = 1; b = x; }
finally !(p.a == 0 && q.b == 0);
";

#[test]
fn every_kind_of_answer_fits_the_schema() {
    let s = Scratch::new();
    let sb = s.file("sb.wtl", SB);
    let v = valid(&["check", &sb, "--json"]);
    assert_eq!(v["verdict"], "violated");
    assert_eq!(v["model"], "tso");
    assert_eq!(v["language"], "wtl");
    assert_eq!(v["why"]["sc_forbids"], true);
    assert!(v["trace"].as_array().is_some_and(|t| t.len() >= 5));
    assert_eq!(v["fences"][0]["kind"], "fence");
    assert_eq!(v["fences"][0]["line"], 2);
    assert!(v.get("results").is_none());
    let v = valid(&["check", &sb, "--json", "--model", "sc"]);
    assert_eq!(v["verdict"], "holds");
    assert_eq!(v["trace"], Value::Null);
    assert_eq!(v["audited"], true);
    let v = valid(&["check", &sb, "--json", "--model", "all"]);
    assert_eq!(v["verdict"], "violated");
    assert_eq!(v["results"].as_array().map(Vec::len), Some(3));
    let broken = s.file("broken.wtl", "shared x\nthread p { x == ; }\n");
    let v = valid(&["check", &broken, "--json"]);
    assert_eq!(v["verdict"], Value::Null);
    assert!(v["errors"].as_array().is_some_and(|e| !e.is_empty()));
    let v = valid(&["check", &sb, &broken, "--json"]);
    assert_eq!(v.as_array().map(Vec::len), Some(2));
    let unfenced = "shared x: 0..1, y: 0..1; thread p { loop { x = 1; y = 0; } }
thread q { local r; r = x; } never x == 1 && y == 1;";
    let v = valid(&[
        "check",
        &s.file("unfenced.wtl", unfenced),
        "--json",
        "--engine",
        "explicit",
    ]);
    assert_eq!(v["verdict"], "bounded", "{v:#}");
    let fault = "shared a[2]; thread p { local i = 2; a[i] = 1; }";
    let v = valid(&["check", &s.file("fault.wtl", fault), "--json"]);
    assert_eq!(
        (&v["verdict"], &v["end"]),
        (&"violated".into(), &"fault".into())
    );
    assert_eq!(v["property"], Value::Null);
    let v = valid(&["check", &sb, "--json", "--timeout", "0s"]);
    assert_eq!(v["verdict"], "undecided", "{v:#}");
}

#[test]
fn a_directory_gives_an_array() {
    let s = Scratch::new();
    s.file("d/sb.wtl", SB);
    assert!(valid(&["check", &s.path("d"), "--json"]).is_array());
}

#[test]
fn the_checker_of_schemas_checks() {
    let schema = check_schema();
    let sb = serde_json::json!({"file": 3});
    assert!(!schema::errors(&schema, &sb).is_empty());
}

#[test]
fn fences_and_robust_fit_their_schemas() {
    let s = Scratch::new();
    let sb = s.file("sb.wtl", SB);
    for goal in ["safety", "robustness", "triangular"] {
        let v = valid(&["fences", &sb, "--goal", goal, "--all", "--json"]);
        assert_eq!(v["number_of_fences"], 2, "{v:#}");
        let why = |f: &Value| !f["why"].as_str().unwrap_or_default().is_empty();
        assert!(v["fences"].as_array().is_some_and(|f| f.iter().all(why)));
    }
    let v = valid(&["fences", &sb, "--model", "all", "--json"]);
    assert_eq!(v.as_array().map(Vec::len), Some(2));
    let v = valid(&["fences", &sb, "--write", &s.path("out.wtl"), "--json"]);
    assert!(v["diff"].as_str().is_some_and(|d| d.contains("+")), "{v:#}");
    let broken = s.file("b.wtl", "shared x; thread p { x = 1; } never x == 1;");
    let v = valid(&["fences", &broken, "--json"]);
    assert_eq!(v["broken_under_sc"], true);
    for goal in ["robustness", "triangular"] {
        let v = valid(&["robust", &sb, "--goal", goal, "--json"]);
        assert_eq!(v["robust"], false, "{v:#}");
    }
    let v = valid(&["robust", &broken, "--json"]);
    assert_eq!((&v["robust"], &v["audited"]), (&true.into(), &true.into()));
}

#[test]
fn litmus_fits_its_schema() {
    let folder = root().join("examples/litmus").display().to_string();
    assert!(valid(&["litmus", &folder, "--json"]).is_array());
    let one = root().join("examples/litmus/iriw.litmus");
    let v = valid(&["litmus", &one.display().to_string(), "--json"]);
    assert_eq!(v["complete"], true);
}

/// Every other command with `--json`, on what it can answer and on what it cannot.
#[test]
fn the_rest_fits_its_schemas() {
    let s = Scratch::new();
    let sb = s.file("sb.wtl", SB);
    let expects = s.file("expects.wtl", format!("// expect: tso holds\n{SB}"));
    let broken = s.file("broken.wtl", "shared x;\nthread p { x = ; }\n");
    let (trace, proof) = (s.path("run.json"), s.path("proof.json"));
    assert_eq!(run(&["check", &sb, "--trace", &trace]).code, 1);
    let sc = run(&["check", &sb, "-m", "sc", "--certificate", &proof]);
    assert_eq!(sc.code, 0, "{}{}", sc.out, sc.err);
    let v = valid(&["final", &sb, "-m", "all", "--json"]);
    assert_eq!(v["models"][2]["states"], 4, "{v:#}");
    let v = valid(&["final", &sb, "--timeout", "0s", "--json"]);
    assert_eq!(v["models"][0]["complete"], false, "{v:#}");
    let v = valid(&["replay", &sb, &trace, "--json"]);
    assert_eq!((&v["end"], &v["cycle"]), (&"target".into(), &Value::Null));
    assert!(v["trace"].as_array().is_some_and(|t| t.len() >= 5), "{v:#}");
    let v = valid(&["audit", &sb, &proof, "--json"]);
    assert_eq!(v["verdict"], "holds", "{v:#}");
    assert_eq!(v["property"], valid(&["check", &sb, "--json"])["property"]);
    let v = valid(&["show", &sb, "--as", "svg", "--json"]);
    assert_eq!(v["as"], "svg", "{v:#}");
    let v = valid(&["test", &expects, &sb, &broken, "--json"]);
    assert_eq!(
        (&v["not_as_expected"], &v["not_read"]),
        (&1.into(), &1.into())
    );
    valid(&[
        "bench",
        "params",
        "--suites",
        &s.path("none"),
        "--examples",
        &s.path("none"),
        "--json",
    ]);
    let failing: [&[&str]; 6] = [
        &["final", &broken],
        &["show", &broken],
        &["replay", &broken, &trace],
        &["replay", &sb, &proof],
        &["audit", &broken, &proof],
        &["audit", &sb, &trace],
    ];
    for command in failing {
        let v = valid(&[command, &["--json"]].concat());
        assert!(v["reason"].is_string(), "{command:?}: {v:#}");
    }
    // A run that goes on for ever says from where.
    let spin = "shared x; thread p { while x == 0 { } } thread q { skip; } progress;";
    let spin = s.file("spin.wtl", spin);
    assert_eq!(run(&["check", &spin, "--trace", &trace]).code, 1);
    let v = valid(&["replay", &spin, &trace, "--json"]);
    assert_eq!(v["end"], "cycle", "{v:#}");
    assert!(v["cycle"].is_u64() && v["property"].is_string(), "{v:#}");
    let page = s.path("run.html");
    let r = run(&["replay", &spin, &trace, "--html", &page]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains("it is repeated for ever"), "{page}");
}
