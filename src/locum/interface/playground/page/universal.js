// The mode Universal simulator: editable matrices X, A and V, the tokens ⟨T, X⟩, and the steps of U, each with the direct formula.
"use strict";
Locum.universal = (() => {
  const { add, clear, byId, ask, number } = Locum;
  const LARGEST = 6, NAMES = ["X", "A", "V"];
  let state, changed, reply = null, step = 0, typed = new Map(), from = "";
  const size = (name) => [state[name].length, state[name][0].length];
  const random = (rows, columns) => Array.from({ length: rows }, () => Array.from({ length: columns }, () => Math.round((Math.random() * 2 - 1) * 100) / 100));
  const resized = (rows, r, c) => Array.from({ length: r }, (_, i) => Array.from({ length: c }, (_, j) => (rows[i] && rows[i][j] !== undefined ? rows[i][j] : i === j ? 1 : 0)));
  const asked = () => ({ X: state.X, A: state.A, V: state.V, recipe: state.recipe, temperature: state.temperature, ...(state.base === null ? {} : { base: state.base }) });

  // Invalid entries: their places and messages.
  const refuse = (what, expected, text) => typed.set(what, `${what}: expected ${expected}, got ${text.trim() === "" ? "nothing" : text}`);
  const expected = (text) => (Locum.isPlain(text) ? "a number that floats hold to its last digit (15 digits always are)" : "a number");
  // A box for a number. Other text gives an error message and no result.
  const entry = (input, what, set) => {
    input.setAttribute("aria-label", what);
    input.addEventListener("input", () => {
      const text = input.value.trim().replace("−", "-"), value = Locum.numberOf(text), isNumber = value !== null;
      input.setAttribute("aria-invalid", String(!isNumber));
      if (isNumber) { typed.delete(what); set(value); } else refuse(what, expected(text), input.value);
      run();
    });
  };
  const problem = () => [...typed.values()][0] || "";

  const edit = (parent, name) => {
    const box = add(parent, "div", null, "matrix"), table = add(box, "table"), [rows, columns] = size(name);
    add(table, "caption", `${name} (${rows}×${columns})`);
    state[name].forEach((row, i) => {
      const line = add(table, "tr");
      row.forEach((value, j) => {
        const input = add(add(line, "td"), "input");
        Object.assign(input, { value: String(value), inputMode: "decimal", id: `u-${name}-${i}-${j}` });
        entry(input, `${name} row ${i} column ${j}`, (now) => { state[name][i][j] = now; });
      });
    });
  };
  const dimensions = (left) => {
    const sizes = add(left, "div", null, "row"), n = state.X.length, d = state.A.length, dv = state.V[0].length;
    const shape = (n, d, dv) => { state.X = resized(state.X, n, d); state.A = resized(state.A, d, d); state.V = resized(state.V, d, dv); };
    const dimension = (text, value, set) => {
      const input = Locum.labelled(sizes, text, document.createElement("input"));
      Object.assign(input, { inputMode: "numeric", className: "size", value, id: `u-${text}` });
      input.addEventListener("input", () => {
        const now = input.value.trim(), isSize = /^[0-9]+$/.test(now) && Number(now) >= 1 && Number(now) <= LARGEST;
        input.setAttribute("aria-invalid", String(!isSize));
        if (!isSize) { refuse(text, `an integer from 1 to ${LARGEST}`, input.value); run(); return; }
        set(Number(now)); draw(); run();
        byId(input.id).focus();
      });
    };
    dimension("n", n, (value) => shape(value, d, dv));
    dimension("d", d, (value) => shape(n, value, dv));
    dimension("d_v", dv, (value) => shape(n, d, value));
    const presets = add(left, "div", null, "row");
    const preset = (text, make) => add(presets, "button", text).addEventListener("click", () => { from = ""; Object.assign(state, make()); draw(); run(); });
    for (const [name, matrices] of Object.entries(Locum.catalogue.presets)) preset(name, () => structuredClone(matrices));
    preset("Random", () => ({ X: random(n, d), A: random(d, d), V: random(d, dv) }));
  };
  const draw = () => {
    typed = new Map();
    const main = clear(byId("universal")), left = add(main, "section"), right = add(main, "section");
    left.setAttribute("aria-label", "T and X"); right.setAttribute("aria-label", "steps of U");
    const formula = add(left, "h2", "");
    add(left, "p", "U is one fixed network for every T of an order (n, d, d_v). It receives the attention head T = (A, V) and its input X as tokens, and computes T(X).", "soft");
    if (from) add(left, "p", `T is ${from}; the rows of X are the positions of the input.`).id = "u-from";
    dimensions(left);
    for (const name of NAMES) edit(left, name);
    const choices = add(left, "div", null, "row"), recipe = Locum.labelled(choices, "recipe", document.createElement("select"));
    recipe.id = "u-recipe";
    for (const one of Locum.catalogue.recipes) add(recipe, "option", one).value = one;
    recipe.value = state.recipe;
    recipe.addEventListener("change", () => { state.recipe = recipe.value; run(); });
    const base = Locum.labelled(choices, "base", document.createElement("input"));
    Object.assign(base, { value: state.base === null ? "e" : String(state.base), id: "u-base", className: "wide", title: "e, or a number; Figure 2 of the paper uses 2.718" });
    base.addEventListener("input", () => {
      const text = base.value.trim(), value = Locum.numberOf(text), isBase = text === "e" || value !== null;
      base.setAttribute("aria-invalid", String(!isBase));
      if (isBase) { typed.delete("base"); state.base = text === "e" ? null : value; } else refuse("base", expected(text), base.value);
      run();
    });
    const heat = Locum.labelled(add(left, "div", null, "row"), "temperature", document.createElement("input"));
    Object.assign(heat, { type: "range", min: 0, max: 3, step: 0.05, value: state.temperature, id: "u-temperature" });
    const degrees = add(heat.parentElement, "span", "");
    const tell = () => {
      const t = state.temperature;
      degrees.textContent = t === 0 ? " 0: hard attention" : ` ${t}`;
      formula.textContent = t === 0 ? "T(X) = hardmax(X A Xᵀ) X V" : `T(X) = softmax(X A Xᵀ${t === 1 ? "" : ` / ${t}`}) X V`;
    };
    heat.addEventListener("input", () => { state.temperature = Number(heat.value); tell(); run(); });
    tell();
    add(right, "p", "", "bad").id = "u-problem";
    byId("u-problem").setAttribute("role", "status");
    const result = add(right, "div"); result.id = "u-result";
    add(result, "h3", "⟨T, X⟩: the tokens that U receives");
    add(result, "div", null, "strip").id = "u-tokens";
    add(result, "h3", "layers of U, which are the same for every T of this order");
    add(result, "ol").id = "u-layers";
    add(result, "h3", "steps of U");
    add(result, "div", null, "steps").id = "u-steps";
    add(result, "div").id = "u-step";
    add(result, "p", "", "soft").id = "u-error";
  };
  // Every change marks the displayed results as outdated.
  const run = () => {
    byId("u-result").classList.add("stale");
    byId("u-problem").textContent = "";
    Locum.forget("explain");
    runLater();
  };
  const runLater = Locum.later(60, async () => {
    changed();
    const now = problem() ? { ok: false, error: problem() } : await ask("explain", asked());
    if (!now) return;
    byId("u-problem").textContent = now.ok ? "" : now.error;
    byId("u-result").hidden = !now.ok;
    if (!now.ok) return;
    byId("u-result").classList.remove("stale");
    reply = now;
    step = Math.min(step, reply.steps.length - 1);
    const { layers, heads } = reply.architecture;
    byId("u-error").textContent = `U of order (${reply.order.join(", ")}): ${layers} layers with ${heads.join(", ")} heads; largest difference from the direct formula in float64: ${reply.error.toExponential(2)}`;
    const strip = clear(byId("u-tokens"));
    for (const token of reply.tokens) add(strip, "span", number(token.value), token.entry[0]).title = `${token.entry} = ${token.value}`;
    const buttons = clear(byId("u-steps"));
    const move = (by) => { step = (step + by + reply.steps.length) % reply.steps.length; show(); };
    add(buttons, "button", "◀").addEventListener("click", () => move(-1));
    reply.steps.forEach((one, i) => add(buttons, "button", one.name).addEventListener("click", () => { step = i; show(); }));
    add(buttons, "button", "▶").addEventListener("click", () => move(1));
    buttons.firstChild.setAttribute("aria-label", "previous step"); buttons.lastChild.setAttribute("aria-label", "next step");
    show();
  });
  // The layers of U. Layers before the current step are marked as done, and its last layer as the current one.
  const layers = (count) => {
    const list = clear(byId("u-layers")), { heads } = reply.architecture;
    add(list, "li", "⟨T, X⟩", count === 0 ? "used" : "done");
    heads.forEach((size, layer) => {
      const item = add(list, "li", `layer ${layer}: ${size} head${size === 1 ? "" : "s"} `, layer + 1 === count ? "used" : layer < count ? "done" : "");
      for (let n = 0; n < Math.min(size, 40); n++) add(item, "i");
      if (layer + 1 === count) item.setAttribute("aria-current", "step");
    });
    add(list, "li", "T(X)", count === heads.length ? "done" : "");
  };
  const show = () => {
    const one = reply.steps[step], box = clear(byId("u-step"));
    [...byId("u-steps").children].slice(1, -1).forEach((button, i) => button.setAttribute("aria-pressed", String(i === step)));
    add(box, "h3", `step ${step + 1} of ${reply.steps.length}: ${one.name}`).id = "u-step-name";
    Locum.matrix(box, "computed by U", one.matrix, one.direct).id = "u-matrix";
    Locum.matrix(box, "computed by the formula", one.direct);
    add(box, "p", `largest difference: ${one.error.toExponential(2)}`, "soft").id = "u-step-error";
    const made = one["made by"];
    layers(made.layers);
    add(box, "p", made.layers ? `computed by ${made.heads.reduce((a, b) => a + b, 0)} heads in ${made.layers} layer${made.layers === 1 ? "" : "s"} (${made.heads.join(", ")}); selectors of the last layer:` : "computed without heads: the step is a view of the tokens", "soft");
    for (const selector of made.selectors) add(box, "div", selector, "mono soft");
  };
  return {
    // The head of a compiled network from which the matrices were taken.
    origin: (text) => { from = text; },
    open: (given, onchange) => { state = given; changed = onchange; draw(); run(); },
    initial: () => ({ ...structuredClone(Object.values(Locum.catalogue.presets)[0] || {}), ...Locum.catalogue.defaults.universal }),
    problem, asked, LARGEST,
  };
})();
