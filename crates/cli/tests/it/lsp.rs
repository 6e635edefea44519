//! The language server over standard input and output, as an editor talks to it; and the grammar.

use crate::support::{root, wattle};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    requests: i64,
    /// Notifications and requests of the server that nobody asked for yet.
    seen: Vec<Value>,
}

const URI: &str = "file:///sb.wtl";

const SB: &str = "shared x, y;
thread p { local a; x = 1; a = y; }
thread q { local b; y = 1; b = x; }
finally !(p.a == 0 && q.b == 0);
";

impl Editor {
    fn new() -> Self {
        let mut child = wattle()
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut editor = Editor {
            child,
            input,
            output,
            requests: 0,
            seen: Vec::new(),
        };
        let ready = editor.ask("initialize", json!({ "capabilities": {} }));
        assert_eq!(ready["capabilities"]["hoverProvider"], true, "{ready:#}");
        editor.tell("initialized", json!({}));
        editor
    }

    fn send(&mut self, value: &Value) {
        let text = value.to_string();
        let input = self.input.as_mut().expect("a pipe");
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("it reads");
        input.flush().expect("it reads");
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).expect("it writes") > 0,
                "it is gone"
            );
            match line.trim().strip_prefix("Content-Length: ") {
                Some(n) => length = n.parse().expect("a length"),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut text = vec![0; length];
        self.output.read_exact(&mut text).expect("a message");
        serde_json::from_slice(&text).expect("JSON")
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.read();
            if message["id"] == id && message.get("method").is_none() {
                assert!(message.get("error").is_none(), "{message:#}");
                return message["result"].clone();
            }
            self.seen.push(message);
        }
    }

    /// The next message with this method.
    fn next(&mut self, method: &str) -> Value {
        loop {
            if let Some(i) = self.seen.iter().position(|m| m["method"] == method) {
                return self.seen.remove(i)["params"].clone();
            }
            let message = self.read();
            self.seen.push(message);
        }
    }

    fn open(&mut self, text: &str) -> Vec<Value> {
        let item = json!({ "uri": URI, "languageId": "wtl", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": item }));
        let told = self.next("textDocument/publishDiagnostics");
        told["diagnostics"].as_array().cloned().unwrap_or_default()
    }

    fn at(&mut self, method: &str, line: u64, character: u64) -> Value {
        let position = json!({ "line": line, "character": character });
        self.ask(
            method,
            json!({ "textDocument": { "uri": URI }, "position": position }),
        )
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.input.take();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn errors_as_they_are_typed() {
    let mut editor = Editor::new();
    let told = editor.open("shared x;\nthread p { y = 1; }\n");
    assert_eq!(told.len(), 1, "{told:#?}");
    assert_eq!(
        told[0]["range"]["start"],
        json!({ "line": 1, "character": 11 })
    );
    assert_eq!(told[0]["severity"], 1);
    let text = json!([{ "text": "shared y;\nthread p { y = 1; }\n" }]);
    let version = json!({ "uri": URI, "version": 2 });
    editor.tell(
        "textDocument/didChange",
        json!({ "textDocument": version, "contentChanges": text }),
    );
    let told = editor.next("textDocument/publishDiagnostics");
    assert_eq!(told["diagnostics"], json!([]));
}

#[test]
fn what_names_are_and_where() {
    let mut editor = Editor::new();
    assert!(editor.open(SB).is_empty());
    let hover = editor.at("textDocument/hover", 1, 20);
    assert!(
        hover["contents"]["value"]
            .as_str()
            .is_some_and(|v| v.contains("shared memory")),
        "{hover}"
    );
    let to = editor.at("textDocument/definition", 1, 20);
    assert_eq!(
        to["range"]["start"],
        json!({ "line": 0, "character": 7 }),
        "{to}"
    );
    let hover = editor.at("textDocument/hover", 3, 1);
    assert!(
        hover["contents"]["value"]
            .as_str()
            .is_some_and(|v| v.contains("a property")),
        "{hover}"
    );
    assert_eq!(editor.at("textDocument/hover", 0, 6), Value::Null);
}

#[test]
fn a_lens_checks_and_an_action_fences() {
    let mut editor = Editor::new();
    assert!(editor.open(SB).is_empty());
    let document = json!({ "textDocument": { "uri": URI } });
    let lenses = editor.ask("textDocument/codeLens", document);
    let lens = lenses
        .as_array()
        .and_then(|l| l.first())
        .cloned()
        .expect("a lens");
    assert_eq!(lens["range"]["start"]["line"], 3);
    let said = editor.ask("workspace/executeCommand", lens["command"].clone());
    assert!(
        said.as_str()
            .is_some_and(|s| s.starts_with("violated on TSO")),
        "{said}"
    );
    let told = editor.next("textDocument/publishDiagnostics");
    assert_eq!(told["diagnostics"][0]["source"], "wattle check", "{told:#}");
    let range =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    let asked =
        json!({ "textDocument": { "uri": URI }, "range": range, "context": { "diagnostics": [] } });
    let actions = editor.ask("textDocument/codeAction", asked);
    let said = editor.ask("workspace/executeCommand", actions[0]["command"].clone());
    assert!(
        said.as_str().is_some_and(|s| s.contains("proved")),
        "{said}"
    );
    let edit = editor.next("workspace/applyEdit");
    let text = edit["edit"]["documentChanges"][0]["edits"][0]["newText"].as_str();
    assert!(
        text.is_some_and(|t| t.matches("fence;").count() == 2),
        "{edit:#}"
    );
    editor.ask("shutdown", Value::Null);
    editor.tell("exit", Value::Null);
    assert!(editor.child.wait().is_ok_and(|s| s.success()));
}

/// Every word of the language is in the grammar, and what the extension names is there.
#[test]
fn the_grammar_knows_every_word() {
    let folder = root().join("editors/vscode");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    let grammar: Value = serde_json::from_str(&read("syntaxes/wtl.tmLanguage.json")).expect("JSON");
    let text = grammar.to_string();
    // Some are words only where they stand.
    let here = ["call", "object", "struct", "progress"];
    for word in wattle_model::print::RESERVED.iter().chain(&here) {
        let known = text
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .any(|w| w == *word);
        assert!(known, "`{word}` is not in the grammar");
    }
    let package: Value = serde_json::from_str(&read("package.json")).expect("JSON");
    for pointer in [
        "/main",
        "/contributes/grammars/0/path",
        "/contributes/languages/0/configuration",
    ] {
        let file = package
            .pointer(pointer)
            .and_then(Value::as_str)
            .expect(pointer);
        assert!(folder.join(file).is_file(), "{file}");
    }
    let _: Value = serde_json::from_str(&read("language-configuration.json")).expect("JSON");
}

/// The extension, run by Node with stand-ins for the editor: it starts the real server.
#[test]
fn the_extension_starts_the_server() {
    let here = root().join("crates/cli/tests/it/support/extension.js");
    let mut command = std::process::Command::new("node");
    command.arg(here);
    command.env("WATTLE", env!("CARGO_BIN_EXE_wattle"));
    command.env("EXTENSION", root().join("editors/vscode/extension.js"));
    let Ok(output) = command.output() else {
        println!("skipped: there is no node");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{wrong}");
    assert!(said.contains("the extension works"), "{said}{wrong}");
}
