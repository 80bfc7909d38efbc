// Interventions in the pane Weights: ablated heads, and the temperature of all heads.
"use strict";
Locum.interventions = (() => {
  const { add, clear, grid } = Locum;
  // `asked` returns the fields of the request that compiled the network.
  const show = (parent, network, asked) => {
    const isSoft = asked().attention === "softmax", silent = new Set();
    let degrees = 1;
    const box = add(parent, "details", null, "intervene"), names = network.heads.flat();
    box.id = "intervene";
    add(box, "summary", "Ablate heads, change the temperature");
    add(box, "p", "The output of a checked head is replaced by 0 at every position. All scores are divided by the temperature before the softmax.", "soft");
    const row = add(box, "div", null, "options");
    for (const head of names) {
      const tick = Object.assign(document.createElement("input"), { type: "checkbox" });
      const label = add(row, "label");
      label.append(tick, ` ${Locum.weights.nameOf(head.name)}`);
      tick.addEventListener("input", () => { if (tick.checked) silent.add(head.name); else silent.delete(head.name); later(); });
    }
    if (!names.length) add(row, "p", "This network has no heads.", "soft");
    const heat = Locum.labelled(add(box, "div", null, "row"), "temperature", document.createElement("input"));
    Object.assign(heat, { type: "range", min: -2, max: 6, step: 0.25, value: 0, id: "heat", disabled: !isSoft });
    const said = add(heat.parentElement, "output", isSoft ? " 1" : " hard attention has no temperature: choose softmax attention in Details");
    heat.addEventListener("input", () => { degrees = Number((10 ** Number(heat.value)).toPrecision(3)); said.textContent = ` ${degrees}`; heat.setAttribute("aria-valuetext", String(degrees)); later(); });
    const result = add(box, "div");
    result.id = "intervened";
    result.setAttribute("role", "status");
    const run = async () => {
      const reply = await Locum.ask("intervene", { ...asked(), ablated: [...silent], temperature: degrees });
      if (!reply || !box.isConnected) return;
      clear(result);
      if (!reply.ok) { add(result, "p", reply.error, "bad"); return; }
      const line = add(result, "p", "output: ", "mono");
      (reply.output || []).forEach((value, i) => { add(line, "span", value, reply.places[i] ? "" : "wrong"); line.append(" "); });
      if (!reply.output) add(line, "span", reply.problem, "bad");
      add(result, "p", `program: ${reply.expected.join(" ")}`, "mono");
      add(result, "p", `wrong on ${reply.wrong} of ${reply.tried} random inputs`, reply.wrong ? "bad" : "good");
      const cards = add(result, "div", null, "row"), shown = network.inputs[0];
      network.heads.forEach((heads, layer) => heads.forEach((head, n) => {
        const pattern = reply.patterns[layer] && reply.patterns[layer][n];
        if (!pattern) return;
        const card = Locum.link(add(cards, "div", null, "head"), head.statements);
        add(card, "div", `${Locum.weights.nameOf(head.name)}${silent.has(head.name) ? " (ablated)" : ""}`, "title");
        grid(card, { tokens: shown.tokens, labels: shown.positions, rows: pattern, values: [] });
      }));
    };
    const later = Locum.later(120, run);
    box.addEventListener("toggle", () => { if (box.open && !result.firstChild) run(); });
  };
  return { show };
})();
