//! Tasks that are too wide for engines that list states, or that look where others do not.

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

    /// For engines that do not know what is pending in the states that are asked about.
    pub fn is_about_memory(&self) -> Result<(), Refusal> {
        match self.sees_buffers() {
            true => Err(Refusal::new(
                "the property asks what a thread sees of its pending stores",
            )),
            false => Ok(()),
        }
    }
}
