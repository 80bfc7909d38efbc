// Examples, and exercises whose solutions are checked. The list of solved exercises is stored in this browser.
// An exercise is built in, or is written by a teacher. A link contains the whole custom exercise, as an object.
"use strict";
Locum.exercises = (() => {
  const { add, byId, ask, clear } = Locum;
  // Other pages of this origin may also have written to this key.
  const solved = () => { try { return new Set(JSON.parse(Locum.store.get("solved") || "[]")); } catch { return new Set(); } };
  // `current` is the description that is shown. `asked` is the exercise in requests and links: a key, or a whole custom exercise.
  let current = null, asked = null, load = null, turn = 0;
  // The program with which the exercise was opened, and whether the user has changed it. A program of a link does
  // not replace the stored draft of the exercise until the user changes it.
  let begun = "", isOwn = false;
  const keep = (source = Locum.editor.text()) => {
    isOwn = isOwn || source !== begun;
    if (current && isOwn) Locum.store.set("exercise " + current.key, source);
  };
  const offer = () => {
    const stored = Locum.store.get("exercise " + current.key), line = clear(byId("exercise-draft"));
    line.hidden = isOwn || stored === null || stored === begun;
    if (line.hidden) return;
    line.append("Your draft of this exercise is stored in this browser. ");
    add(line, "button", "Restore it").addEventListener("click", () => { line.hidden = true; isOwn = true; load(stored, byId("input").value); });
  };
  const list = () => {
    const choose = byId("exercises"), done = solved();
    while (choose.options.length > 1) choose.remove(1);
    Locum.catalogue.exercises.forEach((exercise, i) => { add(choose, "option", `${done.has(exercise.key) ? "✓ " : ""}${i + 1}. ${exercise.title}`).value = exercise.key; });
    choose.value = typeof asked === "string" ? asked : "";
  };
  // Open an exercise with its draft, or, if `source` is given, with this program of a link.
  const open = (exercise, source = null) => {
    byId("exercise-draft").hidden = true;
    asked = exercise || null;
    current = typeof exercise === "string" ? Locum.catalogue.exercises.find(({ key }) => key === exercise) || null : null;
    if (!current && typeof exercise === "string") asked = null;
    turn++;
    touched();
    byId("exercises").value = current ? current.key : "";
    byId("exercise").hidden = !asked;
    if (!asked) return;
    byId("examples").value = "";
    isOwn = source === null;
    begun = source === null ? "" : source.replace(/\r\n?/g, "\n");
    if (current) show(); else describe(turn);
    if (isOwn && current) load(Locum.store.get("exercise " + current.key) || current.starter, current.example);
  };
  // The server runs the reference program of a custom exercise on every input, and returns its description.
  const describe = async (mine) => {
    byId("exercise-title").textContent = "…";
    for (const id of ["exercise-task", "exercise-hint", "exercise-without"]) byId(id).textContent = "";
    const reply = await ask("describe", { exercise: asked });
    if (!reply || mine !== turn) return;
    if (!reply.ok) { byId("exercise-title").textContent = reply.server ? "This exercise could not be checked" : "This exercise is invalid"; byId("exercise-task").textContent = reply.error; byId("exercise-tools").hidden = true; return; }
    current = reply.exercise;
    show();
    if (Locum.editor.text()) return;
    begun = current.starter; // the link contains only the exercise
    offer();
    load(current.starter, current.example);
  };
  const show = () => {
    byId("exercise-tools").hidden = false;
    byId("exercise-title").textContent = current.title;
    byId("exercise-task").textContent = current.task;
    byId("exercise-hint").textContent = current.hint;
    byId("exercise-hint").parentElement.hidden = !current.hint;
    byId("exercise-without").textContent = current.without.length ? `Not allowed: ${current.without.join(", ")}` : "";
    offer();
  };
  const layersAndHeads = ({ layers, heads }) => `${layers} layer${layers === 1 ? "" : "s"} and ${heads} head${heads === 1 ? "" : "s"}`;
  const check = async () => {
    const verdict = clear(byId("verdict")), source = Locum.editor.text(), exercise = asked, mine = turn;
    keep();
    verdict.textContent = "checking…";
    const reply = await ask("exercise", { exercise, source });
    // The verdict is shown only if the program has not changed since the check.
    if (!reply || Locum.editor.text() !== source || mine !== turn) return;
    clear(verdict);
    verdict.className = reply.ok && reply.solved ? "good" : "bad";
    if (!reply.ok) { verdict.textContent = reply.error; return; }
    if (reply.solved) {
      verdict.textContent = `✓ solved: ${reply.name} is correct on all ${reply.checked} inputs, with ${layersAndHeads(reply.size)}. The reference has ${layersAndHeads(reply.possible)}.`;
      if (typeof exercise === "string") { Locum.store.set("solved", JSON.stringify([...solved().add(exercise)])); list(); }
      return;
    }
    const wrong = reply.counterexample;
    add(verdict, "span", "✗ input ");
    add(verdict, "code", wrong.input.join(" "));
    add(verdict, "span", `: expected `);
    add(verdict, "code", wrong.expected.join(" "));
    add(verdict, "span", wrong.values ? `, but ${reply.name} is ` : `, but ${reply.name} has no value: ${wrong.problem} `);
    if (wrong.values) add(verdict, "code", wrong.values.join(" "));
    if (wrong.values) add(verdict, "span", wrong.problem ? ` (${wrong.problem}) ` : " ");
    add(verdict, "button", "Show this input").addEventListener("click", () => load(source, wrong.typed));
  };
  const solution = async () => {
    const mine = turn, reply = await ask("solution", { exercise: asked, source: Locum.editor.text() });
    if (!reply || mine !== turn) return;
    byId("solution-text").hidden = false;
    byId("solution-text").textContent = reply.ok ? reply.source : reply.error;
  };
  const touched = () => {
    clear(byId("verdict"));
    byId("solution-text").hidden = true;
    Locum.forget("exercise", "solution");
  };
  const start = (loader) => {
    load = loader;
    const groups = new Map();
    for (const [i, example] of Locum.catalogue.examples.entries()) {
      if (!groups.has(example.group)) { const group = add(byId("examples"), "optgroup"); group.label = example.group; groups.set(example.group, group); }
      add(groups.get(example.group), "option", example.name).value = String(i);
    }
    byId("examples").addEventListener("change", (event) => {
      const example = Locum.catalogue.examples[Number(event.target.value)];
      if (event.target.value !== "" && example) { keep(); open(null); load(example.source, example.input); }
    });
    byId("exercises").addEventListener("change", (event) => { keep(); open(event.target.value); });
    byId("check").addEventListener("click", check);
    byId("solution").addEventListener("click", solution);
    list();
  };
  // An exercise in a link is a key, or an object of texts, numbers, booleans and lists of texts. The server checks its fields.
  const isPlain = (value) => ["string", "number", "boolean"].includes(typeof value) || (Array.isArray(value) && value.every((one) => typeof one === "string"));
  const isExercise = (value) => (typeof value === "string" ? Locum.catalogue.exercises.some(({ key }) => key === value)
    : value !== null && typeof value === "object" && !Array.isArray(value) && typeof value.title === "string" && typeof value.reference === "string" && Object.values(value).every(isPlain));
  return { start, open, keep, touched, isExercise, current: () => asked };
})();
