//! Wattle in editors: errors as they are typed, what a name is and where it was declared, a lens over each
//! property that checks it, and the fences as an edit.
//!
//! One thread reads messages; a check runs on its own, with a limit of time, and is stopped as soon as the
//! text changes. Messages are plain JSON: the few fields that are used are in the open, in one place each.

mod document;
mod names;
mod server;
mod work;

pub use server::{ServerError, serve};
