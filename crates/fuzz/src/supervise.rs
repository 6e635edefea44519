//! Runs workers, and when one fails, crashes or hangs: finds the input, shrinks it, writes it down.

use crate::check::TIME;
use crate::mutate::input;
use crate::seeds::Seeds;
use crate::shrink::shrink;
use crate::target::Target;
use crate::worker::STRIDE;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Without a line for so long, a worker hangs.
const SILENCE: Duration = Duration::from_secs(30);
/// Runs of the target that shrinking may take, and seconds.
const TRIES: usize = 2000;
const SHRINKING: Duration = Duration::from_secs(120);

pub struct Campaign {
    pub target: Target,
    pub seed: u64,
    pub time: Duration,
    /// Where failing inputs go.
    pub folder: PathBuf,
}

/// What a worker had to say.
enum Outcome {
    Done {
        inputs: u64,
        programs: u64,
    },
    Failed {
        number: u64,
        what: String,
    },
    /// It died or fell silent somewhere after this input.
    Lost {
        after: u64,
        what: &'static str,
    },
}

impl Campaign {
    /// Fuzzes one target; the error is a report about the first failure.
    pub fn run(&self) -> Result<String, String> {
        let secs = self.time.as_secs().to_string();
        let worker = self.spawn(&["--from", "0", "--seconds", &secs])?;
        let (number, what) = match self.listen(worker)? {
            Outcome::Done { inputs, programs } => {
                return Ok(format!(
                    "{}: {inputs} inputs, {programs} of them programs, no failure (seed {})",
                    self.target, self.seed
                ));
            }
            Outcome::Failed { number, what } => (number, what),
            Outcome::Lost { after, what } => (self.find(after)?, what.to_string()),
        };
        let seeds = Seeds::load(self.target);
        let text = input(&seeds, self.seed, number);
        let start = Instant::now();
        let small = shrink(&text, TRIES, |t| {
            start.elapsed() < SHRINKING && self.fails(t).unwrap_or(false)
        });
        let file = self
            .folder
            .join(format!("{}-{}-{number}.txt", self.target, self.seed));
        let write = |e: std::io::Error| format!("{}: {e}", file.display());
        std::fs::create_dir_all(&self.folder).map_err(write)?;
        std::fs::write(&file, &small).map_err(write)?;
        let shown: String = small.chars().take(2000).collect();
        Err(format!(
            "{}: input {number} of seed {} fails: {what}\nwritten to {} ({} bytes, {} before shrinking):\n{shown}\nreplay: cargo run --release -p wattle-fuzz -- --language {} --replay {}",
            self.target,
            self.seed,
            file.display(),
            small.len(),
            text.len(),
            self.target,
            file.display(),
        ))
    }

    fn spawn(&self, arguments: &[&str]) -> Result<Child, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut command = Command::new(program);
        command.args(["--worker", "--language", self.target.name()]);
        command
            .args(["--seed", &self.seed.to_string()])
            .args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().map_err(|e| e.to_string())
    }

    fn listen(&self, mut worker: Child) -> Result<Outcome, String> {
        let Some(pipe) = worker.stdout.take() else {
            return Err("a worker without an output".into());
        };
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let mut after = 0;
        let outcome = loop {
            let line = match lines.recv_timeout(SILENCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    let _ = worker.kill();
                    break Outcome::Lost {
                        after,
                        what: "hang",
                    };
                }
                Err(RecvTimeoutError::Disconnected) => {
                    break Outcome::Lost {
                        after,
                        what: "crash (stack overflow or out of memory)",
                    };
                }
            };
            let mut words = line.splitn(3, ' ');
            let kind = words.next().unwrap_or_default();
            let number = words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
            let rest = words.next().unwrap_or_default();
            match kind {
                "at" => after = number,
                "fail" => {
                    break Outcome::Failed {
                        number,
                        what: rest.to_string(),
                    };
                }
                _ => {
                    break Outcome::Done {
                        inputs: number,
                        programs: rest.parse().unwrap_or(0),
                    };
                }
            }
        };
        let _ = worker.wait();
        Ok(outcome)
    }

    /// The input that a worker was lost on: the last one a careful worker announces.
    fn find(&self, after: u64) -> Result<u64, String> {
        let (from, inputs) = (after.to_string(), (2 * STRIDE).to_string());
        let worker = self.spawn(&["--careful", "--from", &from, "--inputs", &inputs])?;
        match self.listen(worker)? {
            Outcome::Lost { after, .. } => Ok(after),
            Outcome::Failed { number, .. } => Ok(number),
            Outcome::Done { .. } => Err(format!(
                "{}: a worker was lost after input {after} of seed {}, but not a second time",
                self.target, self.seed
            )),
        }
    }

    /// Whether the text alone fails, in a process of its own.
    fn fails(&self, text: &str) -> Result<bool, String> {
        let file = std::env::temp_dir().join(format!("wattle-fuzz-{}", std::process::id()));
        std::fs::write(&file, text).map_err(|e| e.to_string())?;
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut child = Command::new(program)
            .args(["--language", self.target.name(), "--replay"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let start = Instant::now();
        loop {
            match child.try_wait().map_err(|e| e.to_string())? {
                Some(status) => {
                    let _ = std::fs::remove_file(&file);
                    return Ok(!status.success());
                }
                None if start.elapsed() > TIME => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Ok(true);
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}
