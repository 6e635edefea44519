//! `--model`: one memory model, several with commas between them, or all.

use clap::ValueEnum;
use wattle::MemoryModel;

/// What can be named where several models can be asked at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Model {
    Sc,
    Tso,
    Pso,
    All,
}

/// One memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OneModel {
    Sc,
    Tso,
    Pso,
}

/// What can be named where SC is no question, and several models can be asked at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Relaxed {
    Tso,
    Pso,
    All,
}

/// One memory model that is not SC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OneRelaxed {
    Tso,
    Pso,
}

impl From<OneModel> for MemoryModel {
    fn from(model: OneModel) -> Self {
        match model {
            OneModel::Sc => MemoryModel::Sc,
            OneModel::Tso => MemoryModel::Tso,
            OneModel::Pso => MemoryModel::Pso,
        }
    }
}

impl From<OneRelaxed> for MemoryModel {
    fn from(model: OneRelaxed) -> Self {
        match model {
            OneRelaxed::Tso => MemoryModel::Tso,
            OneRelaxed::Pso => MemoryModel::Pso,
        }
    }
}

/// The models that were named, each once, in the order SC, TSO, PSO.
pub fn named(chosen: &[Model]) -> Vec<MemoryModel> {
    let is_named = |m: &MemoryModel| {
        let name = match m {
            MemoryModel::Sc => Model::Sc,
            MemoryModel::Tso => Model::Tso,
            MemoryModel::Pso => Model::Pso,
        };
        chosen.iter().any(|c| *c == name || *c == Model::All)
    };
    MemoryModel::ALL.into_iter().filter(is_named).collect()
}

/// The same for what is not SC.
pub fn relaxed(chosen: &[Relaxed]) -> Vec<MemoryModel> {
    let as_model = |r: &Relaxed| match r {
        Relaxed::Tso => vec![Model::Tso],
        Relaxed::Pso => vec![Model::Pso],
        Relaxed::All => vec![Model::Tso, Model::Pso],
    };
    named(&chosen.iter().flat_map(as_model).collect::<Vec<_>>())
}
