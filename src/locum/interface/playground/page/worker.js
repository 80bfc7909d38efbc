// Answer requests in a Web Worker that runs Locum on Pyodide. The first message contains the address and the settings of the site.
const load = async ({ base, engine, integrity }) => {
  // Every file of another host is checked against its hash before it is used, scripts included.
  const plain = self.fetch, hashOf = (address) => integrity[address.startsWith(engine) ? address.slice(engine.length) : ""];
  self.fetch = (address, options) => plain(address, hashOf(String(address)) ? { ...options, integrity: hashOf(String(address)) } : options);
  const module = async (name) => {
    if (!integrity[name]) return import(engine + name);
    const address = URL.createObjectURL(await (await fetch(engine + name)).blob());
    try { return await import(address); } finally { URL.revokeObjectURL(address); }
  };
  const archive = fetch(base + "locum.zip").then((response) => response.arrayBuffer());
  const { loadPyodide } = await module("pyodide.mjs"), own = {};
  // Without hashes, Pyodide imports its second script itself.
  if (Object.keys(integrity).length) {
    own.createPyodideModule = (await module("pyodide.asm.mjs")).default;
    own.lockFileContents = await (await fetch(engine + "pyodide-lock.json")).text();
  }
  const pyodide = await loadPyodide({ indexURL: engine, packageBaseUrl: engine, ...own });
  await pyodide.loadPackage("numpy", { messageCallback: () => {} });
  pyodide.unpackArchive(await archive, "zip", { extractDir: "/locum" });
  pyodide.runPython('import sys; sys.path.insert(0, "/locum")');
  const answer = pyodide.runPython("from locum.interface.playground.answer import answer_text; answer_text");
  return (request) => answer(request);
};

let ready = null;
self.onmessage = async ({ data }) => {
  try {
    if (ready === null) { ready = load(data); await ready; self.postMessage({ ready: true }); return; }
    self.postMessage({ reply: (await ready)(data) });
  } catch (error) {
    const lines = String(error && error.message || error).trim().split("\n");
    self.postMessage({ problem: lines[0].startsWith("Traceback") ? lines.pop() : lines[0] }); // for an exception of Python, the last line
  }
};
