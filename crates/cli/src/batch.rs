//! Several files: at the same time, answered in their order, counted in the end.

use super::exit::Exit;
use super::{output, signals, subject};
use clap::Args;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use wattle::input::{self, InputError, InputLanguage};

/// The options of commands about any number of files.
#[derive(Debug, Args)]
pub struct Files {
    /// Programs, or directories of programs (`-` for standard input)
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<String>,
    /// The input language, where the files' names do not tell it
    #[arg(long = "lang", value_name = "LANG", value_parser = subject::language)]
    pub language: Option<InputLanguage>,
    /// x86 programs: mathematical integers instead of wrap-around
    #[arg(long)]
    pub mathematical: bool,
    /// Files worked on at the same time [default: one per core]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

/// The files to work on.
pub struct Batch {
    pub files: Vec<String>,
    /// Directories that could not be read, or have no programs in them.
    pub errors: Vec<(String, InputError)>,
    /// Whether answers say which file they are about.
    pub headed: bool,
}

impl Files {
    pub fn batch(&self) -> Batch {
        let (files, errors) = input::expand(&self.files);
        let several = files.len() > 1 || self.files.len() > 1;
        let headed = several || self.files.iter().any(|f| !files.contains(f));
        Batch {
            files,
            errors,
            headed,
        }
    }
}

impl Batch {
    /// Does the work, several files at a time, and hands out what came of it in the files' order until
    /// nobody wants it any more. Gives how many files were not begun because a signal came.
    pub fn in_order<A: Send>(
        &self,
        jobs: Option<u16>,
        work: impl Fn(usize, &str) -> A + Sync,
        mut show: impl FnMut(&str, A) -> bool,
    ) -> usize {
        let files = &self.files;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = jobs.map_or(cores, usize::from).min(files.len().max(1));
        let next = AtomicUsize::new(0);
        let slots: Vec<Mutex<Option<A>>> = files.iter().map(|_| Mutex::new(None)).collect();
        let (done, finished) = std::sync::mpsc::channel();
        let mut shown = 0;
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                let done = done.clone();
                let (next, slots, work) = (&next, &slots, &work);
                scope.spawn(move || {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(name) = files.get(i) else { break };
                        // The first file has something to say even then.
                        if i > 0 && signals::interrupted().load(Ordering::Relaxed) {
                            break;
                        }
                        let answer = work(i, name);
                        if let Ok(mut slot) = slots[i].lock() {
                            *slot = Some(answer);
                        }
                        if done.send(()).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(done);
            while finished.recv().is_ok() {
                while let Some(answer) = slots.get(shown).and_then(|s| s.lock().ok()?.take()) {
                    if !show(&files[shown], answer) {
                        // Nobody reads any more: let the workers stop.
                        signals::interrupted().store(true, Ordering::Relaxed);
                        next.store(files.len(), Ordering::Relaxed);
                        shown = files.len();
                        return;
                    }
                    shown += 1;
                }
            }
        });
        files.len() - shown
    }
}

/// What came of several files, in one line.
#[derive(Debug, Default)]
pub struct Tally {
    files: usize,
    answers: [usize; 5],
}

impl Tally {
    /// A file and the exits of its answers.
    pub fn add(&mut self, answers: impl IntoIterator<Item = Exit>) {
        self.files += 1;
        for exit in answers {
            self.answers[exit as usize] += 1;
        }
    }

    /// `3 files: 2 hold, 1 violated`; the words are those for exit code 0 and 1.
    pub fn line(&self, words: [&str; 2]) -> String {
        let files = match self.files {
            1 => "1 file".to_string(),
            n => format!("{n} files"),
        };
        let all = [
            (Exit::Holds, words[0]),
            (Exit::Violated, words[1]),
            (Exit::Undecided, "not decided"),
            (Exit::Input, "not checked"),
            (Exit::Unsound, "with evidence that did not check"),
        ];
        let parts = all.iter().filter_map(|(exit, word)| {
            let n = self.answers[*exit as usize];
            (n > 0).then(|| format!("{n} {word}"))
        });
        let parts: Vec<String> = parts.collect();
        format!("{files}: {}\n", parts.join(", "))
    }
}

/// Tells that files were not begun; the exit they stand for.
pub fn not_begun(files: usize) -> Exit {
    match files {
        0 => return Exit::Holds,
        1 => output::note("interrupted: 1 file was not begun\n"),
        n => output::note(&format!("interrupted: {n} files were not begun\n")),
    }
    Exit::Undecided
}
