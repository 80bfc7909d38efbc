// The panes Tests and Compare: a table of inputs with expected outputs, and a comparison of two programs or networks.
"use strict";
Locum.tests = (() => {
  const { add, byId, clear } = Locum, MOST = 50;
  let rows = [["", ""]], changed = () => {}, later = () => {};
  const filled = () => rows.filter(([input]) => input !== "");
  const draw = (pane) => {
    clear(pane);
    add(pane, "p", "Each row is an input and its expected output: one character for each value (T and F for booleans), or a list such as [1, 0.5]. Rows are checked while you type.", "soft");
    const table = add(pane, "table", null, "list tests"), top = add(table, "tr");
    add(table, "caption", "inputs and expected outputs");
    for (const text of ["", "input", "expected", "output", "row"]) Object.assign(add(top, text ? "th" : "td", text || ""), text ? { scope: "col" } : {});
    rows.forEach((row, i) => {
      const line = add(table, "tr");
      add(line, "td", "", "mark");
      row.forEach((value, which) => {
        const box = add(add(line, "td"), "input");
        Object.assign(box, { value, spellcheck: false, autocomplete: "off", readOnly: Boolean(Locum.saved), className: "mono" });
        box.setAttribute("aria-label", `${which ? "expected output" : "input"} ${i + 1}`);
        box.addEventListener("input", () => { row[which] = box.value; if (i === rows.length - 1 && rows.length < MOST) { rows.push(["", ""]); grow(pane); } changed(); later(); });
      });
      add(line, "td", "", "output mono");
      const remove = add(add(line, "td"), "button", "✕");
      remove.setAttribute("aria-label", `remove row ${i + 1}`);
      remove.addEventListener("click", () => { rows.splice(i, 1); if (!rows.length) rows.push(["", ""]); draw(pane); changed(); later(); });
    });
    const summary = add(pane, "p", "", "soft");
    summary.id = "tests-summary";
    summary.setAttribute("role", "status");
  };
  // Add an empty row, and keep the focus in the current cell.
  const grow = (pane) => {
    const at = [...pane.querySelectorAll("input")].indexOf(document.activeElement), place = document.activeElement.selectionStart;
    draw(pane);
    const box = pane.querySelectorAll("input")[at];
    if (box) { box.focus(); box.setSelectionRange(place, place); }
  };
  const open = () => { if (!byId("tests").firstChild) draw(byId("tests")); };
  const show = async (state, ask) => {
    const pane = byId("tests"), given = filled();
    open();
    const lines = [...pane.querySelectorAll("tr")].slice(1), say = (text, kind = "soft") => { byId("tests-summary").textContent = text; byId("tests-summary").className = kind; };
    if (!given.length) { for (const line of lines) blank(line); say("Type an input into the first row."); return; }
    const reply = await ask("table", { source: state.source, ...(state.name ? { name: state.name } : {}), inputs: given.map((row) => row[0]), expected: given.map((row) => row[1]) });
    if (!reply) return;
    if (!reply.ok) { for (const line of lines) blank(line); say(reply.error, "bad"); return; }
    let n = 0;
    lines.forEach((line, i) => {
      if (!rows[i] || rows[i][0] === "") { blank(line); return; }
      const row = reply.rows[n++], output = clear(line.querySelector(".output"));
      line.className = row.holds === null ? "" : row.holds ? "holds" : "fails";
      Object.assign(line.querySelector(".mark"), { textContent: row.holds === null ? "" : row.holds ? "✓" : "✗" });
      if (row.values) row.values.forEach((value, k) => { const cell = add(output, "span", value, row.places && !row.places[k] ? "wrong" : ""); if (row.places && !row.places[k]) cell.title = `expected ${row.expected[k]}`; output.append(" "); });
      if (row.problem) add(output, "span", row.problem, "bad");
    });
    const judged = reply.rows.filter((row) => row.holds !== null), right = judged.filter((row) => row.holds).length;
    say(judged.length ? `${reply.name} has the expected output in ${right} of ${judged.length} rows` : `output of ${reply.name}`, judged.length && right === judged.length ? "good" : judged.length ? "bad" : "soft");
  };
  const blank = (line) => { line.className = ""; clear(line.querySelector(".output")); line.querySelector(".mark").textContent = ""; };
  const isRows = (value) => Array.isArray(value) && value.length <= MOST && value.every((row) => Array.isArray(row) && row.length === 2 && row.every((cell) => typeof cell === "string"));
  return {
    open, show, isRows,
    start: (onchange, again) => { changed = onchange; later = Locum.later(150, again); },
    rows: () => filled(),
    set: (given) => { rows = [...given.map((row) => [...row]), ["", ""]]; byId("tests").replaceChildren(); },
  };
})();

Locum.compare = (() => {
  const { add, byId, clear, grid } = Locum, OPTIONS = ["attention", "feed_forward", "causal"];
  let other = "", changed = () => {}, later = () => {}, second = {};
  const draw = (pane) => {
    clear(pane);
    const what = Locum.labelled(add(pane, "div", null, "row"), "compare with", document.createElement("select"));
    what.id = "compare-what";
    for (const [value, text] of [["program", "another program"], ["options", "the network with other options"]]) add(what, "option", text).value = value;
    const box = add(pane, "div"), text = Locum.labelled(box, "program B", document.createElement("textarea"));
    Object.assign(text, { id: "other", rows: 6, spellcheck: false, value: other, className: "mono" });
    text.addEventListener("input", () => { other = text.value; changed(); later(); });
    const row = add(box, "div", null, "row"), button = (words, work) => add(row, "button", words).addEventListener("click", () => { work(); changed(); later(); });
    button("Copy A to B", () => { other = text.value = Locum.editor.text(); });
    button("Swap A and B", () => { const mine = Locum.editor.text(); Locum.editor.set(other); other = text.value = mine; });
    const choices = add(pane, "div", null, "options");
    for (const name of OPTIONS) {
      const made = document.createElement(name === "causal" ? "input" : "select");
      if (name === "causal") { made.type = "checkbox"; made.checked = Boolean(second.causal); }
      else { for (const one of name === "attention" ? Locum.catalogue.attentions : Locum.catalogue.feedForwards) add(made, "option", one).value = one; made.value = second[name] || (name === "attention" ? "softmax" : "relu"); }
      Locum.labelled(choices, `B: ${name.replace("_", "-")}`, made);
      const read = () => { second[name] = name === "causal" ? made.checked : made.value; };
      read();
      made.addEventListener("input", () => { read(); later(); });
    }
    const switched = () => { box.hidden = what.value !== "program"; choices.hidden = what.value === "program"; };
    what.addEventListener("input", () => { switched(); later(); });
    switched();
    add(pane, "div").id = "compared";
  };
  const table = (parent, caption, rows) => {
    const made = add(parent, "table", null, "list"), top = add(made, "tr");
    add(made, "caption", caption);
    add(top, "td", "");
    for (const side of ["A", "B"]) add(top, "th", side).scope = "col";
    for (const [name, one, two] of rows) {
      const line = add(made, "tr", null, one === two ? "" : "differs");
      add(line, "th", name).scope = "row";
      add(line, "td", one); add(line, "td", two);
    }
  };
  const programs = async (state, ask) => {
    const result = byId("compared");
    if (!other.trim()) { add(clear(result), "p", "Program A is in the editor. Write program B above, or copy A to B and change it.", "soft"); return; }
    const reply = await ask("compare", { source: state.source, input: state.input, other });
    if (!reply) return;
    clear(result);
    if (!reply.ok) { add(result, "p", reply.error, "bad"); return; }
    const [a, b] = reply.sides, shown = (side) => (side.values ? side.values.join(" ") : `no value: ${side.problem}`), wrong = reply.difference;
    if (wrong) {
      const line = add(result, "p", `✗ They differ on ${wrong.input.join(" ")}: `, "bad");
      line.append(wrong.values.map((values, i) => `${"AB"[i]} returns ${values ? values.join(" ") : `no value (${wrong.problems[i]})`}`).join(", ") + " ");
      add(line, "button", "Show it").addEventListener("click", () => Locum.page.input(wrong.typed));
    } else add(result, "p", `✓ Both programs return the same values on all ${reply.checked} tested inputs: short and random longer inputs over the symbols of the input. This is not a proof.`, "good");
    table(result, `on ${reply.input.join(" ")}`, [["s-op", a.name, b.name], ["values", shown(a), shown(b)], ["layers", String(a.layers), String(b.layers)], ["heads", String(a.heads), String(b.heads)]]);
  };
  const networks = async (state, ask) => {
    const mine = Locum.weights.options(state), asked = { source: state.source, input: state.input, ...(state.name ? { name: state.name } : {}) };
    const { tolerance, ...without } = mine;
    const replies = await Promise.all([ask("compile", { ...asked, ...mine }, "compile A"), ask("compile", { ...asked, ...(second.feed_forward === "exact" ? without : mine), ...second }, "compile B")]);
    if (replies.includes(null)) return;
    const result = clear(byId("compared")), facts = replies.map((reply) => new Map(reply.ok ? reply.network.facts : [])), names = [...new Set(facts.flatMap((each) => [...each.keys()]))];
    const side = (reply, text) => (reply.ok ? text(reply) : reply.error);
    table(result, "network A has the options of the pane Weights", [
      ["output", ...replies.map((reply) => side(reply, ({ run }) => (run.output ? run.output.join(" ") : run.problem)))],
      ["same as the program", ...replies.map((reply) => side(reply, ({ run }) => (run.agrees ? "yes" : "no")))],
      ...names.map((name) => [name, ...facts.map((each) => each.get(name) || "–")]),
    ]);
    const columns = add(result, "div", null, "sides");
    replies.forEach((reply, i) => {
      const column = add(columns, "div");
      add(column, "h3", `heads of ${"AB"[i]}`);
      if (!reply.ok) { add(column, "p", reply.error, "bad"); return; }
      const shown = reply.network.inputs[0];
      reply.network.heads.forEach((heads, layer) => heads.forEach((head, n) => {
        const card = Locum.link(add(column, "div", null, "head"), head.statements);
        add(card, "div", `head ${head.name}: ${head.short}`, "title");
        grid(card, { tokens: shown.tokens, labels: shown.positions, rows: Locum.dense(shown.patterns[layer][n]), values: [] });
      }));
    });
  };
  const open = () => { if (!byId("compare").firstChild) draw(byId("compare")); };
  return {
    open,
    show: async (state, ask) => {
      open();
      await (byId("compare-what").value === "program" ? programs : networks)(state, ask);
    },
    start: (onchange, again) => { changed = onchange; later = Locum.later(150, again); },
    other: () => other,
    set: (text) => { other = text; byId("compare").replaceChildren(); },
  };
})();
