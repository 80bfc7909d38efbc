// The pane of weights: the compiled transformer, sublayer by sublayer, then options and properties.
"use strict";
Locum.weights = (() => {
  const { add, clear, byId, link, grid, number } = Locum;
  let network = null, moment = 0;

  // Requests and links contain all options explicitly, so that a link keeps its meaning if defaults change.
  // The server sends the defaults. Empty text boxes and cleared check boxes are omitted.
  const defaults = () => (Locum.catalogue ? Locum.catalogue.defaults.network : {});
  const chosen = (state) => ({ ...defaults(), ...state.options });
  const options = (state) => Object.fromEntries(Object.keys(defaults()).filter((f) => ![undefined, null, ""].includes(chosen(state)[f]) && (chosen(state)[f] !== false || defaults()[f])).map((f) => [f, chosen(state)[f]]));
  const form = (parent, state, change) => {
    const box = add(parent, "div", null, "options");
    const field = (name, text, element, read) => {
      Locum.labelled(box, text, element);
      element.id = "option-" + name;
      const value = chosen(state)[name];
      if (element.type === "checkbox") element.checked = Boolean(value);
      else if (value !== undefined && value !== null) element.value = value;
      element.addEventListener("input", () => { state.options[name] = read(element); change(element.tagName === "INPUT" && element.type !== "checkbox"); });
    };
    const input = (kind, hint) => { const made = document.createElement("input"); if (kind) made.className = kind; made.placeholder = hint; return made; };
    const tick = () => Object.assign(document.createElement("input"), { type: "checkbox" });
    const choice = (choices) => { const made = document.createElement("select"); for (const one of choices) add(made, "option", one).value = one; return made; };
    // Text that is not a number is sent unchanged, and the answer contains the error.
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
    if (!pane.querySelector(".options")) {
      clear(pane);
      add(pane, "div").id = "network";
      const details = add(pane, "details");
      details.id = "details";
      add(details, "summary", "Details: options and properties");
      form(details, state, change);
      add(details, "dl").id = "facts";
      add(details, "pre").id = "report";
    }
    const reply = await Locum.flow.compiled(asked(state), ask);
    if (!reply) return;
    const box = clear(byId("network")), facts = clear(byId("facts"));
    byId("report").hidden = !reply.ok || !reply.network.report;
    if (!reply.ok) {
      network = null;
      add(box, "p", reply.error, reply.server ? "soft" : "bad");
      byId("details").open = true;
      if (!reply.error.includes("feed_forward='exact'")) return;
      const exact = add(box, "button", "Try exact feed-forwards");
      exact.id = "try-exact";
      exact.addEventListener("click", () => { state.options.feed_forward = byId("option-feed_forward").value = "exact"; state.options.tolerance = byId("option-tolerance").value = ""; change(false); });
      return;
    }
    network = reply.network;
    for (const [name, value] of network.facts) { const pair = add(facts, "div"); add(pair, "dt", name); add(pair, "dd", value); }
    byId("report").textContent = network.report;
    const off = upTo([reply.run]);
    add(box, "p", reply.run.agrees ? `✓ the network and the program return the same output on this input${off}` : `✗ the network returns ${reply.run.output.join(" ")}, but the program returns ${reply.run.expected.join(" ")}${off}`, reply.run.agrees ? "good" : "bad");
    const row = add(box, "div", null, "row"), back = add(row, "button", "◀"), slider = add(row, "input"), next = add(row, "button", "▶");
    Object.assign(slider, { type: "range", min: 0, max: 2 * network.depth, step: 1, id: "moment" });
    slider.setAttribute("aria-label", "sublayer");
    back.setAttribute("aria-label", "previous sublayer"); next.setAttribute("aria-label", "next sublayer"); next.id = "moment-next";
    add(row, "strong", "").id = "moment-name";
    add(box, "div").id = "sublayer";
    slider.addEventListener("input", () => go(Number(slider.value)));
    back.addEventListener("click", () => go(moment - 1));
    next.addEventListener("click", () => go(moment + 1));
    go(moment);
    others(box, state);
    Locum.interventions.show(box, network, () => asked(state));
  };
  // Show the network after a sublayer; the first one is the embedding.
  const go = (time) => {
    moment = time;
    if (!network || !byId("moment")) return;
    moment = Math.max(0, Math.min(time, 2 * network.depth));
    byId("moment").value = moment;
    sublayer();
    byId("moment").setAttribute("aria-valuetext", byId("moment-name").textContent);
    Locum.flow.mark(moment);
    Locum.light(Locum.lit);
  };
  const held = (slot, time) => network.slots[slot].find((s) => s.first <= time && time < s.until);

  // Rows of weights of the slots that are read or written, labelled with the values in these slots.
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
    const of = (n) => network.flow.made.find(({ at }) => at[0] === layer && at[1] === n), heads = network.heads[layer].map((head, n) => [head, n, of(n)]);
    heads.sort((one, other) => one[2].first - other[2].first || one[1] - other[1]);
    heads.forEach(([head, n, made]) => {
      const card = link(add(row, "div", null, "head"), head.statements);
      card.tabIndex = 0;
      add(card, "div", made.title, "number");
      add(card, "div", made.name, "title").title = head.label;
      add(card, "div", `layer ${layer}, head ${n} of the network`, "soft");
      const both = add(card, "div", null, "row");
      grid(both, { tokens: shown.tokens, labels: shown.positions, rows: Locum.dense(shown.patterns[layer][n]), values: [], caption: "pattern" });
      Locum.scores(both, { labels: shown.positions, rows: shown.scores[layer][n] });
      for (const move of head.moves) add(card, "div", move, "soft mono");
      const details = add(card, "details");
      add(details, "summary", "weights");
      openInU(card, head.universal, `${made.title} (${made.name}), layer ${layer}, head ${n} of the network`);
      for (const [name, matrix] of Object.entries(head.weights)) {
        const dense = Locum.dense(matrix), shape = `${matrix.shape.join("×")}`;
        if (name === "W_O") rows(details, `W_Oᵀ (of ${shape}): rows are slots`, turned(dense), time);
        else rows(details, `${name} (${shape}): rows are slots`, dense, time - 1);
      }
    });
    if (!network.heads[layer].length) add(did, "p", "no head in this layer", "soft");
    if (network.leftOut[layer]) add(did, "p", `… and ${network.leftOut[layer]} more heads`, "soft");
  };
  const openInU = (card, { why, ...matrices }, from) => {
    const button = add(card, "button", "Open this head in U");
    button.disabled = Boolean(why);
    if (why) add(card, "div", `U cannot simulate this head: ${why}.`, "soft");
    button.addEventListener("click", () => Locum.openU(matrices, from));
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
  // If many slots only encode the position, these slots are hidden at first.
  const POSITION = /^(not \()*(indicator\()?\(?indices == \d+\)*$/, FEW = 2;
  const fold = (table, lines) => {
    const line = add(table, "tr"), button = add(Object.assign(add(line, "td"), { colSpan: 2 }), "button", "");
    const set = (isHidden) => {
      for (const one of lines) one.hidden = isHidden;
      button.textContent = `${isHidden ? "show" : "hide"} ${lines.length} slots that encode positions`;
      button.setAttribute("aria-expanded", String(!isHidden));
    };
    button.addEventListener("click", () => set(!lines[0].hidden));
    set(true);
  };
  const sublayer = () => {
    const time = moment, shown = network.inputs[0], box = clear(byId("sublayer")), layer = Math.ceil(time / 2) - 1;
    byId("moment-name").textContent = time === 0 ? "after the embedding" : `after layer ${layer}'s ${time % 2 ? "attention" : "feed-forward"}`;
    const did = add(box, "div");
    for (const head of network.flow.heads) if (!head.at.length && head.part !== undefined && Locum.flow.timeOf(head.part, network.depth) === time) add(did, "p", `head ${head.numbers.join(", ")}: ${head.text}`, "soft");
    if (time % 2) attention(did, layer, shown, time);
    else if (time) feedForward(did, layer, time);
    const table = add(box, "table", null, "stream"), top = add(table, "tr"), written = new Set(network.written[time]);
    add(table, "caption", "residual stream: a row for each slot, a column for each position");
    add(top, "th", "slot");
    shown.positions.forEach((token) => { add(top, "th", token).scope = "col"; });
    const folded = [];
    shown.stream[time].forEach((values, slot) => {
      const stay = held(slot, time);
      if (!stay) return;
      const line = link(add(table, "tr", null, (written.has(slot) ? "written " : "") + (time >= stay.last ? "idle" : "")), stay.statements);
      line.tabIndex = 0;
      const codes = new Map(stay.codes), name = add(line, "th", `s${slot} ${codes.size && !stay.short.startsWith("code of ") ? "code of " : ""}${stay.short}`);
      name.title = stay.label; name.scope = "row";
      if (POSITION.test(stay.label)) folded.push(line);
      const largest = Math.max(...values.map(Math.abs), 1e-6); // smaller values are rounding errors and remain pale
      for (const [place, value] of values.entries()) {
        const isCode = codes.has(value) && place >= shown.positions.length - shown.tokens.length; // the sink has no token
        const cell = add(line, "td", isCode ? codes.get(value) : number(value), value > 0 ? "pos" : value < 0 ? "neg" : "");
        cell.style.setProperty("--w", Math.abs(value) / largest);
        cell.title = isCode ? `the number ${value} encodes ${codes.get(value)}` : String(value);
      }
    });
    if (folded.length > FEW) fold(table, folded);
    const last = add(table, "tr");
    if (time === 2 * network.depth) { add(last, "th", "answer"); for (let i = shown.positions.length - shown.answer.length; i > 0; i--) add(last, "td", ""); shown.answer.forEach((value) => add(last, "td", value)); }
  };
  // Run the network on random inputs over its vocabulary, which the server draws.
  const others = (box, state) => {
    const button = add(box, "button", "Try 20 other inputs"), result = add(box, "p", "", "soft");
    button.id = "others"; result.id = "others-result"; result.setAttribute("role", "status");
    button.addEventListener("click", async () => {
      const reply = await Locum.ask("apply", { ...asked(state), others: 20, seed: Math.floor(Math.random() * 2 ** 32) });
      if (!reply) return;
      const wrong = reply.ok ? reply.runs.find((run) => !run.agrees) : null;
      // If the program has no value, the network rejects the input.
      const text = (values) => (values ? values.join(" ") : `no value (${wrong.problem})`), defined = reply.ok ? reply.runs.filter((run) => !run.problem).length : 0;
      result.textContent = !reply.ok ? reply.error : wrong ? `different on ${wrong.input.join(" ")}: the network returns ${text(wrong.output)} instead of ${text(wrong.expected)}`
        : !defined ? `the program is undefined on all ${reply.runs.length} inputs` : `✓ same outputs as the program on all ${defined}${defined < reply.runs.length ? ` of ${reply.runs.length} inputs on which the program is defined` : " inputs"}${upTo(reply.runs)}`;
      result.className = reply.ok && !wrong ? "good" : "bad";
    });
  };
  // The name of a head in all panes, given its name in the network, such as 1.0.
  const nameOf = (name) => {
    const made = network.flow.made.find(({ at }) => at.join(".") === name);
    return `${made.title} (${made.name})`;
  };
  return { show, go, asked, nameOf, options, fields: () => Object.keys(defaults()) };
})();
