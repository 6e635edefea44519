//! Certificates for files.

use super::space;
use wattle_evidence::certificate::{Certificate, Robust};
use wattle_evidence::control::Control;
use wattle_evidence::task::Task;
use wattle_memory::{MemoryModel, Pso, Sc, Tso};

/// More states than this are not written down.
const MOST: u64 = 1_000_000;

/// The certificate for a file: states that were explored are written down, if that can be done.
pub fn write_down(
    task: &Task<'_>,
    certificate: &Certificate,
    control: &Control<'_>,
) -> Certificate {
    match certificate {
        Certificate::Explored(_) => {
            let listed = match task.model {
                MemoryModel::Sc => space::list::<Sc>(task, MOST, control),
                MemoryModel::Tso => space::list::<Tso>(task, MOST, control),
                MemoryModel::Pso => space::list::<Pso>(task, MOST, control),
            };
            match listed {
                Ok(set) => Certificate::ClosedStates(set),
                Err(_) => certificate.clone(),
            }
        }
        Certificate::Robust(robust) => {
            let model = MemoryModel::Sc;
            let sc = Task { model, ..*task };
            let under_sc = Box::new(write_down(&sc, &robust.under_sc, control));
            Certificate::Robust(Robust { under_sc })
        }
        Certificate::Parts(parts) => {
            let each = |alone: &Task<'_>, proof: &Certificate| write_down(alone, proof, control);
            match crate::parts::each(task, parts, each) {
                Ok(parts) => Certificate::Parts(parts),
                Err(_) => certificate.clone(),
            }
        }
        Certificate::ClosedStates(_)
        | Certificate::Coherent(_)
        | Certificate::Traces(_)
        | Certificate::LoadBuffers(_)
        | Certificate::Multisets(_)
        | Certificate::Cubes(_)
        | Certificate::Views(_)
        | Certificate::Counting(_)
        | Certificate::Levels(_)
        | Certificate::Readers(_)
        | Certificate::Components(_)
        | Certificate::Returning(_)
        | Certificate::Inductive(_) => certificate.clone(),
    }
}
