// Panes of a program: heads, values, counts and claims (weights.js has the fourth).
"use strict";
Locum.panes = (() => {
  const { add, clear, byId, link, grid } = Locum;
  const MAX_DRAWN = 32;
  const say = (pane, text, kind = "bad") => add(clear(byId(pane)), "p", text, kind);

  // Heads: layers as columns. `ask` answers null where the program has changed meanwhile.
  const heads = async (state, ask) => {
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
  const counts = async (state, ask) => {
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
    const { ask } = Locum;
    add(pane, "h3", "prove a lemma of the paper, for all inputs of a shape");
    const row = add(pane, "div", null, "row"), name = Locum.labelled(row, "claim", document.createElement("select"));
    for (const claim of Locum.catalogue.claims) add(name, "option", `${claim.name} ${claim.parameters.join(" ")}`).value = claim.name;
    name.value = "attention"; name.id = "claim";
    const shape = Locum.labelled(row, "shape", document.createElement("input")); shape.value = "2 2 2"; shape.className = "wide"; shape.id = "shape";
    const button = add(row, "button", "Prove"), text = add(pane, "pre", ""); button.id = "prove"; text.id = "proof"; text.hidden = true;
    const asked = () => ({ name: name.value, shape: (shape.value.trim() === "" ? [] : shape.value.trim().split(/\s+/)).map((one) => (Number.isNaN(Number(one)) ? one : Number(one))) });
    button.addEventListener("click", async () => {
      const reply = await ask("prove", asked());
      if (reply) { text.textContent = reply.ok ? reply.text : reply.error; text.hidden = false; }
    });
    Locum.certificate(add(row, "button", "Certificate"), text, asked, "prove").id = "certificate";
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
  return { heads, values, counts, say, MAX_DRAWN };
})();
