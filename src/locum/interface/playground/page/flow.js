// The flow figure: the compiled network from tokens to output, with the heads of the program in it.
"use strict";
Locum.flow = (() => {
  const { add, clear, byId, link } = Locum, SVG = "http://www.w3.org/2000/svg", LARGER = 1.15, SMALLER = 0.85, NARROW = 560, LONG = 480;
  const ELEMENTS = ["g", "path", "rect", "text", "title"];
  const ATTRIBUTES = ["viewBox", "width", "height", "x", "y", "rx", "d", "class", "stroke", "fill", "text-anchor", "data-part"];
  let key = "", kept = null, isOpen = null, choose = () => {};

  // The figure and the pane Weights share one compilation.
  const compiled = async (fields, ask) => {
    const now = JSON.stringify(fields);
    if (now === key) return kept;
    const reply = await ask("compile", fields);
    if (reply && !reply.server) { key = now; kept = reply; }
    return reply;
  };
  // Copy only shapes and texts of a picture, without styles, scripts and links.
  const copy = (from) => {
    const made = document.createElementNS(SVG, from.localName);
    for (const { name, value } of from.attributes) if (ATTRIBUTES.includes(name)) made.setAttribute(name, value);
    for (const child of from.childNodes) if (child.nodeType === Node.TEXT_NODE) made.append(child.data); else if (ELEMENTS.includes(child.localName)) made.append(copy(child));
    return made;
  };
  // The sublayer of a part: 0 is the embedding, then attention and MLP of each layer.
  const timeOf = (part, depth) => {
    const block = part.match(/^blocks\.(\d+)\.(attn|mlp)/);
    return block ? 2 * Number(block[1]) + (block[2] === "attn" ? 1 : 2) : part === "output" ? 2 * depth : 0;
  };
  const drawing = (parent, text, network) => {
    const picture = copy(new DOMParser().parseFromString(text, "image/svg+xml").documentElement);
    const width = Number(picture.getAttribute("width"));
    picture.setAttribute("width", String(LARGER * width));
    picture.removeAttribute("height");
    picture.style.minWidth = `${width * SMALLER}px`; // otherwise, letters would be too small
    for (const part of picture.querySelectorAll("[data-part]")) {
      const id = part.dataset.part, gone = network.flow.heads.find((head) => id === `gone.${head.numbers[0]}`), time = timeOf(gone ? gone.part : id, network.depth);
      link(part, network.flow.parts[id]);
      part.dataset.time = String(time);
      part.setAttribute("role", "button"); part.setAttribute("tabindex", "0");
      part.addEventListener("click", () => choose(time));
      part.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(time); } });
    }
    parent.appendChild(picture);
  };
  const show = async (fields, ask) => {
    const reply = await compiled(fields, ask);
    if (!reply) return;
    const box = clear(byId("flow"));
    for (const note of document.querySelectorAll("#heads .became")) note.textContent = "";
    if (!reply.ok) { add(box, "p", `There is no flow figure: ${reply.error}`, "soft"); return; }
    const { network } = reply, { flow } = network, details = add(box, "details");
    const summary = add(details, "summary", `Flow from tokens to ${reply.name}`);
    summary.addEventListener("click", () => { isOpen = !details.open; });
    if (flow.why) add(details, "p", flow.why, "soft");
    else drawing(add(details, "div"), flow.svg, network);
    const other = flow.heads.filter((head) => head.how !== "head");
    if (other.length) {
      const list = add(details, "ul");
      for (const head of other) add(list, "li", `head ${head.numbers.join(", ")}: ${head.text}`);
    }
    for (const head of flow.heads) for (const number of head.numbers) for (const card of document.querySelectorAll(`#heads [data-head="${number}"] .became`)) card.textContent = head.text;
    // A long figure is closed initially, so that the heads are visible.
    const svg = details.querySelector("svg"), isLong = box.clientWidth <= NARROW || (svg !== null && svg.viewBox.baseVal.height > LONG);
    details.open = isOpen === null ? !isLong : isOpen;
    mark();
  };
  // The sublayer that the pane of weights shows is marked.
  let moment = null;
  const mark = (time = moment) => {
    moment = time;
    for (const part of document.querySelectorAll("#flow [data-part]")) part.classList.toggle("now", !byId("weights").hidden && part.dataset.time === String(moment));
  };
  return { compiled, show, mark, timeOf, onchoose: (work) => { choose = work; } };
})();
