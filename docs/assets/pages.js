/* Folded parts of pages are compressed in an attribute and unpacked when they are opened. */
(() => {
  "use strict";
  const old = "This part needs a newer browser: it is compressed.";

  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  const started = new WeakMap();

  /* Put what an element holds compressed in its place, once; a text field gets it as its text. */
  function unpack(element) {
    if (element.dataset.packed === undefined) return Promise.resolve();
    if (!started.has(element)) started.set(element, place(element));
    return started.get(element);
  }

  async function place(element) {
    const shown = await unpacked(element.dataset.packed).catch(() => old);
    if (element instanceof HTMLTextAreaElement) element.value = shown;
    else element.innerHTML = shown;
  }

  window.otimesUnpack = unpack;
  document.querySelectorAll("details").forEach((block) => {
    block.addEventListener("toggle", () => {
      if (block.open) block.querySelectorAll("[data-packed]").forEach(unpack);
    });
  });
  /* A formula that is wider than the page scrolls in its box, by the keyboard too. */
  function reachable() {
    document.querySelectorAll(".formula, .diagram .scroll").forEach((box) => {
      if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  }
  addEventListener("load", reachable);
  addEventListener("resize", reachable);
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details[open] [data-packed]").forEach(unpack);
  });
})();
