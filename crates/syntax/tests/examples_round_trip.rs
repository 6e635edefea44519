//! Every example parses, and what is printed of it parses to the same program.

use std::path::Path;
use wattle_model::print::to_wtl;
use wattle_syntax::wtl;

#[test]
fn examples_round_trip() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let entries = std::fs::read_dir(folder).expect("the examples");
    let paths = entries.filter_map(|e| Some(e.ok()?.path()));
    let mut seen = 0;
    for path in paths.filter(|p| p.extension().is_some_and(|e| e == "wtl")) {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let name = path.display().to_string();
        let parsed = wtl::parse(&text);
        assert!(
            parsed.diagnostics.is_empty(),
            "{}",
            parsed.render(&name, &text)
        );
        let program = parsed.program.expect("a program");
        let printed = to_wtl(&program);
        let again = wtl::parse(&printed).program.expect("printed text parses");
        assert_eq!(
            program.without_spans(),
            again.without_spans(),
            "{name}:\n{printed}"
        );
        seen += 1;
    }
    assert!(seen >= 40, "only {seen} examples");
}
