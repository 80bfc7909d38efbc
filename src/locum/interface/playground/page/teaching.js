// For teachers: links to custom exercises, completion codes, and a worksheet to print.
"use strict";
Locum.teaching = (() => {
  const { add, byId, clear, ask } = Locum;
  const FIELDS = [
    ["title", "Title", "input"], ["task", "Task", "textarea"], ["hint", "Hint", "input"],
    ["reference", "Reference program (hidden until the exercise is solved, but readable by decoding the link)", "textarea"],
    ["starter", "Starter program", "textarea"], ["example", "Example input", "input"],
    ["alphabet", "Symbols of the inputs (default: the symbols of the example)", "input"],
    ["longest", "Length up to which all inputs are checked", "input"], ["inputs", "Longer inputs, one per line", "textarea"],
    ["without", "Forbidden functions, separated by commas", "input"],
  ];
  const dialog = byId("teach");
  const fields = () => {
    const text = (name) => byId(`teach-${name}`).value, exercise = { title: text("title"), task: text("task"), reference: text("reference"), example: text("example") || "hello" };
    for (const name of ["hint", "starter", "alphabet"]) if (text(name).trim()) exercise[name] = text(name);
    exercise.longest = Locum.numberOf(text("longest").trim()) ?? text("longest");
    exercise.inputs = text("inputs").split("\n").filter(Boolean);
    exercise.without = text("without").split(",").map((name) => name.trim()).filter(Boolean);
    exercise.on_request = byId("teach-on-request").checked;
    return exercise;
  };
  // An error of the server begins with the name of a field; the dialog shows the label of the field instead.
  const labelled = (error) => {
    const field = FIELDS.find(([name]) => error.startsWith(`${name}:`));
    return field ? field[1].split(/ [(]|,/)[0] + error.slice(field[0].length) : error;
  };
  const make = async () => {
    const said = byId("teach-said"), exercise = fields(), reply = await ask("describe", { exercise }, "teach");
    if (!reply) return;
    said.className = reply.ok ? "good" : "bad";
    byId("teach-link").hidden = true;
    if (!reply.ok) { said.textContent = labelled(reply.error); said.scrollIntoView({ block: "nearest" }); return; }
    const { inputs, possible, starter, example } = reply.exercise;
    const fragment = await Locum.share.pack({ exercise, source: starter, input: example, pane: "values" });
    if (fragment === null || fragment.length > Locum.page.LONGEST) { said.className = "bad"; said.textContent = "This exercise is too long for a link; try shorter texts."; return; }
    said.textContent = `Solutions are checked on ${inputs} inputs. The reference has ${possible.layers} layer${possible.layers === 1 ? "" : "s"} and ${possible.heads} head${possible.heads === 1 ? "" : "s"}.`;
    byId("teach-link").hidden = false;
    byId("teach-link").value = location.href.split("#")[0] + fragment;
    byId("teach-link").select();
    byId("teach-link").scrollIntoView({ block: "nearest" });
    try { await navigator.clipboard.writeText(byId("teach-link").value); said.textContent += " The link is copied."; } catch { /* the user can copy the link manually */ }
  };
  // The server verifies a code by running its program again. Codes of equal programs are marked.
  const verify = async () => {
    const table = clear(byId("verified")), codes = byId("codes").value.split(/\s+/).filter(Boolean), exercise = Locum.exercises.current();
    add(table, "caption", exercise && typeof exercise === "object" ? "codes of the open exercise and of built-in exercises" : "codes of built-in exercises");
    const top = add(table, "tr"), first = new Map();
    for (const text of ["name", "exercise", "verdict", "program"]) add(top, "th", text).scope = "col";
    for (const code of codes) {
      let reply = null;
      // A code that does not belong to the open exercise can belong to a built-in exercise.
      for (const one of exercise && typeof exercise === "object" ? [{ exercise }, {}] : [{}]) {
        const found = await ask("verify", { code, ...one }, "verify");
        if (!found) return;
        if (!reply || found.ok) reply = found;
        if (reply.ok) break;
      }
      const line = add(table, "tr");
      add(line, "td", reply.ok ? reply.by : `${code.slice(0, 16)}…`);
      add(line, "td", reply.ok ? reply.title : "");
      const { size, possible } = reply;
      add(line, "td", !reply.ok ? reply.error : !reply.solved ? `✗ not solved; ${reply.counterexample ? `wrong on ${reply.counterexample.input.join(" ")}` : reply.problem}` : `✓ solved; layers ${size.layers}, heads ${size.heads} (reference: ${possible.layers} and ${possible.heads})`, reply.ok && reply.solved ? "good" : "bad");
      const last = add(line, "td");
      if (!reply.ok) continue;
      if (first.has(reply.program)) add(last, "span", `same program as ${first.get(reply.program)} `, "bad");
      else if (reply.solved) first.set(reply.program, reply.by);
      add(last, "button", "Open").addEventListener("click", () => { dialog.close(); Locum.page.input(null, reply.source); });
    }
  };
  const start = () => {
    const form = byId("teach-form");
    for (const [name, text, kind] of FIELDS) {
      const box = document.createElement(kind), label = Locum.labelled(form, text, box).parentElement;
      Object.assign(box, { id: `teach-${name}`, spellcheck: false, autocomplete: "off", className: ["reference", "starter", "inputs", "example", "alphabet"].includes(name) ? "mono" : "" });
      if (kind === "textarea") box.rows = name === "inputs" ? 2 : 4;
      label.className = "field";
    }
    byId("teach-longest").value = "4";
    const tick = Object.assign(document.createElement("input"), { type: "checkbox", id: "teach-on-request" });
    const label = add(form, "label", null, "field row");
    label.append(tick, " Show the reference on request, before the exercise is solved");
    byId("open-teach").addEventListener("click", () => {
      if (!byId("teach-reference").value) byId("teach-reference").value = Locum.editor.text();
      if (!byId("teach-example").value) byId("teach-example").value = byId("input").value;
      dialog.showModal();
    });
    byId("teach-close").addEventListener("click", () => dialog.close());
    byId("teach-make").addEventListener("click", make);
    byId("verify").addEventListener("click", verify);
  };
  // A worksheet: task, examples, starter program, and lines to write on. The print style sheet hides everything else.
  const print = async (exercise) => {
    const reply = await ask("describe", { exercise }, "sheet");
    if (!reply) return;
    const box = clear(byId("paper"));
    if (!reply.ok) return;
    const { title, task, hint, starter, samples, without } = reply.exercise;
    add(box, "h1", title);
    add(box, "p", "Name: ____________________________    Date: ______________");
    add(box, "p", task);
    if (without.length) add(box, "p", `Not allowed: ${without.join(", ")}`);
    const table = add(box, "table", null, "list"), top = add(table, "tr");
    for (const text of ["input", "output"]) add(top, "th", text).scope = "col";
    for (const sample of samples) { const line = add(table, "tr"); add(line, "td", sample.input.join(" ")); add(line, "td", sample.expected.join(" ")); }
    add(box, "h2", "Starter program");
    add(box, "pre", starter);
    add(box, "h2", "Your program");
    for (let i = 0; i < 10; i++) add(box, "div", null, "ruled");
    if (hint) add(box, "p", `Hint: ${hint}`, "upside");
    const fragment = await Locum.share.pack({ exercise, source: starter, input: reply.exercise.example });
    if (fragment && location.protocol.startsWith("http") && fragment.length < 1500) add(box, "p", `${location.href.split("#")[0]}${fragment}`, "address");
    window.print();
  };
  window.addEventListener("afterprint", () => clear(byId("paper")));
  return { start, print };
})();
