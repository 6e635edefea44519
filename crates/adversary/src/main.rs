//! `cargo run --release -p wattle-adversary -- --programs 10000 --seed 1`
//!
//! Exit code 0: no disagreement. 1: one or more, or an empty cell in the table. 2: wrong usage.

use std::process::ExitCode;
use std::time::Duration;
use wattle_adversary::ask::{Engine, tell_panics};
use wattle_adversary::campaign::Campaign;
use wattle_adversary::trial::Limits;
use wattle_random::Profile;

/// What an engine counts from one look at the control to the next.
const LOOK: u64 = 1_000;

const USAGE: &str = "\
usage: adversary [--programs N] [--seed S] [--minutes M] [--profile fixed|families|integers|levels]
                 [--first N] [--jobs N] [--states N] [--work N] [--engines A,B] [--resume FILE] [--audits FILE] [--partial] [--reasons] [--print]

Random programs over every construct of the language, decided by every engine on SC, TSO and PSO and
compared with brute force on the reference machine. The same seed gives the same programs. Prints
every disagreement with a small program, and at the end how often verdicts were compared for each
construct, engine and model.

  --programs N   how many (1000)
  --first N      begin with this one (0)
  --minutes M    stop after so many minutes
  --profile P    fixed: a fixed number of threads; families: any number, compared with one to five
                 threads; integers: unbounded integers; levels: relatives of the filter lock, which
                 want `--work 1000000000`. The first three in turn if none is given
  --jobs N       programs at a time (1)
  --states N     states of one instance that brute force looks at (4000)
  --work N       what an engine may spend on one question, as `--budget` of `wattle check` (100000)
  --engines A,B  ask these only, as the table names them; empty cells are then no failure
  --resume FILE  go on where this file says, and write down there how far we are
  --audits FILE  write every audit there, one line each; `--example audits` repeats them
  --partial      empty cells of the table are no failure
  --reasons      tell why engines refused or did not decide
  --print        print the programs and ask nobody";

struct Arguments {
    campaign: Campaign,
    partial: bool,
    reasons: bool,
    print: bool,
}

fn main() -> ExitCode {
    let arguments = match read(std::env::args().skip(1)) {
        Ok(a) => a,
        Err(e) => {
            eprintln!("{e}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let campaign = &arguments.campaign;
    if arguments.print {
        for n in campaign.first..campaign.first + campaign.programs {
            let profile = campaign.profile_of(n);
            println!("// {profile} {n}\n{}", campaign.source(n).text);
        }
        return ExitCode::SUCCESS;
    }
    println!("seed {}", campaign.seed);
    tell_panics();
    let done = match campaign.run() {
        Ok(done) => done,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::from(2);
        }
    };
    let engines = campaign.engine_names();
    let empty = done.table.empty(&engines);
    println!("\n{}\n{}", done.table.text(&engines), done.table.summary());
    if arguments.reasons {
        println!("{}", done.table.reasons());
    }
    println!(
        "{} programs with seed {} compared, {} states looked at by brute force, {} audits of proofs of other programs; {} disagreements, {} empty cells",
        done.table.programs,
        done.seed,
        done.table.states,
        done.table.put_to_others,
        done.disagreements.len(),
        empty.len()
    );
    if !arguments.partial {
        empty.iter().for_each(|e| println!("empty: {e}"));
    }
    match done.disagreements.is_empty() && (arguments.partial || empty.is_empty()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn read(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut campaign = Campaign {
        seed: 1,
        profile: None,
        first: 0,
        programs: 1000,
        time: None,
        jobs: 1,
        limits: Limits::default(),
        resume: None,
        audits: None,
        engines: Engine::all(),
    };
    let (mut partial, mut reasons, mut print) = (false, false, false);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |s: String| s.parse::<u64>().map_err(|_| format!("`{s}` is no number"));
        match word.as_str() {
            "--programs" => campaign.programs = number(value()?)?,
            "--seed" => campaign.seed = number(value()?)?,
            "--first" => campaign.first = number(value()?)?,
            "--minutes" => campaign.time = Some(Duration::from_secs(60 * number(value()?)?)),
            "--jobs" => campaign.jobs = number(value()?)? as usize,
            "--states" => campaign.limits.states = number(value()?)? as usize,
            "--work" => {
                let work = number(value()?)?;
                if work < LOOK {
                    return Err(format!(
                        "with `--work` below {LOOK} every engine ends at its first look"
                    ));
                }
                campaign.limits.budget.work = work;
            }
            "--engines" => {
                campaign.engines = value()?
                    .split(',')
                    .map(Engine::named)
                    .collect::<Result<_, _>>()?;
                partial = true;
            }
            "--resume" => campaign.resume = Some(value()?.into()),
            "--audits" => {
                campaign.audits = Some(value()?.into());
                campaign.limits.again = true;
            }
            "--partial" => partial = true,
            "--reasons" => reasons = true,
            "--print" => print = true,
            "--profile" => {
                let name = value()?;
                let found = Profile::named(&name);
                campaign.profile = Some(found.ok_or(format!("there is no profile `{name}`"))?);
            }
            other => return Err(format!("unknown argument `{other}`")),
        }
    }
    Ok(Arguments {
        campaign,
        partial,
        reasons,
        print,
    })
}
