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
    document.querySelectorAll(".formula, .diagram .scroll, figure.lesson").forEach((box) => {
      if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  }
  addEventListener("load", reachable);
  addEventListener("resize", reachable);
  /* What a term means is its hint; the meanings are fetched when a first term is pointed at. */
  const assets = document.currentScript.src.replace(/[^/]*$/, "");
  let asked = false;
  function explain(event) {
    if (asked || !(event.target instanceof Element) || !event.target.closest("a.term")) return;
    asked = true;
    const script = document.createElement("script");
    script.src = assets + "glossary.js";
    script.onload = () => document.querySelectorAll("a.term").forEach((term) => {
      term.title = window.otimesGlossary[term.hash.slice(1)] || "";
    });
    document.head.append(script);
  }
  addEventListener("pointerover", explain);
  addEventListener("focusin", explain);
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details[open] [data-packed]").forEach(unpack);
  });
})();
