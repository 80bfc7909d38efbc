// Examples to begin with, and exercises that check themselves; what is solved is remembered in this browser.
"use strict";
Locum.exercises = (() => {
  const { add, byId, ask, clear } = Locum;
  // Other pages of this address may have written there, too.
  const solved = () => { try { return new Set(JSON.parse(Locum.store.get("solved") || "[]")); } catch { return new Set(); } };
  let current = null, load = null;
  const list = () => {
    const choose = byId("exercises"), done = solved();
    while (choose.options.length > 1) choose.remove(1);
    Locum.catalogue.exercises.forEach((exercise, i) => { add(choose, "option", `${done.has(exercise.key) ? "✓ " : ""}${i + 1}. ${exercise.title}`).value = exercise.key; });
    choose.value = current ? current.key : "";
  };
  const open = (key, fresh = true) => {
    current = Locum.catalogue.exercises.find((exercise) => exercise.key === key) || null;
    byId("exercise").hidden = !current;
    byId("verdict").textContent = "";
    byId("exercises").value = current ? key : "";
    if (!current) return;
    byId("examples").value = "";
    byId("exercise-title").textContent = current.title;
    byId("exercise-task").textContent = current.task;
    byId("exercise-hint").textContent = current.hint;
    if (fresh) load(Locum.store.get("exercise " + key) || current.starter, current.example);
  };
  const check = async () => {
    const verdict = clear(byId("verdict")), source = Locum.editor.text(), key = current.key;
    Locum.store.set("exercise " + key, source);
    verdict.textContent = "checking…";
    const reply = await ask("exercise", { key, source });
    // A verdict is on the program that was checked, not on one that was typed meanwhile.
    if (!reply || Locum.editor.text() !== source || !current || current.key !== key) return;
    clear(verdict);
    verdict.className = reply.ok && reply.solved ? "good" : "bad";
    if (!reply.ok) { verdict.textContent = reply.error; return; }
    if (reply.solved) {
      verdict.textContent = `✓ solved: ${reply.name} is right on all ${reply.checked} inputs`;
      Locum.store.set("solved", JSON.stringify([...solved().add(key)]));
      list();
      return;
    }
    const wrong = reply.counterexample;
    add(verdict, "span", `✗ on ${wrong.input.join(" ")} it should be ${wrong.expected.join(" ")}, but ${reply.name} ${wrong.values ? "is " + wrong.values.join(" ") + (wrong.problem ? ` (${wrong.problem})` : "") : "has no value: " + wrong.problem} `);
    add(verdict, "button", "show it").addEventListener("click", () => load(source, wrong.typed));
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
      if (event.target.value !== "" && example) { open(null); load(example.source, example.input); }
    });
    byId("exercises").addEventListener("change", (event) => open(event.target.value));
    byId("check").addEventListener("click", check);
    list();
  };
  return { start, open, touched: () => { byId("verdict").textContent = ""; }, current: () => current && current.key };
})();
