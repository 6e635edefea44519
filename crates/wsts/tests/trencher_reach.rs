//! The adjudicated reachability verdicts of the trencher suite, decided by `exact` and audited.

use std::path::Path;
use wattle_auditor::audit;
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_wsts::Exact;

#[test]
fn exact_agrees_with_the_suite() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites/trencher/reach");
    let Ok(table) = std::fs::read_to_string(root.join("expected.csv")) else {
        println!("skipped: the suites are not here");
        return;
    };
    let mut wrong = Vec::new();
    let mut decided = 0;
    for line in table.lines().skip(1) {
        let mut columns = line.split(',');
        let (file, _, tso) = (
            columns.next().unwrap(),
            columns.next(),
            columns.next().unwrap(),
        );
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let parsed = wattle_syntax::trencher::parse(&text);
        let instance = parsed.program.unwrap().instance().unwrap();
        let task = Task {
            instance: &instance,
            model: MemoryModel::Tso,
            question: Some(0),
            deadlock: false,
        };
        // The engine's own account of memory is the same on every machine.
        let control = Control::unlimited().with_memory(Some(32 << 20));
        let answer = Exact.run(&task, &control);
        let got = match answer {
            Answer::Reached { trace, .. } => {
                trace.check(&task).unwrap();
                "violated"
            }
            Answer::Unreachable { certificate, .. } => {
                audit(&task, &certificate, &control).unwrap();
                "holds"
            }
            other => {
                println!("{file}: {other:?}");
                continue;
            }
        };
        decided += 1;
        if got != tso {
            wrong.push(file.to_string());
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(decided >= 22, "only {decided} decided");
}
