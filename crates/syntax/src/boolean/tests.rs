//! What boolean programs mean, and what is said of those that mean nothing.

use super::parse;

fn complaint(text: &str) -> String {
    let parsed = parse(text);
    assert!(parsed.program.is_none(), "{text}");
    parsed.render("x.bp", text)
}

const HEAD: &str = "shared B_0, B_1;\nlocal T_0;\ninit\n store B_0 = 0;\n store B_1 = *;\n";

#[test]
fn a_whole_program() {
    let text = format!(
        "{HEAD} assume(!(B_0 & B_1));\nprocess 1\n assume(!(B_0 & B_1));\nL0: nop;\nL0_0:\n if (*) goto L0_1;\n \
         begin_atomic;\n load T_0 = B_0;\n store B_1 = choose(T_0, !T_0 & true);\n T_0 = 0;\n end_atomic;\n \
         goto L0;\nL0_1:\n abort(\"overflow\");\nprocess 2\nL0: nop;\n assume(false);\n\
         assert(always(!(pc(1) = L0 & (B_1 | !B_0))))"
    );
    let parsed = parse(&text);
    let program = parsed
        .program
        .unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
    assert_eq!(program.families.len(), 2);
    // B_0, B_1 and whether a process has begun.
    assert_eq!(program.regions.len(), 3);
    assert_eq!(program.properties.len(), 1);
    // No section is left open.
    program.instance().expect("an instance");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (body, message) in [
        (
            "process 1\n store B_2 = 1;",
            "unknown shared variable `B_2`",
        ),
        (
            "process 1\n load T_1 = B_0;",
            "unknown local variable `T_1`",
        ),
        ("process 1\n goto L9;", "unknown label `L9`"),
        ("process 1\n end_atomic;", "there is no section to end"),
        (
            "process 1\n begin_atomic;\n begin_atomic;",
            "a section inside of a section",
        ),
        (
            "process 1\nL0: nop;\n begin_atomic;\n goto L0;",
            "inside and outside of an atomic section",
        ),
        (
            "process 1\n nop;\nprocess 1\n nop;",
            "two processes have the number 1",
        ),
        (
            "process 1\n nop;\nassert(always(pc(1) = L7))",
            "process 1 has no label `L7`",
        ),
        (
            "process 1\n nop;\nassert(always(pc(3) = L7))",
            "there is no process 3",
        ),
        ("process 1\n assume(pc(1) = L0);", "a position in a process"),
        ("process 1\n while;", "expected"),
        ("process 1\n store B_0 = 2;", "2 is no truth value"),
        ("", "`process`"),
    ] {
        let said = complaint(&format!("{HEAD}{body}\n"));
        assert!(said.contains(message), "{body}: {said}");
        assert!(said.contains("x.bp:"), "{said}");
    }
    assert!(complaint("process 1\n nop;\n").contains("`shared`"));
    let odd = format!("{}process 1\n nop;\n", HEAD.replace("= 0", "= B_1"));
    assert!(complaint(&odd).contains("is not a constant"));
}

#[test]
fn deep_texts_are_refused() {
    let many = "(".repeat(5000);
    complaint(&format!("{HEAD}process 1\n assume({many}B_0"));
    complaint(&format!(
        "{HEAD}process 1\n assume({}B_0);",
        "!".repeat(5000)
    ));
}
