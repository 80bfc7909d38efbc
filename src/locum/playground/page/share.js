// The state of the page in the fragment of a link: JSON, raw deflate, base64url (playground/share.py does the same).
"use strict";
Locum.share = (() => {
  const PREFIX = "#v1=", LARGEST = 200000;
  const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
  const pack = async (state) => {
    const bytes = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return PREFIX + btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  };
  // Null if the fragment is not one of ours.
  const unpack = async (fragment) => {
    if (!fragment.startsWith(PREFIX)) return null;
    try {
      const text = atob(fragment.slice(PREFIX.length).replaceAll("-", "+").replaceAll("_", "/"));
      const bytes = await through(Uint8Array.from(text, (c) => c.charCodeAt(0)), new DecompressionStream("deflate-raw"));
      if (bytes.length > LARGEST) return null;
      const state = JSON.parse(new TextDecoder().decode(bytes));
      return state && typeof state === "object" ? state : null;
    } catch { return null; }
  };
  return { pack, unpack };
})();
