//! Who searches together: the addresses of all processes, and links between them.
//!
//! A process listens to its own address and connects to those before it in the host file, to no others. Each pair has
//! one link for the whole time, on which both say twice a second that they are there, how far they are, and that
//! all shall stop ([`Mesh`]); and a new link for every search, which timely gets ([`Link`]). Who is not heard of
//! for some seconds is lost, whatever the reason: then nobody gets any further, and all say so.
//!
//! Nothing is encrypted and nobody proves who he is: a private network is taken for granted.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use timely::communication::allocator::zero_copy::stream::Stream;
use wattle_evidence::Stop;

/// What both sides of a link say first, with a number that goes up when anything they say changes its meaning.
const MAGIC: u64 = u64::from_le_bytes(*b"wattle 1");
/// All processes are there within this time.
const PATIENCE: Duration = Duration::from_secs(8);
/// Who is silent for so long is lost.
const SILENCE: Duration = Duration::from_secs(6);
/// How often one says that one is there.
const BEAT: Duration = Duration::from_millis(400);
const SHORT: Duration = Duration::from_millis(200);
/// Of two links to a process that ends, the one that says why is heard within this time.
const WORD: Duration = Duration::from_secs(1);

/// Words that are said first. The last one is what is searched for; who accepts a link reads it later than the others.
const GREETING: usize = 6;

/// What is said on the link that stays.
const BEATS: u8 = 0;
const STOPS: u8 = 1;
/// With a number: 0, or one more than the process that is lost and that this one therefore ends.
const ENDS: u8 = 2;

/// What a link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Watch,
    Search(u64),
}

impl Purpose {
    fn to_words(self) -> [u64; 2] {
        match self {
            Purpose::Watch => [0, 0],
            Purpose::Search(number) => [1, number],
        }
    }
}

/// The processes that search together.
#[derive(Debug)]
pub struct Hosts {
    addresses: Vec<SocketAddr>,
    process: usize,
}

impl Hosts {
    /// From the text of a host file: an address in each line, or only a port for this machine; `#` begins a comment.
    pub fn read(text: &str, process: usize) -> Result<Hosts, String> {
        let lines = text
            .lines()
            .map(|l| l.split('#').next().unwrap_or("").trim());
        let lines = (1..).zip(lines).filter(|(_, l)| !l.is_empty());
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for (number, line) in lines {
            let wrong = |why: String| {
                format!(
                    "line {number}: `{line}`: {why}; an address is HOST:PORT, or a port of this machine"
                )
            };
            let whole = match line.trim_start_matches(':').parse::<u16>() {
                Ok(port) => format!("127.0.0.1:{port}"),
                Err(_) => line.to_string(),
            };
            let mut all = whole.to_socket_addrs().map_err(|e| wrong(e.to_string()))?;
            let address = all.next().ok_or_else(|| wrong("no such host".into()))?;
            if address.ip().is_unspecified() || address.port() == 0 {
                return Err(wrong("nobody can connect to it".into()));
            }
            if addresses.contains(&address) {
                return Err(wrong("it is there twice".into()));
            }
            addresses.push(address);
        }
        match addresses.len() {
            0 => Err("there is no address in it".into()),
            n if process >= n => Err(format!(
                "there are {n} addresses, so processes are 0 to {}",
                n - 1
            )),
            _ => Ok(Hosts { addresses, process }),
        }
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.addresses.len()
    }

    /// Which of them this one is.
    pub fn process(&self) -> usize {
        self.process
    }

    fn name(&self, process: usize) -> String {
        format!("process {process} at {}", self.addresses[process])
    }
}

/// What the threads that watch over links know.
#[derive(Debug, Default)]
struct Known {
    /// What the others said last of how many states they have.
    states: Vec<AtomicU64>,
    /// States of this process.
    mine: AtomicU64,
    /// Which search is the present one.
    search: AtomicU64,
    /// All shall stop, and why.
    stop: AtomicU8,
    is_lost: AtomicBool,
    /// Who was lost first, and how.
    lost: Mutex<Option<(usize, String)>>,
    over: AtomicBool,
}

impl Known {
    fn lose(&self, process: usize, why: String) {
        let mut lost = lock(&self.lost);
        if !self.over.load(Ordering::SeqCst) {
            lost.get_or_insert((process, why));
            self.is_lost.store(true, Ordering::SeqCst);
        }
    }

    /// A link of a search is broken. The link that stays knows better who is to blame: its word is waited for.
    fn lose_link(&self, process: usize, why: String) {
        let end = Instant::now() + WORD;
        while !self.is_lost.load(Ordering::SeqCst)
            && !self.over.load(Ordering::SeqCst)
            && Instant::now() < end
        {
            std::thread::sleep(SHORT / 20);
        }
        self.lose(process, why);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The processes that search together, each of which is there.
#[derive(Debug)]
pub struct Mesh {
    hosts: Hosts,
    listener: TcpListener,
    known: Arc<Known>,
    links: Arc<Vec<(usize, Mutex<TcpStream>)>>,
    searches: AtomicUsize,
    /// Links that came before they were asked for.
    early: Mutex<Vec<(usize, u64, TcpStream)>>,
}

/// There is somebody missing, and who.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost(pub String);

fn code(stop: Stop) -> u8 {
    match stop {
        Stop::Time => 1,
        Stop::Memory => 2,
        Stop::Cancelled => 3,
        Stop::Budget => 4,
    }
}

pub(super) fn stop_of(code: u64) -> Option<Stop> {
    [Stop::Time, Stop::Memory, Stop::Cancelled, Stop::Budget]
        .into_iter()
        .find(|stop| u64::from(self::code(*stop)) == code)
}

pub(super) fn code_of(stop: Option<Stop>) -> u64 {
    stop.map_or(0, |stop| u64::from(code(stop)))
}

impl Mesh {
    /// Waits for all processes, some seconds at most.
    pub fn connect(hosts: Hosts, is_cancelled: impl Fn() -> bool) -> Result<Mesh, Lost> {
        let me = hosts.process;
        let listener = TcpListener::bind(hosts.addresses[me])
            .and_then(|l| l.set_nonblocking(true).map(|()| l))
            .map_err(|e| {
                Lost(format!(
                    "{} cannot be listened to: {e}",
                    hosts.addresses[me]
                ))
            })?;
        let end = Instant::now() + PATIENCE;
        let known = Known {
            states: hosts.addresses.iter().map(|_| AtomicU64::new(0)).collect(),
            ..Known::default()
        };
        let mut mesh = Mesh {
            known: Arc::new(known),
            links: Arc::new(Vec::new()),
            searches: AtomicUsize::new(0),
            early: Mutex::new(Vec::new()),
            hosts,
            listener,
        };
        let go_on = |missing: &str| match () {
            () if is_cancelled() => Err(Lost("interrupted while waiting for the others".into())),
            () if Instant::now() > end => Err(Lost(format!("{missing} cannot be reached"))),
            () => Ok(()),
        };
        let sockets = mesh.sockets(Purpose::Watch, 0, &go_on)?;
        let mut links = Vec::new();
        for (process, socket) in sockets.into_iter().enumerate() {
            let Some(socket) = socket else { continue };
            let name = mesh.hosts.name(process);
            let failed = |e: io::Error| Lost(format!("{name}: {e}"));
            socket
                .set_write_timeout(Some(SILENCE))
                .and_then(|()| socket.set_read_timeout(Some(SHORT)))
                .map_err(failed)?;
            let reader = socket.try_clone().map_err(failed)?;
            let known = mesh.known.clone();
            let all = 0..mesh.hosts.processes();
            let names: Vec<String> = all.map(|p| mesh.hosts.name(p)).collect();
            let listen = move || listen(reader, process, &names, &known);
            std::thread::Builder::new()
                .spawn(listen)
                .map_err(|e| Lost(e.to_string()))?;
            links.push((process, Mutex::new(socket)));
        }
        mesh.links = Arc::new(links);
        let (known, links) = (mesh.known.clone(), mesh.links.clone());
        let speak = move || {
            while !known.over.load(Ordering::SeqCst) {
                std::thread::sleep(BEAT);
                say(&links, BEATS, known.mine.load(Ordering::Relaxed));
            }
        };
        std::thread::Builder::new()
            .spawn(speak)
            .map_err(|e| Lost(e.to_string()))?;
        Ok(mesh)
    }

    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// An error if somebody is lost.
    pub fn go_on(&self) -> Result<(), Lost> {
        match self.known.is_lost.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Lost(
                lock(&self.known.lost)
                    .as_ref()
                    .map(|(_, why)| why.clone())
                    .unwrap_or_default(),
            )),
        }
    }

    /// Why all shall stop, if somebody said so.
    pub fn stopped(&self) -> Option<Stop> {
        stop_of(u64::from(self.known.stop.load(Ordering::Relaxed)))
    }

    /// Tells all to stop.
    pub fn stop(&self, stop: Stop) {
        let first =
            self.known
                .stop
                .compare_exchange(0, code(stop), Ordering::SeqCst, Ordering::SeqCst);
        if first.is_ok() {
            let search = self.known.search.load(Ordering::SeqCst);
            say(&self.links, STOPS, search << 8 | u64::from(code(stop)));
        }
    }

    /// The states of all processes, as far as they have said; this one has so many.
    pub fn states(&self, mine: u64) -> u64 {
        self.known.mine.store(mine, Ordering::Relaxed);
        let others = self.known.states.iter();
        mine + others.map(|n| n.load(Ordering::Relaxed)).sum::<u64>()
    }

    /// Links for one more search, of this name; all processes ask for it in the same order.
    pub(super) fn links(
        &self,
        name: u64,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<Option<Link>>, Lost> {
        let number = self.searches.fetch_add(1, Ordering::SeqCst) as u64;
        self.known.search.store(number, Ordering::SeqCst);
        self.known.stop.store(0, Ordering::SeqCst);
        let go_on = |_: &str| match is_cancelled() {
            true => Err(Lost("interrupted while waiting for the others".into())),
            false => self.go_on(),
        };
        let sockets = self.sockets(Purpose::Search(number), name, &go_on)?;
        let ending = Arc::new(AtomicBool::new(false));
        let link = |(process, socket): (usize, Option<TcpStream>)| {
            socket.map(|socket| Link {
                socket,
                process,
                name: self.hosts.name(process),
                known: self.known.clone(),
                ending: ending.clone(),
            })
        };
        Ok(sockets.into_iter().enumerate().map(link).collect())
    }

    /// A socket for each of the others.
    fn sockets(
        &self,
        purpose: Purpose,
        name: u64,
        go_on: &dyn Fn(&str) -> Result<(), Lost>,
    ) -> Result<Vec<Option<TcpStream>>, Lost> {
        let me = self.hosts.process;
        let mut sockets: Vec<Option<TcpStream>> = Vec::new();
        for process in 0..me {
            let who = self.hosts.name(process);
            let mut socket = loop {
                go_on(&who)?;
                match TcpStream::connect_timeout(&self.hosts.addresses[process], SHORT * 5) {
                    Ok(socket) => break socket,
                    Err(_) => std::thread::sleep(SHORT / 2),
                }
            };
            self.greet(&mut socket, purpose, name)
                .map_err(|e| Lost(format!("{who}: {e}")))?;
            sockets.push(Some(socket));
        }
        sockets.resize_with(self.hosts.processes(), || None);
        loop {
            let missing = (me + 1..sockets.len()).find(|p| sockets[*p].is_none());
            let Some(missing) = missing else { break };
            go_on(&self.hosts.name(missing))?;
            let (process, socket) = match self.accept(purpose)? {
                Some(accepted) => accepted,
                None => {
                    std::thread::sleep(SHORT / 20);
                    continue;
                }
            };
            sockets[process] = Some(socket);
        }
        for (process, socket) in sockets.iter_mut().enumerate() {
            let Some(socket) = socket else { continue };
            let who = self.hosts.name(process);
            let answer = match process < me {
                true => hear(socket, GREETING, || go_on(&who)),
                false => self
                    .greet(socket, purpose, name)
                    .map_err(Unheard::Broken)
                    .and_then(|()| hear(socket, 1, || go_on(&who))),
            };
            let answer = match answer {
                Ok(answer) => answer,
                Err(Unheard::Lost(lost)) => return Err(lost),
                Err(Unheard::Broken(e)) => {
                    let why = format!("{who} ended as its link began: {e}");
                    if purpose != Purpose::Watch {
                        self.known.lose_link(process, why.clone());
                        self.go_on()?;
                    }
                    return Err(Lost(why));
                }
            };
            if answer != name {
                return Err(Lost(format!(
                    "{who} was asked something else (another program, other options or another version of Wattle)"
                )));
            }
            socket
                .set_read_timeout(None)
                .map_err(|e| Lost(format!("{who}: {e}")))?;
        }
        Ok(sockets)
    }

    /// Says who this is, what for, and what is searched for.
    fn greet(&self, socket: &mut TcpStream, purpose: Purpose, name: u64) -> io::Result<()> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(false)?;
        let [kind, number] = purpose.to_words();
        let me = self.hosts.process as u64;
        let all = self.hosts.processes() as u64;
        let words: [u64; GREETING] = [MAGIC, me, all, kind, number, name];
        let words: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        socket.write_all(&words)
    }

    /// The next link of this purpose that somebody later in the host file has opened, if there is one. Who is not in the
    /// host file is not listened to.
    fn accept(&self, purpose: Purpose) -> Result<Option<(usize, TcpStream)>, Lost> {
        if let Purpose::Search(number) = purpose {
            let mut early = lock(&self.early);
            if let Some(at) = early.iter().position(|(_, n, _)| *n == number) {
                let (process, _, socket) = early.swap_remove(at);
                return Ok(Some((process, socket)));
            }
        }
        let (mut socket, from) = match self.listener.accept() {
            Ok(accepted) => accepted,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(e) => return Err(Lost(format!("listening: {e}"))),
        };
        let known = |ip: IpAddr| self.hosts.addresses.iter().any(|a| a.ip() == ip);
        // On one machine a link may come from another of its addresses.
        if !known(from.ip()) && !from.ip().is_loopback() {
            return Ok(None);
        }
        let said = (|| {
            socket.set_nonblocking(false).ok()?;
            socket.set_read_timeout(Some(SHORT * 5)).ok()?;
            let mut words = [0; (GREETING - 1) * 8];
            socket.read_exact(&mut words).ok()?;
            let words = words.as_chunks::<8>().0;
            let words: Vec<u64> = words.iter().map(|w| u64::from_le_bytes(*w)).collect();
            let [MAGIC, process, all, kind, number] = words[..] else {
                return None;
            };
            let later = self.hosts.process as u64 + 1..self.hosts.processes() as u64;
            let fits = later.contains(&process) && all == self.hosts.processes() as u64;
            fits.then_some((process as usize, kind, number))
        })();
        let Some((process, kind, number)) = said else {
            return Ok(None);
        };
        if [kind, number] == purpose.to_words() {
            return Ok(Some((process, socket)));
        }
        if kind == 1 {
            lock(&self.early).push((process, number, socket));
        }
        Ok(None)
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.known.over.store(true, Ordering::SeqCst);
        let lost = lock(&self.known.lost).as_ref().map(|(who, _)| *who as u64);
        say(&self.links, ENDS, lost.map_or(0, |who| who + 1));
    }
}

/// Why somebody's greeting was not heard to its end.
enum Unheard {
    Lost(Lost),
    Broken(io::Error),
}

/// Reads so many words and gives the last one: what is searched for.
fn hear(
    socket: &mut TcpStream,
    words: usize,
    go_on: impl Fn() -> Result<(), Lost>,
) -> Result<u64, Unheard> {
    let failed = Unheard::Broken;
    socket.set_read_timeout(Some(SHORT)).map_err(failed)?;
    let mut bytes = vec![0; 8 * words];
    let mut read = 0;
    while read < bytes.len() {
        go_on().map_err(Unheard::Lost)?;
        match socket.read(&mut bytes[read..]) {
            Ok(0) => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
            Ok(n) => read += n,
            Err(e) if is_late(&e) => {}
            Err(e) => return Err(failed(e)),
        }
    }
    let name = bytes.last_chunk::<8>();
    Ok(name.map_or(0, |n| u64::from_le_bytes(*n)))
}

fn is_late(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn say(links: &[(usize, Mutex<TcpStream>)], what: u8, number: u64) {
    let mut bytes = [0; 9];
    bytes[0] = what;
    bytes[1..].copy_from_slice(&number.to_le_bytes());
    for (_, link) in links {
        // Who does not hear it is not heard of either, and that is noticed.
        let _ = lock(link).write_all(&bytes);
    }
}

/// Listens to one of the others until it or this process ends.
fn listen(mut socket: TcpStream, process: usize, names: &[String], known: &Known) {
    let name = &names[process];
    let mut heard = Instant::now();
    let mut bytes = Vec::new();
    let mut buffer = [0; 256];
    while !known.over.load(Ordering::SeqCst) {
        match socket.read(&mut buffer) {
            Ok(0) => return known.lose(process, format!("{name} has ended")),
            Ok(n) => {
                heard = Instant::now();
                bytes.extend(&buffer[..n]);
            }
            Err(e) if is_late(&e) => {
                if heard.elapsed() > SILENCE {
                    return known.lose(process, format!("{name} is not heard of any more"));
                }
            }
            Err(e) => return known.lose(process, format!("{name}: {e}")),
        }
        while let Some((message, rest)) = bytes.split_first_chunk::<9>() {
            let number = message[1..].first_chunk::<8>();
            let number = number.map_or(0, |n| u64::from_le_bytes(*n));
            match message[0] {
                BEATS => known.states[process].store(number, Ordering::Relaxed),
                // What was said of another search comes too late.
                STOPS if number >> 8 != known.search.load(Ordering::SeqCst) => {}
                STOPS => {
                    let stop = number as u8;
                    let _ =
                        known
                            .stop
                            .compare_exchange(0, stop, Ordering::SeqCst, Ordering::SeqCst);
                }
                _ => {
                    let lost = (number as usize).wrapping_sub(1);
                    let (who, why) = match names.get(lost) {
                        Some(missing) => (lost, format!("{missing} is lost, says {name}")),
                        None => (process, format!("{name} has ended")),
                    };
                    return known.lose(who, why);
                }
            }
            bytes = rest.to_vec();
        }
    }
}

/// A link that timely uses. Timely ends a thread with a panic when a link breaks; this one tells those who watch instead, and
/// waits for the end.
pub struct Link {
    socket: TcpStream,
    process: usize,
    name: String,
    known: Arc<Known>,
    /// The search is at its end: links may end too.
    ending: Arc<AtomicBool>,
}

impl Link {
    pub(super) fn ending(&self) -> Arc<AtomicBool> {
        self.ending.clone()
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }
}

impl Read for Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let why = match self.socket.read(buffer) {
            Ok(0) if self.is_ending() => return Ok(0),
            Ok(0) => "has ended".to_string(),
            Ok(n) => return Ok(n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            Err(_) if self.is_ending() => return Ok(0),
            Err(e) => e.to_string(),
        };
        self.known
            .lose_link(self.process, format!("{}: {why}", self.name));
        loop {
            std::thread::park();
        }
    }
}

impl Write for Link {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self.socket.write(buffer) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                self.known
                    .lose_link(self.process, format!("{}: {e}", self.name));
                Ok(buffer.len())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

impl Stream for Link {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Link {
            socket: self.socket.try_clone()?,
            process: self.process,
            name: self.name.clone(),
            known: self.known.clone(),
            ending: self.ending.clone(),
        })
    }

    fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.set_nonblocking(nonblocking)
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let _ = self.socket.shutdown(how);
        Ok(())
    }
}
