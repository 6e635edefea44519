//! Text, JSON and pictures of evidence. A report only reads evidence: nothing here decides anything.

pub mod dot;
pub mod export;
pub mod finding;
pub mod formats;
pub mod html;
pub mod json;
pub mod lasso;
pub mod picture;
pub mod table;
pub mod text;
pub mod walked;
pub mod why;
pub mod words;

pub use finding::Finding;
pub use why::{Overtaking, Why};
