//! Checkpoints in a directory: what a search left there, to go on after its process has died.
//!
//! There are two files: `states.N`, which only grows, and `checkpoint`, which says how much of it counts and has the
//! rest. The second one is written beside and renamed, so whenever the process dies there is a whole one, the last one or the
//! one before. Both have their checksums in it.

use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wattle_search::{Keep, Kept};

/// The first bytes of the file, with a number that goes up when anything in it changes its meaning.
const MAGIC: &[u8; 16] = b"wattle-search-1\n";
const FILE: &str = "checkpoint";
/// What is to be renamed to it.
const BESIDE: &str = "checkpoint.new";

/// A directory for the checkpoint of one search.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    every: Duration,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    last: Instant,
    /// What is to be gone on with; nothing is written before that.
    resumed: Option<Found>,
    log: Option<Log>,
    generation: u64,
    /// Why something could not be written.
    failed: Option<String>,
}

/// A log being written.
#[derive(Debug)]
struct Log {
    name: String,
    file: File,
    bytes: u64,
    sum: Sha256,
}

/// What a file says.
#[derive(Clone, Debug)]
struct Found {
    name: String,
    generation: u64,
    bytes: u64,
    sum: [u8; 32],
    head: Vec<u8>,
}

impl Directory {
    /// A directory to write to, made if it is not there. Whether one may write there is known at once, not after hours.
    pub fn new(path: &Path, every: Duration) -> Result<Self, String> {
        let beside = path.join(BESIDE);
        fs::create_dir_all(path)
            .and_then(|()| File::create(&beside))
            .and_then(|_| fs::remove_file(&beside))
            .map_err(|e| format!("{}: no directory for checkpoints: {e}", path.display()))?;
        Ok(Directory::at(path, every, None))
    }

    /// A directory with a checkpoint to go on from, and to write to.
    pub fn resume(path: &Path, every: Duration) -> Result<Self, String> {
        let file = path.join(FILE);
        let bytes = fs::read(&file).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => format!("{}: there is no checkpoint", path.display()),
            _ => format!("{}: {e}", file.display()),
        })?;
        let damaged = |what: &str| format!("{}: the checkpoint is damaged: {what}", path.display());
        let found = Found::read(&bytes).map_err(damaged)?;
        let log = path.join(log_name(found.generation));
        let sum = sum_of(&log, found.bytes).map_err(|e| damaged(&format!("states: {e}")))?;
        if sum != found.sum {
            return Err(damaged("the checksum of its states is wrong"));
        }
        Ok(Directory::at(path, every, Some(found)))
    }

    fn at(path: &Path, every: Duration, resumed: Option<Found>) -> Self {
        let numbers = fs::read_dir(path).into_iter().flatten().flatten();
        let numbers =
            numbers.filter_map(|entry| number_of_log(&entry.file_name().to_string_lossy()));
        let generation = numbers.max().unwrap_or(0);
        Directory {
            path: path.to_owned(),
            every,
            inner: Mutex::new(Inner {
                last: Instant::now(),
                resumed,
                log: None,
                generation,
                failed: None,
            }),
        }
    }

    /// Whether what is there is of a search with one of these names.
    pub fn is_of(&self, mut names: impl Iterator<Item = String>) -> bool {
        let resumed = self.lock().resumed.clone();
        resumed.is_none_or(|found| names.any(|name| name == found.name))
    }

    /// Why something could not be written, if that was so.
    pub fn failure(&self) -> Option<String> {
        let failed = self.lock().failed.clone();
        failed.map(|why| format!("{}: {why}", self.path.display()))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, write: impl FnOnce(&mut Inner) -> io::Result<()>) {
        let inner = &mut *self.lock();
        if let Err(e) = write(inner) {
            inner.failed.get_or_insert(e.to_string());
            inner.log = None;
        }
    }
}

fn log_name(generation: u64) -> String {
    format!("states.{generation}")
}

fn number_of_log(name: &str) -> Option<u64> {
    name.strip_prefix("states.")?.parse().ok()
}

/// The checksum of the first bytes of a file.
fn sum_of(path: &Path, bytes: u64) -> io::Result<[u8; 32]> {
    let mut file = BufReader::new(File::open(path)?.take(bytes));
    let mut sum = Sha256::new();
    let mut read = 0;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 if read < bytes => return Err(io::ErrorKind::UnexpectedEof.into()),
            0 => return Ok(sum.finalize().into()),
            n => {
                sum.update(&buffer[..n]);
                read += n as u64;
            }
        }
    }
}

impl Found {
    fn write(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend((self.name.len() as u64).to_le_bytes());
        bytes.extend(self.name.as_bytes());
        bytes.extend(self.generation.to_le_bytes());
        bytes.extend(self.bytes.to_le_bytes());
        bytes.extend(self.sum);
        bytes.extend(&self.head);
        let sum: [u8; 32] = Sha256::digest(&bytes).into();
        bytes.extend(sum);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Found, &'static str> {
        let short = "it is too short";
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err("it is not one, or of another version");
        };
        let (rest, sum) = rest.split_last_chunk::<32>().ok_or(short)?;
        let whole = &bytes[..bytes.len() - 32];
        let right: [u8; 32] = Sha256::digest(whole).into();
        if right != *sum {
            return Err("its checksum is wrong");
        }
        let number = |rest: &mut &[u8]| -> Result<u64, &'static str> {
            let (number, after) = rest.split_first_chunk::<8>().ok_or(short)?;
            *rest = after;
            Ok(u64::from_le_bytes(*number))
        };
        let mut rest = rest;
        let length = usize::try_from(number(&mut rest)?).map_err(|_| short)?;
        let (name, mut rest) = rest.split_at_checked(length).ok_or(short)?;
        let (generation, bytes) = (number(&mut rest)?, number(&mut rest)?);
        let (sum, head) = rest.split_first_chunk::<32>().ok_or(short)?;
        Ok(Found {
            name: String::from_utf8_lossy(name).into_owned(),
            generation,
            bytes,
            sum: *sum,
            head: head.to_vec(),
        })
    }
}

impl Keep for Directory {
    fn open(&self, name: &str) -> Option<Kept> {
        let mut inner = self.lock();
        let found = inner.resumed.take_if(|found| found.name == name)?;
        let log = File::open(self.path.join(log_name(found.generation))).ok()?;
        Some(Kept {
            log: Box::new(BufReader::with_capacity(1 << 20, log.take(found.bytes))),
            head: found.head,
        })
    }

    fn is_due(&self) -> bool {
        let inner = self.lock();
        let willing = inner.resumed.is_none() && inner.failed.is_none();
        willing && inner.last.elapsed() >= self.every
    }

    fn begin(&self, name: &str) {
        self.write(|inner| {
            inner.generation += 1;
            let file = File::create(self.path.join(log_name(inner.generation)))?;
            inner.log = Some(Log {
                name: name.to_owned(),
                file,
                bytes: 0,
                sum: Sha256::new(),
            });
            Ok(())
        });
    }

    fn append(&self, bytes: &[u8]) {
        self.write(|inner| {
            if let Some(log) = &mut inner.log {
                log.file.write_all(bytes)?;
                log.bytes += bytes.len() as u64;
                log.sum.update(bytes);
            }
            Ok(())
        });
    }

    fn commit(&self, head: &[u8]) {
        self.write(|inner| {
            let Some(log) = &inner.log else {
                return Ok(());
            };
            log.file.sync_data()?;
            let found = Found {
                name: log.name.clone(),
                generation: inner.generation,
                bytes: log.bytes,
                sum: log.sum.clone().finalize().into(),
                head: head.to_vec(),
            };
            let beside = self.path.join(BESIDE);
            let mut file = File::create(&beside)?;
            file.write_all(&found.write())?;
            file.sync_data()?;
            fs::rename(&beside, self.path.join(FILE))?;
            for entry in fs::read_dir(&self.path)?.flatten() {
                let number = number_of_log(&entry.file_name().to_string_lossy());
                if number.is_some_and(|n| n < inner.generation) {
                    fs::remove_file(entry.path())?;
                }
            }
            inner.last = Instant::now();
            Ok(())
        });
    }
}
