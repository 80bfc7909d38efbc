// The page without a server: worker.js answers requests in sequence, with a time limit.
"use strict";
(() => {
  const SECONDS = 10, base = new URL(".", location.href).href, settings = JSON.parse(Locum.byId("site").textContent);
  const failed = (error) => ({ ok: false, error });
  let worker = null, receive = null, line = Promise.resolve();

  const message = () => new Promise((done) => { receive = done; });
  // A worker from a blob has the Content-Security-Policy of the page. A worker from a file would have no policy on most hosts.
  const start = async () => {
    const address = URL.createObjectURL(await (await fetch("worker.js")).blob());
    worker = new Worker(address, { type: "module" });
    worker.onmessage = ({ data }) => receive(data);
    worker.onerror = (event) => receive({ problem: event.message || "the worker did not start" });
    const begun = message();
    worker.postMessage({ ...settings, base, engine: new URL(settings.engine, base).href });
    const { problem } = await begun;
    URL.revokeObjectURL(address);
    if (problem) throw new Error(problem);
    performance.mark("locum-ready");
  };
  const stop = () => { if (worker) worker.terminate(); worker = null; starting = null; };
  let starting = null;
  const ready = () => (starting = starting || start());

  const work = async (request, signal) => {
    try { await ready(); } catch (error) { stop(); return { ok: false, server: true, error: `Python cannot be loaded into this page from ${new URL(settings.engine, base).host}: ${error.message}.` }; }
    if (signal.aborted) return null;
    worker.postMessage(JSON.stringify(request));
    const result = await Promise.race([message(), new Promise((done) => setTimeout(done, 1000 * SECONDS, null))]);
    if (result === null) { stop(); ready().catch(() => {}); return failed(`this takes longer than the limit of ${SECONDS} seconds`); }
    if (result.problem) { stop(); return failed(`this could not be computed: ${result.problem}`); }
    return JSON.parse(result.reply);
  };
  // The answers to the first requests of the page are stored in first.json.
  const key = (request) => JSON.stringify(Object.entries(request).filter(([, value]) => value !== undefined).sort());
  const first = fetch("first.json").then((response) => response.json()).then((pairs) => new Map(pairs.map(({ request, reply }) => [key(request), reply])));
  // Requests that are cancelled while they wait are skipped. A running request is finished.
  Locum.send = async (request, signal) => {
    const known = (await first).get(key(request));
    ready().catch(() => {});
    if (known) return known;
    const aborted = new Promise((_, fail) => signal.addEventListener("abort", () => fail(new DOMException("", "AbortError"))));
    const mine = line.then(() => (signal.aborted ? null : work(request, signal)));
    line = mine.catch(() => {});
    return Promise.race([mine, aborted]);
  };
  Locum.byId("waiting").textContent = "Python is loading or computing …";
})();
