//! The page on loopback: one small server, answered request by request.
//!
//! It listens on 127.0.0.1 only and answers only requests that name it as their host, so that no page
//! of somebody else can read along. Nothing is stored: a request carries the whole way.

use crate::page;
use crate::terminal::Finder;
use crate::walk::{Subject, Way};
use serde_json::json;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longer requests are not read.
const LONGEST: u64 = 1 << 16;
/// How long somebody may take to send one.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at whether to stop.
const PAUSE: Duration = Duration::from_millis(25);

/// A listener on loopback; port 0 is any free one.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

/// Answers until the flag is raised.
pub fn serve(
    listener: &TcpListener,
    subject: &Subject<'_>,
    begin: &Way,
    find: &Finder<'_>,
    stop: &AtomicBool,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            // Whoever goes away while being answered is no reason to stop.
            Ok((stream, _)) => drop(answer(stream, port, subject, begin, find)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

struct Reply {
    status: &'static str,
    kind: &'static str,
    body: String,
}

fn answer(
    stream: TcpStream,
    port: u16,
    subject: &Subject<'_>,
    begin: &Way,
    find: &Finder<'_>,
) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new((&stream).take(LONGEST)).lines();
    let request = lines.next().unwrap_or(Ok(String::new()))?;
    let mut host = None;
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("host")
        {
            host = Some(value.trim().to_string());
        }
    }
    let ours = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let reply = match host.is_some_and(|h| ours.contains(&h)) {
        true => reply(&request, subject, begin, find),
        false => plain("403 Forbidden", "this page is for this machine only"),
    };
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: {}\r\n\r\n",
        reply.status,
        reply.kind,
        reply.body.len(),
        page::POLICY,
    );
    (&stream).write_all(head.as_bytes())?;
    (&stream).write_all(reply.body.as_bytes())
}

fn reply(request: &str, subject: &Subject<'_>, begin: &Way, find: &Finder<'_>) -> Reply {
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    if method != "GET" {
        return plain("405 Method Not Allowed", "only GET is answered");
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let way = match way(query) {
        Some(way) => way,
        None => return plain("400 Bad Request", "that is no way"),
    };
    match path {
        "/" => Reply {
            status: "200 OK",
            kind: "text/html; charset=utf-8",
            body: page::live(subject, begin),
        },
        "/view" => match subject.walk(&way) {
            Ok(walk) => data(&json!(subject.view(&walk))),
            Err(why) => data(&json!({ "error": why })),
        },
        "/trace" => match subject.walk(&way) {
            Ok(walk) => Reply {
                status: "200 OK",
                kind: "application/json",
                body: subject.file(&walk) + "\n",
            },
            Err(why) => data(&json!({ "error": why })),
        },
        "/find" => match find() {
            Ok(way) => data(&json!({ "way": way })),
            Err(why) => data(&json!({ "error": why })),
        },
        _ => plain("404 Not Found", "there is nothing here"),
    }
}

/// `s=0&p=1.0.2`
fn way(query: &str) -> Option<Way> {
    let mut way = Way::default();
    for part in query.split('&').filter(|p| !p.is_empty()) {
        match part.split_once('=')? {
            ("s", n) => way.start = n.parse().ok()?,
            ("p", "") => {}
            ("p", list) => {
                let choices = list.split('.').map(|n| n.parse().ok());
                way.choices = choices.collect::<Option<Vec<usize>>>()?;
            }
            _ => {}
        }
    }
    Some(way)
}

fn data(value: &serde_json::Value) -> Reply {
    Reply {
        status: "200 OK",
        kind: "application/json",
        body: value.to_string(),
    }
}

fn plain(status: &'static str, text: &str) -> Reply {
    Reply {
        status,
        kind: "text/plain; charset=utf-8",
        body: format!("{text}\n"),
    }
}
