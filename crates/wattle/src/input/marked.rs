//! Files of compiled code that say themselves what is to be checked: `wattle_thread_NAME` is run once,
//! `wattle_threads_NAME` any number of times, with the properties of the section `.wattle`.
//!
//! Functions of one Rust module are one test: they run together, and where nothing else is said, no two of
//! them are at `critical`.

use super::{InputError, InputLanguage, Source, code};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use wattle_machine::{Image, Problem, markers};

/// A module and its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// Its path.
    pub module: String,
    /// In Wattle's own language.
    pub text: String,
}

/// The tests of a file, each with the text of its program, which names the file as one beside it.
pub fn tests(name: &str) -> Result<Vec<Test>, InputError> {
    let file = File::read(name)?;
    let tests = file.groups.iter().map(|group| Test {
        module: group.module.clone(),
        text: file.text(&[group]),
    });
    Ok(tests.collect())
}

/// The text that runs all of them.
pub(super) fn harness(name: &str) -> Result<String, InputError> {
    let file = File::read(name)?;
    Ok(file.text(&file.groups.iter().collect::<Vec<_>>()))
}

/// A thread function: the thread's name, whether there are any number, the function's name.
type Thread = (String, bool, String);

struct Group {
    module: String,
    threads: Vec<Thread>,
    properties: Vec<String>,
}

struct File {
    name: String,
    groups: Vec<Group>,
    /// Properties that name no thread.
    general: Vec<String>,
    /// Whether somebody is ever at `critical`.
    critical: bool,
}

impl File {
    fn read(name: &str) -> Result<File, InputError> {
        let told = |p: Problem| match p.hint {
            Some(hint) => InputError::new(format!("{}; {hint}", p.what)),
            None => InputError::new(p.what),
        };
        let image = code::image(Path::new(name), &[]).map_err(told)?;
        let mut file = File {
            name: name.to_string(),
            groups: groups(&image),
            general: Vec::new(),
            critical: image.externs.values().any(|n| n == "wattle_label_critical"),
        };
        if file.groups.is_empty() {
            let hint =
                "write a `.wtl` file that calls its functions, or name some `wattle_thread_…`";
            return Err(InputError::new(format!("no function is a thread: {hint}")));
        }
        for note in &image.notes {
            file.note(note.trim());
        }
        Ok(file)
    }

    /// A property belongs to the threads it names; these are one test, then.
    fn note(&mut self, note: &str) {
        let words: BTreeSet<&str> = note
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .collect();
        let named = |g: &Group| g.threads.iter().any(|(n, ..)| words.contains(n.as_str()));
        let (about, others): (Vec<Group>, Vec<Group>) = std::mem::take(&mut self.groups)
            .into_iter()
            .partition(named);
        self.groups = others;
        let one = about.into_iter().reduce(|mut one, other| {
            one.threads.extend(other.threads);
            one.properties.extend(other.properties);
            one
        });
        match one {
            Some(mut one) => {
                one.properties.push(note.to_string());
                self.groups.push(one);
            }
            None => self.general.push(note.to_string()),
        }
        self.groups.sort_by(|a, b| a.module.cmp(&b.module));
    }

    fn text(&self, groups: &[&Group]) -> String {
        let file = Path::new(&self.name).file_name();
        let file = file.map(|f| f.to_string_lossy().into_owned());
        let mut text = format!("object {:?};\n", file.unwrap_or_default());
        let mut threads: Vec<&Thread> = groups.iter().flat_map(|g| &g.threads).collect();
        threads.sort_unstable();
        for (name, any, function) in threads {
            let count = if *any { "[*]" } else { "" };
            text.push_str(&format!("thread {name}{count} {{ call {function}(); }}\n"));
        }
        let said = |g: &&&Group| !g.properties.is_empty() || !self.general.is_empty();
        // Without a word about it, `critical` is where no two threads meet.
        let silent: Vec<&&Group> = groups
            .iter()
            .filter(|g| !said(g) && self.critical)
            .collect();
        let there = match silent.is_empty() {
            true => BTreeSet::new(),
            false => self.at_critical(&text),
        };
        for property in groups
            .iter()
            .flat_map(|g| &g.properties)
            .chain(&self.general)
        {
            text.push_str(property);
            text.push('\n');
        }
        for group in silent {
            let threads = group.threads.iter().filter(|t| there.contains(&t.0));
            text.push_str(&exclusion(&threads.collect::<Vec<_>>()));
        }
        text
    }

    /// Which of a text's threads are ever at `critical`; all, where its code cannot be read: that is told later.
    fn at_critical(&self, text: &str) -> BTreeSet<String> {
        let mut source = Source {
            name: self.name.clone(),
            text: text.to_string(),
            language: InputLanguage::Code,
            mathematical: false,
            places: BTreeMap::new(),
        };
        let Some(program) = code::program(&mut source).program else {
            let threads = self.groups.iter().flat_map(|g| &g.threads);
            return threads.map(|(n, ..)| n.clone()).collect();
        };
        let there = |f: &&wattle_model::Family| {
            let mut labels = f.locations.iter().flat_map(|l| &l.labels);
            labels.any(|l| l == "critical")
        };
        let there = program.families.iter().filter(there);
        there.map(|f| f.name.clone()).collect()
    }
}

/// The thread functions of each module.
fn groups(image: &Image) -> Vec<Group> {
    let mut threads: Vec<Thread> = (image.symbols.iter())
        .filter(|s| s.code)
        .filter_map(|s| {
            let (n, any) = markers::thread_name(&s.name)?;
            Some((n.to_string(), any, s.name.clone()))
        })
        .collect();
    threads.sort_unstable();
    threads.dedup();
    let modules = markers::modules(image);
    let mut all: BTreeMap<String, Group> = BTreeMap::new();
    for thread in threads {
        let module = modules.get(&thread.2).cloned().unwrap_or_default();
        let group = all.entry(module.clone()).or_insert(Group {
            module,
            threads: Vec::new(),
            properties: Vec::new(),
        });
        group.threads.push(thread);
    }
    all.into_values().collect()
}

fn exclusion(threads: &[&Thread]) -> String {
    let mut text = String::new();
    for (k, (a, any, _)) in threads.iter().enumerate() {
        if *any {
            text.push_str(&format!("never {a}[i]@critical && {a}[j]@critical;\n"));
        }
        let of = |name: &str, any: bool, i: &str| match any {
            true => format!("{name}[{i}]@critical"),
            false => format!("{name}@critical"),
        };
        for (b, other, _) in &threads[k + 1..] {
            text.push_str(&format!(
                "never {} && {};\n",
                of(a, *any, "i"),
                of(b, *other, "j")
            ));
        }
    }
    text
}
