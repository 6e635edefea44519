//! Any number of threads: which families are open, what a proof covers, what a file of evidence is about.

use crate::check::CheckError;
use crate::input::Subject;
use crate::options::{Options, ThreadCount};
use crate::small_worlds::{self, Sampled, sample};
use std::collections::BTreeMap;
use wattle_auditor::translation::{Translation, validate};
use wattle_auditor::{Solvers, after_validation};
use wattle_evidence::{
    AnyNumber, Assumption, Certificate, Control, EvidenceFile, OpenTask, Scope, Unchecked,
};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;
use wattle_model::{
    Count, Counts, Crowd, Init, Instance, InstanceError, Length, Program, Roles, Type,
};
use wattle_params::compile::Unsupported;
use wattle_params::lower::{Lowered, lower_whole};
use wattle_report::Finding;

/// A list of initial values fits one number of threads only.
pub fn fits_any_number(program: &Program) -> Result<(), CheckError> {
    for region in &program.regions {
        if let (Length::PerThread(f), Init::Each(list)) = (region.length, &region.init)
            && program.family(f).count == Count::Any
        {
            return Err(CheckError::AnyNumber {
                span: region.span,
                message: format!(
                    "`{}` starts with a list of {} values, one for each thread of `{}`",
                    region.name,
                    list.len(),
                    program.family(f).name
                ),
                hint: "give one value for all, or fix the number of threads".into(),
            });
        }
    }
    // Some number of threads must make an instance.
    let mut error = None;
    for n in 1..=FEW {
        match with_threads(program, n) {
            Ok(_) => return Ok(()),
            Err(e) => error = error.or(Some(e)),
        }
    }
    error.map_or(Ok(()), |e| Err(CheckError::Instance(e)))
}

/// A property may name certain threads; few programs name more than these.
const FEW: u32 = 8;

/// Whether the subject has any number of threads, with these options.
pub fn is_open(subject: &Subject, options: &Options) -> bool {
    match subject {
        Subject::System(_) => true,
        Subject::Program(program) => !open_families(program, options).is_empty(),
    }
}

/// What stands for a program whose threads are told apart, in the files of evidence about it: an instance.
pub fn told_apart(program: &Program) -> Result<Crowd, String> {
    let instance = with_threads(program, 3).map_err(|e| e.to_string())?;
    let roles = Roles::fixed(&instance);
    Ok(Crowd { instance, roles })
}

/// A proof with what `wattle audit` needs to find out what it is about.
pub fn kept(
    subject: &Subject,
    options: &Options,
    finding: &Finding,
    proof: &Certificate,
) -> Result<EvidenceFile<Certificate>, String> {
    let open = options.threads.iter();
    let any: Vec<String> = open
        .filter(|(_, n)| **n == ThreadCount::Any)
        .map(|(name, _)| name.clone())
        .collect();
    let (model, question) = (finding.model, finding.question);
    let counts = options.counts();
    let counted = matches!(proof, Certificate::Counting(_));
    let few = matches!(proof, Certificate::LoadBuffers(_) | Certificate::Readers(_));
    let crowds = counted || few;
    if let (Certificate::Levels(_), Subject::Program(program)) = (proof, subject) {
        let program = opened(program, &any, &counts.0)?;
        let about = told_apart(&program)?;
        let proof = proof.clone();
        return Ok(EvidenceFile::of_crowd(
            &about, &counts, any, model, question, proof,
        ));
    }
    if let (true, Subject::Program(program)) = (crowds, subject) {
        let program = opened(program, &any, &counts.0)?;
        let crowd = match counted {
            true => program.counted_crowd(question).map(|c| c.crowd),
            false => program.crowd(question),
        };
        let crowd = crowd.map_err(|n| n.message)?;
        let proof = proof.clone();
        return Ok(EvidenceFile::of_crowd(
            &crowd, &counts, any, model, question, proof,
        ));
    }
    let system = system_of(subject, &any, &counts.0, question)?;
    let mut counts = counts;
    if let (Subject::System(_), Some(n)) = (subject, system.threads) {
        counts.0.insert(OF_SYSTEM.into(), n);
    }
    Ok(EvidenceFile::of_system(
        &system,
        &counts,
        any,
        model,
        question,
        proof.clone(),
    ))
}

/// What the number of threads of an array-based system is called in files of evidence.
const OF_SYSTEM: &str = "threads";

/// The program with its open and fixed families.
pub fn opened(
    program: &Program,
    any: &[String],
    counts: &BTreeMap<String, u32>,
) -> Result<Program, String> {
    let mut program = program.clone();
    let any = any.iter().map(|name| (name, Count::Any));
    let fixed = counts.iter().map(|(name, n)| (name, Count::Fixed(*n)));
    for (name, count) in any.chain(fixed) {
        let family = program.family_named(name);
        let family = family.ok_or_else(|| format!("there is no family `{name}`"))?;
        program.families[family.index()].count = count;
    }
    Ok(program)
}

/// The array-based system that a proof about any number of threads is about.
pub fn system_of(
    subject: &Subject,
    any: &[String],
    counts: &BTreeMap<String, u32>,
    question: Option<usize>,
) -> Result<ArraySystem, String> {
    match subject {
        Subject::System(system) => {
            let mut system = (**system).clone();
            system.threads = counts.get(OF_SYSTEM).copied().or(system.threads);
            Ok(system)
        }
        Subject::Program(program) => {
            let program = opened(program, any, counts)?;
            Ok(translated(&program, question)?.system)
        }
    }
}

/// Whether small instances keep to what a proof takes for granted.
pub fn small_worlds_keep(of: AnyNumber<'_>, assumption: &Assumption) -> bool {
    let open = match of {
        AnyNumber::Program(program) => {
            let open = program.families.iter().filter(|f| f.count == Count::Any);
            open.count() as u32
        }
        AnyNumber::System(_) => 1,
    };
    match assumption {
        Assumption::NoWrap { .. } => false,
        Assumption::AtMost { threads } => *threads >= small_worlds::THREADS.saturating_mul(open),
        // The machine keeps to what the file says of its constants.
        Assumption::Invariants => true,
    }
}

/// The array-based system of a program whose integers count threads, if that can be said of them.
pub fn counted(
    program: &Program,
    any: &[String],
    counts: &BTreeMap<String, u32>,
    question: Option<usize>,
) -> Option<ArraySystem> {
    let program = opened(program, any, counts).ok()?;
    let lowered = lower_whole(&program, question, true).ok()?;
    Some(lowered.system)
}

/// Small instances of what a certificate is about: how one of them breaks it, if one does.
pub fn small_worlds_again(
    subject: &Subject,
    kept: &EvidenceFile<Certificate>,
    control: &Control<'_>,
) -> Result<(), String> {
    let program;
    let task = OpenTask {
        of: match subject {
            Subject::Program(written) => {
                program = opened(written, &kept.any, &kept.threads)?;
                AnyNumber::Program(&program)
            }
            Subject::System(system) => AnyNumber::System(system),
        },
        model: kept.model,
        question: kept.question,
        deadlock: false,
    };
    confirmed(&task, &kept.evidence, control)
}

/// The same of a proof that was just made and not confirmed yet.
pub fn confirmed(
    task: &OpenTask<'_>,
    certificate: &Certificate,
    control: &Control<'_>,
) -> Result<(), String> {
    let limits = (small_worlds::THREADS, small_worlds::STATES);
    let n = match sample(task, Some(certificate), limits, control) {
        Sampled::Fine(_) => return Ok(()),
        Sampled::Outside(what) => return Err(what),
        Sampled::Ran(n, _) => n,
        Sampled::Broken(shown) => shown.instance.threads.len() as u32,
    };
    Err(format!("with {} a run breaks what it proves", threads(n)))
}

/// What a proof about the program's system takes for granted about the program.
pub fn assumptions(
    program: &Program,
    any: &[String],
    counts: &BTreeMap<String, u32>,
    question: Option<usize>,
) -> Result<Vec<Assumption>, String> {
    let program = opened(program, any, counts)?;
    Ok(translated(&program, question)?.assumptions())
}

/// Whether the system that a file of evidence is about does what the program does, step by step; with the
/// reason if the translation has to be trusted.
pub fn validated_again(
    program: &Program,
    kept: &EvidenceFile<Certificate>,
    solvers: &Solvers,
    control: &Control<'_>,
) -> Result<Option<Unchecked>, String> {
    let program = opened(program, &kept.any, &kept.threads)?;
    let lowered = translated(&program, kept.question)?;
    let translation = Translation {
        program: &program,
        property: kept.question,
        system: &lowered.system,
        relation: lowered.relation(),
        assumptions: &lowered.assumptions(),
    };
    let result = validate(solvers, &translation, control).map(|_| ());
    match after_validation(wattle_params::NAME, result) {
        Ok(Ok(unchecked)) => Ok(unchecked),
        Ok(Err(reason)) => Err(wattle_report::text::reason(&reason, 0.0)),
        Err(unsound) => Err(unsound.what),
    }
}

/// What a proof about the system takes for granted: what the file says of its constants.
pub fn axioms(system: &ArraySystem) -> Vec<Assumption> {
    let any = (system.assumed.iter()).any(|q| system.only_constants(&q.body));
    any.then_some(Assumption::Invariants).into_iter().collect()
}

fn translated(program: &Program, question: Option<usize>) -> Result<Lowered, String> {
    if question.is_some_and(|q| q >= program.properties.len()) {
        return Err("it answers a property which the program lacks".into());
    }
    let refused = |u: Unsupported| format!("line {}: {} ({})", u.span.line, u.message, u.hint);
    lower_whole(program, question, false).map_err(refused)
}

/// `1 thread`, `2 threads`
pub fn threads(n: u32) -> String {
    match n {
        1 => "1 thread".to_string(),
        n => format!("{n} threads"),
    }
}

/// The program's instance with so many threads in each open family.
pub fn with_threads(program: &Program, n: u32) -> Result<Instance, InstanceError> {
    let open = program.families.iter().filter(|f| f.count == Count::Any);
    program.instantiate(&Counts(open.map(|f| (f.name.clone(), n)).collect()))
}

/// What a proof covers.
pub fn scope(task: &OpenTask<'_>, options: &Options) -> Scope {
    let (number, finite) = match task.of {
        AnyNumber::System(system) => (system.threads, true),
        AnyNumber::Program(program) => {
            let cells = program.regions.iter().map(|r| r.ty);
            let registers = program.families.iter().flat_map(|f| &f.registers);
            let mut types = cells.chain(registers.map(|r| r.ty));
            (
                None,
                types.all(|ty| ty != Type::Int) || crate::values::few(program),
            )
        }
    };
    let data = if finite {
        "finite"
    } else {
        "unbounded integers"
    };
    let buffers = (task.model != MemoryModel::Sc).then(|| "store buffers".to_string());
    Scope {
        threads: number.map_or_else(|| any_number(options), threads),
        data: data.into(),
        unbounded: buffers.into_iter().collect(),
        assumptions: Vec::new(),
        invariants: Vec::new(),
    }
}

/// Any number of threads, but for the families that were given one.
pub fn any_number(options: &Options) -> String {
    let counts = options.counts().0;
    let fixed: Vec<String> = counts.iter().map(|(f, n)| format!("{f}={n}")).collect();
    match fixed.is_empty() {
        true => "any number of threads".into(),
        false => format!("any number of threads with {}", fixed.join(", ")),
    }
}

/// The families that have any number of threads, as the options say or the program does.
pub fn open_families(program: &Program, options: &Options) -> Vec<String> {
    let open = program
        .families
        .iter()
        .filter(|f| match options.threads.get(&f.name) {
            Some(count) => *count == ThreadCount::Any,
            None => f.count == Count::Any,
        });
    open.map(|f| f.name.clone()).collect()
}

/// The counts with so many threads in each open family.
pub fn counts(program: &Program, options: &Options, n: u32) -> Counts {
    let mut counts = options.counts();
    for name in open_families(program, options) {
        counts.0.insert(name, n);
    }
    counts
}

/// The counts of an instance: those of the options, and how many threads it has of each open family.
pub fn counts_of(program: &Program, options: &Options, instance: &Instance) -> Counts {
    let mut counts = options.counts();
    for name in open_families(program, options) {
        if let Some(family) = program.family_named(&name) {
            let threads = instance.threads.iter().filter(|t| t.family == family);
            let n = u32::try_from(threads.count()).unwrap_or(u32::MAX);
            counts.0.insert(name, n);
        }
    }
    counts
}
