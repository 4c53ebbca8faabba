/* The map of the theorems: dots by chapter, lines for recorded uses. Data: assets/map/data.js. */
(() => {
  "use strict";
  const block = document.querySelector(".theorem-map");
  const map = window.otimesMap;
  if (!block || !map) return;
  const PITCH = 19, RADIUS = 5.5, HEAD = 26, GAP = 12, LEFT = 10;
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const drawing = block.querySelector(".map-drawing");
  const said = block.querySelector(".map-said");
  const find = block.querySelector("input");

  const nodes = map.chapters.flatMap((chapter, k) =>
    chapter.entries.map(([name, number, title, kind, state]) =>
      ({ name, number, title, kind, state, chapter: k, uses: [], usedBy: [] })));
  map.uses.forEach(([from, to]) => {
    nodes[from].uses.push(nodes[to]);
    nodes[to].usedBy.push(nodes[from]);
  });

  function svg(tag, attributes, parent) {
    const made = document.createElementNS(NAMESPACE, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (parent) parent.append(made);
    return made;
  }

  function plain(html) {
    const holder = document.createElement("div");
    holder.innerHTML = html;
    return holder.textContent;
  }

  let chosen = null;
  let lines = null;
  let columns = 1;

  function draw() {
    const width = Math.max(drawing.clientWidth, 200);
    columns = Math.floor((width - 2 * LEFT) / PITCH);
    const picture = svg("svg", { role: "group", "aria-label": "map of the entries", width });
    lines = svg("g", { class: "map-lines", "aria-hidden": "true" }, picture);
    let y = 4;
    map.chapters.forEach((chapter, k) => {
      svg("text", { x: 2, y: y + 15 }, picture).textContent = chapter.title;
      y += HEAD;
      const own = nodes.filter((node) => node.chapter === k);
      own.forEach((node, place) => {
        node.x = LEFT + RADIUS + (place % columns) * PITCH;
        node.y = y + RADIUS + Math.floor(place / columns) * PITCH;
        node.dot = svg("circle", {
          cx: node.x, cy: node.y, r: RADIUS, class: `map-dot ${node.kind}`, tabindex: -1,
          role: "link", "aria-label": `${node.number} ${plain(node.title)}: ${node.state}`,
        }, picture);
        node.dot.onclick = () => choose(node);
        node.dot.onfocus = () => choose(node, false);
        node.dot.ondblclick = () => open(node);
        node.dot.onkeydown = (event) => keys(event, node);
      });
      y += Math.ceil(own.length / columns) * PITCH + GAP;
    });
    picture.setAttribute("height", y);
    drawing.replaceChildren(picture);
    nodes.forEach((node) => node.uses.forEach((used) => line(node, used, "all")));
    if (nodes.length) (chosen || nodes[0]).dot.setAttribute("tabindex", 0);
  }

  function line(from, to, kind) {
    const bend = (from.x + to.x) / 2 + (from.y - to.y) / 6;
    const d = `M${from.x} ${from.y}Q${bend} ${(from.y + to.y) / 2} ${to.x} ${to.y}`;
    svg("path", { d, class: kind }, lines);
  }

  function link(node) {
    const made = document.createElement("a");
    made.href = `theorems/${node.name}.html`;
    made.innerHTML = `${node.number} ${node.title}`;
    return made;
  }

  function listed(word, those) {
    if (!those.length) return [];
    return [`${word}: `, ...those.flatMap((node, k) => (k ? ["; ", link(node)] : [link(node)])), ". "];
  }

  function choose(node, focus = true) {
    if (chosen) chosen.dot.setAttribute("tabindex", -1);
    chosen = node;
    node.dot.setAttribute("tabindex", 0);
    lines.querySelectorAll(".near").forEach((each) => each.remove());
    const near = new Set([node, ...node.uses, ...node.usedBy]);
    nodes.forEach((each) => {
      each.dot.classList.toggle("near", near.has(each));
      each.dot.classList.toggle("chosen", each === node);
    });
    node.uses.forEach((used) => line(node, used, "near"));
    node.usedBy.forEach((user) => line(user, node, "near"));
    const strong = document.createElement("strong");
    strong.append(link(node));
    said.replaceChildren(strong, ` (${node.state}). `,
      ...listed("Uses", node.uses), ...listed("Used by", node.usedBy));
    if (focus) node.dot.focus({ preventScroll: false });
  }

  function open(node) {
    location.href = `theorems/${node.name}.html`;
  }

  function keys(event, node) {
    const place = nodes.indexOf(node);
    const row = nodes.filter((each) => each.chapter === node.chapter);
    const inside = row.indexOf(node);
    const steps = {
      ArrowRight: place + 1,
      ArrowLeft: place - 1,
      ArrowDown: inside + columns < row.length ? place + columns : place + (row.length - inside),
      ArrowUp: inside >= columns ? place - columns : place - inside - 1,
      Home: 0,
      End: nodes.length - 1,
    };
    if (event.key === "Enter") open(node);
    else if (event.key in steps) {
      event.preventDefault();
      const next = nodes[Math.min(Math.max(steps[event.key], 0), nodes.length - 1)];
      choose(next);
    }
  }

  function search() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = nodes.filter((node) => words.length && words.every((word) =>
      `${node.number} ${node.name} ${node.title} ${node.kind}`.toLowerCase().includes(word)));
    drawing.classList.toggle("searching", words.length > 0);
    nodes.forEach((node) => node.dot.classList.toggle("found", found.includes(node)));
    if (!words.length) return;
    said.replaceChildren(`${found.length} found. `,
      ...found.slice(0, 12).flatMap((node, k) => (k ? ["; ", link(node)] : [link(node)])),
      found.length > 12 ? "; …" : "");
  }

  find.oninput = search;
  find.onkeydown = (event) => {
    const first = nodes.find((node) => node.dot.classList.contains("found"));
    if (event.key === "Enter" && first) choose(first);
  };
  let waiting = 0;
  new ResizeObserver(() => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => {
      if (drawing.clientWidth && drawing.dataset.width !== String(drawing.clientWidth)) {
        const focused = drawing.contains(document.activeElement);
        drawing.dataset.width = drawing.clientWidth;
        draw();
        if (chosen) choose(chosen, focused);
        search();
      }
    });
  }).observe(drawing);
  said.textContent = "Choose a dot to see what the entry uses and what uses it.";
  drawing.dataset.width = drawing.clientWidth;
  draw();
  const asked = nodes.find((node) => `#${node.name}` === location.hash);
  if (asked) choose(asked);
  // The browser moves the focus to the page when it has looked for the fragment of the address.
  addEventListener("load", () => setTimeout(() => {
    if (chosen && document.activeElement === document.body) chosen.dot.focus();
  }));
})();
