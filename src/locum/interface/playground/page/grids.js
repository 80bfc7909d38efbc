// A head as a grid: queries are rows, keys are columns, the values that are read are below, and outputs are on the right.
"use strict";
Locum.grid = (parent, { tokens, rows, values, labels, caption }) => {
  const { add } = Locum, table = add(parent, "table", null, "grid");
  if (caption) add(table, "caption", caption);
  const marks = labels || tokens;
  const top = add(add(table, "thead"), "tr"), body = add(table, "tbody"), keys = [];
  add(top, "td", "");
  marks.forEach((token, k) => { const cell = add(top, "th", token); cell.scope = "col"; keys[k] = [cell]; });
  values.forEach((value, v) => { const cell = add(top, "th", values.length > 1 ? String(v) : "→"); cell.title = `returns ${value.label}`; });
  const queries = rows.map((row, q) => {
    const line = add(body, "tr"), cells = [add(line, "th", marks[q])];
    cells[0].scope = "row";
    row.forEach((weight, k) => {
      const share = weight > 0 && weight < 1;
      const cell = add(line, "td", "", share ? "part" : weight ? "on" : "off");
      if (share) cell.style.setProperty("--w", weight);
      cell.title = `query ${q} (${marks[q]}) → key ${k} (${marks[k]}): ${Locum.number(weight)}`;
      cell.dataset.cell = `${q} ${k}`;
    });
    for (const value of values) cells.push(Object.assign(add(line, "td", value.gives[q], "gives"), { title: `${value.label} is ${value.gives[q]} at query ${q}` }));
    return cells;
  });
  values.forEach((value, v) => {
    const line = add(body, "tr");
    add(line, "th", values.length > 1 ? String(v) : "↑").title = `reads ${value.label}`;
    value.reads.forEach((read, k) => { keys[k].push(Object.assign(add(line, "td", read, "reads"), { title: `${value.label} is ${read} at key ${k}` })); });
  });
  // Pointing to a cell highlights its query, its key, and the values that move between them.
  const mark = (event, on) => {
    const cell = event.target.closest("[data-cell]");
    if (!cell) return;
    const [q, k] = cell.dataset.cell.split(" ").map(Number);
    for (const element of [...(queries[q] || []), ...(keys[k] || [])]) element.classList.toggle("cross", on);
  };
  table.addEventListener("pointerover", (event) => mark(event, true));
  table.addEventListener("pointerout", (event) => mark(event, false));
  return table;
};

// The scores q·k of a head, with a row for each query. The largest score of a row is marked, and a masked score is a dot.
Locum.scores = (parent, { labels, rows }) => {
  const { add, number } = Locum, table = add(parent, "table", null, "grid scores");
  add(table, "caption", "scores q·k");
  const top = add(add(table, "thead"), "tr"), body = add(table, "tbody");
  add(top, "td", "");
  for (const label of labels) add(top, "th", label).scope = "col";
  rows.forEach((row, q) => {
    const line = add(body, "tr"), greatest = Math.max(...row.filter((score) => score !== null));
    add(line, "th", labels[q]).scope = "row";
    row.forEach((score, k) => {
      const cell = add(line, "td", score === null ? "·" : number(score), score === null ? "masked" : score === greatest ? "top" : "");
      cell.title = `query ${q} (${labels[q]}) · key ${k} (${labels[k]}): ${score === null ? "masked" : score}`;
    });
  });
  return table;
};

// A sparse matrix of the network's data, as rows.
Locum.dense = ({ shape, at, values }) => {
  const rows = Array.from({ length: shape[0] }, () => new Array(shape[1]).fill(0));
  at.forEach((place, i) => { rows[Math.floor(place / shape[1])][place % shape[1]] = values[i]; });
  return rows;
};

// A matrix of numbers as a table. Cells that differ from the matrix `other` are marked as wrong.
Locum.matrix = (parent, title, rows, other) => {
  const { add, number } = Locum, box = add(parent, "div", null, "matrix"), table = add(box, "table");
  add(table, "caption", title);
  const largest = Math.max(1e-6, ...rows.flat().map(Math.abs));
  rows.forEach((row, i) => {
    const line = add(table, "tr");
    row.forEach((value, j) => {
      const isWrong = other && Math.abs(value - other[i][j]) > 1e-4 * Math.max(1, Math.abs(other[i][j]));
      const cell = add(line, "td", number(value), isWrong ? "wrong" : value > 0 ? "pos" : value < 0 ? "neg" : "");
      cell.style.setProperty("--w", Math.abs(value) / largest);
      cell.title = String(value);
    });
  });
  return box;
};
