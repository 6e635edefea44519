//! Walking by hand: in the terminal with a script of commands, on the page with a real browser.

use crate::support::{Scratch, ran, root, run, wattle};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SB: &str = "shared x, y;
thread p { local r; x = 1; r = y; }
thread q { local s; y = 1; s = x; }
finally !(p.r == 0 && q.s == 0);
";

fn terminal(arguments: &[&str], script: &str) -> String {
    let mut child = wattle()
        .arg("explore")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(script.as_bytes())
        .expect("it reads");
    let r = ran(child.wait_with_output());
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    r.out
}

#[test]
fn a_walk_in_the_terminal() {
    let s = Scratch::new();
    let (file, kept) = (s.file("sb.wtl", SB), s.path("run.json"));
    // p stores; then there is a store to drain. Undo, do again, find the violation, keep it.
    let out = terminal(&[&file], &format!("1\nu\nn\ns\ng 0\nf\nw {kept}\nq\n"));
    assert!(out.contains("step 1: p x = 1 :2"), "{out}");
    assert!(out.contains("[x=1]"), "{out}");
    assert!(out.contains("drain x = 1"), "{out}");
    assert!(out.contains("p    2 thread p"), "{out}");
    assert!(out.contains("this state violates: finally"), "{out}");
    assert!(out.contains("  why  p step "), "{out}");
    // What was kept is a trace like any other, and comes back.
    assert_eq!(run(&["replay", &file, &kept]).code, 0);
    let out = terminal(&[&file, "--trace", &kept], "q\n");
    assert!(out.contains("this state violates: finally"), "{out}");
    // So is one that shows nothing, and it says so.
    terminal(&[&file], &format!("1\n1\nw {kept}\nq\n"));
    let r = run(&["replay", &file, &kept]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(
        r.out.contains("shows nothing about a property"),
        "{}",
        r.out
    );
    let page = s.path("run.html");
    assert_eq!(run(&["replay", &file, &kept, "--html", &page]).code, 0);
    assert_eq!(run(&["replay", &file, &kept, "--json"]).code, 0);
    let drawn = run(&["show", &file, "--as", "svg", "--trace", &kept]);
    assert_eq!(drawn.code, 0, "{}", drawn.err);
    let out = terminal(&[&file, "--trace", &kept], "h\nq\n");
    assert!(out.contains("step 2: "), "{out}");
    assert!(out.contains("keep this run"), "{out}");
    let help = out.lines().filter(|l| !l.contains("for help"));
    assert!(help.into_iter().all(|l| l.chars().count() <= 78), "{out}");
    let out = terminal(&[&file], "99\nnonsense\n");
    assert!(
        out.contains("there are 2 choices") && out.contains("is no command"),
        "{out}"
    );
}

/// The page's server, ended when dropped.
struct Web {
    child: Child,
    port: u16,
}

impl Web {
    fn new(file: &str) -> Self {
        let mut child = wattle()
            .args(["explore", file, "--web"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out)
            .read_line(&mut line)
            .expect("an address");
        let port = line.trim().trim_end_matches('/').rsplit(':').next();
        let port = port
            .and_then(|p| p.parse().ok())
            .unwrap_or_else(|| panic!("{line}"));
        Web { child, port }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request; the body of the answer.
fn http(port: u16, method: &str, path: &str, host: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a timeout");
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .expect("it reads");
    // Not everybody hangs up: the length says where the answer ends.
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    (head, String::from_utf8_lossy(&body).into_owned())
}

#[test]
fn the_server_answers_this_machine_only() {
    let s = Scratch::new();
    let web = Web::new(&s.file("sb.wtl", SB));
    let ours = format!("127.0.0.1:{}", web.port);
    let get = |path: &str, host: &str| http(web.port, "GET", path, host, "");
    let (head, page) = get("/", &ours);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("default-src 'none'"), "{head}");
    // Nothing is fetched from anywhere else.
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "{page}"
    );
    let (_, view) = get("/view?s=0&p=0", &ours);
    let view: Value = serde_json::from_str(&view).expect("JSON");
    assert_eq!(view["threads"][0]["buffer"][0]["name"], "x", "{view:#}");
    let (head, _) = get("/", "evil.example");
    assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    for (path, code) in [("/view?p=x", "400"), ("/nothing", "404")] {
        assert!(get(path, &ours).0.contains(code), "{path}");
    }
    let (head, _) = http(web.port, "POST", "/", &ours, "");
    assert!(head.contains("405"), "{head}");
    let (_, found) = get("/find", &ours);
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert!(
        found["way"]["choices"]
            .as_array()
            .is_some_and(|c| c.len() >= 4),
        "{found:#}"
    );
}

/// A browser, driven through its WebDriver; gone when dropped.
struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Where it keeps what it keeps.
    _profile: Scratch,
}

impl Browser {
    /// None if there is no browser here.
    fn new() -> Option<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .ok()?
            .local_addr()
            .ok()?
            .port();
        let driver = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let profile = Scratch::new();
        let kept = format!("--user-data-dir={}", profile.path("profile"));
        let mut browser = Browser {
            driver,
            port,
            session: String::new(),
            _profile: profile,
        };
        let until = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--window-size=1200,900",
            &kept,
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": { "browser": "ALL" },
            "goog:chromeOptions": { "args": arguments },
        } } });
        let made = browser.ask("POST", "/session", &wanted);
        browser.session = made["value"]["sessionId"].as_str()?.to_string();
        Some(browser)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let host = format!("127.0.0.1:{}", self.port);
        let body = if method == "GET" {
            String::new()
        } else {
            body.to_string()
        };
        let (_, reply) = http(self.port, method, path, &host, &body);
        serde_json::from_str(&reply).unwrap_or(Value::Null)
    }

    fn post(&self, command: &str, body: &Value) -> Value {
        self.ask(
            "POST",
            &format!("/session/{}/{command}", self.session),
            body,
        )
    }

    fn open(&self, address: &str) {
        self.post("url", &json!({ "url": address }));
    }

    fn script(&self, text: &str) -> Value {
        self.post("execute/sync", &json!({ "script": text, "args": [] }))["value"].clone()
    }

    fn keys(&self, keys: &[&str]) {
        let press = |k: &&str| {
            [
                json!({ "type": "keyDown", "value": k }),
                json!({ "type": "keyUp", "value": k }),
            ]
        };
        let actions: Vec<Value> = keys.iter().flat_map(press).collect();
        self.post(
            "actions",
            &json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }),
        );
    }

    /// Waits until a script says true.
    fn until(&self, script: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        while self.script(script) != Value::Bool(true) {
            let page = self.script("return document.body.innerText");
            assert!(Instant::now() < until, "never: {script}\n{page}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Fails if anything went wrong on the page.
    fn is_clean(&self) {
        assert_eq!(self.script("return document.body.dataset.errors"), "0");
        let log = self.post("se/log", &json!({ "type": "browser" }));
        let severe =
            |e: &&Value| e["level"] == "SEVERE" && !e["message"].to_string().contains("favicon");
        let bad: Vec<&Value> = log["value"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(severe)
            .collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            self.ask("DELETE", &format!("/session/{}", self.session), &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

#[test]
fn the_page_in_a_browser() {
    let Some(browser) = Browser::new() else {
        println!("skipped: there is no chromedriver (Debian: chromium, chromium-driver)");
        return;
    };
    let web = Web::new(&root().join("examples/peterson.wtl").display().to_string());
    browser.open(&format!("http://127.0.0.1:{}/", web.port));
    browser.until("return document.body.dataset.step === '0'");
    // The first choice by key: a store, which is drawn in its buffer and not in memory.
    browser.keys(&["1"]);
    browser.until("return document.body.dataset.step === '1'");
    browser.until("return document.querySelectorAll('.entry').length === 1");
    browser.until("return document.querySelectorAll('pre .lit').length >= 1");
    // The address is that of the state.
    browser.until("return location.hash === '#s=0&p=0'");
    browser.post("refresh", &json!({}));
    browser.until("return document.body.dataset.step === '1'");
    browser.keys(&["u"]);
    browser.until("return document.body.dataset.step === '0'");
    // A found run, its end, and back through it.
    browser.keys(&["f"]);
    browser.until("return document.querySelector('.answers') !== null");
    // What overtook what is lit, and where the fence goes.
    browser.until("return document.querySelectorAll('li.pair').length === 2");
    browser.until("return document.querySelector('pre .fence').innerText.includes('a fence here')");
    browser.until("return document.querySelector('.why').innerText.includes('overtook step')");
    let steps = browser.script("return document.body.dataset.step");
    browser.keys(&["\u{e012}"]);
    let one_back = format!(
        "return document.body.dataset.step === String({} - 1)",
        steps.as_str().unwrap_or("0")
    );
    browser.until(&one_back);
    browser.keys(&["\u{e011}"]);
    browser.until("return document.body.dataset.step === '0'");
    // By mouse as well.
    browser.script("document.getElementById('forward').click()");
    browser.until("return document.body.dataset.step === '1'");
    // On a telephone nothing is wider than the screen.
    browser.post("window/rect", &json!({ "width": 500, "height": 900 }));
    browser.until("return document.documentElement.scrollWidth <= innerWidth");
    browser.is_clean();
}

#[test]
fn a_run_in_one_file() {
    let s = Scratch::new();
    let (file, trace, page) = (s.file("sb.wtl", SB), s.path("run.json"), s.path("run.html"));
    assert_eq!(run(&["check", &file, "--trace", &trace]).code, 1);
    let r = run(&["replay", &file, &trace, "--html", &page]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let text = std::fs::read_to_string(&page).expect("the page");
    assert!(!text.contains("http://") && !text.contains("https://"));
    assert!(text.contains("overtook step"), "the why is there");
    let Some(browser) = Browser::new() else {
        println!("skipped: there is no chromedriver (Debian: chromium, chromium-driver)");
        return;
    };
    browser.open(&format!("file://{page}"));
    browser.until("return document.body.dataset.step === '0'");
    browser.script("document.getElementById('forward').click()");
    browser.until("return document.body.dataset.step === '1'");
    browser.keys(&["\u{e010}"]);
    browser.until("return document.querySelector('.answers') !== null");
    browser.until("return document.querySelector('.why') !== null");
    browser.is_clean();
}
