// The four panes of a program: heads, weights, values, counts and claims.
"use strict";
Locum.panes = (() => {
  const { add, clear, byId, link, ask, grid, number } = Locum;
  const MAX_DRAWN = 32;
  const say = (pane, text, kind = "bad") => add(clear(byId(pane)), "p", text, kind);
  let network = null, moment = null;

  // Heads: layers as columns.
  const heads = async (state) => {
    const reply = await ask("draw", { source: state.source, input: state.input, ...(state.name ? { name: state.name } : {}) });
    if (!reply) return;
    const pane = byId("heads");
    if (!reply.ok) { say("heads", reply.error); return; }
    clear(pane);
    add(pane, "p", `${reply.name}(${reply.input.join(" ")}) = ${reply.output.join(" ")}`, "mono");
    if (reply.input.length > MAX_DRAWN) { add(pane, "p", `Grids are drawn for at most ${MAX_DRAWN} tokens.`, "soft"); return; }
    if (!reply.layers.length) add(pane, "p", "No head: every position is computed from itself alone, by a feed-forward.", "soft");
    const columns = add(pane, "div", null, "layers");
    reply.layers.forEach((layer, number) => {
      const column = add(columns, "div", null, "layer");
      add(column, "h3", `layer ${number}`);
      for (const head of layer) {
        const card = link(add(column, "div", null, "head"), head.statements);
        card.tabIndex = 0;
        add(card, "div", head.label, "title");
        grid(card, { tokens: reply.input, rows: head.pattern, values: head.values });
        for (const [v, value] of head.values.entries()) add(card, "div", `${head.values.length > 1 ? v + ": " : ""}carries ${value.label}`, "soft");
        if (head.note) add(card, "div", head.note, "soft");
      }
    });
  };

  // Weights: options above, then the network after each sublayer.
  const FIELDS = ["length", "vocabulary", "numeric", "fixed", "causal", "attention", "feed_forward", "tolerance", "low", "high"];
  const options = (state) => Object.fromEntries(FIELDS.filter((f) => state.options[f] !== undefined && state.options[f] !== "" && state.options[f] !== false).map((f) => [f, state.options[f]]));
  const form = (parent, state, change) => {
    const box = add(parent, "div", null, "options"), catalogue = Locum.catalogue || { attentions: ["hard"], feedForwards: ["exact"] };
    const field = (name, text, element, read) => {
      Locum.labelled(box, text, element);
      element.id = "option-" + name;
      element.disabled = Boolean(Locum.saved);
      const value = state.options[name];
      if (element.type === "checkbox") element.checked = Boolean(value);
      else if (value !== undefined) element.value = value;
      element.addEventListener("change", () => { state.options[name] = read(element); change(); });
    };
    const input = (kind, hint) => { const made = document.createElement("input"); if (kind) made.className = kind; made.placeholder = hint; return made; };
    const tick = () => Object.assign(document.createElement("input"), { type: "checkbox" });
    const choice = (choices) => { const made = document.createElement("select"); for (const one of choices) add(made, "option", one).value = one; return made; };
    const numeric = (element) => (element.value.trim() === "" ? "" : Number(element.value));
    field("length", "length", input("", "auto"), numeric);
    field("vocabulary", "vocabulary", input("wide", "of the input"), (e) => e.value);
    field("numeric", "any real numbers", tick(), (e) => e.checked);
    field("fixed", "fixed length", tick(), (e) => e.checked);
    field("causal", "causal", tick(), (e) => e.checked);
    field("attention", "attention", choice(catalogue.attentions), (e) => e.value);
    field("feed_forward", "feed-forward", choice(catalogue.feedForwards), (e) => e.value);
    field("tolerance", "tolerance", input("", "exact"), numeric);
    field("low", "numbers from", input("", "−"), numeric);
    field("high", "to", input("", "+"), numeric);
  };
  const weights = async (state, change) => {
    const pane = byId("weights");
    if (!pane.querySelector(".options")) { clear(pane); form(pane, state, change); add(pane, "div").id = "network"; }
    const reply = await ask("compile", { source: state.source, input: state.input, ...(state.name ? { name: state.name } : {}), ...options(state) });
    if (!reply) return;
    const box = clear(byId("network"));
    if (!reply.ok) { add(box, "p", reply.error, "bad"); return; }
    network = reply.network;
    const facts = add(box, "dl");
    for (const [name, value] of network.facts) { const pair = add(facts, "div"); add(pair, "dt", name); add(pair, "dd", value); }
    add(box, "p", reply.agrees ? "✓ the network gives what the program gives on this input" : "✗ the network differs from the program on this input", reply.agrees ? "good" : "bad");
    const row = add(box, "div", null, "row"), slider = add(row, "input");
    Object.assign(slider, { type: "range", min: 0, max: 2 * network.depth, step: 1, id: "moment" });
    slider.setAttribute("aria-label", "sublayer");
    moment = Math.min(moment === null ? 2 * network.depth : moment, 2 * network.depth);
    slider.value = moment;
    add(row, "strong", "").id = "moment-name";
    add(box, "div").id = "sublayer";
    slider.addEventListener("input", () => { moment = Number(slider.value); sublayer(); });
    sublayer();
    if (!Locum.saved) others(box, state);
  };
  const held = (slot, time) => network.slots[slot].find((s) => s.first <= time && time < s.until);
  const sublayer = () => {
    const time = moment, shown = network.inputs[0], box = clear(byId("sublayer")), layer = Math.ceil(time / 2) - 1;
    byId("moment-name").textContent = time === 0 ? "after the embedding" : `after layer ${layer}'s ${time % 2 ? "attention" : "feed-forward"}`;
    const did = add(box, "div");
    if (time % 2) {
      const row = add(did, "div", null, "layers");
      network.heads[layer].forEach((head, n) => {
        const card = link(add(row, "div", null, "head"), head.statements);
        card.tabIndex = 0;
        add(card, "div", `head ${head.name}: ${head.short}`, "title").title = head.label;
        grid(card, { tokens: shown.tokens, labels: shown.positions, rows: Locum.dense(shown.patterns[layer][n]), values: [] });
        for (const move of head.moves) add(card, "div", move, "soft mono");
        const details = add(card, "details");
        add(details, "summary", "weights");
        for (const [name, matrix] of Object.entries(head.weights)) Locum.matrix(details, `${name} (${matrix.shape.join("×")})`, Locum.dense(matrix));
      });
      if (network.leftOut[layer]) add(did, "p", `… and ${network.leftOut[layer]} more heads`, "soft");
    } else if (time) for (const [slot, formula] of network.feeds[layer]) {
      const stay = held(slot, time);
      link(add(did, "div", formula, "mono"), stay && stay.statements);
    }
    const table = add(box, "table", null, "stream"), top = add(table, "tr"), written = new Set(network.written[time]);
    add(table, "caption", "residual stream: a row for each slot, a column for each position");
    add(top, "th", "slot");
    shown.positions.forEach((token) => add(top, "th", token));
    shown.stream[time].forEach((values, slot) => {
      const stay = held(slot, time);
      if (!stay) return;
      const line = link(add(table, "tr", null, (written.has(slot) ? "written " : "") + (time >= stay.last ? "idle" : "")), stay.statements);
      add(line, "th", `s${slot} ${stay.short}`).title = stay.label;
      const largest = Math.max(...values.map(Math.abs), 1e-300);
      for (const value of values) {
        const cell = add(line, "td", number(value), value > 0 ? "pos" : value < 0 ? "neg" : "");
        cell.style.setProperty("--w", Math.abs(value) / largest);
      }
    });
    const last = add(table, "tr");
    if (time === 2 * network.depth) { add(last, "th", "answer"); for (let i = shown.positions.length - shown.answer.length; i > 0; i--) add(last, "td", ""); shown.answer.forEach((value) => add(last, "td", value)); }
  };
  // The network on inputs that are not shown: random ones over its vocabulary.
  const others = (box, state) => {
    const button = add(box, "button", "Try 20 other inputs"), result = add(box, "p", "", "soft");
    button.id = "others";
    button.addEventListener("click", async () => {
      const tokens = network.inputs[0].tokens, longest = Number(state.options.length) || Math.max(tokens.length, 8);
      const typed = state.options.vocabulary || state.input, list = typed.startsWith("[") ? JSON.parse(typed) : [...typed];
      const pick = () => list[Math.floor(Math.random() * list.length)];
      const inputs = Array.from({ length: 20 }, () => JSON.stringify(Array.from({ length: state.options.fixed ? longest : 1 + Math.floor(Math.random() * longest) }, pick)));
      const reply = await ask("apply", { source: state.source, input: state.input, ...(state.name ? { name: state.name } : {}), ...options(state), inputs });
      if (!reply) return;
      const wrong = reply.ok ? reply.runs.find((run) => !run.agrees) : null;
      result.textContent = !reply.ok ? reply.error : wrong ? `differs on ${wrong.input.join(" ")}: ${wrong.output.join(" ")} instead of ${wrong.expected.join(" ")}` : `✓ the same as the program on all ${reply.runs.length}`;
      result.className = reply.ok && !wrong ? "good" : "bad";
    });
  };

  // Values: every s-op on the input.
  const values = (result) => {
    const pane = clear(byId("values")), table = add(pane, "table", null, "list"), top = add(table, "tr");
    add(table, "caption", "every s-op on the input");
    for (const text of ["s-op", "type", ...result.input]) add(top, "th", text);
    const tokens = add(table, "tr");
    add(tokens, "td", "tokens"); add(tokens, "td", "");
    for (const token of result.input) add(tokens, "td", token, "cell");
    result.statements.forEach((s, number) => {
      if (s.kind !== "s-op") return;
      const line = link(add(table, "tr"), [number]);
      line.tabIndex = 0;
      add(line, "td", s.name || "out"); add(line, "td", s.type || "");
      for (const value of s.values) add(line, "td", value, "cell");
    });
    const selectors = result.statements.flatMap((s, n) => (s.kind === "selector" && s.matrix ? [[s, n]] : []));
    if (selectors.length && result.input.length <= MAX_DRAWN) {
      add(pane, "h3", "selectors");
      const row = add(pane, "div", null, "row");
      for (const [s, n] of selectors) {
        const card = link(add(row, "div", null, "head"), [n]);
        add(card, "div", s.name || "out", "title");
        grid(card, { tokens: result.input, rows: s.matrix, values: [] });
      }
    }
  };

  // Counts, and what can be proven.
  const counts = async (state) => {
    const pane = byId("counts");
    if (!pane.firstChild) { add(pane, "div").id = "sizes"; if (!Locum.saved) claims(pane); }
    const reply = await ask("analyse", { source: state.source, input: state.input });
    if (!reply) return;
    const box = clear(byId("sizes"));
    if (!reply.ok) { add(box, "p", reply.error, "bad"); return; }
    const table = add(box, "table", null, "list"), top = add(table, "tr");
    add(table, "caption", "layers and heads of the transformer that each s-op or selector asks for");
    for (const text of ["name", "layers", "heads per layer", "width"]) add(top, "th", text);
    for (const one of reply.programs) {
      const line = link(add(table, "tr"), one.statements);
      line.tabIndex = 0;
      for (const text of [one.name, one.layers, one.heads.join(", ") || "none", one.width]) add(line, "td", text);
    }
  };
  const claims = (pane) => {
    add(pane, "h3", "prove a lemma of the paper, for all inputs of a shape");
    const row = add(pane, "div", null, "row"), name = Locum.labelled(row, "claim", document.createElement("select"));
    for (const claim of Locum.catalogue.claims) add(name, "option", `${claim.name} ${claim.parameters.join(" ")}`).value = claim.name;
    name.value = "attention"; name.id = "claim";
    const shape = Locum.labelled(row, "shape", document.createElement("input")); shape.value = "2 2 2"; shape.className = "wide"; shape.id = "shape";
    const button = add(row, "button", "Prove"), text = add(pane, "pre", ""); button.id = "prove"; text.id = "proof"; text.hidden = true;
    button.addEventListener("click", async () => {
      const reply = await ask("prove", { name: name.value, shape: shape.value.trim().split(/\s+/).map(Number) });
      if (reply) { text.textContent = reply.ok ? reply.text : reply.error; text.hidden = false; }
    });
    add(pane, "h3", "what a regular language is for transformers");
    const second = add(pane, "div", null, "row"), regex = Locum.labelled(second, "expression (+ is union)", document.createElement("input")); regex.value = "(ab+ba)*"; regex.id = "regex";
    const go = add(second, "button", "Classify"), result = add(pane, "div"); go.id = "classify"; result.id = "language";
    go.addEventListener("click", async () => {
      const reply = await ask("classify", { regex: regex.value });
      if (!reply) return;
      clear(result);
      if (!reply.ok) { add(result, "p", reply.error, "bad"); return; }
      const table = add(result, "table", null, "list");
      add(table, "caption", `${reply.states} states, syntactic monoid of ${reply.monoid}`);
      for (const entry of reply.lines) { const line = add(table, "tr"); add(line, "td", entry.key); add(line, "td", entry.holds ? "yes" : "no", entry.holds ? "good" : ""); add(line, "td", [entry.reason, entry.consequence].filter(Boolean).join("; ")); }
      if (reply.program) add(result, "pre", reply.program);
      const save = add(result, "button", "Automaton (SVG)");
      save.hidden = !reply.svg;
      save.addEventListener("click", () => Locum.download("automaton.svg", reply.svg, "image/svg+xml"));
    });
  };
  return { heads, weights, values, counts, options, say };
})();
