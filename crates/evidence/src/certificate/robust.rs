//! Robustness: what SC cannot reach, TSO cannot either.

use super::Certificate;
use serde::{Deserialize, Serialize};

/// The program is robust against TSO, and the target cannot be reached under SC.
///
/// A robust program's TSO runs have the happens-before relation of SC runs, and with it the same
/// locations and registers in every state, and the same memory wherever buffers are empty. So the
/// certificate proves something only about targets that do not look at memory, or look only at final
/// states. That the program is robust needs no witness: the auditor searches for attacks itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Robust {
    /// Why SC does not reach the target.
    pub under_sc: Box<Certificate>,
}
