// Functions for all parts of the page: elements, requests, and links between statements and the parts that belong to them.
"use strict";
const Locum = {};

Locum.byId = (id) => document.getElementById(id);

// Append an element; text is always text, never HTML.
Locum.add = (parent, tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (kind) made.className = kind;
  if (tag === "pre") made.tabIndex = 0; // long text can be scrolled with the keyboard
  parent.appendChild(made);
  return made;
};
Locum.clear = (element) => { element.replaceChildren(); return element; };
Locum.labelled = (parent, text, element) => {
  const label = Locum.add(parent, "label", text + " ");
  label.appendChild(element);
  return element;
};

// Send one request, and return the answer.
Locum.send = async (request, signal) => {
  const response = await fetch("answer", { method: "POST", headers: { "Content-Type": "application/json" }, signal, body: JSON.stringify(request) });
  return response.json();
};

// Send a request to the server. A later request of the same kind cancels the earlier request, whose answer is
// then null. An answer with `server` reports a problem of the server, not of the request.
Locum.pending = {};
const SLOW = 500;
const slow = new Set();
const isSlow = (control, is) => { if (is) slow.add(control); else slow.delete(control); Locum.byId("waiting").hidden = slow.size === 0; };
Locum.ask = async (action, fields, kind = action) => {
  if (Locum.pending[kind]) Locum.pending[kind].abort();
  const control = (Locum.pending[kind] = new AbortController()), isMine = () => Locum.pending[kind] === control;
  const timer = setTimeout(() => { if (isMine()) isSlow(control, true); }, SLOW);
  control.signal.addEventListener("abort", () => isSlow(control, false));
  try {
    const reply = await Locum.send({ action, ...fields }, control.signal);
    return isMine() ? reply : null;
  } catch (error) {
    if (error.name === "AbortError" || !isMine()) return null;
    return { ok: false, error: "The server cannot be reached. Is `locum playground` still running?", server: true };
  } finally {
    clearTimeout(timer);
    isSlow(control, false);
    if (isMine()) delete Locum.pending[kind];
  }
};

// Cancel requests whose answers are no longer needed; their answers are null.
Locum.forget = (...kinds) => { for (const kind of kinds) if (Locum.pending[kind]) { Locum.pending[kind].abort(); delete Locum.pending[kind]; } };

// A statement and the elements that belong to it are highlighted together: such an element has data-statements="0 2".
// Each statement has a colour, and an element has a bar in the colour of its last statement.
const COLOURS = 8;
Locum.link = (element, statements) => {
  if (statements && statements.length) {
    element.dataset.statements = statements.join(" ");
    element.dataset.colour = String(statements[statements.length - 1] % COLOURS);
  }
  return element;
};
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
// A typed decimal, without words or hexadecimal numbers. Its digits and exponent, without leading and trailing zeros, identify it.
const DECIMAL = /^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[-+]?[0-9]+)?$/i;
Locum.isPlain = (text) => DECIMAL.test(text) && Number.isFinite(Number(text));
const decimal = (text) => {
  const [mantissa, exponent = "0"] = text.toLowerCase().replace(/^[-+]/, "").split("e"), [whole, part = ""] = mantissa.split(".");
  const digits = (whole + part).replace(/^0+/, ""), kept = digits.replace(/0+$/, "");
  return kept === "" ? "0" : `${kept}e${Number(exponent) - part.length + digits.length - kept.length}`;
};
// The number that a text denotes; null if the text is not a number, or if a float would lose digits: 0.99999999999999999, 1e-400.
Locum.numberOf = (text) => (Locum.isPlain(text) && decimal(text) === decimal(String(Number(text))) ? Number(text) : null);
// A bound with few digits, rounded up.
Locum.atMost = (value, digits) => {
  const text = value.toExponential(digits), [mantissa, exponent] = text.split("e");
  return Number(text) >= value ? text : Number(`${(Number(mantissa) + 10 ** -digits).toFixed(digits)}e${exponent}`).toExponential(digits);
};
Locum.store = {
  get: (key) => { try { return localStorage.getItem("locum " + key); } catch { return null; } },
  set: (key, value) => { try { localStorage.setItem("locum " + key, value); } catch { /* storage may be disabled */ } },
};
// Tabs with keyboard support: arrow keys select a tab, and only the selected tab is in the tab order.
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
