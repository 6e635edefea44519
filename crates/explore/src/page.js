"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const live = data.views === null;
  document.body.classList.toggle("file", !live);
  // Errors are counted where a test can see them.
  let errors = 0;
  const complain = (text) => { errors += 1; document.body.dataset.errors = String(errors); say(text, true); };
  document.body.dataset.errors = "0";
  window.addEventListener("error", (e) => complain(String(e.message)));
  window.addEventListener("unhandledrejection", (e) => complain(String(e.reason)));

  // The whole way that is known, and how far along we are.
  let way = data.way.choices.slice();
  let start = data.way.start;
  let at = live ? way.length : 0;
  let view = null;
  let chosen = 0;

  const make = (tag, className, text) => {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const say = (text, bad) => { const n = element("note"); n.textContent = text; n.classList.toggle("bad", !!bad); };
  const address = () => `s=${start}&p=${way.slice(0, at).join(".")}`;
  const line = (n) => (n > 0 ? ` :${n}` : "");

  async function load() {
    if (live) {
      const reply = await fetch(`/view?${address()}`);
      const got = await reply.json();
      if (got.error) { say(got.error, true); return; }
      view = got;
      way.splice(0, at, ...view.way.choices);
      at = view.way.choices.length;
    } else {
      view = data.views[at];
    }
    chosen = 0;
    draw();
  }

  function draw() {
    element("title").textContent = `${data.name} under ${data.model}`;
    element("where").textContent = `${at} / ${way.length}`;
    for (const id of ["first", "back"]) element(id).disabled = at === 0;
    for (const id of ["forward", "last"]) element(id).disabled = at >= way.length;
    drawState();
    drawChoices();
    drawHistory();
    drawSource();
    // Coming back to the address comes back to this state.
    if (live) history.replaceState(null, "", `#${address()}`);
    document.body.dataset.step = String(at);
  }

  // The whole run that is known here: its last state has its events and what is to be said of them.
  const whole = () => (live ? view : data.views[data.views.length - 1]);
  const happened = () => whole().history;
  // The pair that *why* speaks of, once both have happened.
  const told = () => whole().overtakings.find((o) => o.later < at);

  function drawState() {
    const box = element("state");
    const threads = make("div", "threads");
    const last = at > 0 ? happened()[at - 1] : null;
    view.threads.forEach((t, i) => {
      const card = make("div", "thread" + (last && last.thread === i ? " acted" : ""));
      card.append(make("h2", "", t.name));
      const place = t.ended ? "ended" : (t.labels.length ? `at ${t.labels.join(", ")}` : "at") + line(t.line);
      card.append(make("div", "where", place));
      card.append(make("div", "registers", t.registers.map((r) => `${r.name} = ${r.value}`).join("  ") || " "));
      const buffer = make("div", "buffer");
      buffer.append(make("span", "small", "buffer"));
      t.buffer.slice().reverse().forEach((e) => buffer.append(make("span", "entry", `${e.name}=${e.value}`)));
      buffer.append(make("span", "small", t.buffer.length ? "→ memory" : "empty"));
      card.append(buffer);
      threads.append(card);
    });
    const memory = make("div", "memory");
    memory.append(make("span", "small", "memory"));
    view.memory.forEach((c) => memory.append(make("span", "cell" + (c.changed ? " changed" : ""), `${c.name}=${c.value}`)));
    box.replaceChildren(threads, memory);
    view.shows.forEach((q) => box.append(make("div", "answers", `this state ${data.properties[q].startsWith("reachable") ? "shows" : "violates"}: ${data.properties[q]}`)));
    if (view.end) box.append(make("div", "", view.end));
    if (view.why.length) {
      const why = make("div", "why");
      why.append(make("b", "", "why "), view.why.join(" "));
      box.append(why);
    }
  }

  function drawChoices() {
    const list = make("ol");
    view.next.forEach((e, i) => {
      const item = make("li", (i === chosen ? "chosen " : "") + (e.drain ? "drain" : ""));
      item.tabIndex = 0;
      item.append(make("span", "key", i < 9 ? String(i + 1) : ""));
      item.append(`${view.threads[e.thread].name}  ${e.text}${line(e.line)}`);
      item.addEventListener("click", () => take(i));
      list.append(item);
    });
    element("choices").replaceChildren(make("h2", "", "what can happen"), list);
  }

  function drawHistory() {
    const list = make("ol");
    const events = happened();
    const pair = told();
    events.forEach((e, i) => {
      const mine = pair && (i === pair.store || i === pair.later);
      const item = make("li", (i + 1 === at ? "now " : "") + (e.drain ? "drain " : "") + (mine ? "pair" : ""));
      item.tabIndex = 0;
      item.append(make("span", "key", String(i + 1)));
      item.append(` ${view.threads[e.thread].name}  ${e.text}${line(e.line)}`);
      if (mine) item.append(make("span", "tag", i === pair.store ? `overtaken by ${pair.later + 1}` : `overtook ${pair.store + 1}`));
      item.addEventListener("click", () => go(i + 1));
      list.append(item);
    });
    element("history").replaceChildren(make("h2", "", "what happened"), list);
    const now = list.querySelector(".now");
    if (now) now.scrollIntoView({ block: "nearest" });
  }

  function drawSource() {
    const pre = make("pre");
    const standing = new Map();
    const pair = view.why.length ? told() : null;
    const fence = pair ? pair.fence : null;
    view.threads.forEach((t) => {
      if (!t.ended && t.line > 0) standing.set(t.line, [...(standing.get(t.line) || []), t.name]);
    });
    data.source.split("\n").forEach((text, i) => {
      const who = standing.get(i + 1);
      const row = make("span", who ? "lit" : "");
      row.append(make("span", "who", who ? who.join(",") : ""), make("span", "number", String(i + 1)), text || " ");
      row.style.display = "block";
      pre.append(row);
      if (fence === i + 1) {
        const put = make("span", "fence");
        put.append(make("span", "who", ""), make("span", "number", "+"), `${text.match(/^\s*/)[0]}a fence here stops this run`);
        pre.append(put);
      }
    });
    element("source").replaceChildren(pre);
  }

  async function take(i) {
    if (!live || i < 0 || i >= view.next.length) return;
    if (way[at] !== i) way = way.slice(0, at).concat([i]);
    at += 1;
    say("");
    await load();
  }
  async function go(n) {
    const to = Math.max(0, Math.min(n, way.length));
    if (to === at) return;
    at = to;
    say("");
    await load();
  }
  async function find() {
    if (!live) return;
    say("looking for a run that violates a property …");
    const got = await (await fetch("/find")).json();
    if (got.error) { say(got.error); return; }
    start = got.way.start;
    way = got.way.choices;
    at = way.length;
    await load();
    say("a run that violates a property; ← and → walk through it");
  }
  async function save() {
    if (!live) return;
    const text = await (await fetch(`/trace?${address()}`)).text();
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "run.json";
    link.click();
    URL.revokeObjectURL(link.href);
    say("saved as run.json; `wattle explore --trace run.json` comes back here");
  }
  const keys = () => say("1–9 let that happen · j k choose · Enter take · u ← back · → forward · Home End · f find a run · s save · ? this");

  const actions = {
    ArrowLeft: () => go(at - 1), u: () => go(at - 1), Backspace: () => go(at - 1),
    ArrowRight: () => go(at + 1), Home: () => go(0), End: () => go(way.length),
    f: find, s: save, "?": keys,
    j: () => { chosen = Math.min(chosen + 1, Math.max(0, view.next.length - 1)); drawChoices(); },
    k: () => { chosen = Math.max(chosen - 1, 0); drawChoices(); },
    Enter: () => take(chosen),
  };
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !view) return;
    if (e.key === "Enter" && e.target.tagName === "BUTTON") return;
    if (e.key === "Enter" && e.target.tagName === "LI") { e.target.click(); e.preventDefault(); return; }
    const digit = /^[1-9]$/.test(e.key) ? Number(e.key) - 1 : -1;
    const action = digit >= 0 ? () => take(digit) : actions[e.key];
    if (action) { e.preventDefault(); Promise.resolve(action()).catch((why) => complain(String(why))); }
  });
  element("first").addEventListener("click", () => go(0));
  element("back").addEventListener("click", () => go(at - 1));
  element("forward").addEventListener("click", () => go(at + 1));
  element("last").addEventListener("click", () => go(way.length));
  element("find").addEventListener("click", find);
  element("save").addEventListener("click", save);
  element("help").addEventListener("click", keys);

  const asked = new URLSearchParams(location.hash.slice(1));
  if (live && asked.has("p")) {
    start = Number(asked.get("s")) || 0;
    way = asked.get("p").split(".").filter((n) => n !== "").map(Number);
    at = way.length;
    load().catch((why) => complain(String(why)));
  } else if (live && data.first) {
    view = data.first;
    draw();
  } else {
    load().catch((why) => complain(String(why)));
  }
})();
