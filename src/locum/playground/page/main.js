// The page: its state, and what happens when it changes.
"use strict";
(async () => {
  const { byId, ask, panes } = Locum;
  const state = { mode: "rasp", source: "", input: "hello", pane: "heads", name: null, options: {}, u: null, exercise: null };
  const PANES = ["heads", "weights", "values", "counts"];

  // Dark and light: the reader's choice, or else the system's.
  const theme = (name) => { document.documentElement.dataset.theme = name; };
  theme(Locum.store.get("theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  byId("theme").addEventListener("click", () => { const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark"; theme(next); Locum.store.set("theme", next); });

  const notice = (text) => { byId("notice").textContent = text; byId("notice").hidden = !text; };
  const reveal = (pane) => {
    const work = { heads: () => panes.heads(state), weights: () => panes.weights(state, () => reveal("weights")), values: () => {}, counts: () => panes.counts(state) }[pane];
    byId(pane).classList.add("stale");
    return Promise.resolve(work()).finally(() => { byId(pane).classList.remove("stale"); Locum.light(Locum.lit); });
  };
  const revealLater = Locum.later(120, () => reveal(state.pane));

  // Every change is run; values, mistakes and the open pane follow.
  let isRight = false;
  const run = async () => {
    state.source = Locum.editor.text();
    state.input = byId("input").value;
    performance.mark("locum-asked");
    const result = await ask("run", { source: state.source, input: state.input });
    if (!result) return;
    notice(result.ok ? "" : result.error);
    if (!result.ok) { Locum.editor.show({ statements: [], errors: [] }); return; }
    Locum.editor.show(result);
    panes.values(result);
    performance.measure("locum-values", "locum-asked");
    const choose = byId("name"), last = result.sops[result.sops.length - 1];
    if (!result.sops.includes(state.name)) state.name = null;
    choose.replaceChildren();
    for (const name of result.sops) Locum.add(choose, "option", name).value = name;
    choose.value = state.name || last || "";
    isRight = !result.errors.length && result.sops.length > 0;
    // With a mistake in the program, the panes keep what they had, paler.
    for (const pane of ["heads", "weights", "counts"]) byId(pane).classList.toggle("stale", !isRight);
    if (isRight) revealLater();
  };
  const runLater = Locum.later(40, run);

  Locum.editor = Locum.makeEditor(byId("editor"), { changed: runLater, hovered: (statements) => Locum.light(statements), readOnly: Boolean(Locum.saved) });
  byId("input").addEventListener("input", runLater);
  byId("input").readOnly = Boolean(Locum.saved);
  byId("name").addEventListener("change", () => { state.name = byId("name").value; reveal(state.pane); });
  const openPane = Locum.tabs(byId("tabs"), (pane) => { state.pane = pane; if (isRight) reveal(pane); });
  const openMode = Locum.tabs(byId("modes"), (id) => {
    state.mode = id;
    if (id === "universal" && Locum.catalogue) { state.u = state.u || Locum.universal.initial(); Locum.universal.open(state.u, () => {}); }
  });
  const load = (source, input) => { byId("input").value = input; state.name = null; if (Locum.editor.text() !== source) Locum.editor.set(source); runLater(); };

  // Links and files.
  const shared = () => ({ source: Locum.editor.text(), input: byId("input").value, pane: state.pane, name: state.name, options: panes.options(state),
    ...(state.mode === "universal" ? { mode: "universal", u: state.u } : {}), ...(Locum.exercises.current() ? { exercise: Locum.exercises.current() } : {}) });
  byId("share").addEventListener("click", async () => {
    const fragment = await Locum.share.pack(shared());
    history.replaceState(null, "", fragment);
    byId("link").value = location.href;
    byId("shared").hidden = false;
    byId("link").select();
    try { await navigator.clipboard.writeText(location.href); byId("copied").textContent = "copied"; } catch { byId("copied").textContent = ""; }
  });
  const program = () => ({ source: Locum.editor.text(), input: byId("input").value, ...(state.name ? { name: state.name } : {}) });
  const saver = (id, action, fields, use) => byId(id).addEventListener("click", async () => {
    const reply = await ask(action, fields(), id);
    byId("more").open = false;
    if (reply) { notice(reply.ok ? "" : reply.error); if (reply.ok) use(reply); }
  });
  saver("save-html", "save", () => ({ ...program(), ...panes.options(state), pane: state.pane }), (reply) => Locum.download("playground.html", reply.html, "text/html"));
  saver("save-svg", "draw", () => ({ ...program(), svg: true }), (reply) => Locum.download("heads.svg", reply.svg, "image/svg+xml"));
  byId("save-rasp").addEventListener("click", () => { byId("more").open = false; Locum.download("program.rasp", Locum.editor.text(), "text/plain"); });

  // What a link, or a saved page, says about the state; anything odd in it is left out.
  const isText = (value) => typeof value === "string";
  const adopt = (given) => {
    state.options = {};
    for (const [name, value] of Object.entries(given.options || {})) if (["string", "number", "boolean"].includes(typeof value)) state.options[name] = value;
    byId("weights").replaceChildren();
    if (PANES.includes(given.pane)) state.pane = given.pane;
    const matrices = given.u && ["X", "A", "V"].every((name) => Array.isArray(given.u[name]) && given.u[name].length && given.u[name].every(Array.isArray));
    if (matrices) state.u = { ...Locum.universal.initial(), ...given.u };
    if (isText(given.exercise) && Locum.catalogue) Locum.exercises.open(given.exercise, false);
    load(isText(given.source) ? given.source : "", isText(given.input) ? given.input : "hello");
    state.name = isText(given.name) ? given.name : null;
    openPane(state.pane);
    openMode(given.mode === "universal" && matrices ? "universal" : "rasp");
  };
  if (new URLSearchParams(location.search).has("embed")) document.body.classList.add("embed");
  if (Locum.saved) {
    for (const id of ["share", "save-html", "modes"]) byId(id).hidden = true;
    document.querySelector(".chooser").hidden = true;
    adopt(Locum.saved.state);
    return;
  }
  Locum.catalogue = await ask("catalogue", {});
  if (!Locum.catalogue.ok) { notice(Locum.catalogue.error); return; }
  Locum.editor.names(Locum.catalogue.names);
  Locum.exercises.start(load);
  const first = Locum.catalogue.examples[0];
  // Without a link the first example is shown, unless something has been typed already.
  const fromLink = async () => {
    const linked = await Locum.share.unpack(location.hash), typed = Locum.editor.text();
    adopt(linked || (typed ? { source: typed, input: byId("input").value || first.input } : first));
  };
  window.addEventListener("hashchange", fromLink);
  await fromLink();
  if (document.body.classList.contains("embed")) { const whole = byId("whole"); whole.hidden = false; whole.href = location.pathname + location.hash; }
})();
