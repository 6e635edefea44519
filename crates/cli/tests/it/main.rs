//! Everything that needs the whole line from text to verdict.

mod agree;
mod budgets;
mod cli;
mod counting;
mod evidence;
mod examples;
mod families;
mod fences;
mod integers;
mod json;
mod robust;
mod show;
mod soundness;
mod support;
mod text;
mod verdicts;
