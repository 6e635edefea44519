//! What `wattle check` is told, and what of it cannot be.

use super::super::batch::Files;
use super::super::budget::Budget;
use super::super::format::{Format, Formatted};
use super::super::models::{self, Model};
use super::super::{signals, units};
use clap::{Args, ValueEnum};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use wattle::checkpoint::Directory;
use wattle::options::{Hosts, Lost, Mesh};
use wattle::{Options, Order, ThreadCount};
use wattle_auditor::AuditPolicy;
use wattle_evidence::Fairness;
use wattle_extrapolate::Method;
use wattle_memory::{ContentKind, Keeps};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(super) files: Files,
    /// The memory model, or several with commas between them
    #[arg(
        long,
        short,
        value_enum,
        value_delimiter = ',',
        value_name = "MODEL,…",
        default_value = "tso"
    )]
    pub(super) model: Vec<Model>,
    /// The engine; `auto` runs a plan (for any number of threads: `params`, `exact`, `counting`, `levels` and `small`)
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(super) engine: String,
    /// How many threads a family has (`p=4`, or `4` if there is only one); `*` for any number
    #[arg(long, value_name = "[NAME=]N", value_parser = units::threads)]
    pub(super) threads: Vec<(String, ThreadCount)>,
    #[command(flatten)]
    pub(super) budget: Budget,
    /// Write the search of the engine `explicit` down into this directory from time to time
    #[arg(long, value_name = "DIR")]
    pub(super) checkpoint: Option<PathBuf>,
    /// Go on with the search that was written down into this directory, and write it down there again
    #[arg(long, value_name = "DIR", conflicts_with = "checkpoint")]
    pub(super) resume: Option<PathBuf>,
    /// How often it is written down, at the end of a level of the search
    #[arg(long, value_name = "TIME", value_parser = units::timeout, default_value = "60s")]
    pub(super) every: units::Timeout,
    /// Compress the states of the engine `explicit`: fewer bytes for each, and more time
    #[arg(long)]
    pub(super) compress: bool,
    /// Search together with other processes, whose addresses (HOST:PORT, or a port of this machine) are the lines of this file;
    /// links are neither encrypted nor authenticated: only for a private network
    #[arg(long, value_name = "FILE", requires = "process")]
    pub(super) hosts: Option<PathBuf>,
    /// Which of these processes this is, from 0 on; process 0 tells the answer
    #[arg(long, value_name = "K", requires = "hosts")]
    pub(super) process: Option<usize>,
    /// Look for deadlock too
    #[arg(long)]
    pub(super) deadlock: bool,
    /// Ask whether every thread goes on: no waiting loop, and no place, is stayed in for ever
    #[arg(long)]
    pub(super) progress: bool,
    /// What is taken for granted about threads and pending stores where whole runs are asked about
    #[arg(long, value_enum, default_value_t = Fair::Weak)]
    pub(super) fairness: Fair,
    /// The order of the search
    #[arg(long, value_enum, default_value_t = SearchOrder::Bfs)]
    pub(super) order: SearchOrder,
    /// Which states the engine `explicit` leaves out; `traces` is the engine of that name
    #[arg(long, value_enum, default_value_t = units::Reduced::Persistent)]
    pub(super) reduce: units::Reduced,
    /// Whether the engine `explicit` keeps one of the states that differ in who is who
    #[arg(long, value_enum, default_value_t = units::Switch::On)]
    pub(super) symmetry: units::Switch,
    /// What store buffers remember in the engine `explicit`: `exact`, `set`, `multiset`, `oldest=K`,
    /// `newest=K` or `atmost=K`; with `cegar`, which stores of unbounded buffers stay exact at first:
    /// `oldest=K` or `newest=K`
    #[arg(long, value_name = "CONTENT", default_value = "exact")]
    pub(super) content: ContentKind,
    /// Buffers of at most so many entries, in the engine `explicit`: `k=2`, under PSO `k=1,x=2` for cells
    /// that have others
    #[arg(long, value_name = "k=N", value_parser = units::buffers, conflicts_with = "content")]
    pub(super) buffer: Option<units::Buffers>,
    /// What the engine `extrapolate` takes from the SC proof, and nothing beyond it
    #[arg(long, value_enum)]
    pub(super) extrapolate: Option<Extrapolated>,
    #[command(flatten)]
    pub(super) format: Formatted,
    /// Write the trace of a violation here (one file only)
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Write the certificate of a proof here (one file only)
    #[arg(long, value_name = "FILE")]
    pub(super) certificate: Option<PathBuf>,
    /// Write a page with every verdict, trace and source here
    #[arg(long, value_name = "FILE.html")]
    pub(super) report: Option<PathBuf>,
    /// Believe proofs without re-checking them; the verdict says so
    #[arg(long)]
    pub(super) no_audit: bool,
    /// Take for granted what a proof could not do without: that no number wraps around
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) assume: Vec<units::Assumed>,
    /// Only the verdict lines, no traces and no progress
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Say what each answer took: engine, states, time and memory
    #[arg(long, short)]
    pub(super) verbose: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Fair {
    /// Nothing
    None,
    /// What can move from some time on, moves
    Weak,
    /// What can move again and again, moves again and again
    Strong,
    /// Buffers are small again and again, and whatever can happen from there again and again, happens: proofs with buffers
    /// that have no bound
    Memory,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum SearchOrder {
    /// Breadth first: shortest traces
    Bfs,
    /// Depth first
    Dfs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Extrapolated {
    /// Predicates and cubes
    Cubes,
    /// Predicates
    Predicates,
    /// Nothing: the predicates of SC as they are
    None,
}

impl From<Extrapolated> for Method {
    fn from(extrapolated: Extrapolated) -> Self {
        match extrapolated {
            Extrapolated::Cubes => Method::Cubes,
            Extrapolated::Predicates => Method::Predicates,
            Extrapolated::None => Method::None,
        }
    }
}

impl Arguments {
    pub(super) fn options(&self) -> Options {
        Options {
            models: models::named(&self.model),
            engine: match (self.engine.as_str(), self.reduce) {
                ("auto" | "explicit", units::Reduced::Traces) => Some("traces".into()),
                ("auto" | "explicit", units::Reduced::Cartesian) => Some("cartesian".into()),
                ("auto", _) if self.buffer.is_some() => Some("explicit".into()),
                ("auto", _) if self.hosts.is_some() => Some("explicit".into()),
                ("auto", _) => None,
                (name, _) => Some(name.into()),
            },
            threads: self.threads.iter().cloned().collect::<BTreeMap<_, _>>(),
            timeout: self.budget.time(),
            memory: self.budget.bytes(),
            budget: self.budget.work(),
            workers: match self.hosts {
                Some(_) => self.budget.workers_asked().unwrap_or(1),
                None => self.budget.workers(),
            },
            checkpoint: None,
            compress: self.compress,
            mesh: None,
            deadlock: self.deadlock,
            progress: self.progress,
            fairness: match self.fairness {
                Fair::None => Fairness::None,
                Fair::Weak => Fairness::Weak,
                Fair::Strong => Fairness::Strong,
                Fair::Memory => Fairness::Memory,
            },
            order: match self.order {
                SearchOrder::Bfs => Order::BreadthFirst,
                SearchOrder::Dfs => Order::DepthFirst,
            },
            reduce: self.reduce.into(),
            symmetry: self.symmetry == units::Switch::On,
            content: match &self.buffer {
                Some(buffer) => ContentKind {
                    keeps: Keeps::AtMost,
                    k: buffer.k,
                },
                None => self.content,
            },
            buffers: (self.buffer.iter()).flat_map(|b| b.cells.clone()).collect(),
            extrapolate: self.extrapolate.map(Method::from),
            // One audit is enough.
            audit: match self.no_audit || self.is_silent() {
                true => AuditPolicy::Never,
                false => AuditPolicy::Always,
            },
            confirm: true,
            assume_no_wrap: !self.assume.is_empty(),
            // A page and a form for machines have the reason whatever the terminal shows.
            explain: !self.is_silent()
                && (!self.quiet || self.report.is_some() || self.format.get() != Format::Text),
        }
    }

    /// Another process tells the answer.
    pub(super) fn is_silent(&self) -> bool {
        self.process.is_some_and(|process| process > 0)
    }

    /// The processes that search together, once all of them are there.
    pub(super) fn mesh(&self) -> Result<Option<Mesh>, NoMesh> {
        let (Some(path), Some(process)) = (&self.hosts, self.process) else {
            return Ok(None);
        };
        let wrong = |why: String| NoMesh::Input(format!("{}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
        let hosts = Hosts::read(&text, process).map_err(wrong)?;
        let is_cancelled = || signals::interrupted().load(Ordering::Relaxed);
        match Mesh::connect(hosts, is_cancelled) {
            Ok(mesh) => Ok(Some(mesh)),
            Err(Lost(why)) => Err(NoMesh::Lost(why)),
        }
    }

    /// Where the search is written down.
    pub(super) fn directory(&self) -> Result<Option<Directory>, String> {
        let every = self.every.0.unwrap_or(Duration::MAX);
        match (&self.checkpoint, &self.resume) {
            (_, Some(path)) => Directory::resume(path, every).map(Some),
            (Some(path), None) => Directory::new(path, every).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// What is wrong with the arguments together.
    pub(super) fn complaint(&self, files: usize) -> Option<String> {
        let exact = self.engine == "auto" || self.engine == "explicit";
        let breadth_first = matches!(self.order, SearchOrder::Bfs);
        if self.compress && !(exact && breadth_first) {
            return Some("--compress is for --engine auto or explicit and --order bfs".into());
        }
        if self.compress && (self.checkpoint.is_some() || self.resume.is_some()) {
            return Some("--compress has no checkpoints".into());
        }
        if self.hosts.is_some() {
            if files != 1 {
                return Some("--hosts needs exactly one program".into());
            }
            if !(exact && breadth_first)
                || matches!(
                    self.reduce,
                    units::Reduced::Traces | units::Reduced::Cartesian
                )
            {
                return Some("--hosts is for --engine auto or explicit and --order bfs".into());
            }
            if self.compress
                || self.buffer.is_some()
                || self.checkpoint.is_some()
                || self.resume.is_some()
            {
                return Some(
                    "--hosts goes neither with --compress and --buffer nor with --checkpoint and --resume".into(),
                );
            }
        }
        let kept = self.checkpoint.is_some() || self.resume.is_some();
        if kept && files != 1 {
            return Some("--checkpoint and --resume need exactly one program".into());
        }
        if kept && !["auto", "explicit"].contains(&self.engine.as_str()) {
            return Some("--checkpoint and --resume are for --engine auto or explicit".into());
        }
        let names: BTreeSet<&str> = self.threads.iter().map(|(n, _)| n.as_str()).collect();
        if names.len() < self.threads.len() {
            return Some("--threads names a family twice".into());
        }
        let writes = self.trace.is_some() || self.certificate.is_some();
        if writes && files != 1 {
            return Some("--trace and --certificate need exactly one program".into());
        }
        if self.buffer.is_some() && !["auto", "explicit"].contains(&self.engine.as_str()) {
            return Some("--buffer is for --engine explicit".into());
        }
        if self.buffer.is_some() && kept {
            return Some("--buffer and --checkpoint do not go together".into());
        }
        let kept = matches!(self.content.keeps, Keeps::Oldest | Keeps::Newest)
            && self.content.k <= MOST_KEPT;
        match self.engine.as_str() {
            _ if self.content == ContentKind::default() => {}
            "explicit" => {}
            "cegar" if kept => {}
            "cegar" => {
                return Some(format!(
                    "with --engine cegar, --content is oldest=K or newest=K, K at most {MOST_KEPT}"
                ));
            }
            _ => return Some("--content is for --engine explicit or cegar".into()),
        }
        let known = wattle::plan::names();
        if self.engine != "auto" && !known.contains(&self.engine.as_str()) {
            let (name, known) = (&self.engine, known.join(", "));
            return Some(format!(
                "there is no engine called `{name}`; there are auto, {known}"
            ));
        }
        None
    }
}

/// Why there are no processes to search together with.
pub(super) enum NoMesh {
    Input(String),
    /// Somebody is missing.
    Lost(String),
}

/// Longer exact parts of buffers than this come to no end in `cegar`.
const MOST_KEPT: usize = 16;
