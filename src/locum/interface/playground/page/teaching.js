// For teachers: links to custom exercises.
"use strict";
Locum.teaching = (() => {
  const { add, byId, ask } = Locum;
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
    if (fragment === null || fragment.length > Locum.share.LONGEST) { said.className = "bad"; said.textContent = "This exercise is too long for a link; try shorter texts."; return; }
    said.textContent = `Solutions are checked on ${inputs} inputs. The reference has ${possible.layers} layer${possible.layers === 1 ? "" : "s"} and ${possible.heads} head${possible.heads === 1 ? "" : "s"}.`;
    byId("teach-link").hidden = false;
    byId("teach-link").value = location.href.split("#")[0] + fragment;
    byId("teach-link").select();
    byId("teach-link").scrollIntoView({ block: "nearest" });
    try { await navigator.clipboard.writeText(byId("teach-link").value); said.textContent += " The link is copied."; } catch { /* the user can copy the link manually */ }
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
  };
  return { start };
})();
