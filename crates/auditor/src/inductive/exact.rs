//! Buffers that forget nothing, as certificates list them: those of the reference machine.

use super::super::symbols::Value;
use super::machine::Pending;
use std::collections::BTreeMap;
use wattle_evidence::certificate::PendingStores;
use wattle_memory::Exact;
use wattle_memory::layout::Epochs;
use wattle_model::CellId;

/// Under SC nothing is pending.
impl Pending for () {
    type Bound = ();

    fn read(listed: &PendingStores, (): (), _: Vec<Value>) -> Option<Self> {
        (*listed == PendingStores::default()).then_some(())
    }

    fn written(&self) -> PendingStores {
        PendingStores::default()
    }

    fn listed(&self) -> Vec<(u32, CellId, &Value)> {
        Vec::new()
    }

    fn for_each(&mut self, _: &mut dyn FnMut(&mut Value)) {}
}

/// Under TSO one list in the order of the stores.
impl Pending for Exact<Value> {
    type Bound = ();

    fn read(listed: &PendingStores, (): (), values: Vec<Value>) -> Option<Self> {
        let cells = listed.entries.iter().map(|(_, cell)| *cell);
        let buffer = Exact(cells.zip(values).collect());
        (buffer.written() == *listed).then_some(buffer)
    }

    fn written(&self) -> PendingStores {
        written(self, false)
    }

    fn listed(&self) -> Vec<(u32, CellId, &Value)> {
        self.0.iter().map(|(c, v)| (0, *c, v)).collect()
    }

    fn for_each(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.0.iter_mut().for_each(|(_, v)| change(v));
    }
}

/// Under PSO by epochs, and in each by cells.
impl Pending for Epochs<Exact<Value>> {
    type Bound = ();

    fn read(listed: &PendingStores, (): (), values: Vec<Value>) -> Option<Self> {
        let (mut epochs, fenced) = (Vec::new(), listed.fenced);
        for ((epoch, cell), value) in listed.entries.iter().zip(values) {
            match (*epoch as usize).checked_sub(epochs.len()) {
                Some(0) => epochs.push(BTreeMap::new()),
                None => {}
                Some(_) => return None,
            }
            let of_cells: &mut BTreeMap<CellId, Exact<Value>> = &mut epochs[*epoch as usize];
            let pending = of_cells.entry(*cell).or_insert(Exact(Vec::new()));
            pending.0.push((*cell, value));
        }
        let buffer = Epochs { epochs, fenced };
        let loose = fenced && buffer.epochs.is_empty();
        (buffer.written() == *listed && !loose).then_some(buffer)
    }

    fn written(&self) -> PendingStores {
        written(self, self.fenced)
    }

    fn listed(&self) -> Vec<(u32, CellId, &Value)> {
        let epochs = self.epochs.iter().enumerate();
        let of_cells = epochs.flat_map(|(n, epoch)| epoch.values().map(move |e| (n as u32, e)));
        of_cells
            .flat_map(|(n, e)| e.0.iter().map(move |(c, v)| (n, *c, v)))
            .collect()
    }

    fn for_each(&mut self, change: &mut dyn FnMut(&mut Value)) {
        let of_cells = self.epochs.iter_mut().flat_map(BTreeMap::values_mut);
        of_cells.for_each(|pending| pending.for_each(change));
    }
}

fn written<B: Pending>(buffer: &B, fenced: bool) -> PendingStores {
    let entries = buffer.listed().into_iter();
    PendingStores {
        entries: entries.map(|(e, c, _)| (e, c)).collect(),
        before: Vec::new(),
        fenced,
    }
}
