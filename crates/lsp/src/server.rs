//! The conversation with the editor.

use crate::document::Document;
use crate::{names, work};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use wattle::MemoryModel;

/// Why the conversation ended early.
#[derive(Debug)]
pub struct ServerError(String);

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServerError {}

/// What the server can do.
fn capabilities() -> Value {
    json!({
        // The whole text each time: programs are short.
        "textDocumentSync": { "openClose": true, "change": 1, "save": true },
        "hoverProvider": true,
        "definitionProvider": true,
        "codeLensProvider": { "resolveProvider": false },
        "codeActionProvider": { "codeActionKinds": ["quickfix"] },
        "executeCommandProvider": { "commands": [CHECK, FENCES] },
    })
}

const CHECK: &str = "wattle.check";
const FENCES: &str = "wattle.fences";

/// Talks over standard input and output until the editor says that it is enough.
pub fn serve() -> Result<(), ServerError> {
    let (connection, threads) = Connection::stdio();
    let done = talk(&connection);
    drop(connection);
    threads.join().map_err(|e| ServerError(e.to_string()))?;
    done
}

fn talk(connection: &Connection) -> Result<(), ServerError> {
    let failed = |e: &dyn fmt::Display| ServerError(e.to_string());
    let (id, _) = connection.initialize_start().map_err(|e| failed(&e))?;
    let info = json!({ "name": "wattle", "version": wattle_report::json::VERSION });
    let reply = json!({ "capabilities": capabilities(), "serverInfo": info });
    connection
        .initialize_finish(id, reply)
        .map_err(|e| failed(&e))?;
    let mut server = Server {
        connection,
        documents: BTreeMap::new(),
        work: BTreeMap::new(),
        edits: 0,
    };
    for message in &connection.receiver {
        match message {
            Message::Request(request) => {
                if connection
                    .handle_shutdown(&request)
                    .map_err(|e| failed(&e))?
                {
                    break;
                }
                server.request(request);
            }
            Message::Notification(notification) => server.notification(&notification),
            Message::Response(_) => {}
        }
    }
    server.stop_all();
    Ok(())
}

struct Server<'c> {
    connection: &'c Connection,
    documents: BTreeMap<String, Document>,
    /// What is being worked on, by document.
    work: BTreeMap<String, Work>,
    /// Edits asked of the editor so far.
    edits: i32,
}

struct Work {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Server<'_> {
    fn send(&self, message: Message) {
        // An editor that is gone needs no answer.
        let _ = self.connection.sender.send(message);
    }

    fn publish(&self, uri: &str, diagnostics: &[Value]) {
        self.send(published(uri, diagnostics));
    }

    fn notification(&mut self, n: &Notification) {
        let item = &n.params["textDocument"];
        let Some(uri) = item["uri"].as_str() else {
            return;
        };
        let version = item["version"].as_i64().unwrap_or(0);
        match n.method.as_str() {
            "textDocument/didOpen" => {
                let text = item["text"].as_str().unwrap_or_default().to_string();
                let id = item["languageId"].as_str().unwrap_or_default();
                self.changed(Document::new(uri, id, text, version));
            }
            "textDocument/didChange" => {
                let changes = n.params["contentChanges"].as_array();
                let text = changes.and_then(|c| c.last()?["text"].as_str());
                if let (Some(text), Some(old)) = (text, self.documents.get(uri)) {
                    let id = old.language.name();
                    self.changed(Document::new(uri, id, text.to_string(), version));
                }
            }
            "textDocument/didClose" => {
                self.stop(uri);
                self.documents.remove(uri);
                self.publish(uri, &[]);
            }
            _ => {}
        }
    }

    /// A new text: what was found out about the old one is void.
    fn changed(&mut self, document: Document) {
        self.stop(&document.uri);
        self.publish(&document.uri, &document.diagnostics());
        self.documents.insert(document.uri.clone(), document);
    }

    fn stop(&mut self, uri: &str) {
        if let Some(work) = self.work.remove(uri) {
            work.stop.store(true, Ordering::Relaxed);
            let _ = work.thread.join();
        }
    }

    fn stop_all(&mut self) {
        let all: Vec<String> = self.work.keys().cloned().collect();
        all.iter().for_each(|uri| self.stop(uri));
    }

    fn request(&mut self, request: Request) {
        let Request { id, method, params } = request;
        let uri = params["textDocument"]["uri"].as_str().unwrap_or_default();
        let document = self.documents.get(uri);
        let answer = match method.as_str() {
            "textDocument/hover" => document.map_or(Value::Null, |d| hover(d, &params)),
            "textDocument/definition" => document.map_or(Value::Null, |d| definition(d, &params)),
            "textDocument/codeLens" => document.map_or(Value::Null, lenses),
            "textDocument/codeAction" => document.map_or(Value::Null, actions),
            "workspace/executeCommand" => return self.execute(id, &params),
            other => {
                let why = format!("`{other}` is not known here");
                let code = ErrorCode::MethodNotFound as i32;
                return self.send(Response::new_err(id, code, why).into());
            }
        };
        self.send(Response::new_ok(id, answer).into());
    }

    /// Begins to work on a document, and answers when it is done.
    fn execute(&mut self, id: RequestId, params: &Value) {
        let command = params["command"].as_str().unwrap_or_default().to_string();
        let uri = params["arguments"][0]
            .as_str()
            .unwrap_or_default()
            .to_string();
        let model = params["arguments"][1].as_str().unwrap_or("tso");
        let model = MemoryModel::ALL.into_iter().find(|m| m.keyword() == model);
        let refuse = |why: &str| {
            let code = ErrorCode::InvalidParams as i32;
            Message::from(Response::new_err(id.clone(), code, why.into()))
        };
        let (Some(old), Some(model)) = (self.documents.get(&uri), model) else {
            return self.send(refuse("no such document, or no such memory model"));
        };
        if ![CHECK, FENCES].contains(&command.as_str()) {
            return self.send(refuse("no such command"));
        }
        let document = Document::new(&uri, old.language.name(), old.text.clone(), old.version);
        self.stop(&uri);
        self.edits += 1;
        let (number, sender) = (self.edits, self.connection.sender.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut messages = Vec::new();
            let said = match command.as_str() {
                CHECK => {
                    let (marks, text) = work::check(&document, model, &flag);
                    let mut all = document.diagnostics();
                    all.extend(marks);
                    messages.push(published(&uri, &all));
                    text
                }
                _ => match work::fenced(&document, model, &flag) {
                    Ok(text) => {
                        messages.push(edit(number, &document, &text));
                        format!("fences for {model}, proved")
                    }
                    Err(why) => why,
                },
            };
            // Who changed the text meanwhile does not want to know.
            if !flag.load(Ordering::Relaxed) {
                messages.into_iter().for_each(|m| drop(sender.send(m)));
            }
            let _ = sender.send(Response::new_ok(id, json!(said)).into());
        });
        self.work
            .insert(document_uri(params), Work { stop, thread });
    }
}

fn document_uri(params: &Value) -> String {
    params["arguments"][0]
        .as_str()
        .unwrap_or_default()
        .to_string()
}

fn published(uri: &str, diagnostics: &[Value]) -> Message {
    let params = json!({ "uri": uri, "diagnostics": diagnostics });
    Notification::new("textDocument/publishDiagnostics".into(), params).into()
}

/// Asks the editor to put another text in place of the old.
fn edit(number: i32, document: &Document, text: &str) -> Message {
    let edit = json!({ "range": document.whole(), "newText": text });
    let version = json!({ "uri": document.uri, "version": document.version });
    let change = json!({ "textDocument": version, "edits": [edit] });
    let params = json!({ "label": "fences", "edit": { "documentChanges": [change] } });
    Request::new(number.into(), "workspace/applyEdit".into(), params).into()
}

fn byte(document: &Document, params: &Value) -> usize {
    let at = &params["position"];
    let number = |v: &Value| v.as_u64().unwrap_or(0);
    document.offset(number(&at["line"]), number(&at["character"]))
}

fn hover(document: &Document, params: &Value) -> Value {
    let at = byte(document, params);
    match names::at(document, document.program().as_ref(), at) {
        Some(named) => json!({ "contents": { "kind": "markdown", "value": named.what } }),
        None => Value::Null,
    }
}

fn definition(document: &Document, params: &Value) -> Value {
    let at = byte(document, params);
    match names::at(document, document.program().as_ref(), at) {
        Some(named) if named.span.is_some() => {
            json!({ "uri": document.uri, "range": document.range(named.span) })
        }
        _ => Value::Null,
    }
}

/// Over each property: check it, and find fences.
fn lenses(document: &Document) -> Value {
    let Some(program) = document.program() else {
        return json!([]);
    };
    let command = |title: &str, command: &str, model: &str| json!({ "title": title, "command": command, "arguments": [document.uri, model] });
    let mut all = Vec::new();
    for property in &program.properties {
        let range = document.range(property.span);
        for (title, what, model) in [
            ("check on TSO", CHECK, "tso"),
            ("on SC", CHECK, "sc"),
            ("on PSO", CHECK, "pso"),
            ("fences", FENCES, "tso"),
        ] {
            all.push(json!({ "range": range, "command": command(title, what, model) }));
        }
    }
    json!(all)
}

/// Fences as actions; they are looked for when one is chosen.
fn actions(document: &Document) -> Value {
    if document.program().is_none() {
        return json!([]);
    }
    let action = |model: &str| {
        let title = format!("Put in the cheapest fences for {}", model.to_uppercase());
        let arguments = json!([document.uri, model]);
        let command = json!({ "title": title, "command": FENCES, "arguments": arguments });
        json!({ "title": title, "kind": "quickfix", "command": command })
    };
    json!([action("tso"), action("pso")])
}
