//! A printed boolean program as a program of our own language, line by line, so that it can be run.

use std::fmt::Write;

/// The program in `.wtl`. An `abort` is a failed assertion.
pub fn as_wtl(boolean: &str) -> String {
    let mut out = String::new();
    let mut locals = String::new();
    let mut threads = 0;
    let mut initial = false;
    for line in boolean.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let statement = line.strip_suffix(';').unwrap_or(line);
        if let Some(names) = statement.strip_prefix("local ") {
            for name in names.split(", ").filter(|n| !n.is_empty()) {
                let _ = writeln!(locals, "local {name}: 0..1;");
            }
        } else if line == "init" {
            initial = true;
        } else if let Some(number) = line.strip_prefix("process ") {
            if threads > 0 {
                out.push_str("}\n");
            }
            threads += 1;
            initial = false;
            let _ = writeln!(out, "thread p{number} {{\n{locals}");
        } else if let Some(property) = line.strip_prefix("assert(always(") {
            let property = property.strip_suffix("))").expect("two brackets");
            let _ = writeln!(out, "}}\nalways {};", condition(property));
        } else if initial {
            if let Some((name, value)) = assignment(statement) {
                let ty = if name.starts_with("B_") {
                    "0..1"
                } else {
                    "0..9"
                };
                let value = if value == "*" { "any" } else { value };
                let _ = writeln!(out, "shared {name}: {ty} = {value};");
            }
        } else if !statement.starts_with("shared ") {
            step(line, statement, &mut out);
        }
    }
    out
}

fn step(line: &str, statement: &str, out: &mut String) {
    if let Some(label) = line.strip_suffix(": nop;").or(line.strip_suffix(':')) {
        let _ = writeln!(out, "{label}: skip;");
    } else if let Some(label) = statement.strip_prefix("if (*) goto ") {
        let _ = writeln!(out, "choose {{ skip; goto {label}; }} or {{ skip; }}");
    } else if statement == "begin_atomic" {
        out.push_str("atomic {\n");
    } else if statement == "end_atomic" {
        out.push_str("skip; }\n");
    } else if statement.starts_with("goto ") {
        let _ = writeln!(out, "{statement};");
    } else if let Some(test) = statement.strip_prefix("assume") {
        let _ = writeln!(out, "assume {};", condition(test));
    } else if statement.starts_with("abort(") {
        out.push_str("assert false; stop;\n");
    } else if let Some((name, value)) = assignment(statement) {
        let chosen = value
            .strip_prefix("choose(")
            .and_then(|v| v.strip_suffix(')'));
        match chosen.and_then(|v| v.split_once(", ")) {
            None => drop(writeln!(out, "{name} = {value};")),
            Some((yes, no)) => {
                let (yes, no) = (condition(yes), condition(no));
                let one = format!("{{ assume ({yes}) || !({no}); {name} = 1; }}");
                let _ = writeln!(out, "choose {one} or {{ assume !({yes}); {name} = 0; }}");
            }
        }
    } else {
        assert!(line.is_empty(), "not understood: {line}");
    }
}

/// `store B_0 = 1`, `load T_0 = B_0`, `T_0 = 0`
fn assignment(statement: &str) -> Option<(&str, &str)> {
    let rest = statement.strip_prefix("store ").unwrap_or(statement);
    let rest = rest.strip_prefix("load ").unwrap_or(rest);
    rest.split_once(" = ")
        .filter(|(name, _)| !name.contains('('))
}

fn condition(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if let Some(at) = rest.strip_prefix("pc(") {
            let (process, at) = at.split_once(") = ").expect("pc(i) = l");
            let end = at.find(|c: char| !c.is_alphanumeric()).unwrap_or(at.len());
            let _ = write!(out, "p{process}@{}", &at[..end]);
            rest = &at[end..];
            continue;
        }
        if !word.is_empty() {
            match word.starts_with("B_") || word.starts_with("T_") {
                true => drop(write!(out, "({word} == 1)")),
                false => out.push_str(&word),
            }
            rest = &rest[word.len()..];
            continue;
        }
        let (text, length) = match c {
            '!' if rest.starts_with("!=") => ("!=", 2),
            '&' => ("&&", 1),
            '|' => ("||", 1),
            '=' => ("==", 1),
            _ => (&rest[..c.len_utf8()], c.len_utf8()),
        };
        out.push_str(text);
        rest = &rest[length..];
    }
    out
}
