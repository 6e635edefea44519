//! Everything that needs the whole line from text to verdict.

mod cli;
mod evidence;
mod examples;
mod fences;
mod json;
mod robust;
mod support;
mod text;
