//! Fences for a program: the plan of engines as the judge, repair as the search.

use crate::family_fences::{self, Families};
use crate::options::Options;
use crate::{families, plan};
use std::cell::RefCell;
use wattle_auditor::audit_robustness;
use wattle_auditor::{AuditError, AuditPolicy};
use wattle_evidence::{
    Assumption, Broken, Control, Reason, Refusal, Scope, Task, Unchecked, Unsound, Verdict,
};
use wattle_memory::MemoryModel;
use wattle_model::{
    Counts, FamilyId, Instance, InstanceError, LocationId, Program, PropertyKind, Span,
};
use wattle_repair::{
    Check, Checker, Costs, Fix, Outcome, PlaceId, Places, Query, Robust, Run, Site, SiteKind, unit,
};
use wattle_syntax::Language;
use wattle_syntax::edit::{self, At, Edit, FenceEdit};
use wattle_syntax::gaps::{Gap, Side, gaps};

/// What the program should keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// Its properties.
    #[default]
    Safety,
    /// Every relaxed run is one of SC in disguise.
    Robustness,
    /// Freedom from triangular races.
    Triangular,
}

impl Goal {
    /// As on the command line.
    pub fn keyword(self) -> &'static str {
        match self {
            Goal::Safety => "safety",
            Goal::Robustness => "robustness",
            Goal::Triangular => "triangular",
        }
    }
}

/// What is looked for.
#[derive(Clone, Debug)]
pub struct FenceOptions {
    /// The memory model to be repaired for.
    pub model: MemoryModel,
    /// What the fences are for.
    pub goal: Goal,
    /// What each kind costs.
    pub costs: Costs,
    /// All minimal sets.
    pub all: bool,
    /// The places of the program's text, where its language knows them all ([`wattle_syntax::gaps`]). With
    /// none, places are told from the statements.
    pub gaps: Vec<Vec<Gap>>,
}

impl FenceOptions {
    /// The cheapest set that keeps the properties under a memory model.
    pub fn new(model: MemoryModel) -> Self {
        FenceOptions {
            model,
            goal: Goal::Safety,
            costs: Costs::default(),
            all: false,
            gaps: Vec::new(),
        }
    }

    /// The same for the program of a text.
    #[must_use]
    pub fn in_text(self, language: Language, text: &str) -> Self {
        FenceOptions {
            gaps: gaps(language, text),
            ..self
        }
    }
}

/// Why there is no outcome at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FenceError {
    /// The numbers of threads do not fit the program.
    Instance(InstanceError),
    /// An engine's evidence did not check.
    Unsound(Unsound),
    /// Every property asks for a state to be reachable. Fences only take runs away.
    OnlyReachable,
}

/// What came out, and what the proofs on the way rest on.
#[derive(Clone, Debug)]
pub struct Repaired {
    /// The sets, or why there are none.
    pub outcome: Outcome,
    /// What the proofs rest on.
    pub rests: Rests,
}

/// What proofs rest on besides themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rests {
    /// Why one of them was not audited.
    pub unchecked: Option<Unchecked>,
    /// What one of them takes for granted and the user accepted.
    pub assumptions: Vec<Assumption>,
}

/// What the checks of one repair leave behind.
#[derive(Default)]
pub(crate) struct Record {
    /// An engine's evidence did not check.
    unsound: RefCell<Option<Unsound>>,
    rests: RefCell<Rests>,
}

impl Record {
    pub(crate) fn unsound(&self, unsound: Unsound) -> Reason {
        let reason = Reason::Other(unsound.what.clone());
        *self.unsound.borrow_mut() = Some(unsound);
        reason
    }

    pub(crate) fn unchecked(&self, why: Option<Unchecked>) {
        let first = &mut self.rests.borrow_mut().unchecked;
        *first = first.take().or(why);
    }

    pub(crate) fn assumes(&self, scope: &Scope) {
        let known = &mut self.rests.borrow_mut().assumptions;
        for a in &scope.assumptions {
            if !known.contains(a) {
                known.push(a.clone());
            }
        }
    }
}

/// Finds fence sets. Everything found is proved by the engines the options allow.
pub fn fences(
    program: &Program,
    wanted: &FenceOptions,
    options: &Options,
    control: &Control<'_>,
) -> Result<Repaired, FenceError> {
    let (outcome, rests) = judging(program, wanted, options, |counts, checker| {
        let query = Query {
            program,
            counts: counts.clone(),
            model: wanted.model,
            costs: wanted.costs,
            all: wanted.all,
            gaps: &wanted.gaps,
        };
        wattle_repair::repair(&query, checker, control)
    })?;
    Ok(Repaired { outcome, rests })
}

/// Works with whoever decides the goal, and says what the proofs on the way rest on. The counts are
/// those of the instance to ask about first.
pub(crate) fn judging<T>(
    program: &Program,
    wanted: &FenceOptions,
    options: &Options,
    work: impl FnOnce(&Counts, &dyn Checker) -> Result<T, InstanceError>,
) -> Result<(T, Rests), FenceError> {
    let properties = &program.properties;
    if wanted.goal == Goal::Safety
        && !properties.is_empty()
        && properties.iter().all(|p| p.kind == PropertyKind::Reachable)
    {
        return Err(FenceError::OnlyReachable);
    }
    let any = wanted.goal == Goal::Safety && !families::open_families(program, options).is_empty();
    let counts = match any {
        true => family_fences::least(program, options),
        false => options.counts(),
    };
    let record = Record::default();
    // That SC keeps the properties is no part of the answer.
    let unaudited = Options {
        audit: AuditPolicy::Never,
        ..options.clone()
    };
    let safety = Safety {
        options,
        under_sc: match wanted.model {
            MemoryModel::Sc => options,
            MemoryModel::Tso | MemoryModel::Pso => &unaudited,
        },
        record: &record,
    };
    let robust = Robustness {
        goal: match wanted.goal {
            Goal::Triangular => wattle_robust::Goal::Triangular,
            Goal::Safety | Goal::Robustness => wattle_robust::Goal::Robustness,
        },
        options,
        record: &record,
    };
    let families = Families {
        safety,
        options,
        record: &record,
    };
    let checker: &dyn Checker = match wanted.goal {
        Goal::Safety if any => &families,
        Goal::Safety => &safety,
        Goal::Robustness | Goal::Triangular => &robust,
    };
    let done = work(&counts, checker).map_err(FenceError::Instance)?;
    let rests = record.rests.into_inner();
    match record.unsound.into_inner() {
        Some(unsound) => Err(FenceError::Unsound(unsound)),
        None => Ok((done, rests)),
    }
}

/// Whether the properties hold, by the plan.
#[derive(Clone, Copy)]
pub struct Safety<'o> {
    options: &'o Options,
    /// For SC.
    under_sc: &'o Options,
    record: &'o Record,
}

/// Robustness and freedom from triangular races.
struct Robustness<'o> {
    goal: wattle_robust::Goal,
    options: &'o Options,
    record: &'o Record,
}

impl Checker for Robustness<'_> {
    fn check(&self, instance: &Instance, model: MemoryModel, control: &Control<'_>) -> Check {
        let check = Robust(self.goal).check(instance, model, control);
        // Under SC nothing is claimed.
        if !matches!(check, Check::Holds) || model == MemoryModel::Sc {
            return check;
        }
        match recheck_robust(instance, self.goal, model, self.options.audit, control) {
            Ok(unchecked) => {
                self.record.unchecked(unchecked);
                check
            }
            Err(unsound) => Check::Undecided(self.record.unsound(unsound)),
        }
    }
}

/// Re-checks that there is no attack on robustness with the auditor's own search, which knows TSO
/// only; says why if not. What it cannot treat leaves the search's own word.
pub fn recheck_robust(
    instance: &Instance,
    goal: wattle_robust::Goal,
    model: MemoryModel,
    policy: AuditPolicy,
    control: &Control<'_>,
) -> Result<Option<Unchecked>, Unsound> {
    let nobody = match (goal, model) {
        (wattle_robust::Goal::Triangular, _) => Some("triangular races have no auditor"),
        (wattle_robust::Goal::Robustness, MemoryModel::Pso) => {
            Some("robustness against PSO has no auditor")
        }
        (wattle_robust::Goal::Robustness, MemoryModel::Sc | MemoryModel::Tso) => None,
    };
    if policy == AuditPolicy::Never {
        return Ok(Some(Unchecked::Off));
    }
    if let Some(why) = nobody {
        return Ok(Some(Unchecked::Unable(why.into())));
    }
    match audit_robustness(instance, control) {
        Ok(_) => Ok(None),
        Err(AuditError::Stopped(stop)) => Ok(Some(Unchecked::Stopped(stop))),
        Err(AuditError::Refused(why)) => Ok(Some(Unchecked::Unable(why))),
        Err(_) => Err(Unsound {
            engine: "robust",
            what: "the auditor finds an attack that the search did not".into(),
        }),
    }
}

impl Checker for Safety<'_> {
    fn check(&self, instance: &Instance, model: MemoryModel, control: &Control<'_>) -> Check {
        let all = instance.questions.iter().enumerate();
        // What must be reachable is not lost by fences that keep the rest.
        let bad = all.filter(|(_, q)| q.kind != PropertyKind::Reachable);
        let mut questions: Vec<Option<usize>> = bad.map(|(i, _)| Some(i)).collect();
        if questions.is_empty() {
            questions.push(None);
        }
        let mut open: Option<Reason> = None;
        for question in questions {
            let task = Task {
                instance,
                model,
                question,
                deadlock: false,
            };
            let options = match model {
                MemoryModel::Sc => self.under_sc,
                MemoryModel::Tso | MemoryModel::Pso => self.options,
            };
            let outcome = match plan::run(&task, options, control) {
                Ok(outcome) => outcome,
                Err(unsound) => return Check::Undecided(self.record.unsound(unsound)),
            };
            match outcome.judged.verdict {
                Verdict::Holds { scope, .. } => {
                    if model != MemoryModel::Sc || self.under_sc.audit == self.options.audit {
                        self.record.unchecked(outcome.judged.unchecked);
                    }
                    self.record.assumes(&scope);
                }
                Verdict::Violated {
                    because: Broken::Trace(trace),
                } => return Check::Violated(Run::Trace { trace, question }),
                verdict => open = open.or(Some(cannot_repair(verdict))),
            }
        }
        match open {
            Some(reason) => Check::Undecided(reason),
            None => Check::Holds,
        }
    }
}

/// Why neither a proof nor a run to learn from came out.
pub(crate) fn cannot_repair(verdict: Verdict) -> Reason {
    match verdict {
        Verdict::Bounded { limits } => {
            let bound = limits.buffered_stores;
            Reason::Other(format!("checked only up to {bound} buffered stores"))
        }
        Verdict::Undecided { reason, .. } => reason,
        Verdict::HoldsIf { scope, .. } => Reason::Other(scope.condition()),
        Verdict::Holds { .. } | Verdict::Violated { .. } => {
            let why = "a violation without a run cannot be repaired".to_string();
            Reason::Refused(Refusal::new(why))
        }
    }
}

/// Writes a fix into the source and proves the result from the text alone.
pub fn write(
    language: Language,
    text: &str,
    program: &Program,
    fix: &Fix,
    wanted: &FenceOptions,
    options: &Options,
    control: &Control<'_>,
) -> Result<String, String> {
    let places = Places::new(program, &wanted.gaps);
    let edits: Vec<FenceEdit> = (fix.sites.iter())
        .map(|s| edit_of(program, &places, *s))
        .collect();
    prove(language, text, program, &edits, wanted, options, control)
}

fn edit_of(program: &Program, places: &Places, site: Site) -> FenceEdit {
    let at = |p: PlaceId| {
        let place = places.family(site.family).place(p);
        place.side.map_or(At::Location(place.location), At::Text)
    };
    let what = match site.kind {
        SiteKind::Fence(p) => Edit::Fence(at(p)),
        SiteKind::StoreFence(p) => Edit::StoreFence(at(p)),
        SiteKind::Swap(s) => Edit::Swap(s),
        SiteKind::Lock(l) => Edit::Lock(text_of(program, site.family, l)),
    };
    FenceEdit {
        family: site.family,
        what,
    }
}

/// Where a person finds a site in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// Behind the statements there, or before them.
    pub behind: bool,
    /// Line and column from 1, in the order of the text.
    pub at: Vec<(u32, u32)>,
    /// A label that stands there.
    pub label: Option<String>,
    /// The statement that it is beside, if it has no line of its own.
    pub within: Option<String>,
}

/// Where a site is in the text; the lines are those that [`write()`] changes.
pub fn place(
    language: Language,
    text: &str,
    program: &Program,
    gaps: &[Vec<Gap>],
    site: Site,
) -> SourcePlace {
    let places = Places::new(program, gaps);
    let (family, mine) = (program.family(site.family), places.family(site.family));
    let start = |span: Span| edit::position(text, span.start as usize);
    let label = |l: LocationId| family.locations[l.index()].labels.first().cloned();
    // A statement of several lines is behind us at its end.
    let after = |span: Span| SourcePlace {
        behind: true,
        at: vec![edit::position(text, span.end as usize)],
        label: None,
        within: edit::beside(language, text, Side::Behind(span)),
    };
    match site.kind {
        SiteKind::Fence(p) | SiteKind::StoreFence(p) => {
            let place = mine.place(p);
            let before = |at: Vec<(u32, u32)>| SourcePlace {
                behind: false,
                at,
                label: label(place.location),
                within: (place.side).and_then(|side| edit::beside(language, text, side)),
            };
            match place.side {
                Some(Side::Behind(span)) => after(span),
                Some(Side::Before(span)) => before(vec![edit::place_before(language, text, span)]),
                Some(Side::BehindLabels(span)) => before(vec![start(span)]),
                None => {
                    let at = family.locations[place.location.index()].span;
                    before(at.is_some().then(|| start(at)).into_iter().collect())
                }
            }
        }
        SiteKind::Swap(s) => {
            let step = &family.steps[s.index()];
            SourcePlace {
                behind: false,
                at: Some(step.span)
                    .filter(|s| s.is_some())
                    .map(start)
                    .into_iter()
                    .collect(),
                label: label(step.source),
                within: None,
            }
        }
        SiteKind::Lock(l) => {
            let span = text_of(program, site.family, l);
            SourcePlace {
                behind: false,
                at: Some(span)
                    .filter(|s| s.is_some())
                    .map(start)
                    .into_iter()
                    .collect(),
                label: label(l),
                within: None,
            }
        }
    }
}

/// The text of the read-modify-write that starts at the location.
fn text_of(program: &Program, family: FamilyId, entry: LocationId) -> Span {
    let units = unit::of_family(program.family(family));
    let found = units.iter().find(|u| u.entry == entry);
    found.map_or(Span::NONE, |u| u.span)
}

/// Parses and proves the fenced text.
fn prove(
    language: Language,
    text: &str,
    program: &Program,
    edits: &[FenceEdit],
    wanted: &FenceOptions,
    options: &Options,
    control: &Control<'_>,
) -> Result<String, String> {
    let new = edit::insert_fences(language, text, program, edits).map_err(|e| e.to_string())?;
    let parsed = wattle_syntax::parse(language, &new);
    let Some(fenced) = parsed.program else {
        return Err("the fenced text does not parse".into());
    };
    let nothing_more = FenceOptions {
        all: false,
        ..wanted.clone()
    }
    .in_text(language, &new);
    match fences(&fenced, &nothing_more, options, control).map(|r| r.outcome) {
        Ok(Outcome::Fixed { fixes, .. }) if fixes[0].sites.is_empty() => Ok(new),
        Ok(Outcome::Undecided { reason, .. } | Outcome::UpTo { reason, .. }) => {
            let seconds = control.elapsed().as_secs_f64();
            let why = wattle_report::text::reason(&reason, seconds);
            Err(format!("the fenced text could not be proved: {why}"))
        }
        Ok(_) => Err("the fenced text could not be proved".into()),
        Err(FenceError::Instance(e)) => Err(e.to_string()),
        Err(FenceError::Unsound(u)) => Err(u.to_string()),
        Err(FenceError::OnlyReachable) => Err("nothing is left to prove".into()),
    }
}

/// A unified diff of two texts by lines.
pub fn diff(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let common = common_lines(&a, &b);
    let mut out = format!("--- {old_name}\n+++ {new_name}\n");
    let (mut i, mut j) = (0, 0);
    for (x, y) in common.into_iter().chain([(a.len(), b.len())]) {
        if i < x || j < y {
            out.push_str(&format!(
                "@@ -{},{} +{},{} @@\n",
                i + 1,
                x - i,
                j + 1,
                y - j
            ));
            a[i..x]
                .iter()
                .for_each(|l| out.push_str(&format!("-{l}\n")));
            b[j..y]
                .iter()
                .for_each(|l| out.push_str(&format!("+{l}\n")));
        }
        (i, j) = (x + 1, y + 1);
    }
    out
}

/// Lines that stay, greedily: edits are few and lines are mostly distinct, so a look-ahead finds the
/// next common line.
fn common_lines(a: &[&str], b: &[&str]) -> Vec<(usize, usize)> {
    const LOOK: usize = 64;
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            out.push((i, j));
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let near = (1..2 * LOOK).find_map(|sum| {
            (0..=sum).map(|x| (i + x, j + sum - x)).find(|(x, y)| {
                a.get(*x)
                    .is_some_and(|l| b.get(*y) == Some(l) && !l.trim().is_empty())
            })
        });
        match near {
            Some((x, y)) => (i, j) = (x, y),
            None => break,
        }
    }
    out
}
