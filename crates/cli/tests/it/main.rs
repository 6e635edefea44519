//! Everything that needs the whole line from text to verdict.

mod agree;
mod beginners;
mod budgets;
mod checkpoints;
mod cli;
mod counting;
mod cubicle;
mod docs;
mod evidence;
mod examples;
mod explore;
mod export;
mod families;
mod fences;
mod formats;
mod hosts;
mod integers;
mod json;
mod liveness;
mod lsp;
mod machine;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod native;
mod newcomers;
mod own;
mod papers;
mod places;
mod robust;
mod show;
mod soundness;
mod support;
mod text;
mod verdicts;
