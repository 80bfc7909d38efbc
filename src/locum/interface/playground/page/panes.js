// The panes Heads, Values and Counts (the pane Weights is in weights.js).
"use strict";
Locum.panes = (() => {
  const { add, clear, byId, link, grid } = Locum;
  const MAX_DRAWN = 32;
  const say = (pane, text, kind = "bad") => add(clear(byId(pane)), "p", text, kind);

  // Heads, with layers as columns. `ask` returns null if the program has changed in the meantime.
  const heads = async (state, ask) => {
    const reply = await ask("draw", { source: state.source, input: state.input, ...(state.name ? { name: state.name } : {}) });
    if (!reply) return;
    const pane = byId("heads");
    if (!reply.ok) { say("heads", reply.error); return; }
    clear(pane);
    add(pane, "p", `${reply.name}(${reply.input.join(" ")}) = ${reply.output.join(" ")}`, "mono");
    if (reply.input.length > MAX_DRAWN) { add(pane, "p", `Grids are drawn for at most ${MAX_DRAWN} tokens.`, "soft"); return; }
    if (!reply.layers.length) add(pane, "p", "No heads: feed-forwards compute each position from its own token and index.", "soft");
    const columns = add(pane, "div", null, "layers");
    reply.layers.forEach((layer, number) => {
      const column = add(columns, "div", null, "layer");
      add(column, "h3", `layer ${number}`);
      for (const head of layer) {
        const card = link(add(column, "div", null, "head"), head.statements);
        card.tabIndex = 0;
        card.dataset.head = head.number;
        add(card, "div", `head ${head.number}`, "number");
        add(card, "div", head.label, "title");
        if (head.for) add(card, "div", `for ${head.for}`, "soft");
        grid(card, { tokens: reply.input, rows: head.pattern, values: head.values });
        for (const [v, value] of head.values.entries()) add(card, "div", `${head.values.length > 1 ? v + ": " : ""}moves ${value.label}`, "soft");
        if (head.note) add(card, "div", head.note, "soft");
        add(card, "div", "", "became");
      }
    });
  };

  // Values of every s-op on the input. S-ops that were run on another input (by a call, or before `set example`) have a separate table.
  const values = (result) => {
    const pane = clear(byId("values"));
    const shown = result.statements.flatMap((s, n) => (s.parts || [s]).map((part) => [part, n]));
    const table = (caption, input) => {
      const made = add(pane, "table", null, "list"), top = add(made, "tr");
      add(made, "caption", caption);
      for (const text of ["s-op", "type", ...input]) add(top, "th", text);
      return made;
    };
    const row = (into, part, n) => {
      const line = n === null ? add(into, "tr") : link(add(into, "tr"), [n]);
      if (n !== null) line.tabIndex = 0;
      add(line, "td", part.name || "out"); add(line, "td", part.type || "");
      for (const value of part.values) add(line, "td", value, "cell");
    };
    const first = table("values of every s-op on the input", result.input), others = new Map();
    row(first, { name: "tokens", values: result.input }, null);
    for (const [part, n] of shown) {
      if (part.kind !== "s-op") continue;
      if (!part.input) { row(first, part, n); continue; }
      const input = JSON.stringify(part.input);
      if (!others.has(input)) others.set(input, table(`on ${part.input.join(" ")}, an input that the program sets`, part.input));
      row(others.get(input), part, n);
    }
    const selectors = shown.filter(([part]) => part.kind === "selector" && part.matrix && part.matrix.length <= MAX_DRAWN);
    if (selectors.length) {
      add(pane, "h3", "selectors");
      const cards = add(pane, "div", null, "row");
      for (const [part, n] of selectors) {
        const card = link(add(cards, "div", null, "head"), [n]);
        add(card, "div", part.name || "out", "title");
        grid(card, { tokens: part.input || result.input, rows: part.matrix, values: [], caption: part.input ? `on ${part.input.join(" ")}` : "" });
      }
    }
  };

  // Layers and heads of every s-op and selector.
  const counts = async (state, ask) => {
    const reply = await ask("analyse", { source: state.source, input: state.input });
    if (!reply) return;
    const box = clear(byId("counts"));
    if (!reply.ok) { add(box, "p", reply.error, "bad"); return; }
    const table = add(box, "table", null, "list"), top = add(table, "tr");
    add(table, "caption", "layers and heads of each s-op and selector, as in the pane Heads; the compiler may merge heads");
    for (const text of ["name", "layers", "heads per layer", "width"]) add(top, "th", text);
    for (const one of reply.programs) {
      const line = link(add(table, "tr"), one.statements);
      line.tabIndex = 0;
      for (const text of [one.name, one.layers, one.heads.join(", ") || "none", one.width]) add(line, "td", text);
    }
  };
  return { heads, values, counts };
})();
