// The page: its state, and what happens when it changes.
"use strict";
(async () => {
  const { byId, ask, panes } = Locum;
  const state = { mode: "rasp", source: "", input: "hello", pane: "heads", name: null, options: {}, u: null, exercise: null };
  const PANES = ["heads", "weights", "values", "counts"], LONGEST = 60000, UNREADABLE = byId("link-note").textContent;

  // Dark and light: the reader's choice, or else the system's.
  const theme = (name) => { document.documentElement.dataset.theme = name; };
  theme(Locum.store.get("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => { const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; theme(next); Locum.store.set("theme", next); });

  const notice = (text) => { byId("notice").textContent = text; byId("notice").hidden = !text; };
  // What is shown belongs to a version of program and input. Any change makes it old at once, and answers
  // to what was asked before are not shown.
  let version = 0, isRight = false;
  const asking = {};
  const old = (names, is) => { for (const pane of names) byId(pane).classList.toggle("stale", is); };
  const reveal = async (pane) => {
    // Of several requests for a pane the last one shows it; an earlier one, given up, does not make it fresh.
    const mine = version, turn = (asking[pane] = (asking[pane] || 0) + 1), isMine = () => mine === version && turn === asking[pane];
    const ask = async (...rest) => { const reply = await Locum.ask(...rest); return isMine() ? reply : null; };
    const work = { heads: () => panes.heads(state, ask), weights: () => Locum.weights.show(state, ask, optionsChanged), values: () => {}, counts: () => panes.counts(state, ask) }[pane];
    old([pane], true);
    await work();
    if (isMine() && isRight) { old([pane], false); Locum.light(Locum.lit); }
  };
  const revealLater = Locum.later(120, () => { if (isRight) reveal(state.pane); });
  // What is typed into a box makes the network old at once; it is compiled when the typing pauses.
  const compileLater = Locum.later(250, () => { if (isRight) reveal("weights"); });
  const optionsChanged = (isTyped) => {
    asking.weights = (asking.weights || 0) + 1;
    old(["weights"], true);
    Locum.forget("compile", "apply");
    remember();
    if (isTyped) compileLater(); else if (isRight) reveal("weights");
  };

  // Every change is run; values, mistakes and the open pane follow.
  const run = async () => {
    const mine = version;
    state.source = Locum.editor.text();
    state.input = byId("input").value;
    performance.mark("locum-asked");
    const result = await ask("run", { source: state.source, input: state.input });
    if (!result || mine !== version) return;
    notice(result.ok ? "" : result.error);
    const shown = result.ok ? result : { statements: [], errors: [], sops: [], input: [] };
    Locum.editor.show(shown);
    if (result.ok) panes.values(result); else byId("values").replaceChildren();
    old(["values"], false);
    if (result.ok) performance.measure("locum-values", "locum-asked");
    const until = result.used ? `used up to line ${result.used}; then` : "not used:";
    byId("input-note").textContent = result.own ? `${until} the program sets its own example, ${result.input.join(" ")}` : "characters, or a list such as [3, 1.5, true]";
    byId("input-note").classList.toggle("bad", Boolean(result.own));
    const choose = byId("name"), last = shown.sops[shown.sops.length - 1];
    isRight = shown.errors.length === 0 && shown.sops.length > 0;
    // A name that a link asks for, or that was chosen before, is kept through a mistake, and not left out without a word.
    if (isRight && state.name !== null && !shown.sops.includes(state.name)) { notice(`there is no s-op ${state.name} in the program: ${last} is shown`); state.name = null; }
    choose.replaceChildren();
    for (const name of shown.sops) Locum.add(choose, "option", name).value = name;
    choose.value = shown.sops.includes(state.name) ? state.name : last || "";
    choose.disabled = Boolean(Locum.saved);
    // With a mistake in the program, the panes keep what they had, paler, and say so.
    byId("stale-note").hidden = isRight;
    byId("stale-note").textContent = !result.ok || shown.errors.length ? "There is a mistake; what is pale was before it." : result.why;
    if (isRight) revealLater();
  };
  const runLater = Locum.later(40, run);
  const changed = () => {
    version++;
    isRight = false;
    old(PANES, true);
    Locum.forget("draw", "compile", "analyse", "apply");
    Locum.editor.fade();
    Locum.exercises.touched();
    runLater();
    remember();
  };

  Locum.editor = Locum.makeEditor(byId("editor"), { changed: () => changed(), hovered: (statements) => Locum.light(statements), readOnly: Boolean(Locum.saved) });
  byId("input").addEventListener("input", changed);
  byId("input").readOnly = Boolean(Locum.saved);
  byId("name").addEventListener("change", () => { state.name = byId("name").value; remember(); if (isRight) reveal(state.pane); });
  const openPane = Locum.tabs(byId("tabs"), (pane) => { state.pane = pane; remember(); if (isRight) reveal(pane); });
  const openMode = Locum.tabs(byId("modes"), (id) => {
    state.mode = id;
    remember();
    for (const tool of ["save-svg", "save-rasp"]) byId(tool).hidden = id === "universal";
    if (id === "universal" && Locum.catalogue) { state.u = state.u || Locum.universal.initial(); Locum.universal.open(state.u, () => remember()); }
  });
  // A box has one line: what has several is written as a list, or as a text in quotes, that is the same input; null if it is none.
  const isTokens = (value) => typeof value === "string" || (Array.isArray(value) && value.length > 0 && value.every((token) => ["string", "number", "boolean"].includes(typeof token)));
  const oneLine = (text) => {
    if (!/[\r\n]/.test(text)) return text;
    let value = null;
    try { value = JSON.parse(text); } catch { /* characters */ }
    if (!/^\s*["[]/.test(text)) return JSON.stringify(text);
    if (isTokens(value)) return text.replace(/[\r\n]/g, " ");
    return /[\p{L}\p{N}]/u.test(text) ? null : JSON.stringify(text); // half a list is no input
  };
  const load = (source, input) => { byId("input").value = oneLine(input); state.name = null; if (Locum.editor.text() !== source) Locum.editor.set(source); changed(); };

  // Links and files.
  const shared = () => ({ source: Locum.editor.text(), input: byId("input").value, pane: state.pane, name: state.name, options: Locum.weights.options(state),
    ...(state.mode === "universal" ? { mode: "universal", u: state.u } : {}), ...(Locum.exercises.current() ? { exercise: Locum.exercises.current() } : {}) });
  const unsharable = () => (state.mode === "universal" ? Locum.universal.problem() : "");
  // A link that is shown is that of what is shown; an embedded page leads to the playground as it stands now.
  const remember = () => { byId("shared").hidden = true; rememberLater(); };
  const rememberLater = Locum.later(300, async () => {
    if (!document.body.classList.contains("embed") || Locum.saved || !Locum.catalogue) return;
    const fragment = await Locum.share.pack(shared());
    byId("whole").href = location.pathname + (fragment || "");
    byId("whole").hidden = fragment === null;
  });
  byId("share").addEventListener("click", async () => {
    if (unsharable()) { notice(unsharable()); return; }
    const fragment = await Locum.share.pack(shared());
    if (fragment === null || fragment.length > LONGEST) { notice("this is too long for a link; try Save, as a program or as one HTML file"); return; }
    history.replaceState(null, "", fragment);
    byId("link").value = location.href;
    byId("shared").hidden = false;
    byId("link").select();
    try { await navigator.clipboard.writeText(location.href); byId("copied").textContent = "copied"; } catch { byId("copied").textContent = ""; }
  });
  const program = () => ({ source: Locum.editor.text(), input: byId("input").value, ...(state.name ? { name: state.name } : {}) });
  const saver = (id, request, use) => byId(id).addEventListener("click", async () => {
    byId("more").open = false;
    if (unsharable()) { notice(unsharable()); return; }
    const [action, fields] = request(), reply = await ask(action, fields, id);
    if (reply) { notice(reply.ok ? "" : reply.error); if (reply.ok) use(reply); }
  });
  saver("save-html", () => (state.mode === "universal" ? ["save_universal", Locum.universal.asked()] : ["save", { ...program(), ...Locum.weights.options(state), pane: state.pane }]), (reply) => Locum.download("playground.html", reply.html, "text/html"));
  saver("save-svg", () => ["draw", { ...program(), svg: true }], (reply) => Locum.download("heads.svg", reply.svg, "image/svg+xml"));
  byId("save-rasp").addEventListener("click", () => { byId("more").open = false; Locum.download("program.rasp", Locum.editor.text(), "text/plain"); });
  byId("more").addEventListener("keydown", (event) => { if (event.key === "Escape") { byId("more").open = false; byId("more").firstElementChild.focus(); } });
  document.addEventListener("pointerdown", (event) => { if (!byId("more").contains(event.target)) byId("more").open = false; });

  // What a link, or a saved page, says about the state. What is not understood is left out, and its names are returned.
  const isText = (value) => typeof value === "string", isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const isMatrix = (rows) => Array.isArray(rows) && rows.length > 0 && rows.length <= Locum.universal.LARGEST && rows.every((row) => Array.isArray(row) && row.length > 0 && row.length <= Locum.universal.LARGEST && row.length === rows[0].length && row.every((entry) => typeof entry === "number"));
  const isU = (u) => isObject(u) && ["X", "A", "V"].every((name) => isMatrix(u[name])) && u.X[0].length === u.A.length && u.A[0].length === u.A.length && u.V.length === u.A.length;
  const adopt = (given) => {
    const odd = [], take = (name, isRight, otherwise) => {
      if (given[name] === undefined || given[name] === null) return otherwise;
      if (isRight(given[name])) return given[name];
      odd.push(name);
      return otherwise;
    };
    for (const name of Object.keys(given)) if (!["source", "input", "pane", "name", "options", "mode", "u", "exercise"].includes(name)) odd.push(name);
    state.options = {};
    for (const [name, value] of Object.entries(take("options", isObject, {}))) {
      if (value === null) continue;
      if (Locum.weights.fields().includes(name) && ["string", "number", "boolean"].includes(typeof value)) state.options[name] = name === "vocabulary" && isText(value) ? oneLine(value) ?? (odd.push("options.vocabulary"), "") : value;
      else odd.push(`options.${name}`);
    }
    byId("weights").replaceChildren();
    state.pane = take("pane", (pane) => PANES.includes(pane), "heads");
    const u = take("u", isU, null), fields = ["X", "A", "V", ...Object.keys(Locum.catalogue.defaults.universal)];
    for (const name of Object.keys(u || {})) if (!fields.includes(name)) odd.push(`u.${name}`);
    state.u = u ? { ...Locum.universal.initial(), ...u, ...(u.base === "e" ? { base: null } : {}) } : null;
    const mode = take("mode", (mode) => mode === "rasp" || (mode === "universal" && u), "rasp");
    const isExercise = (key) => Locum.catalogue.exercises.some((exercise) => exercise.key === key);
    if (!Locum.saved) Locum.exercises.open(take("exercise", isExercise, null), false);
    load(take("source", isText, ""), take("input", (input) => isText(input) && oneLine(input) !== null, "hello"));
    state.name = take("name", isText, null);
    openPane(state.pane);
    openMode(mode);
    return odd;
  };
  if (new URLSearchParams(location.search).has("embed")) document.body.classList.add("embed");
  if (Locum.saved) {
    for (const id of ["share", "save-html", "modes"]) byId(id).hidden = true;
    if (Locum.saved.state.mode === "universal") byId("more").hidden = true;
    document.querySelector(".chooser").hidden = true;
    Locum.catalogue = Locum.saved.catalogue;
    adopt(Locum.saved.state);
    return;
  }
  Locum.catalogue = await ask("catalogue", {});
  if (!Locum.catalogue.ok) { notice(Locum.catalogue.error); Locum.catalogue = null; return; }
  Locum.editor.names(Locum.catalogue.names);
  Locum.exercises.start(load);
  const first = Locum.catalogue.examples[0];
  // Without a link the first example is shown, unless something has been typed already.
  const fromLink = async () => {
    const linked = await Locum.share.unpack(location.hash), typed = Locum.editor.text();
    // What was opened before the page was ready stays open.
    const begun = { source: typed || first.source, input: typed ? byId("input").value || first.input : first.input, pane: state.pane, mode: state.mode, u: state.u || Locum.universal.initial() };
    const odd = adopt(linked || begun), isLink = location.hash.length > 1;
    byId("link-note").textContent = linked ? `Parts of this link are not understood and were left out: ${odd.join(", ")}.` : UNREADABLE;
    byId("link-note").hidden = !isLink || (linked !== null && !odd.length);
  };
  window.addEventListener("hashchange", fromLink);
  await fromLink();
})();
