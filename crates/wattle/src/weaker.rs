//! A proof under a weaker memory model answers for a stronger one.
//!
//! Every run under SC is one under TSO in which each store drains at once, and every run under TSO is one
//! under PSO in which stores drain in their order: the rules of steps are the same, and an entry that may
//! leave a thread's one buffer may leave its cell's. So what no run does under PSO, no run does under TSO, and
//! so on. Whether a state *can* be reached goes the other way and is left alone.

use wattle_evidence::{Proof, Unchecked, Unsound, Verdict};
use wattle_memory::MemoryModel;
use wattle_model::{Program, PropertyKind};
use wattle_report::Finding;

/// Decides what was left undecided where the same question was proved under a weaker model.
pub fn answer(program: &Program, results: &mut [Result<Finding, Unsound>]) {
    let proofs: Vec<Finding> = results
        .iter()
        .flatten()
        .filter(|f| proved(f))
        .cloned()
        .collect();
    for finding in results.iter_mut().flatten() {
        let open = matches!(finding.judged.verdict, Verdict::Undecided { .. });
        let kind = finding.question.map(|q| program.properties[q].kind);
        if !open
            || finding.deadlock
            || finding.live.is_some()
            || kind == Some(PropertyKind::Reachable)
        {
            continue;
        }
        let same = |p: &&Finding| {
            p.question == finding.question && !p.deadlock && weaker(p.model, finding.model)
        };
        if let Some(proof) = proofs.iter().filter(same).min_by_key(|p| p.model) {
            *finding = Finding {
                model: finding.model,
                proved_under: Some(proof.model),
                seconds: finding.seconds,
                ..proof.clone()
            };
        }
    }
}

/// Whether the first allows every run of the second.
fn weaker(first: MemoryModel, second: MemoryModel) -> bool {
    let rank = |m: MemoryModel| match m {
        MemoryModel::Sc => 0,
        MemoryModel::Tso => 1,
        MemoryModel::Pso => 2,
    };
    rank(first) > rank(second)
}

/// A proof that nothing was taken for granted in, and whose audit, if there was to be one, ended.
fn proved(f: &Finding) -> bool {
    let ended = match f.judged.unchecked {
        None | Some(Unchecked::Off) => true,
        Some(Unchecked::Stopped(_) | Unchecked::Unable(_) | Unchecked::Translation(_)) => false,
    };
    let certain = matches!(
        f.judged.verdict,
        Verdict::Holds {
            proof: Proof::Certificate(_),
            ..
        }
    );
    ended && certain && f.live.is_none()
}
