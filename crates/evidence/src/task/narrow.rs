//! Tasks that are too wide for engines that list states.

use super::Task;
use crate::answer::Refusal;

impl Task<'_> {
    /// Refuses instances one of whose states takes too much work to expand: it has a slot for
    /// everything, and every thread makes at least one more of it. `most` is slots times threads.
    pub fn is_narrow(&self, most: usize) -> Result<(), Refusal> {
        let (threads, cells) = (&self.instance.threads, self.instance.cells.len());
        let registers = threads.iter().map(|t| 2 + t.registers.len());
        let slots = cells + registers.sum::<usize>();
        if slots.saturating_mul(threads.len()) > most {
            let threads = threads.len();
            let why = format!(
                "{threads} threads and {cells} cells are too many to search state by state"
            );
            return Err(Refusal::new(why));
        }
        Ok(())
    }
}
