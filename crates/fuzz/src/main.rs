//! `cargo run --release -p wattle-fuzz -- --seconds 60 --language wtl`
//!
//! Exit code 0: no failure. 1: a failure, shown and written to `target/fuzz`. 2: wrong usage.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wattle_fuzz::check::check;
use wattle_fuzz::heap::Counting;
use wattle_fuzz::mutate::input;
use wattle_fuzz::seeds::Seeds;
use wattle_fuzz::supervise::Campaign;
use wattle_fuzz::target::Target;
use wattle_fuzz::worker::{self, Work};

#[global_allocator]
static HEAP: Counting = Counting;

const USAGE: &str = "\
usage: wattle-fuzz [--language NAME] [--seconds N] [--seed N] [--folder DIR]
       wattle-fuzz --language NAME --replay FILE
       wattle-fuzz --language NAME --seed N --print NUMBER

Without --language every language gets its share of the seconds. The seed is printed; the same seed
gives the same inputs.";

struct Arguments {
    target: Option<Target>,
    seconds: u64,
    seed: u64,
    folder: PathBuf,
    replay: Option<PathBuf>,
    print: Option<u64>,
    worker: bool,
    careful: bool,
    from: u64,
    inputs: u64,
}

fn main() -> ExitCode {
    let arguments = match read(std::env::args().skip(1)) {
        Ok(a) => a,
        Err(e) => {
            eprintln!("{e}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if let (Some(target), Some(number)) = (arguments.target, arguments.print) {
        print!("{}", input(&Seeds::load(target), arguments.seed, number));
        return ExitCode::SUCCESS;
    }
    match (arguments.target, &arguments.replay) {
        (Some(target), Some(file)) => replay(target, file),
        (None, Some(_)) => {
            eprintln!("--replay needs --language\n{USAGE}");
            ExitCode::from(2)
        }
        (Some(target), None) if arguments.worker => work(target, &arguments),
        (target, None) => campaign(target, &arguments),
    }
}

fn read(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let mut a = Arguments {
        target: None,
        seconds: 60,
        seed: now.map_or(0, |d| d.as_secs()),
        folder: PathBuf::from("target/fuzz"),
        replay: None,
        print: None,
        worker: false,
        careful: false,
        from: 0,
        inputs: u64::MAX,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |s: String| s.parse::<u64>().map_err(|_| format!("`{s}` is no number"));
        match word.as_str() {
            "--language" => {
                let name = value()?;
                let all: Vec<&str> = Target::all().map(Target::name).collect();
                let unknown = format!("no language `{name}`; there are {}", all.join(", "));
                a.target = Some(Target::named(&name).ok_or(unknown)?);
            }
            "--seconds" => a.seconds = number(value()?)?,
            "--seed" => a.seed = number(value()?)?,
            "--from" => a.from = number(value()?)?,
            "--inputs" => a.inputs = number(value()?)?,
            "--folder" => a.folder = value()?.into(),
            "--replay" => a.replay = Some(value()?.into()),
            "--print" => a.print = Some(number(value()?)?),
            "--worker" => a.worker = true,
            "--careful" => a.careful = true,
            other => return Err(format!("unknown argument `{other}`")),
        }
    }
    Ok(a)
}

fn work(target: Target, a: &Arguments) -> ExitCode {
    let work = Work {
        target,
        seed: a.seed,
        from: a.from,
        inputs: a.inputs,
        time: Duration::from_secs(a.seconds),
        careful: a.careful,
    };
    match worker::run(&work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn replay(target: Target, file: &PathBuf) -> ExitCode {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(e) => {
            eprintln!("{}: {e}", file.display());
            return ExitCode::from(2);
        }
    };
    match check(target, &String::from_utf8_lossy(&bytes)) {
        Ok(seen) => {
            println!("no failure ({seen:?})");
            ExitCode::SUCCESS
        }
        Err(what) => {
            println!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn campaign(target: Option<Target>, a: &Arguments) -> ExitCode {
    let targets: Vec<Target> = target.map_or_else(|| Target::all().collect(), |t| vec![t]);
    let share = a.seconds / targets.len() as u64;
    let mut code = ExitCode::SUCCESS;
    for target in targets {
        println!("{target}: seed {}, {share} s", a.seed);
        let campaign = Campaign {
            target,
            seed: a.seed,
            time: Duration::from_secs(share),
            folder: a.folder.clone(),
        };
        match campaign.run() {
            Ok(summary) => println!("{summary}"),
            Err(report) => {
                println!("{report}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
