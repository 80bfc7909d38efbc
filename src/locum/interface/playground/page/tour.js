// A tour in six cards, from `indices` to U; each card loads a program and opens the pane that shows it.
// Terms of the glossary are in double brackets; their definitions are shown on hover and on focus.
"use strict";
Locum.terms = (() => {
  const { add, byId } = Locum;
  const tip = add(document.querySelector("footer"), "div");
  Object.assign(tip, { id: "gloss", hidden: true });
  tip.setAttribute("role", "tooltip");
  let shown = null;
  const hide = () => { if (shown) shown.removeAttribute("aria-describedby"); shown = null; tip.hidden = true; };
  const show = (element) => {
    hide();
    shown = element;
    element.setAttribute("aria-describedby", "gloss");
    tip.replaceChildren();
    add(tip, "strong", element.dataset.term);
    add(tip, "span", `: ${Locum.glossary[element.dataset.term]}`);
    tip.hidden = false;
    const box = element.getBoundingClientRect(), width = document.documentElement.clientWidth;
    tip.style.left = `${Math.max(8, Math.min(box.left, width - tip.offsetWidth - 8))}px`;
    const below = box.bottom + 6, fits = below + tip.offsetHeight < innerHeight;
    tip.style.top = `${fits ? below : Math.max(8, box.top - tip.offsetHeight - 6)}px`;
  };
  const termOf = (event) => event.target.closest && event.target.closest("[data-term]");
  for (const kind of ["pointerover", "focusin", "click"]) document.addEventListener(kind, (event) => { const term = termOf(event); if (term) show(term); else if (kind !== "focusin") hide(); });
  document.addEventListener("focusout", (event) => { if (termOf(event)) hide(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("scroll", hide, true);
  // A word with a definition in the glossary. `word` is another form of the word to show, as in "[[head|heads]]".
  const term = (parent, name, word = name) => {
    const made = add(parent, "span", word, "term"); // a button would not be broken into lines with its text
    made.tabIndex = 0;
    made.setAttribute("role", "button");
    made.dataset.term = name;
    return made;
  };
  // A paragraph with terms in double brackets and program text in backquotes.
  const prose = (parent, text, kind) => {
    const made = add(parent, "p", "", kind);
    for (const part of text.split(/(\[\[[^\]]+\]\]|`[^`]+`)/)) {
      if (part.startsWith("[[")) { const [name, word] = part.slice(2, -2).split("|"); term(made, name, word); }
      else if (part.startsWith("`")) add(made, "code", part.slice(1, -1));
      else made.append(part);
    }
    return made;
  };
  // The terms of a pane, in the footer.
  const PANES = {
    heads: ["s-op", "selector", "query, key", "head", "default"], values: ["s-op", "selector", "query, key"], counts: ["head", "claim", "proven"],
    weights: ["compile", "slot", "sink", "head", "hard, softmax", "MLP", "error bound"], tests: ["s-op"], compare: ["s-op", "head", "hard, softmax"],
    universal: ["U", "T, X", "⟨T, X⟩", "order", "recipe", "head"],
  };
  const list = (pane) => {
    const box = byId("terms");
    if (box.dataset.pane === pane) return;
    box.dataset.pane = pane;
    box.replaceChildren("Glossary: ");
    for (const name of PANES[pane] || []) { term(box, name); box.append(" "); }
  };
  return { prose, list };
})();

Locum.tour = (() => {
  const { add, byId, clear } = Locum;
  const FLIP = "mirror = length - 1 - indices;\nflip = select(indices, mirror, ==);\n", REVERSE = FLIP + "reverse = aggregate(flip, tokens);\n";
  const rasp = (source, pane, more = {}) => ({ source, input: "hello", pane, mode: "rasp", ...more });
  // The state of U that "Open this head in U" opens for the head `flip`, or the first preset of U if the server does not answer.
  const inU = async () => {
    const reply = await Locum.ask("compile", { source: REVERSE, input: "hello" }, "tour"), flip = reply && reply.ok ? reply.network.heads[1][0].universal : {};
    return rasp(REVERSE, "heads", { mode: "universal", u: { ...Locum.universal.initial(), ...(flip.X ? flip : {}) } });
  };
  const CARDS = [
    {
      title: "An s-op has one value at each position",
      text: ["Each line defines an [[s-op]], computed from `indices` (0, 1, 2, …) and `tokens` (the input). The values are at the end of each line and in the table. Try the input `world`."],
      open: () => rasp('place = indices;\nletter = tokens;\nis_l = tokens == "l";\n', "values"),
    },
    {
      title: "A selector chooses which positions are read",
      text: ["`select(keys, queries, ==)` compares the key of each position with the query of each position. The result is a [[selector]].",
        "In the grid, each row is a query (a position that reads), and each column is a key (a position that is read). The first query selects the last key, because `mirror` is 4 at the first position."],
      open: () => rasp(FLIP, "values"),
    },
    {
      title: "A head moves values along a selector",
      text: ["`aggregate(flip, tokens)` returns the mean of the tokens at the selected keys for each query. Here, each query selects one key.",
        "A selector and the values that move along it form an [[head|attention head]]. In layer 1, the head `flip` reads the values in the bottom row, h e l l o. The last column contains the value that each position receives, o l l e h. The next card explains layer 0."],
      open: () => rasp(REVERSE, "heads"),
    },
    {
      title: "Lines of the program become heads",
      text: ["Each line has a colour, and a head has the colour of its last line. If you point to a line, its heads are highlighted. If you point to a head, its lines are highlighted.",
        "Line 1 became head 1, which computes `length`: it reads all positions, one of the five keys has the value 1, and so the mean is 1/5. Lines 2 and 3 became head 2: line 2 defines its pattern, and line 3 the values that it moves. Arithmetic at one position needs no head. The MLP computes `length` from 1/5, and the weights of head 2 contain the subtraction."],
      open: () => rasp(REVERSE, "heads"),
    },
    {
      title: "The program becomes the weights of a transformer",
      text: ["Locum can [[compile]] the program. W_Q and W_K of a head determine its scores q·k: each query reads the keys with the largest score. W_V and W_O determine the values that the head moves. Each number at a position is in a [[slot]] of the residual stream.",
        "Move the slider, or choose a part of the figure. In layer 1, the head `flip` has the same pattern as in the pane Heads. After the last layer, the row `answer` contains the decoded output, which equals the value of `reverse`."],
      open: () => rasp(REVERSE, "weights"),
    },
    {
      title: "U simulates every head, without new weights",
      text: ["The network of the previous card computes one program. [[U]] is one fixed program whose own heads simulate every attention head T of an [[order]]. It receives the input X and the matrices A and V of T as one sequence of tokens, [[⟨T, X⟩]]. It computes T(X) = softmax(X A Xᵀ) X V, the output of the head T.",
        "Here T is the head `flip`, and X contains the slots that it reads on the input hello. The temperature is 0, so softmax is hard attention. Choose the step “output”: its values 3 2 2 0 1 are the codes of o l l e h, which `flip` writes. If you change a number in A or V, the tokens and the result change, but the layers of U stay the same."],
      open: inU,
    },
  ];
  const READ_ON = [["tutorial", "the tutorial"], ["how_u_works", "how U works"], ["playground", "the playground"], ["teaching", "teaching"], ["glossary", "the glossary"]];
  let number = 0, before = null;
  // If the page was exported with the address of the documentation, link to its pages; otherwise, name the files.
  const documents = (parent) => {
    const base = document.querySelector('meta[name="docs"]').content, line = add(parent, "p", "Further reading: ", "soft");
    READ_ON.forEach(([page, what], i) => {
      if (base) Object.assign(add(line, "a", what), { href: `${base}${page}.html`, target: "_blank", rel: "noopener" });
      else { line.append(`${what} (`); add(line, "code", `docs/${page}.md`); line.append(")"); }
      line.append("; ");
    });
    Object.assign(add(line, "a", "the paper"), { href: "https://arxiv.org/abs/2506.18739", target: "_blank", rel: "noopener" });
  };
  const load = async (card) => { const state = await card.open(); if (card === CARDS[number] && !byId("tour").hidden) Locum.page.open(state); };
  const show = () => {
    const card = CARDS[number], box = clear(byId("tour"));
    box.hidden = false;
    const heading = add(box, "h2", `${number + 1} of ${CARDS.length}: ${card.title}`);
    heading.tabIndex = -1;
    for (const text of card.text) Locum.terms.prose(box, text);
    if (number === CARDS.length - 1) documents(box);
    const row = add(box, "div", null, "row"), button = (text, work, disabled = false) => { const made = add(row, "button", text); made.disabled = disabled; made.addEventListener("click", work); return made; };
    button("Back", () => move(-1), number === 0).id = "tour-back";
    const next = button("Next", () => move(1), number === CARDS.length - 1);
    next.id = "tour-next";
    button("Load the program again", () => load(card)).id = "tour-load";
    button("End the tour", end).id = "tour-end";
    load(card);
    heading.focus({ preventScroll: true });
  };
  const move = (by) => { number += by; show(); };
  // After an interrupted tour, the page may still contain a program of the tour, which is not kept.
  const isOfTour = ({ source }) => CARDS.some((card) => card.open !== inU && card.open().source === source);
  const start = () => {
    const now = Locum.page.state();
    if (!before || (byId("tour").hidden && !isOfTour(now))) keep(now);
    number = 0;
    show();
    byId("tour").scrollIntoView({ block: "nearest" });
  };
  // Restore the program that was open before the tour.
  const end = () => { byId("tour").hidden = true; if (before) Locum.page.open(before); keep(null); byId("take-tour").focus(); };
  // This program is also kept in the session storage of the tab, because the page may be reloaded during the tour.
  const KEY = "locum before the tour";
  const keep = (state) => { before = state; try { if (state) sessionStorage.setItem(KEY, JSON.stringify(state)); else sessionStorage.removeItem(KEY); } catch { /* storage may be disabled */ } };
  const offer = () => {
    let kept = null;
    try { kept = JSON.parse(sessionStorage.getItem(KEY)); } catch { /* nothing to restore */ }
    if (!kept || typeof kept !== "object") return;
    before = kept;
    const text = add(byId("messages"), "p", "The tour was interrupted. ");
    add(text, "button", "Restore my program").addEventListener("click", () => { text.remove(); before = kept; end(); });
    // A program that was written after the interruption is restored at the end of the tour. The earlier program is then still offered here.
    add(text, "button", "Continue the tour").addEventListener("click", () => { if (isOfTour(Locum.page.state())) text.remove(); start(); });
  };
  byId("take-tour").addEventListener("click", start);
  return { start, offer };
})();
