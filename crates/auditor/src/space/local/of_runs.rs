//! The same where runs are looked at all along.

use super::seen::Seen;
use super::terms::Terms;
use super::{Local, Reduction, cut_cycles};
use wattle_evidence::deadlock::may_be_discarded;
use wattle_evidence::live::LiveTask;
use wattle_memory::MemoryModel;
use wattle_model::LocationId;

/// What may be taken at once where runs are looked at all along, cycles and all.
pub struct OfRuns {
    pub reduction: Reduction,
    /// Per thread and location: one store by a computed address that could be.
    pub stores: Vec<Vec<bool>>,
    /// Per thread and location: where a round of such steps is cut.
    pub cuts: Vec<Vec<bool>>,
}

pub fn of_runs(task: &LiveTask<'_>) -> OfRuns {
    let faults = task.faults();
    let mut reduction = Reduction::none(&faults);
    let terms = terms_of(task);
    let (mut stores, mut cuts) = (Vec::new(), Vec::new());
    for (t, thread) in task.instance.threads.iter().enumerate() {
        let locations = 0..thread.locations.len();
        let local: Vec<Local> = locations.clone().map(|l| terms.locality(t, l)).collect();
        let store = |l| task.model == MemoryModel::Sc && terms.is_computed(t, l, false);
        let store: Vec<bool> = locations.map(store).collect();
        let all = local.iter().zip(&store).map(|(local, store)| match store {
            true => Local::Perhaps,
            false => *local,
        });
        let all: Vec<Local> = all.collect();
        let mut cut = all.clone();
        cut_cycles(thread, &mut cut);
        cuts.push(all.iter().zip(&cut).map(|(a, b)| a != b).collect());
        reduction.local[t] = local;
        reduction.free[t] = terms.free(t);
        reduction.private[t] = terms.private(t);
        stores.push(store);
    }
    OfRuns {
        reduction,
        stores,
        cuts,
    }
}

fn terms_of<'i>(task: &LiveTask<'i>) -> Terms<'i> {
    let all = task.instance.threads.iter().map(|thread| {
        let locations = (0..thread.locations.len()).map(LocationId::new);
        locations.filter(|l| may_be_discarded(thread, *l)).collect()
    });
    let seen = Seen {
        conditions: task.atoms(),
        places: all.collect(),
        only_final: false,
        wanted: false,
    };
    Terms::new(task.instance, task.model, seen)
}
