// The page: its state, and the reactions to changes.
"use strict";
(async () => {
  const { byId, ask, panes } = Locum;
  const state = { mode: "rasp", source: "", input: "hello", pane: "heads", name: null, options: {}, u: null, exercise: null };
  const PANES = ["heads", "weights", "values", "counts", "tests", "compare"], LONGEST = 60000, UNREADABLE = byId("link-note").textContent;

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
    const work = { heads: () => panes.heads(state, ask), weights: () => Locum.weights.show(state, ask, optionsChanged), values: () => {}, counts: () => panes.counts(state, ask), tests: () => Locum.tests.show(state, ask), compare: () => Locum.compare.show(state, ask) }[pane];
    old([pane], true);
    byId("flow").hidden = !["heads", "weights"].includes(pane);
    await work();
    if (!isMine() || !isRight) return;
    old([pane], false);
    Locum.light(Locum.lit);
    if (byId("flow").hidden) return;
    // The compilation for the figure starts when typing pauses, so that it does not delay the next values.
    if (pane === "heads" && !Locum.saved) await new Promise((done) => setTimeout(done, 250));
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
    byId("input-note").hidden = Boolean(Locum.saved) && !result.own;
    byId("input-note").classList.toggle("bad", Boolean(result.own));
    const choose = byId("name"), last = shown.sops[shown.sops.length - 1];
    isRight = shown.errors.length === 0 && shown.sops.length > 0;
    // A name from a link, or a chosen name, is kept while the program has an error. If the s-op no longer exists, a notice is shown.
    if (isRight && state.name !== null && !shown.sops.includes(state.name)) { notice(`there is no s-op ${state.name} in the program: ${last} is shown`); state.name = null; }
    choose.replaceChildren();
    for (const name of shown.sops) Locum.add(choose, "option", name).value = name;
    choose.value = shown.sops.includes(state.name) ? state.name : last || "";
    choose.disabled = Boolean(Locum.saved);
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
    Locum.forget("draw", "compile", "analyse", "apply", "table", "compare", "compile A", "compile B", "intervene");
    Locum.editor.fade();
    Locum.exercises.touched();
    runLater();
    remember();
  };

  byId("again").addEventListener("click", () => changed());
  Locum.editor = Locum.makeEditor(byId("editor"), { changed: () => changed(), hovered: (statements) => Locum.light(statements), readOnly: Boolean(Locum.saved) });
  byId("input").addEventListener("input", changed);
  byId("input").readOnly = Boolean(Locum.saved);
  byId("name").addEventListener("change", () => { state.name = byId("name").value; remember(); if (isRight) reveal(state.pane); });
  const openPane = Locum.tabs(byId("tabs"), (pane) => { state.pane = pane; Locum.terms.list(pane); remember(); if (["tests", "compare"].includes(pane) && Locum.catalogue) Locum[pane].open(); if (isRight) reveal(pane); });
  let isAdopting = false;
  const openMode = Locum.tabs(byId("modes"), (id) => {
    const isEntry = state.mode !== id && !isAdopting && Locum.catalogue;
    if (isEntry) { keep(); Locum.drafts.enter(); }
    state.mode = id;
    if (isEntry) keep();
    Locum.terms.list(id === "universal" ? id : state.pane);
    remember();
    for (const tool of ["save-svg", "save-rasp"]) byId(tool).hidden = id === "universal";
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

  // Links and files.
  const shared = () => ({ source: Locum.editor.text(), input: byId("input").value, pane: state.pane, name: state.name, options: Locum.weights.options(state),
    ...(state.mode === "universal" ? { mode: "universal", u: state.u } : {}), ...(Locum.exercises.current() ? { exercise: Locum.exercises.current() } : {}),
    ...(Locum.tests.rows().length ? { tests: Locum.tests.rows() } : {}), ...(Locum.compare.other() ? { other: Locum.compare.other() } : {}) });
  const unsharable = () => (state.mode === "universal" ? Locum.universal.problem() : "");
  // A displayed link opens the current state, also from an embedded page.
  const remember = () => { byId("shared").hidden = true; rememberLater(); };
  const isFramed = () => document.body.classList.contains("embed");
  const keep = () => { if (!Locum.saved && !isFramed() && Locum.catalogue) Locum.drafts.save({ ...shared(), u: state.u }); };
  const rememberLater = Locum.later(300, async () => {
    if (Locum.saved || !Locum.catalogue) return;
    if (!isFramed()) { const page = { ...shared(), u: state.u }; Locum.drafts.save(page); Locum.drafts.follow(page, link); return; }
    const fragment = await Locum.share.pack(shared());
    byId("whole").href = location.pathname + (fragment || "");
    byId("whole").hidden = fragment === null;
  });
  // Null if a link cannot contain the state.
  const link = async () => {
    const fragment = unsharable() ? null : await Locum.share.pack(shared());
    return fragment === null || fragment.length > LONGEST ? null : fragment;
  };
  window.addEventListener("pagehide", keep);
  byId("share").addEventListener("click", async () => {
    if (unsharable()) { notice(unsharable()); return; }
    const fragment = await link();
    if (fragment === null) { notice("the program is too long for a link; use Save to save a program or an HTML file"); return; }
    history.replaceState(history.state, "", fragment);
    Locum.drafts.share();
    keep();
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

  // The state in a link or a saved page. Unknown parts are omitted, and their names are returned.
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
    for (const name of Object.keys(given)) if (!["source", "input", "pane", "name", "options", "mode", "u", "exercise", "tests", "other"].includes(name)) odd.push(name);
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
    if (!Locum.saved) Locum.exercises.open(take("exercise", Locum.exercises.isExercise, null), source);
    Locum.tests.set(take("tests", Locum.tests.isRows, []));
    Locum.compare.set(take("other", isText, ""));
    load(source, take("input", (input) => isText(input) && oneLine(input) !== null, "hello"));
    state.name = take("name", isText, null);
    openPane(state.pane);
    openMode(mode);
    return odd;
  };
  // Functions for other scripts: open a state, as a link does, or show a program or an input.
  for (const pane of ["tests", "compare"]) Locum[pane].start(remember, () => { if (isRight && state.pane === pane) reveal(pane); });
  Locum.page = { open: adopt, state: shared, LONGEST, input: (input, source = Locum.editor.text()) => load(source, input === null ? byId("input").value : input) };
  // An embedded page shows the results first; ?embed=values selects the initial pane.
  const frame = new URLSearchParams(location.search).get("embed");
  if (frame !== null) document.body.classList.add("embed");
  if (Locum.saved) {
    document.body.classList.add("saved");
    for (const id of ["share", "save-html", "modes", "take-tour", "open-teach", "tab-tests", "tab-compare"]) byId(id).hidden = true;
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
  Locum.teaching.start();
  const first = Locum.catalogue.examples[0];
  // Without a link, the first example is shown, unless the user has already typed.
  const quietly = (work) => (value) => { isAdopting = true; try { return work(value); } finally { isAdopting = false; } };
  const open = (Locum.page.open = quietly(adopt));
  const fromLink = async (event) => {
    if (event && Locum.drafts.isMove(event)) return;
    const linked = await Locum.share.unpack(location.hash), typed = Locum.editor.text(), draft = event || isFramed() ? null : Locum.drafts.own();
    Locum.drafts.begin(linked !== null);
    // Restore the program that was typed in this tab at this address.
    if (draft && !typed) { open(draft); return; }
    // Keep the panes that were opened before the page was ready.
    const begun = { source: typed || first.source, input: typed ? byId("input").value || first.input : first.input, pane: state.pane, mode: state.mode, u: state.u || Locum.universal.initial() };
    const odd = open(linked || begun), isLink = location.hash.length > 1;
    byId("link-note").textContent = linked ? `Parts of this link are not supported and were omitted: ${odd.join(", ")}.` : UNREADABLE;
    byId("link-note").hidden = !isLink || (linked !== null && !odd.length);
  };
  window.addEventListener("hashchange", fromLink);
  Locum.drafts.start(quietly(openMode), open);
  Locum.tour.offer();
  if (!location.hash && !isFramed()) Locum.drafts.offer(open, first.source);
  await fromLink();
})();
