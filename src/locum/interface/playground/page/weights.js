// The pane of weights: options above, then the compiled transformer, sublayer by sublayer.
"use strict";
Locum.weights = (() => {
  const { add, clear, byId, link, grid, number } = Locum;
  let network = null, moment = null;

  // Options, all of them explicit in what is asked and shared: a default may change, a link must not.
  // The defaults are those of the server, which it tells (empty boxes and boxes that are not ticked are left out).
  const defaults = () => (Locum.catalogue ? Locum.catalogue.defaults.network : {});
  const chosen = (state) => ({ ...defaults(), ...state.options });
  const options = (state) => Object.fromEntries(Object.keys(defaults()).filter((f) => ![undefined, null, ""].includes(chosen(state)[f]) && (chosen(state)[f] !== false || defaults()[f])).map((f) => [f, chosen(state)[f]]));
  const form = (parent, state, change) => {
    const box = add(parent, "div", null, "options");
    const field = (name, text, element, read) => {
      Locum.labelled(box, text, element);
      element.id = "option-" + name;
      element.disabled = Boolean(Locum.saved);
      const value = chosen(state)[name];
      if (element.type === "checkbox") element.checked = Boolean(value);
      else if (value !== undefined && value !== null) element.value = value;
      element.addEventListener("input", () => { state.options[name] = read(element); change(element.tagName === "INPUT" && element.type !== "checkbox"); });
    };
    const input = (kind, hint) => { const made = document.createElement("input"); if (kind) made.className = kind; made.placeholder = hint; return made; };
    const tick = () => Object.assign(document.createElement("input"), { type: "checkbox" });
    const choice = (choices) => { const made = document.createElement("select"); for (const one of choices) add(made, "option", one).value = one; return made; };
    // What is no number is sent as it is typed: the answer says what was expected.
    const numeric = (element) => { const text = element.value.trim(), value = Locum.numberOf(text.replace("−", "-")); return value === null ? text : value; };
    field("length", "length", input("", "auto"), numeric);
    field("vocabulary", "vocabulary", input("wide", "of the input"), (e) => e.value);
    field("numeric", "any real numbers", tick(), (e) => e.checked);
    field("fixed", "fixed length", tick(), (e) => e.checked);
    field("causal", "causal", tick(), (e) => e.checked);
    field("attention", "attention", choice(Locum.catalogue.attentions), (e) => e.value);
    field("feed_forward", "feed-forward", choice(Locum.catalogue.feedForwards), (e) => e.value);
    field("tolerance", "tolerance", input("", "auto"), numeric);
    field("low", "numbers from", input("", "−"), numeric);
    field("high", "to", input("", "+"), numeric);
  };
  const upTo = (runs) => { const most = Math.max(0, ...runs.map((run) => run.difference)); return most ? `, up to ${Locum.atMost(most, 1)}` : ""; };
  const asked = (state) => ({ source: state.source, input: state.input, ...(state.name ? { name: state.name } : {}), ...options(state) });
  const show = async (state, ask, change) => {
    const pane = byId("weights");
    if (!pane.querySelector(".options")) { clear(pane); form(pane, state, change); add(pane, "div").id = "network"; }
    const reply = await ask("compile", asked(state));
    if (!reply) return;
    const box = clear(byId("network"));
    if (!reply.ok) {
      add(box, "p", reply.error, "bad");
      if (Locum.saved || !reply.error.includes("feed_forward='exact'")) return;
      const exact = add(box, "button", "Try exact feed-forwards");
      exact.id = "try-exact";
      exact.addEventListener("click", () => { state.options.feed_forward = byId("option-feed_forward").value = "exact"; state.options.tolerance = byId("option-tolerance").value = ""; change(false); });
      return;
    }
    network = reply.network;
    const facts = add(box, "dl");
    for (const [name, value] of network.facts) { const pair = add(facts, "div"); add(pair, "dt", name); add(pair, "dd", value); }
    const off = upTo([reply.run]);
    add(box, "p", reply.run.agrees ? `✓ the network gives what the program gives on this input${off}` : `✗ the network gives ${reply.run.output.join(" ")}, the program ${reply.run.expected.join(" ")}${off}`, reply.run.agrees ? "good" : "bad");
    const row = add(box, "div", null, "row"), slider = add(row, "input");
    Object.assign(slider, { type: "range", min: 0, max: 2 * network.depth, step: 1, id: "moment" });
    slider.setAttribute("aria-label", "sublayer");
    moment = Math.min(moment === null ? 2 * network.depth : moment, 2 * network.depth);
    slider.value = moment;
    add(row, "strong", "").id = "moment-name";
    add(box, "div").id = "sublayer";
    slider.addEventListener("input", () => { moment = Number(slider.value); sublayer(); Locum.light(Locum.lit); });
    sublayer();
    if (!Locum.saved) others(box, state);
    if (network.report) { const details = add(box, "details"); add(details, "summary", "how each part was made"); add(details, "pre", network.report); }
  };
  const held = (slot, time) => network.slots[slot].find((s) => s.first <= time && time < s.until);

  // Rows of weights: those of the slots that are read or written, by what they hold.
  const rows = (parent, title, matrix, time) => {
    const box = add(parent, "div", null, "matrix"), table = add(box, "table");
    add(table, "caption", title);
    matrix.forEach((row, slot) => {
      if (!row.some(Boolean)) return;
      const stay = held(slot, time) || held(slot, time - 1), line = link(add(table, "tr"), stay && stay.statements);
      const name = add(line, "th", `s${slot} ${stay ? stay.short : ""}`);
      name.scope = "row"; name.title = stay ? stay.label : "";
      for (const value of row) add(line, "td", number(value)).title = String(value);
    });
    if (!table.rows.length) add(add(table, "tr"), "td", "all 0", "soft");
  };
  const turned = (matrix) => matrix[0].map((_, j) => matrix.map((row) => row[j]));
  const attention = (did, layer, shown, time) => {
    const row = add(did, "div", null, "layers wrap");
    network.heads[layer].forEach((head, n) => {
      const card = link(add(row, "div", null, "head"), head.statements);
      card.tabIndex = 0;
      add(card, "div", `head ${head.name}: ${head.short}`, "title").title = head.label;
      const both = add(card, "div", null, "row");
      grid(both, { tokens: shown.tokens, labels: shown.positions, rows: Locum.dense(shown.patterns[layer][n]), values: [], caption: "pattern" });
      Locum.scores(both, { labels: shown.positions, rows: shown.scores[layer][n] });
      for (const move of head.moves) add(card, "div", move, "soft mono");
      const details = add(card, "details");
      add(details, "summary", "weights");
      for (const [name, matrix] of Object.entries(head.weights)) {
        const dense = Locum.dense(matrix), shape = `${matrix.shape.join("×")}`;
        if (name === "W_O") rows(details, `W_Oᵀ (of ${shape}): rows are slots`, turned(dense), time);
        else rows(details, `${name} (${shape}): rows are slots`, dense, time - 1);
      }
    });
    if (!network.heads[layer].length) add(did, "p", "no head in this layer", "soft");
    if (network.leftOut[layer]) add(did, "p", `… and ${network.leftOut[layer]} more heads`, "soft");
  };
  const feedForward = (did, layer, time) => {
    for (const [slot, formula] of network.feeds[layer]) {
      const stay = held(slot, time), units = network.units[layer][slot];
      const line = link(add(did, "div", null, "feed"), stay && stay.statements);
      if (!units) { add(line, "div", formula, "mono"); continue; }
      const details = add(line, "details");
      add(details, "summary", formula, "mono");
      for (const unit of units) add(details, "div", unit, "mono soft");
    }
    if (!network.feeds[layer].length) add(did, "p", "no feed-forward in this layer", "soft");
  };
  const sublayer = () => {
    const time = moment, shown = network.inputs[0], box = clear(byId("sublayer")), layer = Math.ceil(time / 2) - 1;
    byId("moment-name").textContent = time === 0 ? "after the embedding" : `after layer ${layer}'s ${time % 2 ? "attention" : "feed-forward"}`;
    const did = add(box, "div");
    if (time % 2) attention(did, layer, shown, time);
    else if (time) feedForward(did, layer, time);
    const table = add(box, "table", null, "stream"), top = add(table, "tr"), written = new Set(network.written[time]);
    add(table, "caption", "residual stream: a row for each slot, a column for each position");
    add(top, "th", "slot");
    shown.positions.forEach((token) => { add(top, "th", token).scope = "col"; });
    shown.stream[time].forEach((values, slot) => {
      const stay = held(slot, time);
      if (!stay) return;
      const line = link(add(table, "tr", null, (written.has(slot) ? "written " : "") + (time >= stay.last ? "idle" : "")), stay.statements);
      line.tabIndex = 0;
      const name = add(line, "th", `s${slot} ${stay.short}`);
      name.title = stay.label; name.scope = "row";
      const largest = Math.max(...values.map(Math.abs), 1e-6); // what is smaller is rounding, and stays pale
      for (const value of values) {
        const cell = add(line, "td", number(value), value > 0 ? "pos" : value < 0 ? "neg" : "");
        cell.style.setProperty("--w", Math.abs(value) / largest);
        cell.title = String(value);
      }
    });
    const last = add(table, "tr");
    if (time === 2 * network.depth) { add(last, "th", "answer"); for (let i = shown.positions.length - shown.answer.length; i > 0; i--) add(last, "td", ""); shown.answer.forEach((value) => add(last, "td", value)); }
  };
  // The network on inputs that are not shown: random ones over its vocabulary, drawn by the server.
  const others = (box, state) => {
    const button = add(box, "button", "Try 20 other inputs"), result = add(box, "p", "", "soft");
    button.id = "others"; result.id = "others-result"; result.setAttribute("role", "status");
    button.addEventListener("click", async () => {
      const reply = await Locum.ask("apply", { ...asked(state), others: 20, seed: Math.floor(Math.random() * 2 ** 32) });
      if (!reply) return;
      const wrong = reply.ok ? reply.runs.find((run) => !run.agrees) : null;
      // Where the program itself has no value, the network refuses the input.
      const text = (values) => (values ? values.join(" ") : `no value (${wrong.problem})`), defined = reply.ok ? reply.runs.filter((run) => !run.problem).length : 0;
      result.textContent = !reply.ok ? reply.error : wrong ? `differs on ${wrong.input.join(" ")}: ${text(wrong.output)} instead of ${text(wrong.expected)}`
        : !defined ? `the program has no value on any of ${reply.runs.length}` : `✓ the same as the program on all ${defined}${defined < reply.runs.length ? ` on which it has a value (of ${reply.runs.length})` : ""}${upTo(reply.runs)}`;
      result.className = reply.ok && !wrong ? "good" : "bad";
    });
  };
  return { show, options, fields: () => Object.keys(defaults()) };
})();
