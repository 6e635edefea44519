//! Checks `.cub` files: `cub MODEL SECONDS FILE…`.

use std::time::{Duration, Instant};
use wattle_memory::MemoryModel;
use wattle_params::{Options, Outcome, check};

fn main() {
    let mut args = std::env::args().skip(1);
    let model = match args.next().as_deref() {
        Some("sc") => MemoryModel::Sc,
        Some("pso") => MemoryModel::Pso,
        _ => MemoryModel::Tso,
    };
    let seconds: u64 = args.next().and_then(|s| s.parse().ok()).unwrap_or(10);
    for file in args {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let parsed = wattle_syntax::cubicle::parse(&text);
        let Some(system) = parsed.system else {
            for d in parsed.diagnostics {
                print!("{}", d.render(&file, &text));
            }
            continue;
        };
        let started = Instant::now();
        let deadline = Duration::from_secs(seconds);
        let (outcome, effort) = check(&system, model, Options::default(), &|_| {
            started.elapsed() > deadline
        });
        if std::env::var_os("SHOW").is_some()
            && let (Outcome::Holds(proof), Ok(compiled)) = (
                &outcome,
                wattle_params::compile::Compiled::new(&system, model),
            )
        {
            for c in proof.live() {
                println!("    {}", wattle_params::display::show(&compiled, c));
            }
        }
        let verdict = match &outcome {
            Outcome::Holds(proof) => format!("holds ({} cubes)", proof.live().count()),
            Outcome::Violated(run) => format!(
                "violated ({} threads, {} events)",
                run.threads,
                run.events.len()
            ),
            Outcome::Undecided(why) => format!("undecided: {why}"),
            Outcome::Refused(u) => format!("refused: {} ({})", u.message, u.hint),
        };
        println!(
            "{:8.3} {file}: {verdict} {effort:?}",
            started.elapsed().as_secs_f64()
        );
    }
}
