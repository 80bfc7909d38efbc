// The page: its state, and the reactions to changes.
"use strict";
(async () => {
  const { byId, ask, panes } = Locum;
  const state = { mode: "rasp", source: "", input: "hello", pane: "heads", name: null, options: {}, u: null, exercise: null };
  const PANES = ["heads", "weights", "values", "counts"], UNREADABLE = byId("link-note").textContent;

  // Dark or light theme: chosen by the user, or otherwise by the system.
  const theme = (name) => { document.documentElement.dataset.theme = name; };
  theme(Locum.store.get("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => { const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; theme(next); Locum.store.set("theme", next); });

  const notice = (text) => { byId("notice").textContent = text; byId("notice").hidden = !text; };
  // Results belong to a version of program and input. Any change marks them as outdated at once, and answers
  // to earlier requests are not shown.
  let version = 0, isRight = false, hasResults = false;
  const asking = {};
  const old = (names, is) => { for (const pane of names) byId(pane).classList.toggle("stale", is); };
  const reveal = async (pane) => {
    // Of several requests for a pane, only the last request updates the pane.
    const mine = version, turn = (asking[pane] = (asking[pane] || 0) + 1), isMine = () => mine === version && turn === asking[pane];
    const ask = async (...rest) => { const reply = await Locum.ask(...rest); return isMine() ? reply : null; };
    const work = { heads: () => panes.heads(state, ask), weights: () => Locum.weights.show(state, ask, optionsChanged), values: () => {}, counts: () => panes.counts(state, ask) }[pane];
    old([pane], true);
    byId("flow").hidden = !["heads", "weights"].includes(pane);
    await work();
    if (!isMine() || !isRight) return;
    old([pane], false);
    Locum.light(Locum.lit);
    if (byId("flow").hidden) return;
    // The compilation for the figure starts when typing pauses, so that it does not delay the next values.
    if (pane === "heads") await new Promise((done) => setTimeout(done, 250));
    // The pane may have changed in the meantime, and a second compilation would cancel the compilation of the other pane.
    if (!isMine() || !isRight || state.pane !== pane) return;
    await Locum.flow.show(Locum.weights.asked(state), ask);
    if (isMine() && isRight) { old(["flow"], false); Locum.light(Locum.lit); }
  };
  const revealLater = Locum.later(120, () => { if (isRight) reveal(state.pane); });
  // Typing into an option marks the network as outdated at once. The network is compiled when typing pauses.
  const compileLater = Locum.later(250, () => { if (isRight) reveal("weights"); });
  const optionsChanged = (isTyped) => {
    asking.weights = (asking.weights || 0) + 1;
    old(["weights", "flow"], true);
    Locum.forget("compile", "apply");
    remember();
    if (isTyped) compileLater(); else if (isRight) reveal("weights");
  };

  // Run the program after every change, and update values, errors and the open pane.
  const run = async () => {
    const mine = version;
    state.source = Locum.editor.text();
    state.input = byId("input").value;
    performance.mark("locum-asked");
    const result = await ask("run", { source: state.source, input: state.input });
    if (!result || mine !== version) return;
    notice(result.ok || result.server ? "" : result.error);
    byId("server").hidden = !result.server;
    byId("server-problem").textContent = result.server ? `${result.error} The results are outdated.` : "";
    if (result.server) return;
    const shown = result.ok ? result : { statements: [], errors: [], sops: [], input: [] };
    Locum.editor.show(shown);
    byId("language").value = dialect(state.source);
    Locum.problems.show(shown.errors);
    if (result.ok) panes.values(result); else byId("values").replaceChildren();
    old(["values"], false);
    if (result.ok) performance.measure("locum-values", "locum-asked");
    const until = result.used ? `used up to line ${result.used}; after that,` : "not used:";
    byId("input-note").textContent = result.own ? `${until} the program sets its own example, ${result.input.join(" ")}` : "characters, or a list such as [3, 1.5, true]";
    byId("input-note").classList.toggle("bad", Boolean(result.own));
    const choose = byId("name"), last = shown.sops[shown.sops.length - 1];
    isRight = shown.errors.length === 0 && shown.sops.length > 0;
    // A name from a link, or a chosen name, is kept while the program has an error. If the s-op no longer exists, a notice is shown.
    if (isRight && state.name !== null && !shown.sops.includes(state.name)) { notice(`there is no s-op ${state.name} in the program: ${last} is shown`); state.name = null; }
    choose.replaceChildren();
    for (const name of shown.sops) Locum.add(choose, "option", name).value = name;
    choose.value = shown.sops.includes(state.name) ? state.name : last || "";
    // With an error in the program, the panes keep the earlier results, with a note.
    byId("stale-note").hidden = isRight;
    hasResults = hasResults || isRight;
    const outdated = hasResults ? ": the results are outdated." : ".";
    const said = !result.ok ? `The input has an error${outdated}` : shown.errors.length ? `The program has an error in line ${shown.errors[0].line}${outdated}` : result.why;
    if (byId("stale-note").textContent !== said) byId("stale-note").textContent = said;
    if (isRight) revealLater();
  };
  const runLater = Locum.later(40, run);
  const changed = () => {
    version++;
    isRight = false;
    old([...PANES, "flow"], true);
    Locum.forget("draw", "compile", "analyse", "apply", "intervene");
    Locum.editor.fade();
    Locum.exercises.touched();
    runLater();
    remember();
  };

  byId("again").addEventListener("click", () => changed());
  Locum.editor = Locum.makeEditor(byId("editor"), { changed: () => changed(), hovered: (statements) => Locum.light(statements) });
  byId("input").addEventListener("input", changed);
  byId("name").addEventListener("change", () => { state.name = byId("name").value; remember(); if (isRight) reveal(state.pane); });
  const openPane = Locum.tabs(byId("tabs"), (pane) => { state.pane = pane; remember(); if (isRight) reveal(pane); });
  const openMode = Locum.tabs(byId("modes"), (id) => {
    state.mode = id;
    remember();
    if (id === "universal" && Locum.catalogue) { state.u = state.u || Locum.universal.initial(); Locum.universal.open(state.u, () => remember()); }
  });
  Locum.openU = (matrices, from) => {
    state.u = { ...Locum.universal.initial(), ...structuredClone(matrices) };
    Locum.universal.origin(from);
    openMode("universal");
  };
  Locum.flow.onchoose((time) => { Locum.weights.go(time); openPane("weights"); });
  // A box has one line. An input of several lines is written as an equal list or quoted text; null if it is not an input.
  const isTokens = (value) => typeof value === "string" || (Array.isArray(value) && value.length > 0 && value.every((token) => ["string", "number", "boolean"].includes(typeof token)));
  const oneLine = (text) => {
    if (!/[\r\n]/.test(text)) return text;
    let value = null;
    try { value = JSON.parse(text); } catch { /* characters */ }
    if (!/^\s*["[]/.test(text)) return JSON.stringify(text);
    if (isTokens(value)) return text.replace(/[\r\n]/g, " ");
    return /[\p{L}\p{N}]/u.test(text) ? null : JSON.stringify(text); // an incomplete list is not an input
  };
  const load = (source, input) => { byId("input").value = oneLine(input); state.name = null; if (Locum.editor.text() !== source) Locum.editor.set(source); changed(); };

  // The first line of a program names its dialect; choosing another language loads an example of it.
  const dialect = (source) => (/^\/\/[ \t]*(C-RASP|B-RASP|LTL)[ \t]*(?:[\r\n]|$)/.exec(source) || [null, "RASP"])[1];
  for (const name of ["RASP", "C-RASP", "B-RASP", "LTL"]) Locum.add(byId("language"), "option", name).value = name;
  byId("language").addEventListener("change", () => {
    const example = Locum.catalogue && Locum.catalogue.examples.find(({ source }) => dialect(source) === byId("language").value);
    if (example) load(example.source, example.input);
  });

  // Links.
  const shared = () => ({ source: Locum.editor.text(), input: byId("input").value, pane: state.pane, name: state.name, options: Locum.weights.options(state),
    ...(state.mode === "universal" ? { mode: "universal", u: state.u } : {}), ...(Locum.exercises.current() ? { exercise: Locum.exercises.current() } : {}) });
  const unsharable = () => (state.mode === "universal" ? Locum.universal.problem() : "");
  // A displayed link opens the current state, also from an embedded page.
  const remember = () => { byId("shared").hidden = true; rememberLater(); };
  const isFramed = () => document.body.classList.contains("embed");
  // This tab keeps the state of its page for a reload, and the program of an exercise is kept in the browser.
  const keep = () => {
    if (isFramed() || !Locum.catalogue) return;
    try { sessionStorage.setItem("locum draft", JSON.stringify({ address: location.href, page: { ...shared(), u: state.u } })); } catch { /* storage may be disabled */ }
    Locum.exercises.keep();
  };
  const kept = () => {
    try { const { address, page } = JSON.parse(sessionStorage.getItem("locum draft")); return address === location.href ? page : null; } catch { return null; }
  };
  const rememberLater = Locum.later(300, async () => {
    if (!isFramed()) { keep(); return; }
    if (!Locum.catalogue) return;
    const fragment = await Locum.share.pack(shared());
    byId("whole").href = location.pathname + (fragment || "");
    byId("whole").hidden = fragment === null;
  });
  window.addEventListener("pagehide", keep);
  byId("share").addEventListener("click", async () => {
    if (unsharable()) { notice(unsharable()); return; }
    const fragment = await Locum.share.pack(shared());
    if (fragment === null || fragment.length > Locum.share.LONGEST) { notice("the program is too long for a link; try a shorter program"); return; }
    history.replaceState(null, "", fragment);
    keep();
    byId("link").value = location.href;
    byId("shared").hidden = false;
    byId("link").select();
    try { await navigator.clipboard.writeText(location.href); byId("copied").textContent = "copied"; } catch { byId("copied").textContent = ""; }
  });
  // The state in a link. Unknown parts are omitted, and their names are returned.
  const isText = (value) => typeof value === "string", isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const isMatrix = (rows) => Array.isArray(rows) && rows.length > 0 && rows.length <= Locum.universal.LARGEST && rows.every((row) => Array.isArray(row) && row.length > 0 && row.length <= Locum.universal.LARGEST && row.length === rows[0].length && row.every((entry) => typeof entry === "number"));
  const isU = (u) => isObject(u) && ["X", "A", "V"].every((name) => isMatrix(u[name])) && u.X[0].length === u.A.length && u.A[0].length === u.A.length && u.V.length === u.A.length;
  let adopted = false;
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
    state.pane = take("pane", (pane) => PANES.includes(pane), PANES[0]);
    if (PANES.includes(frame) && !adopted) state.pane = frame;
    adopted = true;
    const u = take("u", isU, null), fields = ["X", "A", "V", ...Object.keys(Locum.catalogue.defaults.universal)];
    for (const name of Object.keys(u || {})) if (!fields.includes(name)) odd.push(`u.${name}`);
    state.u = u ? { ...Locum.universal.initial(), ...u, ...(u.base === "e" ? { base: null } : {}) } : null;
    const mode = take("mode", (mode) => mode === "rasp" || (mode === "universal" && u), "rasp");
    const source = take("source", isText, "");
    Locum.exercises.open(take("exercise", Locum.exercises.isExercise, null), source);
    load(source, take("input", (input) => isText(input) && oneLine(input) !== null, "hello"));
    state.name = take("name", isText, null);
    openPane(state.pane);
    openMode(mode);
    return odd;
  };
  // An embedded page shows the results first; ?embed=values selects the initial pane.
  const frame = new URLSearchParams(location.search).get("embed");
  if (frame !== null) document.body.classList.add("embed");
  Locum.catalogue = await ask("catalogue", {});
  if (!Locum.catalogue.ok) { notice(Locum.catalogue.error); Locum.catalogue = null; return; }
  Locum.editor.names(Locum.catalogue.names);
  Locum.exercises.start(load);
  Locum.teaching.start();
  const first = Locum.catalogue.examples[0];
  // Without a link, the first example is shown, unless the user has already typed.
  const fromLink = async (event) => {
    const linked = await Locum.share.unpack(location.hash), typed = Locum.editor.text(), draft = event || isFramed() ? null : kept();
    // Restore the program that was typed in this tab at this address.
    if (draft && !typed) { adopt(draft); return; }
    // Keep the panes that were opened before the page was ready.
    const begun = { source: typed || first.source, input: typed ? byId("input").value || first.input : first.input, pane: state.pane, mode: state.mode, u: state.u || Locum.universal.initial() };
    const odd = adopt(linked || begun), isLink = location.hash.length > 1;
    byId("link-note").textContent = linked ? `Parts of this link are not supported and were omitted: ${odd.join(", ")}.` : UNREADABLE;
    byId("link-note").hidden = !isLink || (linked !== null && !odd.length);
  };
  window.addEventListener("hashchange", fromLink);
  await fromLink();
})();
