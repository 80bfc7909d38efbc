// The state of the page in the fragment of a link: JSON, raw deflate, base64url (playground/share.py does the same).
"use strict";
Locum.share = (() => {
  const PREFIX = "#v1=", LONGEST = 60000, LARGEST = 200000, DEEPEST = 8;
  const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
  // Null if the link would be rejected.
  const pack = async (state) => {
    const data = new TextEncoder().encode(JSON.stringify(state));
    if (data.length > LARGEST || isDeep(state, DEEPEST)) return null;
    const bytes = await through(data, new CompressionStream("deflate-raw"));
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return PREFIX + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  };
  // The output of a stream; raises an error as soon as the output is larger than the limit.
  const bounded = async (bytes, stream) => {
    const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader(), parts = [];
    for (let size = 0; ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > LARGEST) { await reader.cancel(); throw new RangeError("too large"); }
      parts.push(value);
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  };
  // Whether floats represent all numbers in a JSON text, outside of its strings, without loss of digits.
  const isHeld = (text) => (text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"/g, "").match(/-?[0-9][0-9.]*(?:e[-+]?[0-9]+)?/gi) || []).every((one) => Locum.numberOf(one) !== null);
  const isDeep = (value, left) => value !== null && typeof value === "object" && (left === 0 || Object.values(value).some((part) => isDeep(part, left - 1)));
  // Null if the fragment is not valid; playground/share.py rejects the same fragments.
  const unpack = async (fragment) => {
    const packed = fragment.slice(PREFIX.length);
    if (!fragment.startsWith(PREFIX) || !/^[A-Za-z0-9_-]*$/.test(packed) || packed.length % 4 === 1) return null;
    try {
      const text = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
      const bytes = await bounded(Uint8Array.from(text, (c) => c.charCodeAt(0)), new DecompressionStream("deflate-raw"));
      const content = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes), state = JSON.parse(content);
      return isHeld(content) && state && typeof state === "object" && !Array.isArray(state) && !isDeep(state, DEEPEST) ? state : null;
    } catch { return null; }
  };
  return { pack, unpack, LONGEST };
})();
