//! The litmus examples give the answers they expect, and print like herd.

use expect_test::expect;
use std::path::PathBuf;
use wattle_evidence::Control;
use wattle_litmus::answer;
use wattle_memory::MemoryModel;
use wattle_syntax::litmus::parse_test;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/litmus")
}

#[test]
fn expected_answers() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the examples")
        .map(|f| f.expect("a file").path())
        .collect();
    files.sort();
    for file in &files {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_string();
        let text = std::fs::read_to_string(file).expect("a file");
        let parsed = parse_test(&text);
        assert!(
            parsed.diagnostics.is_empty(),
            "{}",
            parsed.diagnostics[0].render(&name, &text)
        );
        let line = text.lines().find_map(|l| l.trim().strip_prefix("expect: "));
        let mut models = 0;
        for (model, expected) in line
            .into_iter()
            .flat_map(|l| l.split(", "))
            .filter_map(|e| e.split_once(' '))
        {
            let model = MemoryModel::ALL
                .into_iter()
                .find(|m| m.keyword() == model)
                .expect("a model");
            let found = answer(&parsed, model, &Control::unlimited()).expect("an answer");
            let holds = if found.summary.holds() {
                "holds"
            } else {
                "violated"
            };
            assert_eq!(holds, expected, "{name} {model}\n{}", found.summary);
            models += 1;
        }
        assert_eq!(models, 3, "{name} expects nothing");
    }
}

#[test]
fn summaries() {
    let show = |file: &str, model| {
        let text = std::fs::read_to_string(folder().join(file)).expect("a file");
        let found = answer(&parse_test(&text), model, &Control::unlimited());
        found.expect("an answer").summary.to_string()
    };
    expect![[r#"
        Test SB Allowed
        States 4
        0:EAX=0; 1:EAX=0;
        0:EAX=0; 1:EAX=1;
        0:EAX=1; 1:EAX=0;
        0:EAX=1; 1:EAX=1;
        Ok
        Witnesses
        Positive: 1 Negative: 3
        Condition exists (0:EAX=0 /\ 1:EAX=0)
        Observation SB Sometimes 1 3
    "#]]
    .assert_eq(&show("sb.litmus", MemoryModel::Tso));
    expect![[r#"
        Test MP Required
        States 4
        1:eax=0; 1:ebx=0;
        1:eax=0; 1:ebx=1;
        1:eax=1; 1:ebx=0;
        1:eax=1; 1:ebx=1;
        No
        Witnesses
        Positive: 3 Negative: 1
        Condition forall (1:eax=0 \/ 1:ebx=1)
        Observation MP Sometimes 3 1
    "#]]
    .assert_eq(&show("mp.litmus", MemoryModel::Pso));
    expect![[r#"
        Test pointer Required
        States 2
        1:rax=x; 1:ecx=1;
        1:rax=y; 1:ecx=7;
        Ok
        Witnesses
        Positive: 2 Negative: 0
        Condition forall (1:rax=y /\ 1:ecx=7 \/ 1:rax=x /\ 1:ecx=1)
        Observation pointer Always 2 0
    "#]]
    .assert_eq(&show("pointer.litmus", MemoryModel::Tso));
    expect![[r#"
        Test IRIW Forbidden
        States 15
        2:EAX=0; 2:EBX=0; 3:EAX=0; 3:EBX=0;
        2:EAX=0; 2:EBX=0; 3:EAX=0; 3:EBX=1;
        2:EAX=0; 2:EBX=0; 3:EAX=1; 3:EBX=0;
        2:EAX=0; 2:EBX=0; 3:EAX=1; 3:EBX=1;
        2:EAX=0; 2:EBX=1; 3:EAX=0; 3:EBX=0;
        2:EAX=0; 2:EBX=1; 3:EAX=0; 3:EBX=1;
        2:EAX=0; 2:EBX=1; 3:EAX=1; 3:EBX=0;
        2:EAX=0; 2:EBX=1; 3:EAX=1; 3:EBX=1;
        2:EAX=1; 2:EBX=0; 3:EAX=0; 3:EBX=0;
        2:EAX=1; 2:EBX=0; 3:EAX=0; 3:EBX=1;
        2:EAX=1; 2:EBX=0; 3:EAX=1; 3:EBX=1;
        2:EAX=1; 2:EBX=1; 3:EAX=0; 3:EBX=0;
        2:EAX=1; 2:EBX=1; 3:EAX=0; 3:EBX=1;
        2:EAX=1; 2:EBX=1; 3:EAX=1; 3:EBX=0;
        2:EAX=1; 2:EBX=1; 3:EAX=1; 3:EBX=1;
        Ok
        Witnesses
        Positive: 0 Negative: 15
        Condition ~exists (2:EAX=1 /\ 2:EBX=0 /\ 3:EAX=1 /\ 3:EBX=0)
        Observation IRIW Never 0 15
    "#]]
    .assert_eq(&show("iriw.litmus", MemoryModel::Sc));
}
