// Drafts: programs are stored in this browser, for each tab and each exercise, and in the history of the tab.
"use strict";
Locum.drafts = (() => {
  const KEPT = 5, random = () => Math.random().toString(36).slice(2), byId = Locum.byId;
  const read = (text) => { try { return JSON.parse(text); } catch { return null; } };
  const session = {
    get: (key) => { try { return sessionStorage.getItem("locum " + key); } catch { return null; } },
    set: (key, value) => { try { sessionStorage.setItem("locum " + key, value); } catch { /* storage may be disabled */ } },
  };
  const tab = session.get("tab") || random();
  session.set("tab", tab);
  // Each history entry belongs to a document. Opening a link begins a new document.
  let document = random(), isInStep = false, last = null, before = [];
  const address = () => location.pathname + location.search + location.hash;
  const all = () => (Array.isArray(read(Locum.store.get("drafts"))) ? read(Locum.store.get("drafts")) : []);
  const place = (url) => { try { history.replaceState({ document, page: last }, "", url); } catch { /* too large, or too often */ } };

  const save = (page) => {
    last = page;
    const draft = { tab, time: Date.now(), address: address(), page };
    session.set("draft", JSON.stringify({ ...draft, before }));
    Locum.store.set("drafts", JSON.stringify([draft, ...all().filter((other) => other.tab !== tab)].slice(0, KEPT)));
    Locum.exercises.keep(page.source);
    place();
  };
  // After Share, and after a link was opened, the address of the page is updated when the state changes.
  const follow = async (page, link) => {
    if (!isInStep) return;
    const fragment = await link();
    if (page !== last || fragment === null) return;
    before = [address(), ...before].slice(0, 3);
    place(fragment);
    save(page);
  };
  // The draft of this tab at this address from before a reload. If the address changed while a reload began, the
  // browser reloads an earlier address.
  const isReload = () => performance.getEntriesByType("navigation").some(({ type }) => type === "reload");
  const own = () => {
    const draft = read(session.get("draft")), at = address();
    return draft && (draft.address === at || (isReload() && Array.isArray(draft.before) && draft.before.includes(at))) ? draft.page : null;
  };
  // In a new tab, offer the latest draft of another tab.
  const offer = (open, first) => {
    const draft = session.get("draft") ? null : all().find((other) => other.tab !== tab && other.page && typeof other.page.source === "string" && other.page.source !== first);
    if (!draft) return;
    const text = Locum.add(byId("messages"), "p", "An earlier program is stored in this browser. ");
    text.id = "draft";
    Locum.add(text, "button", "Restore it").addEventListener("click", () => { text.remove(); open(draft.page); });
    text.append(" ");
    Locum.add(text, "button", "Dismiss").addEventListener("click", () => text.remove());
  };
  // Changing the mode adds a history entry. Going back to another document opens its state.
  const enter = () => { try { history.pushState({ document, page: last }, ""); } catch { /* too often */ } };
  let moved = null;
  window.addEventListener("popstate", () => { if (history.state && history.state.page) { moved = location.href; setTimeout(() => { moved = null; }); } });
  const start = (openMode, open) => window.addEventListener("popstate", ({ state }) => {
    if (!state || !state.page) return;
    if (state.document === document) { openMode(state.page.mode || "rasp"); return; }
    document = state.document;
    open(state.page);
  });
  return { save, follow, own, offer, enter, start, share: () => { isInStep = true; }, begin: (isLink) => { document = random(); isInStep = isLink; before = []; }, isMove: (event) => event.newURL === moved };
})();
