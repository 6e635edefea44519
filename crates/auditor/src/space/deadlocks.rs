//! What is noted of a state where deadlocks are looked for.

use super::Space;
use wattle_evidence::deadlock::Edges;
use wattle_memory::Layout;
use wattle_memory::content::Content;

impl<L: Layout, C: Content<Value = i64>> Space<'_, L, C> {
    /// Notes a state whose successors have just been put into the set.
    pub(super) fn note(&self, edges: &mut Edges, i: usize, progress: bool) {
        let next: Vec<u64> = self.batch.found.iter().map(|f| f.0 as u64).collect();
        let row = self.rows.row(i);
        let mut marks = (0..self.threads()).map(|t| self.moves.marks(t, self.rows.get(row, t)));
        let visible = marks.clone().all(|m| !m.inside_atomic);
        let discarded = visible && marks.clone().any(|m| m.is_discarded);
        let unfinished = visible && !marks.all(|m| m.is_final);
        edges.add(i as u64, &next, progress || discarded, unfinished);
    }
}
