// The divider between program and results, moved by pointer or arrow keys. Its position is stored in this browser.
"use strict";
(() => {
  const LEAST = 20, MOST = 75, divider = Locum.byId("divider"), main = Locum.byId("rasp"), source = Locum.byId("source");
  let share = 42;
  const set = (percent) => {
    share = Math.min(MOST, Math.max(LEAST, percent));
    main.style.setProperty("--left", `${share}fr`);
    main.style.setProperty("--right", `${100 - share}fr`);
    divider.setAttribute("aria-valuenow", String(Math.round(share)));
    divider.setAttribute("aria-valuetext", `program ${Math.round(share)} % of the width`);
  };
  const keep = () => Locum.store.set("divider", String(share));
  divider.setAttribute("aria-valuemin", String(LEAST));
  divider.setAttribute("aria-valuemax", String(MOST));
  const isFirst = () => source.getBoundingClientRect().left < divider.getBoundingClientRect().left; // an embedded page shows the results first
  divider.addEventListener("pointerdown", (event) => { divider.setPointerCapture(event.pointerId); event.preventDefault(); divider.focus(); });
  divider.addEventListener("pointermove", (event) => {
    if (!divider.hasPointerCapture(event.pointerId)) return;
    const box = main.getBoundingClientRect(), percent = (100 * (event.clientX - box.left)) / box.width;
    set(isFirst() ? percent : 100 - percent);
  });
  divider.addEventListener("pointerup", keep);
  divider.addEventListener("dblclick", () => { set(42); keep(); });
  divider.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -3, ArrowRight: 3 }[event.key];
    if (event.key !== "Home" && event.key !== "End" && !step) return;
    event.preventDefault();
    set(event.key === "Home" ? LEAST : event.key === "End" ? MOST : share + (isFirst() ? step : -step));
    keep();
  });
  const stored = Locum.numberOf(Locum.store.get("divider") || "");
  set(stored === null ? 42 : stored);
})();
