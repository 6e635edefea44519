//! What a name is, and where it was declared.

use crate::document::Document;
use wattle_model::{Count, Length, Program, Span, Type};

/// A declaration.
pub struct Named {
    pub span: Span,
    /// In words.
    pub what: String,
}

/// The words of the language that are worth a sentence.
const WORDS: &[(&str, &str)] = &[
    (
        "fence",
        "waits until the thread's buffers are empty (`mfence`); `fence store;` keeps earlier stores before later ones (PSO)",
    ),
    (
        "atomic",
        "waits for empty buffers; nobody comes between; its stores go to memory at once",
    ),
    (
        "swap",
        "`swap(x, v)`: stores `v` and gives the old value, atomically (`xchg`)",
    ),
    (
        "cas",
        "`cas(x, old, new)`: stores `new` if `x` is `old`, and says whether it did, atomically (`lock cmpxchg`)",
    ),
    (
        "fetch_add",
        "`fetch_add(x, v)`: adds `v` and gives the old value, atomically (`lock xadd`)",
    ),
    ("never", "a property: no state of any run is like that"),
    (
        "always",
        "a property: every state of every run is like that",
    ),
    (
        "finally",
        "a property: where all threads have ended and all buffers are empty, it is like that",
    ),
    ("reachable", "a property: some run ends like that"),
    (
        "await",
        "evaluates its condition again and again until it is true",
    ),
    (
        "assume",
        "evaluates its condition once, and blocks for ever unless it is true",
    ),
    ("self", "the number of the thread in its family, from 0"),
    ("any", "any value of the range or type"),
];

/// What the word at a byte of the text is.
pub fn at(document: &Document, program: Option<&Program>, at: usize) -> Option<Named> {
    let (word, label) = document.word(at)?;
    let declared = program.and_then(|p| declared(p, word, label, at));
    declared.or_else(|| {
        let (_, what) = WORDS.iter().find(|(w, _)| *w == word)?;
        let span = Span::NONE;
        let what = format!("**{word}** {what}");
        Some(Named { span, what })
    })
}

fn declared(program: &Program, word: &str, label: bool, at: usize) -> Option<Named> {
    // The thread that the place is in comes first.
    let mut families: Vec<usize> = (0..program.families.len()).collect();
    families.sort_by_key(|f| {
        let family = &program.families[*f];
        let spans = family.steps.iter().map(|s| s.span).filter(|s| s.is_some());
        !spans
            .into_iter()
            .any(|s| (s.start as usize..=s.end as usize).contains(&at))
    });
    for family in families.iter().map(|f| &program.families[*f]) {
        let mut places = family.locations.iter();
        if let Some(l) = places.find(|l| l.labels.iter().any(|n| n == word))
            && (label || family.registers.iter().all(|r| r.name != word))
        {
            let what = format!("**{word}** a label of `{}`", family.name);
            return Some(Named { span: l.span, what });
        }
        if let Some(r) = family.registers.iter().find(|r| r.name == word) {
            let what = format!("**{word}** a register of `{}`: {}", family.name, ty(r.ty));
            return Some(Named { span: r.span, what });
        }
    }
    if let Some(region) = program.region_named(word) {
        let region = program.region(region);
        let length = match region.length {
            Length::Scalar => String::new(),
            Length::Array(n) => format!(", {n} elements"),
            Length::PerThread(f) => {
                format!(", one for each thread of `{}`", program.family(f).name)
            }
        };
        let what = format!("**{word}** shared memory: {}{length}", ty(region.ty));
        return Some(Named {
            span: region.span,
            what,
        });
    }
    let family = program.family(program.family_named(word)?);
    let count = match family.count {
        Count::One => "one thread".to_string(),
        Count::Fixed(n) => format!("{n} threads"),
        Count::Any => "any number of threads".to_string(),
    };
    let (span, what) = (family.span, format!("**{word}** {count}"));
    Some(Named { span, what })
}

fn ty(ty: Type) -> String {
    match ty.bounds() {
        None => "an integer without bounds".into(),
        Some((lo, hi)) => format!("{lo}..{hi}"),
    }
}
