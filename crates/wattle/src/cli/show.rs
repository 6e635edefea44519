//! `wattle show`: a program in another form.

use super::exit::Exit;
use super::output;
use super::subject::File;
use super::units;
use clap::{Args, ValueEnum};
use wattle::ThreadCount;
use wattle::input::Subject;
use wattle_model::{Counts, print};
use wattle_report::dot;

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: File,
    /// The form to print
    #[arg(long = "as", value_enum, default_value_t = Form::Wtl)]
    form: Form,
    /// How many threads a family has (for graphs)
    #[arg(long, value_name = "NAME=N", value_parser = units::threads)]
    threads: Vec<(String, ThreadCount)>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// The Wattle language
    Wtl,
    /// The threads' graphs, for Graphviz
    Dot,
}

pub fn run(arguments: &Arguments) -> Exit {
    match text(arguments) {
        Ok(text) => {
            output::answer(&text);
            Exit::Holds
        }
        Err(exit) => exit,
    }
}

fn text(arguments: &Arguments) -> Result<String, Exit> {
    let program = match arguments.file.load()?.1 {
        Subject::Program(program) => program,
        Subject::System(system) => return Ok(system.to_string()),
    };
    Ok(match arguments.form {
        Form::Wtl => print::to_wtl(&program),
        Form::Dot => {
            let mut counts = Counts::default();
            let threads = units::named(&arguments.threads, &program).map_err(|why| {
                output::error(&arguments.file.file, &why, &[]);
                Exit::Input
            })?;
            for (name, count) in threads {
                if let ThreadCount::Fixed(n) = count {
                    counts.0.insert(name, n);
                }
            }
            // One thread shows the graph of a family of any number.
            for f in &program.families {
                if f.count == wattle_model::Count::Any {
                    counts.0.entry(f.name.clone()).or_insert(1);
                }
            }
            dot::graph(&arguments.file.instance(&program, &counts)?)
        }
    })
}
