// Keys, saving without a new page, drag and drop, live figures. Every page works without this script.
"use strict";
(() => {
  const words = document.body.dataset;
  const status = document.getElementById("status");
  const main = document.getElementById("main");
  let isSending = false;
  let clearing = 0;

  // the token of a link is in the cookie now: keep it out of the address bar and of the history of the tab
  if (location.pathname === "/enter") history.replaceState(null, "", "/enter");

  function say(text, seconds) {
    clearTimeout(clearing);
    status.textContent = text || "";
    if (text && seconds) clearing = setTimeout(() => { status.textContent = ""; }, 1000 * seconds);
  }

  const pause = (seconds) => new Promise((done) => {
    const timer = setTimeout(done, 1000 * seconds);
    addEventListener("online", () => { clearTimeout(timer); done(); }, { once: true });
  });

  const shape = (date) => ({
    month: "short", day: "numeric", hour: "numeric", minute: "2-digit",
    ...(date.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" }),
  });

  function localTimes(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const date = new Date(time.dateTime);
      if (!isNaN(date)) time.textContent = date.toLocaleString(undefined, shape(date));
    }
  }

  function show(html) {
    const page = new DOMParser().parseFromString(html, "text/html");
    const before = (main.querySelector("h1") || {}).textContent;
    const kept = [...main.querySelectorAll("[data-keep]:is(:checked, [open])")].map((one) => one.id);
    main.replaceChildren(...page.body.childNodes);
    for (const id of kept) { const box = document.getElementById(id); if (box) box[box.matches("details") ? "open" : "checked"] = true; }
    localTimes(main);
    offerKeys();
    const title = main.querySelector("h1");
    const next = main.querySelector("[data-done]") || main.querySelector("[data-current]");
    if (next && title.textContent === before) return focusOn(next);
    if (title) title.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  function focusOn(item) {
    item.focus({ preventScroll: true });
    item.scrollIntoView({ block: "nearest" });
  }

  // The list of keys is made from the buttons of the page, so that it cannot be out of date.
  const opener = document.getElementById("keys-open") || { hidden: true };
  const names = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": "␣" };

  function offerKeys() {
    opener.hidden = !main.querySelector("[data-key]");
  }

  function showKeys() {
    const dialog = document.getElementById("keys");
    const lines = new Map();
    for (const button of main.querySelectorAll("[data-key]")) {
      const label = button.labels && button.labels[0] || button.closest("label") || button;
      const copy = label.cloneNode(true);
      for (const one of copy.querySelectorAll("kbd, .hidden")) one.remove();
      const keys = button.dataset.key.split(" ").map((key) => names[key] || (key.length === 1 ? key.toUpperCase() : key)).join(" ");
      if (!lines.has(keys)) lines.set(keys, (button.ariaLabel || copy.textContent).trim().replace(/\s+/g, " "));
    }
    if (main.querySelector("[data-item]")) lines.set("↑ ↓", words.move);
    lines.set("?", words.help);
    dialog.querySelector("dl").replaceChildren(...[...lines].map(([keys, text]) => {
      const row = document.createElement("div");
      const name = document.createElement("dt");
      const does = document.createElement("dd");
      for (const key of keys.split(" ")) { const mark = document.createElement("kbd"); mark.textContent = key; name.append(mark); }
      does.textContent = text;
      row.append(name, does);
      return row;
    }));
    dialog.showModal();
  }
  if (opener.addEventListener) {
    opener.addEventListener("click", showKeys);
    document.querySelector("#keys button").addEventListener("click", () => document.getElementById("keys").close());
  }

  // An answer is sent until the server confirms it. The id in the form makes repetitions harmless.
  async function send(form, button) {
    if (isSending) return;
    isSending = true;
    // buttons are named "action", which hides form.action
    const body = new URLSearchParams(new FormData(form));
    if (button && button.name) body.set(button.name, button.value);
    for (const one of main.querySelectorAll("[data-answer] button")) one.disabled = true;
    const slow = setTimeout(() => say(words.sending), 400);
    for (let tries = 0; ; tries++) {
      try {
        const answer = await fetch(form.getAttribute("action"), { method: "POST", body, headers: { "X-Corank": "1" } });
        if (answer.status >= 500 && answer.status !== 500) throw new Error(String(answer.status));
        const html = await answer.text();
        clearTimeout(slow);
        say("");
        show(html);
        if (location.search) history.replaceState(null, "", location.pathname);
        break;
      } catch {
        clearTimeout(slow);
        say(words.waiting);
        await pause(Math.min(2 ** tries, 15));
      }
    }
    isSending = false;
  }

  function reveal(element) {
    for (let one = element; one; one = one.parentElement) if (one.matches("details")) one.open = true;
  }

  function revealTarget() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target) { reveal(target); target.scrollIntoView(); target.focus({ preventScroll: true }); }
  }
  addEventListener("hashchange", revealTarget);

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent) { event.preventDefault(); return; }
    if (form.matches("[data-answer]")) {
      event.preventDefault();
      send(form, event.submitter);
    } else if (form.matches("[data-drop]")) {
      say(words.uploading);
      form.dataset.sent = "1"; // a second click must not make a second project
    }
  });

  addEventListener("beforeunload", (event) => { if (isSending) event.preventDefault(); });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input:not([type=radio]):not([type=checkbox]), textarea, select, summary, [contenteditable]")) {
      const isDone = event.key === "Enter" && event.target.matches("[data-answer] input");
      if (isDone) event.preventDefault(); // it would press the first button
      if (isDone || event.key === "Escape") event.target.blur();
      return;
    }
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const current = main.querySelector("[data-current]");
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (current && step) {
      const items = [...main.querySelectorAll("[data-item]")];
      const at = items.indexOf(current) + (current.contains(document.activeElement) ? step : 0);
      event.preventDefault();
      if (items[at]) focusOn(items[at]);
      return;
    }
    if (key === "?" && !opener.hidden) { event.preventDefault(); showKeys(); return; }
    for (const button of main.querySelectorAll("[data-key]")) {
      const item = button.closest("[data-item]");
      if ((!item || item === current) && button.dataset.key.split(" ").includes(key)) {
        event.preventDefault();
        if (button.matches("input:not([type=checkbox])")) { reveal(button); button.focus(); }
        else if (!button.disabled) button.click();
        return;
      }
    }
  });

  document.addEventListener("focusin", (event) => {
    const item = event.target.closest("[data-item]");
    for (const one of item ? main.querySelectorAll("[data-current]") : []) one.removeAttribute("data-current");
    if (item) item.setAttribute("data-current", "");
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const field = document.getElementById(button.dataset.copy);
    field.select();
    try { await navigator.clipboard.writeText(field.value); } catch { document.execCommand("copy"); }
    say(words.copied, 3);
  });

  for (const form of document.querySelectorAll("[data-drop]")) {
    const input = form.querySelector("input[type=file]");
    for (const kind of ["dragenter", "dragover"]) {
      form.addEventListener(kind, (event) => { event.preventDefault(); form.classList.add("over"); });
    }
    for (const kind of ["dragleave", "drop"]) {
      form.addEventListener(kind, () => form.classList.remove("over"));
    }
    if (input.matches("[data-at-once]")) {
      for (const one of form.querySelectorAll("[data-unscripted]")) one.hidden = true;
      input.addEventListener("change", () => { if (input.files.length) form.requestSubmit(); });
    }
    addEventListener("pageshow", () => { delete form.dataset.sent; });
    form.addEventListener("drop", (event) => {
      event.preventDefault();
      if (!event.dataTransfer.files.length) return;
      input.files = event.dataTransfer.files;
      form.requestSubmit();
    });
  }
  // a file that misses the target must not replace the page
  for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());

  const live = document.querySelector("[data-live]");
  if (live) {
    let before = live.innerHTML;
    setInterval(async () => {
      if (document.hidden || live.contains(document.activeElement)) return;
      try {
        const answer = await fetch(live.dataset.live);
        if (answer.redirected) { location.assign(answer.url); return; }
        if (!answer.ok) { if (live.dataset.every) location.reload(); return; }
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.querySelector("[data-live]");
        if (!fresh || fresh.innerHTML === before) return;
        before = fresh.innerHTML;
        const open = [...live.querySelectorAll("details")].map((one) => one.open);
        live.replaceChildren(...fresh.childNodes);
        live.querySelectorAll("details").forEach((one, at) => { one.open = open[at] || false; });
        localTimes(live);
      } catch { /* the next round tries again */ }
    }, 1000 * (live.dataset.every || 5));
  }

  for (const one of document.querySelectorAll("[data-scripted]")) one.hidden = false;
  localTimes(document);
  offerKeys();
  revealTarget();
  const title = main.querySelector(location.search ? "[data-current]" : "h1") || main.querySelector("h1[tabindex]");
  if (title && title.matches("[tabindex]") && main.querySelector("[data-answer]")) title.focus({ preventScroll: true });
})();
