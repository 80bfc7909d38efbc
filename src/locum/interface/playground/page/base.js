// What every part of the page uses: elements, requests, and the links between statements and what they became.
"use strict";
const Locum = {};

Locum.byId = (id) => document.getElementById(id);

// Append an element; text is always text, never HTML.
Locum.add = (parent, tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (kind) made.className = kind;
  parent.appendChild(made);
  return made;
};
Locum.clear = (element) => { element.replaceChildren(); return element; };
Locum.labelled = (parent, text, element) => {
  const label = Locum.add(parent, "label", text + " ");
  label.appendChild(element);
  return element;
};

// A page that was saved as one file has its answers in it, and no server.
Locum.saved = JSON.parse(Locum.byId("answers").textContent);

// Ask the server; a later request of the same kind makes the earlier one void (its answer is null).
// Where the server is busy it is asked again, a few times.
Locum.pending = {};
const ATTEMPTS = 4, pause = (wait) => new Promise((done) => setTimeout(done, wait));
Locum.ask = async (action, fields, kind = action) => {
  if (Locum.saved) return Locum.saved.answers[action] || { ok: false, error: "this is a saved page: only what was saved with it can be shown" };
  if (Locum.pending[kind]) Locum.pending[kind].abort();
  const control = (Locum.pending[kind] = new AbortController());
  try {
    for (let attempt = 1; ; attempt++) {
      const response = await fetch("answer", {
        method: "POST", headers: { "Content-Type": "application/json" }, signal: control.signal,
        body: JSON.stringify({ action, ...fields }),
      });
      const reply = await response.json();
      if (Locum.pending[kind] !== control) return null;
      if (response.status !== 503 || attempt === ATTEMPTS) return reply;
      await pause(1000 * attempt);
      if (Locum.pending[kind] !== control) return null;
    }
  } catch (error) {
    if (error.name === "AbortError") return null;
    return { ok: false, error: "the playground cannot be reached; is `locum playground` still running?" };
  }
};

// What was asked, and is not wanted any more: its answer is null.
Locum.forget = (...kinds) => { for (const kind of kinds) if (Locum.pending[kind]) { Locum.pending[kind].abort(); delete Locum.pending[kind]; } };

// Statements and what they became light up together: every such element has data-statements="0 2".
Locum.link = (element, statements) => { if (statements && statements.length) element.dataset.statements = statements.join(" "); return element; };
Locum.lit = new Set();
Locum.light = (statements) => {
  const lit = (Locum.lit = new Set(statements));
  for (const element of document.querySelectorAll("[data-statements]"))
    element.classList.toggle("lit", element.dataset.statements.split(" ").some((n) => lit.has(Number(n))));
  if (Locum.editor) Locum.editor.light(lit);
};
const lightOf = (event) => {
  const element = event.target.closest && event.target.closest("[data-statements]");
  if (element) Locum.light(element.dataset.statements.split(" ").map(Number));
  else if (event.type !== "pointerover" || !event.target.closest("#editor")) Locum.light([]);
};
document.addEventListener("pointerover", lightOf);
document.addEventListener("focusin", lightOf);

Locum.later = (wait, work) => { let timer; return (...rest) => { clearTimeout(timer); timer = setTimeout(() => work(...rest), wait); }; };
Locum.number = (value) => {
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value).replaceAll("-", "−");
  const size = Math.abs(value);
  return (size !== 0 && (size >= 1e5 || size < 1e-3) ? value.toExponential(1) : String(Number(value.toPrecision(4)))).replaceAll("-", "−");
};
// A decimal as it is typed: no words, no hexadecimals. Its digits and exponent, without zeros at the ends, say which one it is.
const DECIMAL = /^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[-+]?[0-9]+)?$/i;
Locum.isPlain = (text) => DECIMAL.test(text) && Number.isFinite(Number(text));
const decimal = (text) => {
  const [mantissa, exponent = "0"] = text.toLowerCase().replace(/^[-+]/, "").split("e"), [whole, part = ""] = mantissa.split(".");
  const digits = (whole + part).replace(/^0+/, ""), kept = digits.replace(/0+$/, "");
  return kept === "" ? "0" : `${kept}e${Number(exponent) - part.length + digits.length - kept.length}`;
};
// The number that a text is; null if it is none, or has digits that a number would drop: 0.99999999999999999, 1e-400.
Locum.numberOf = (text) => (Locum.isPlain(text) && decimal(text) === decimal(String(Number(text))) ? Number(text) : null);
// A bound with few digits, and never below what it is.
Locum.atMost = (value, digits) => {
  const text = value.toExponential(digits), [mantissa, exponent] = text.split("e");
  return Number(text) >= value ? text : Number(`${(Number(mantissa) + 10 ** -digits).toFixed(digits)}e${exponent}`).toExponential(digits);
};
Locum.store = {
  get: (key) => { try { return localStorage.getItem("locum " + key); } catch { return null; } },
  set: (key, value) => { try { localStorage.setItem("locum " + key, value); } catch { /* storage may be forbidden */ } },
};
Locum.download = (name, text, type) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};
// A button that asks for the certificate of a proof, and downloads it; `locum prove check` goes through it again.
Locum.certificate = (button, text, action, fields, name, problem = () => "") => {
  button.addEventListener("click", async () => {
    const reply = problem() ? { ok: false, error: problem() } : await Locum.ask(action, { ...fields(), certificate: true }, name + " certificate");
    if (!reply) return;
    text.hidden = false;
    text.textContent = reply.ok ? `${reply.text}\nlocum prove check certificate.json goes through it again.` : reply.error;
    if (reply.ok) Locum.download("certificate.json", reply.certificate, "application/json");
  });
  return button;
};
// Tabs as the keyboard expects them: arrows move, one of them is in the order of Tab.
Locum.tabs = (list, choose) => {
  const tabs = [...list.querySelectorAll('[role="tab"]')];
  const select = (tab, focus) => {
    for (const other of tabs) {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
      Locum.byId(other.getAttribute("aria-controls")).hidden = other !== tab;
    }
    if (focus) tab.focus();
    choose(tab.getAttribute("aria-controls"));
  };
  for (const [number, tab] of tabs.entries()) {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) select(tabs[(number + step + tabs.length) % tabs.length], true);
    });
  }
  return (name) => select(tabs.find((tab) => tab.getAttribute("aria-controls") === name) || tabs[0]);
};
