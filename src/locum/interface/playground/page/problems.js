// Errors of the program as a list below the editor. Click an error, or press F8 (Shift-F8 for the previous error).
"use strict";
Locum.problems = (() => {
  const { add, clear, byId } = Locum;
  let errors = [], current = -1, drawn = "";
  const draw = () => {
    const text = JSON.stringify(errors);
    if (text === drawn) return; // a screen reader reads only changed text
    drawn = text; current = -1;
    const box = clear(byId("problems"));
    if (!errors.length) return;
    const list = add(box, "ol");
    errors.forEach((error, number) => {
      const item = add(add(list, "li"), "button", `line ${error.line}: ${error.message}`, error.because ? "because" : "");
      if (error.because) item.textContent += ` (caused by line ${error.because})`;
      item.addEventListener("click", () => go(number));
    });
    add(box, "p", "F8 goes to the next error.", "soft");
  };
  // A statement is often incomplete while it is typed. The list appears when typing pauses, and disappears at once.
  const drawLater = Locum.later(300, draw);
  const show = (list) => { errors = list; if (list.length) drawLater(); else draw(); };
  const go = (number) => {
    if (!errors.length) return;
    current = (number + errors.length) % errors.length;
    for (const [n, button] of [...byId("problems").querySelectorAll("button")].entries()) if (n === current) button.setAttribute("aria-current", "true"); else button.removeAttribute("aria-current");
    Locum.editor.goTo(errors[current]);
  };
  document.addEventListener("keydown", (event) => {
    if (event.key !== "F8" || !errors.length || byId("rasp").hidden) return;
    event.preventDefault();
    go(current === -1 && event.shiftKey ? -1 : current + (event.shiftKey ? -1 : 1));
  });
  return { show };
})();
