//! The fences, locks and exchanges a program has: which of them are needed.
//!
//! Each is taken out alone. A run that comes back shows that it is needed; a proof that none does shows
//! that it is superfluous as long as the others stay. Which of the superfluous ones can go *together* is
//! another question: they are taken out one after the other, and what is left is proved each time.

use crate::fences::{FenceError, FenceOptions, Rests, fences, judging};
use crate::options::Options;
use wattle_evidence::{Control, Reason};
use wattle_memory::MemoryModel;
use wattle_model::{InstanceError, Program};
use wattle_repair::existing::{Kind, Weaker, existing, weakened, without};
use wattle_repair::{Existing, Fix, Judged, Outcome, Violation, judge};

/// What there is, and what became of the program without it.
#[derive(Clone, Debug)]
pub struct Inventory {
    /// Everything there is, in the order of the text.
    pub items: Vec<Item>,
    /// Items that can go together, by number: what is left is proved.
    pub together: Vec<usize>,
    /// The cheapest fences for the program without any fence of its own, if that was asked for and
    /// found out.
    pub from_zero: Option<Fix>,
    /// What the proofs rest on.
    pub rests: Rests,
}

/// One fence, lock or exchange.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is and where.
    pub existing: Existing,
    /// What it does.
    pub role: Role,
}

/// What became of the program without it.
#[derive(Clone, Debug)]
pub enum Role {
    /// Without it there is this run of this program.
    Needed(Box<(Program, Violation)>),
    /// The goal is met with the weaker one in its place (proved); without either there is this run.
    WeakerSuffices(Weaker, Box<(Program, Violation)>),
    /// The goal is met without it (proved).
    Superfluous,
    /// It could not be found out.
    Unclear(Reason),
}

/// Why there is no inventory.
#[derive(Clone, Debug)]
pub enum NoInventory {
    /// The question cannot be asked.
    Fences(FenceError),
    /// The program misses the goal as it is.
    Violated(Box<Violation>),
    /// Not even the program as it is was decided.
    Undecided(Reason),
}

impl From<FenceError> for NoInventory {
    fn from(e: FenceError) -> Self {
        NoInventory::Fences(e)
    }
}

/// Finds out about everything that is there.
pub fn inventory(
    program: &Program,
    wanted: &FenceOptions,
    options: &Options,
    control: &Control<'_>,
) -> Result<Inventory, NoInventory> {
    let all = existing(program);
    let (found, rests) = judging(program, wanted, options, |counts, checker| {
        let ask = |p: &Program| judge(p, counts, wanted.model, checker, control);
        match ask(program)? {
            Judged::Holds => {}
            Judged::Violated(v) => return Ok(Err(NoInventory::Violated(Box::new(v)))),
            Judged::Undecided(r) | Judged::UpTo(_, r) => return Ok(Err(NoInventory::Undecided(r))),
        }
        let mut items = Vec::new();
        for e in &all {
            let role = role(program, e, wanted.model, &ask)?;
            items.push(Item {
                existing: e.clone(),
                role,
            });
        }
        let together = together(program, &items, &ask)?;
        Ok(Ok((items, together)))
    })?;
    let (items, together) = found?;
    let is_fence = |e: &&Existing| matches!(e.kind, Kind::Fence | Kind::StoreFence);
    let own: Vec<&Existing> = all.iter().filter(is_fence).collect();
    let from_zero = match own.is_empty() {
        true => None,
        false => match fences(&without(program, &own), wanted, options, control)?.outcome {
            Outcome::Fixed { mut fixes, .. } => Some(fixes.remove(0)),
            Outcome::BrokenUnderSc(_)
            | Outcome::Impossible(_)
            | Outcome::UpTo { .. }
            | Outcome::Undecided { .. } => None,
        },
    };
    Ok(Inventory {
        items,
        together,
        from_zero,
        rests,
    })
}

type Ask<'a> = dyn Fn(&Program) -> Result<Judged, InstanceError> + 'a;

fn role(
    program: &Program,
    e: &Existing,
    model: MemoryModel,
    ask: &Ask<'_>,
) -> Result<Role, InstanceError> {
    let bare = without(program, &[e]);
    let violation = match ask(&bare)? {
        Judged::Holds => return Ok(Role::Superfluous),
        Judged::Violated(v) => v,
        Judged::Undecided(r) | Judged::UpTo(_, r) => return Ok(Role::Unclear(r)),
    };
    let run = Box::new((bare, violation));
    for (weaker, program) in weakened(program, e, model != MemoryModel::Pso) {
        if matches!(ask(&program)?, Judged::Holds) {
            return Ok(Role::WeakerSuffices(weaker, run));
        }
    }
    Ok(Role::Needed(run))
}

/// Superfluous ones that can all go, greedily in the order of the text.
fn together(program: &Program, items: &[Item], ask: &Ask<'_>) -> Result<Vec<usize>, InstanceError> {
    let mut gone: Vec<usize> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        if !matches!(item.role, Role::Superfluous) {
            continue;
        }
        let mut trial = gone.clone();
        trial.push(i);
        let all: Vec<&Existing> = trial.iter().map(|i| &items[*i].existing).collect();
        // The first one is proved already.
        if gone.is_empty() || matches!(ask(&without(program, &all))?, Judged::Holds) {
            gone = trial;
        }
    }
    Ok(gone)
}
