//! What `wattle fences` says: text, and the same as JSON.

use super::super::exit::Exit;
use super::super::output;
use super::Answer;
use std::fmt::Write;
use wattle::fences::{FenceOptions, Rests, SourcePlace, place};
use wattle::input::Source;
use wattle::{Language, MemoryModel, Options, families};
use wattle_evidence::{Task, Trace};
use wattle_memory::Event;
use wattle_model::{Instance, Program, StepId};
use wattle_repair::{Fix, Needed, Outcome, Places, Run, Site, SiteKind, Violation, clause, unit};
use wattle_report::json::FenceReport;
use wattle_report::{json, table, text, why, words};
use wattle_syntax::gaps::Gap;

/// Engines that give proofs and runs under every memory model, SC too: a search for fences asks all.
const COMPLETE: [&str; 3] = ["explicit", "cegar", "extrapolate"];

pub(super) struct Report<'p> {
    pub program: &'p Program,
    pub options: &'p Options,
    pub counts: wattle_model::Counts,
    /// The number of threads is open.
    pub any: bool,
    /// The language has `lock` prefixes.
    pub asm: bool,
    /// Locks were looked for.
    pub locks: bool,
    pub model: MemoryModel,
    /// What the proofs rest on.
    pub rests: Rests,
    pub seconds: f64,
    /// Where it was written.
    pub written: Option<String>,
    pub text: &'p str,
    pub gaps: &'p [Vec<Gap>],
    pub language: Language,
    /// Why nothing was written.
    pub unwritten: Option<String>,
    pub difference: Option<String>,
}

impl Report<'_> {
    pub fn answer(&self, source: &Source, wanted: &FenceOptions, outcome: &Outcome) -> Answer {
        let model = self.model;
        let goal = wanted.goal.keyword();
        let mut out = String::new();
        let (mut sets, mut complete, mut checks) = (Vec::new(), true, 0);
        let (mut trace, mut reason) = (None, None);
        let mut notes = String::new();
        let (exit, verdict) = match outcome {
            Outcome::Fixed {
                fixes,
                unfinished,
                checks: n,
            } => {
                checks = *n;
                complete = unfinished.is_none();
                sets = fixes.iter().map(|f| self.fences(f)).collect::<Vec<_>>();
                let _ = writeln!(out, "{}", self.headline(fixes, wanted, complete));
                for (i, (fix, set)) in fixes.iter().zip(&sets).enumerate() {
                    if wanted.all && !fix.sites.is_empty() {
                        let _ = writeln!(out, "set {} (cost {})", i + 1, fix.cost);
                    }
                    set.iter().for_each(|f| out.push_str(&self.fence_line(f)));
                }
                out.push_str(&self.proved());
                if let Some(r) = unfinished {
                    let why = text::reason(r, self.seconds);
                    let _ = writeln!(out, "there may be more sets: {why}");
                    reason = Some(why);
                }
                (Exit::Holds, "holds")
            }
            Outcome::UpTo {
                fix,
                threads,
                reason: r,
                checks: n,
            } => {
                checks = *n;
                complete = false;
                let set = self.fences(fix);
                let what = self.count(fix);
                let why = text::reason(r, self.seconds);
                let _ = writeln!(
                    out,
                    "undecided: {what} for {goal} on {model} with up to {}, NOT \
                     proved for {}: {why}",
                    families::threads(*threads),
                    self.any_number(),
                );
                set.iter().for_each(|f| out.push_str(&self.fence_line(f)));
                reason = Some(format!(
                    "checked with up to {}, not proved for {}: {why}",
                    families::threads(*threads),
                    self.any_number(),
                ));
                sets = vec![set];
                (Exit::Undecided, "undecided")
            }
            Outcome::BrokenUnderSc(v) => {
                let why = match self.locks {
                    true => "broken under SC already: no fence and no lock can help",
                    false => "broken under SC already: no fence can help",
                };
                let _ = writeln!(out, "{why}");
                let (shown, events) = self.violation(source, self.program, MemoryModel::Sc, v);
                let _ = writeln!(out, "\n{shown}");
                if !self.locks && lockable(self.program) {
                    let hint = "`--cost lock=1` also tries to make read-modify-writes atomic";
                    let _ = writeln!(out, "hint  {hint}");
                }
                trace = events;
                reason = Some(why.into());
                (Exit::Violated, "violated")
            }
            Outcome::Impossible(v) => {
                let _ = writeln!(out, "no fence of the allowed kinds repairs it on {model}");
                let (shown, events) = self.violation(source, self.program, model, v);
                let _ = writeln!(out, "\n{shown}");
                trace = events;
                reason = Some("no fence of the allowed kinds repairs it".into());
                (Exit::Violated, "violated")
            }
            Outcome::Undecided {
                reason: r,
                checks: n,
            } => {
                checks = *n;
                let why = text::reason(r, self.seconds);
                let _ = writeln!(out, "undecided: {why}");
                let engine = self.options.engine.as_deref();
                if let Some(name) = engine.filter(|e| !COMPLETE.contains(e)) {
                    let _ = writeln!(
                        out,
                        "hint  finding fences takes runs and proofs, on SC too, and `{name}` does not \
                         give all of them: leave --engine out, or use one of {}",
                        COMPLETE.join(", ")
                    );
                }
                notes.push_str(&output::obstacle(&source.name, &source.text, r));
                reason = Some(why);
                complete = false;
                (Exit::Undecided, "undecided")
            }
        };
        if let Some(difference) = &self.difference {
            let _ = writeln!(out, "\n{difference}");
        }
        if let Some(path) = &self.written {
            let _ = writeln!(out, "written to {path}, parsed and proved again");
        }
        let (exit, verdict) = match &self.unwritten {
            None => (exit, verdict),
            Some(why) => {
                notes.push_str(&output::complaint(&source.name, why, &[]));
                reason = Some(why.clone());
                (exit.max(Exit::Undecided), "undecided")
            }
        };
        let mut json = serde_json::json!({
            "file": source.name,
            "language": source.language.name(),
            "model": model,
            "goal": goal,
            "property": goal,
            "verdict": verdict,
            "scope": self.scope(outcome),
            "engine": "repair",
            "audited": self.rests.unchecked.is_none(),
            "audit_reason": self.rests.unchecked.as_ref().map(ToString::to_string),
            "seconds": self.seconds,
            "states": 0,
            "checks": checks,
            "peak_memory_bytes": wattle::resources::peak_memory(),
            "trace": trace,
            "fences": sets.first(),
            "number_of_fences": sets.first().map(Vec::len),
            "sets": if wanted.all { Some(&sets) } else { None },
            "number_of_sets": if wanted.all && complete { Some(sets.len()) } else { None },
            "complete": complete,
            "broken_under_sc": matches!(outcome, Outcome::BrokenUnderSc(_)),
            "written": self.written,
            "diff": self.difference,
            "reason": reason,
        });
        output::originated("fences", &mut json);
        Answer {
            exit,
            text: out,
            notes,
            json,
        }
    }

    fn scope(&self, outcome: &Outcome) -> Option<json::ScopeReport> {
        let instance = self.program.instantiate(&self.counts).ok()?;
        let mut scope = json::ScopeReport::of(&Task {
            instance: &instance,
            model: self.model,
            question: None,
            deadlock: false,
        });
        let assumptions = self.rests.assumptions.iter();
        scope.assumptions = assumptions.map(json::AssumptionReport::from).collect();
        match outcome {
            Outcome::Fixed { .. } if self.any => {
                scope.threads = None;
                scope.text = self.any_number();
            }
            Outcome::UpTo { threads, .. } => {
                scope.threads = Some(*threads);
                scope.text = format!("up to {}", families::threads(*threads));
            }
            _ => {}
        }
        Some(scope)
    }

    /// What the proofs rest on, where it is not on an audit alone.
    fn proved(&self) -> String {
        let assumed = words::all(self.rests.assumptions.iter().map(ToString::to_string));
        let assumed = match assumed.is_empty() {
            true => String::new(),
            false => format!(", assuming that {assumed}"),
        };
        match (&self.rests.unchecked, assumed.is_empty()) {
            (None, true) => String::new(),
            (unchecked, _) => {
                let audited = text::audited(unchecked.as_ref());
                format!("proved{assumed} ({audited})\n")
            }
        }
    }

    /// Which families have any number of threads, if not all.
    fn any_number(&self) -> String {
        families::any_number(self.options)
    }

    pub(super) fn fences(&self, fix: &Fix) -> Vec<FenceReport> {
        fix.sites
            .iter()
            .map(|site| {
                let needed = fix.needed.iter().find(|n| n.site == *site);
                self.fence(*site, needed)
            })
            .collect()
    }

    fn fence(&self, site: Site, needed: Option<&Needed>) -> FenceReport {
        let family = self.program.family(site.family);
        let place = place(self.language, self.text, self.program, self.gaps, site);
        let location = match site.kind {
            SiteKind::Fence(p) | SiteKind::StoreFence(p) => {
                let places = Places::new(self.program, self.gaps);
                let place = places.family(site.family).place(p);
                place.location.to_string()
            }
            SiteKind::Lock(l) => l.to_string(),
            SiteKind::Swap(s) => family.steps[s.index()].source.to_string(),
        };
        let first = place.at.first();
        FenceReport {
            thread: family.name.clone(),
            location: place.label.clone().unwrap_or(location),
            line: first.map(|(line, _)| *line),
            column: first.map(|(_, column)| *column),
            place: Some(self.words(site, &place)),
            kind: site.kind.keyword().to_string(),
            why: needed.map_or(String::new(), |n| self.why(n)),
        }
    }

    /// `fence after line 10`, `lock prefix in line 3`
    fn words(&self, site: Site, place: &SourcePlace) -> String {
        let lines = lines(place);
        match site.kind {
            SiteKind::Swap(_) => format!("the store in {lines} becomes atomic"),
            SiteKind::Lock(_) if self.asm => format!("lock prefix in {lines}"),
            SiteKind::Lock(_) => format!("the statement in {lines} becomes atomic"),
            SiteKind::Fence(_) | SiteKind::StoreFence(_) => fence_at(site.kind, place),
        }
    }

    /// What goes wrong without the fence.
    fn why(&self, needed: &Needed) -> String {
        let Some(violation) = &needed.without else {
            return "needed together with the others".to_string();
        };
        let places = Places::new(self.program, self.gaps);
        // One that the fence stops, rather than another that the run also has.
        let stops = |instance: &Instance, trace: &Trace, o: &why::Overtaking| {
            stops(&places, needed, instance, trace, o)
        };
        self.comes_back(&needed.fenced.program, violation, &stops)
    }

    /// The run that comes back, in a sentence: of what overtook what, rather the one preferred.
    pub(super) fn comes_back(
        &self,
        program: &Program,
        violation: &Violation,
        preferred: &dyn Fn(&Instance, &Trace, &why::Overtaking) -> bool,
    ) -> String {
        let Ok(instance) = program.instantiate(&violation.counts) else {
            return String::new();
        };
        match &violation.run {
            Run::Attack(a) => {
                let text = |event: usize| event_text(&instance, &a.events[event]);
                format!(
                    "without it {} can do {} before its {} is in memory, and {} of another thread comes between",
                    instance.thread(a.attacker).name,
                    text(a.overtaker),
                    text(a.store),
                    text(a.conflict),
                )
            }
            Run::Trace { trace, question } => {
                let task = Task {
                    instance: &instance,
                    model: self.model,
                    question: *question,
                    deadlock: false,
                };
                let over = trace
                    .check(&task)
                    .map(|s| why::overtakings(&task, trace, &s));
                let over = over.unwrap_or_default();
                let mine = over.iter().find(|o| preferred(&instance, trace, o));
                match mine.or(over.first()) {
                    Some(o) => format!(
                        "without it {} can {} {} before its store to {} is in memory, and the program fails after {} events",
                        instance.thread(o.thread).name,
                        if o.later_is_load { "load" } else { "store" },
                        instance.cell(o.later_cell).name,
                        instance.cell(o.store_cell).name,
                        trace.events.len(),
                    ),
                    None => format!(
                        "without it the program fails with {} after {} events",
                        families::threads(instance.threads.len() as u32),
                        trace.events.len()
                    ),
                }
            }
        }
    }

    /// `safety on TSO for any number of threads`
    pub(super) fn scope_words(&self, goal: &str) -> String {
        match self.any {
            true => format!("{goal} on {} for {}", self.model, self.any_number()),
            false => format!("{goal} on {}", self.model),
        }
    }

    /// A run as text and as data.
    pub(super) fn violation(
        &self,
        source: &Source,
        program: &Program,
        model: MemoryModel,
        v: &Violation,
    ) -> (String, Option<Vec<json::EventReport>>) {
        let Ok(instance) = program.instantiate(&v.counts) else {
            return (String::new(), None);
        };
        match &v.run {
            Run::Trace { trace, question } => {
                let task = Task {
                    instance: &instance,
                    model,
                    question: *question,
                    deadlock: false,
                };
                let shown = text::trace_text(&task, trace, None, output::style());
                let mut events = json::events(&task, trace);
                if let Some(events) = &mut events {
                    output::locate(source, events);
                }
                (shown, events)
            }
            Run::Attack(_) => (String::new(), None),
        }
    }

    /// `2 fences and 1 lock prefix`
    pub(super) fn count(&self, fix: &Fix) -> String {
        let is_lock = |s: &&Site| matches!(s.kind, SiteKind::Lock(_));
        let locks = fix.sites.iter().filter(is_lock).count();
        let lock = match self.asm {
            true => ("lock prefix", "lock prefixes"),
            false => ("atomic statement", "atomic statements"),
        };
        let some = |n: usize, (one, many): (&str, &str)| match n {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {many}")),
        };
        let fences = some(fix.sites.len() - locks, ("fence", "fences"));
        let parts: Vec<String> = fences.into_iter().chain(some(locks, lock)).collect();
        match parts.is_empty() {
            true => "nothing is needed".to_string(),
            false => parts.join(" and "),
        }
    }

    fn headline(&self, fixes: &[Fix], wanted: &FenceOptions, complete: bool) -> String {
        let goal = wanted.goal.keyword();
        let scope = self.scope_words(goal);
        if fixes[0].sites.is_empty() {
            return match wattle_repair::existing(self.program).is_empty() {
                true => format!("no fence is needed for {scope}"),
                false => format!("no further fence is needed for {scope}"),
            };
        }
        let fences = self.count(&fixes[0]);
        match (wanted.all, complete, fixes.len()) {
            (true, true, 1) => format!("{fences} for {scope}, and no other minimal set"),
            (true, true, m) => {
                format!("{m} minimal sets for {scope}, the cheapest has {fences}")
            }
            (true, false, m) => format!("{m} minimal sets found for {scope}"),
            _ => format!("{fences} for {scope}, and fewer do not suffice"),
        }
    }

    fn fence_line(&self, f: &FenceReport) -> String {
        let place = f.place.as_deref().unwrap_or_default();
        told_of(&f.thread, place, &[&f.why])
    }
}

/// A fence of a family and what is to be said of it, in lines as wide as the page.
pub(super) fn told_of(family: &str, place: &str, said: &[&str]) -> String {
    const INDENTATION: usize = 13;
    let width = output::style().width.saturating_sub(INDENTATION);
    let lines = said.iter().flat_map(|s| text::wrapped(s, width));
    let lines = lines.map(|l| format!("{:INDENTATION$}{l}\n", ""));
    format!("  {family:<10} {place}\n{}", lines.collect::<String>())
}

/// `line 3`, `lines 3 and 4`
fn lines(place: &SourcePlace) -> String {
    let lines = words::all(place.at.iter().map(|(line, _)| line.to_string()));
    match place.at.len() {
        0 => {
            let label = place.label.as_deref();
            format!("at {}", label.unwrap_or("a place without a name"))
        }
        1 => format!("line {lines}"),
        _ => format!("lines {lines}"),
    }
}

/// `fence after line 10`
pub fn fence_at(kind: SiteKind, place: &SourcePlace) -> String {
    let fence = match kind {
        SiteKind::StoreFence(_) => "store fence",
        SiteKind::Fence(_) | SiteKind::Lock(_) | SiteKind::Swap(_) => kind.keyword(),
    };
    let lines = lines(place);
    match (place.behind, place.at.is_empty()) {
        (true, _) => match &place.within {
            Some(statement) => format!("{fence} in {lines} after `{statement}`"),
            None => format!("{fence} after {lines}"),
        },
        (false, false) => match &place.within {
            Some(statement) => format!("{fence} in {lines} before `{statement}`"),
            None => format!("{fence} before {lines}"),
        },
        (false, true) => format!("{fence} {lines}"),
    }
}

/// Whether the run passes the place of the fence between the late store and what overtakes it.
fn stops(
    places: &Places,
    needed: &Needed,
    instance: &Instance,
    trace: &Trace,
    o: &why::Overtaking,
) -> bool {
    let thread = instance.thread(o.thread);
    if thread.family != needed.site.family {
        return false;
    }
    let mine = |e: &Event| match e {
        Event::Step { thread, step, .. } if *thread == o.thread => Some(*step),
        Event::Step { .. } | Event::Drain { .. } => None,
    };
    let path = trace.events.get(o.store..=o.later).unwrap_or_default();
    let path: Vec<StepId> = path.iter().filter_map(mine).collect();
    let passed = || clause::passed(&needed.fenced, places, thread, &path).into_iter();
    let origin = |s: &StepId| {
        needed
            .fenced
            .location(thread.family, thread.step(*s).source)
    };
    match needed.site.kind {
        SiteKind::Fence(place) => passed().any(|(p, _)| p == place),
        // Loads pass a store fence as they like.
        SiteKind::StoreFence(place) => !o.later_is_load && passed().any(|(p, _)| p == place),
        SiteKind::Lock(l) => path.iter().skip(1).any(|s| origin(s) == l),
        SiteKind::Swap(s) => o.store_step == s,
    }
}

/// Whether some read-modify-write is not atomic.
fn lockable(program: &Program) -> bool {
    unit::units(program).iter().any(|units| !units.is_empty())
}

/// `` `x = 1` (line 3) ``
fn event_text(instance: &Instance, event: &wattle_memory::Event) -> String {
    match event {
        wattle_memory::Event::Step { thread, step, .. } => {
            let t = instance.thread(*thread);
            let text = wattle_report::words::step(instance, t, t.step(*step));
            match table::line(instance, event) {
                0 => format!("`{text}`"),
                line => format!("`{text}` (line {line})"),
            }
        }
        wattle_memory::Event::Drain { .. } => "a drain".to_string(),
    }
}
