//! The page: the same for walking by hand, with the server behind it, and for a run in a file, with all
//! its states in the page. Nothing is fetched from anywhere else.

use crate::view::Scene;
use crate::walk::{Subject, Way};
use serde_json::{Value, json};

/// What the page may load: itself, and the server it came from.
pub const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page that asks the server.
pub fn live(subject: &Subject<'_>, begin: &Way) -> String {
    // Drawn before anything is asked.
    let first = subject.walk(begin).map(|walk| json!(subject.view(&walk)));
    let first = first.unwrap_or(Value::Null);
    filled(subject, json!(begin), first, Value::Null)
}

/// One file with every state of a run, and buttons to step through it. `ends` is said at its end, beside what every
/// run says.
pub fn of_run(subject: &Subject<'_>, way: &Way, ends: &[String]) -> Result<String, String> {
    let mut views: Vec<Scene> = Vec::new();
    for n in 0..=way.choices.len() {
        let part = Way {
            start: way.start,
            choices: way.choices[..n].to_vec(),
        };
        let mut view = subject.view(&subject.walk(&part)?);
        // The history is that of the last state, up to here.
        match n < way.choices.len() {
            true => {
                view.history.clear();
                view.overtakings.clear();
            }
            false => view.why.extend_from_slice(ends),
        }
        views.push(view);
    }
    Ok(filled(subject, json!(way), Value::Null, json!(views)))
}

fn filled(subject: &Subject<'_>, way: Value, first: Value, views: Value) -> String {
    let data = json!({
        "name": subject.name,
        "model": subject.model.to_string(),
        "source": subject.text,
        "properties": subject.properties,
        "way": way,
        "first": first,
        "views": views,
    });
    // Inside a script element only `<` could end it.
    let data = data.to_string().replace('<', "\\u003c");
    HTML.replace("/*style*/", STYLE)
        .replace("/*script*/", SCRIPT)
        .replace("/*data*/", &data)
}
