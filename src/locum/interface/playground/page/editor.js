// The editor: CodeMirror with RASP's keywords, completion, error markers, and values next to lines.
"use strict";
Locum.makeEditor = (parent, { changed, hovered }) => {
  const { EditorState, EditorView, StateField, StateEffect, Decoration, WidgetType, tags } = CM;
  const KEYWORDS = ["select", "aggregate", "def", "return", "for", "in", "if", "else", "and", "or", "not", "round", "indicator", "range", "zip", "len", "sum", "load", "draw", "set", "show", "example", "examples"];
  let names = [];

  // Tokens as in the grammar (rasp/text/rasp.lark).
  const language = CM.StreamLanguage.define({
    name: "rasp",
    // If the first line names a dialect, comments begin with //, and # is the counting operator.
    startState: () => ({ isFirst: true, isDialect: false }),
    token(stream, state) {
      if (state.isFirst) Object.assign(state, { isFirst: false, isDialect: /^\/\/[ \t]*(C-RASP|B-RASP|LTL)[ \t]*$/.test(stream.string) });
      if (stream.eatSpace()) return null;
      if (stream.match(state.isDialect ? /^\/\/.*/ : /^#.*/)) return "comment";
      if (stream.match(/^"[^"\r\n]*"/)) return "string";
      if (stream.match(/^([0-9]+\.[0-9]+|\.[0-9]+)([eE][+-]?[0-9]+)?|^[0-9]+([eE][+-]?[0-9]+)?/)) return "number";
      const word = stream.match(/^[a-zA-Z_][a-zA-Z_0-9]*/);
      if (word) {
        if (word[0] === "True" || word[0] === "False") return "atom";
        if (KEYWORDS.includes(word[0])) return "keyword";
        return names.includes(word[0]) ? "standard" : "variableName";
      }
      if (stream.match(/^(==|<=|>=|!=|\/\/|[<>+\-*/%^=])/)) return "operator";
      stream.next();
      return null;
    },
    tokenTable: { standard: tags.standard(tags.variableName) },
    languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
  });
  const colours = CM.HighlightStyle.define([
    { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
    { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
    { tag: [tags.string, tags.number, tags.atom], color: "var(--good)" },
    { tag: tags.standard(tags.variableName), color: "var(--accent)" },
  ]);
  const theme = EditorView.theme({
    "&": { backgroundColor: "var(--card)", color: "var(--ink)", fontSize: "14px" },
    ".cm-content": { fontFamily: 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace', minHeight: "220px", caretColor: "var(--ink)" },
    ".cm-cursor": { borderLeftColor: "var(--ink)" },
    ".cm-gutters": { backgroundColor: "var(--page)", color: "var(--soft)", border: "none" },
    ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
    ".cm-lit": { backgroundColor: "var(--lit)" },
    ...Object.fromEntries([0, 1, 2, 3, 4, 5, 6, 7].map((n) => [`.cm-colour-${n}`, { boxShadow: `inset 4px 0 0 var(--c${n})` }])),
    "&.old .cm-value": { opacity: ".8", fontStyle: "italic" },
    ".cm-value": { color: "var(--soft)", marginLeft: "18px", fontSize: "12.5px", display: "inline-block" },
    "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
    "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent) !important" },
    ".cm-tooltip": { backgroundColor: "var(--card)", color: "var(--ink)", border: "1px solid var(--line)" },
    ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--card)" },
  });

  class Value extends WidgetType {
    constructor(text) { super(); this.text = text; }
    eq(other) { return other.text === this.text; }
    toDOM() { const span = document.createElement("span"); span.className = "cm-value"; span.textContent = this.text; return span; }
  }
  // Decorations that are set from outside: values next to lines, highlighted lines, and coloured bars.
  const decorations = () => {
    const set = StateEffect.define();
    const field = StateField.define({
      create: () => Decoration.none,
      update: (old, transaction) => {
        let now = old.map(transaction.changes);
        for (const effect of transaction.effects) if (effect.is(set)) now = effect.value;
        return now;
      },
      provide: (field) => EditorView.decorations.from(field),
    });
    return [set, field];
  };
  const [setValues, valuesField] = decorations(), [setLit, litField] = decorations(), [setColours, coloursField] = decorations();

  const complete = (context) => {
    const word = context.matchBefore(/[a-zA-Z_][a-zA-Z_0-9]*/);
    if (!word && !context.explicit) return null;
    const own = new Set(context.state.doc.toString().match(/[a-zA-Z_][a-zA-Z_0-9]{1,}/g) || []);
    const options = [...KEYWORDS.map((label) => ({ label, type: "keyword" })), ...names.map((label) => ({ label, type: "function" }))];
    for (const label of own) if (!KEYWORDS.includes(label) && !names.includes(label) && label !== (word && word.text)) options.push({ label, type: "variable" });
    return { from: word ? word.from : context.pos, options, validFor: /^[a-zA-Z_0-9]*$/ };
  };

  // Replace a selection by typed text here: the browser would merge lines with inline styles, which the policy forbids.
  const typedOver = (event, view) => {
    const { from, to, empty } = view.state.selection.main, text = event.data;
    if (event.inputType !== "insertText" || !text || empty || event.isComposing) return false;
    const insert = () => view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, insert))) view.dispatch(insert());
    event.preventDefault();
    return true;
  };

  // In a shadow root, CodeMirror's styles are adopted sheets, which a strict policy allows.
  const root = parent.attachShadow({ mode: "open" }), mount = document.createElement("div");
  root.appendChild(mount);
  let statements = [];
  const view = new EditorView({
    parent: mount, root,
    state: EditorState.create({
      extensions: [
        CM.lineNumbers(), CM.history(), CM.drawSelection(), CM.highlightActiveLine(), CM.bracketMatching(), CM.closeBrackets(),
        CM.autocompletion({ override: [complete] }), CM.keymap.of([...CM.completionKeymap, ...CM.defaultKeymap, ...CM.historyKeymap]),
        language, CM.syntaxHighlighting(colours), CM.lintGutter(), theme, valuesField, litField, coloursField,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": "RASP program" }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed();
          if (update.selectionSet && view.hasFocus) hovered(at(update.state.selection.main.head));
        }),
        EditorView.domEventHandlers({
          beforeinput: typedOver,
          mousemove: (event) => { const place = view.posAtCoords({ x: event.clientX, y: event.clientY }); hovered(place === null ? [] : at(place)); },
          mouseleave: () => hovered([]),
        }),
      ],
    }),
  });
  const line = (number) => view.state.doc.line(Math.max(1, Math.min(number, view.state.doc.lines)));
  // Columns count characters, but the editor counts UTF-16 code units.
  const placeOf = (error) => {
    const there = line(error.line);
    return Math.min(there.from + [...there.text].slice(0, error.column - 1).join("").length, there.to);
  };
  const at = (place) => {
    const number = view.state.doc.lineAt(place).number;
    return statements.flatMap((s, i) => (s.first <= number && number <= s.line ? [i] : []));
  };

  return {
    text: () => view.state.doc.toString(),
    set: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    names: (list) => { names = list; },
    focus: () => view.focus(),
    // Mark the values as outdated until new values are shown.
    fade: () => view.dom.classList.add("old"),
    // Move the cursor to an error, and focus the editor.
    goTo: (error) => {
      view.dispatch({ selection: { anchor: placeOf(error) }, scrollIntoView: true });
      view.focus();
    },
    // Show values next to the last lines of statements, and mark errors.
    show: (result) => {
      statements = result.statements;
      const texts = new Map();
      for (const s of statements) if (s.text) texts.set(s.line, [...(texts.get(s.line) || []), s.text]);
      const marks = [...texts].sort((a, b) => a[0] - b[0]).map(([number, parts]) => {
        const text = parts.join("   "), short = text.length > 120 ? text.slice(0, 119) + "…" : text;
        return Decoration.widget({ widget: new Value(short), side: 1 }).range(line(number).to);
      });
      const diagnostics = result.errors.map((error) => {
        const there = line(error.line), from = placeOf(error), rest = there.text.slice(from - there.from), word = (rest.match(/^(\w+|\S)/) || [""])[0];
        return { from, to: Math.min(there.to, from + Math.max(1, word.length)), severity: error.because ? "info" : "error", message: error.message + (error.because ? ` (caused by line ${error.because})` : "") };
      });
      // The bar at a line has the colour of its statement, as in the figures.
      const bars = new Map();
      statements.forEach((s, i) => { if (s.values || s.matrix || s.parts) for (let n = s.first; n <= s.line; n++) bars.set(n, i % 8); });
      const coloured = [...bars].sort((a, b) => a[0] - b[0]).map(([n, colour]) => Decoration.line({ class: `cm-colour-${colour}` }).range(line(n).from));
      view.dispatch({ effects: [setValues.of(Decoration.set(marks)), setColours.of(Decoration.set(coloured))] });
      view.dispatch(CM.setDiagnostics(view.state, diagnostics));
      view.dom.classList.remove("old");
    },
    light: (lit) => {
      const numbers = new Set();
      statements.forEach((s, i) => { if (lit.has(i)) for (let n = s.first; n <= s.line; n++) numbers.add(n); });
      const marks = [...numbers].sort((a, b) => a - b).map((n) => Decoration.line({ class: "cm-lit" }).range(line(n).from));
      view.dispatch({ effects: setLit.of(Decoration.set(marks)) });
    },
  };
};
