/* The widgets of the lessons. What they compute is in arithmetic.js; their data stand in the page. */
(() => {
  "use strict";
  const compute = otimesArithmetic;

  /* -- parts of a page ------------------------------------------------------------------------- */

  function make(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties))
      if (name in made) made[name] = value;
      else made.setAttribute(name, value);
    made.append(...children.flat().filter((child) => child !== null));
    return made;
  }

  function svg(tag, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  const shown = (value, digits = 2) =>
    value.toFixed(digits).replace(/^-(0(\.0*)?)$/, "$1").replace("-", "−");

  /* A small number as 1.2 · 10⁻⁷, and others as they are. */
  function small(value) {
    if (value === 0) return "0";
    if (value >= 0.001) return shown(value, 4);
    const exponent = Math.floor(Math.log10(value));
    const raised = [...String(exponent)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);
    return `${shown(value / 10 ** exponent, 1)} · 10${raised.join("")}`;
  }

  function choice(label, options, change) {
    const field = make("select", {}, options.map((option, k) =>
      make("option", { value: String(k) }, option)));
    field.onchange = () => change(Number(field.value));
    return make("label", {}, label, field);
  }

  function slider(label, from, to, value, change) {
    const number = make("output", {}, String(value));
    const field = make("input", { type: "range", min: from, max: to, step: 1 });
    field.value = value;
    field.oninput = () => {
      number.textContent = field.value;
      change(Number(field.value));
    };
    return make("label", {}, `${label} `, number, field);
  }

  function toggle(label, change) {
    const field = make("input", { type: "checkbox", checked: true });
    field.onchange = () => change(field.checked);
    return make("label", { className: "widget-check" }, field, label);
  }

  /* Buttons of which one is pressed; the pressed one stays where it is when the rest is drawn anew. */
  function buttons(label, texts, chosen, change) {
    const made = texts.map((text, k) => {
      const button = make("button", { type: "button", "aria-pressed": String(k === chosen) }, text);
      button.onclick = () => {
        made.forEach((each, at) => each.setAttribute("aria-pressed", String(at === k)));
        change(k);
      };
      return button;
    });
    return make("div", { role: "group", "aria-label": label, className: "widget-row" }, made);
  }

  const controls = (...children) => make("div", { className: "widget-controls" }, ...children);
  const heading = (text) => make("p", { className: "widget-heading" }, text);
  const live = () => make("div", { role: "status", "aria-live": "polite" });

  /* -- pictures -------------------------------------------------------------------------------- */

  /* Horizontal bars, to the left of a common zero for negative values. */
  function bars(labels, values, digits = 2) {
    const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
    const span = high - low || 1;
    const rows = values.map((value, k) => {
      const bar = make("span", { className: "widget-bar" });
      bar.style.left = `${(100 * (Math.min(value, 0) - low)) / span}%`;
      bar.style.width = `${(100 * Math.abs(value)) / span}%`;
      return make("tr", {}, make("th", { scope: "row" }, labels[k]),
        make("td", { className: "widget-track" }, make("div", {}, bar)),
        make("td", { className: "widget-value" }, shown(value, digits)));
    });
    return make("table", { className: "widget-bars" }, make("tbody", {}, rows));
  }

  /* An attention pattern, as the figures of the lessons show it; one row may be marked. */
  function pattern(weights, tokens, name, marked = -1) {
    const [cell, label] = [22, 64];
    const size = label + tokens.length * cell + 4;
    const drawn = svg("svg", { class: "pattern", viewBox: `0 0 ${size} ${size}`, role: "img",
      "aria-label": name, style: `max-width:${size * 1.25}px` });
    tokens.forEach((token, j) => {
      const x = label + j * cell + cell / 2;
      drawn.append(svg("text", { x, y: label - 6, transform: `rotate(-60 ${x} ${label - 6})` }, token));
      drawn.append(svg("text", { x: label - 6, y: label + j * cell + 15, class: "end" }, token));
    });
    weights.forEach((row, i) => row.slice(0, i + 1).forEach((weight, j) => {
      const title = svg("title", {}, `${tokens[i]} attends to ${tokens[j]}: ${shown(weight)}`);
      drawn.append(svg("rect", { x: label + j * cell, y: label + i * cell, width: cell - 1,
        height: cell - 1, "fill-opacity": weight.toFixed(3) }, title));
    }));
    if (marked >= 0)
      drawn.append(svg("rect", { class: "marked", x: label - 1, y: label + marked * cell - 1,
        width: (marked + 1) * cell + 1, height: cell + 1 }));
    return drawn;
  }

  /* A vector as cells: filled where positive, outlined where negative. */
  function strip(vector, largest, name) {
    const width = vector.length * 10;
    const drawn = svg("svg", { class: "pattern strip", viewBox: `0 0 ${width} 14`, role: "img",
      "aria-label": name, preserveAspectRatio: "none" });
    vector.forEach((value, k) => {
      const share = Math.min(Math.abs(value) / largest, 1).toFixed(3);
      drawn.append(svg("rect", { x: k * 10, y: 1, width: 9, height: 12,
        class: value < 0 ? "second" : "", "fill-opacity": value < 0 ? 0 : share,
        "stroke-opacity": value < 0 ? share : 0.2 }));
    });
    return drawn;
  }

  function matrix(rows, mark = () => "", edit = null) {
    return make("table", { className: "judge-matrix" }, make("tbody", {}, rows.map((row, i) =>
      make("tr", {}, row.map((value, j) => make("td", { className: mark(i, j) },
        edit ? edit(i, j, value) : String(Number(value.toFixed(2))).replace("-", "−")))))));
  }

  /* -- (A ⊗ W) x, cell by cell ----------------------------------------------------------------- */

  function kronecker(body, data) {
    const out = live();
    const { A, W, X } = data;
    let at = 0;
    const number = (value) => String(Number(value.toFixed(2))).replace("-", "−");
    const field = (of, name) => (i, j, value) => {
      const input = make("input", { inputMode: "decimal", "aria-label": `${name}, row ${i + 1}, column ${j + 1}` });
      input.value = value;
      input.oninput = () => {
        const typed = Number(input.value.replace(",", ".").replace("−", "-"));
        const good = input.value.trim() !== "" && Number.isFinite(typed);
        input.setAttribute("aria-invalid", String(!good));
        if (good) { of[i][j] = typed; draw(); }
      };
      return input;
    };
    const named = (name, table) =>
      make("div", { className: "judge-equation" }, make("span", {}, `${name} =`), table);
    const inputs = make("div", { className: "judge-matrices widget-inputs" },
      ["A", "W", "X"].map((name) => named(name, matrix(data[name], () => "", field(data[name], name)))));
    const places = X.flatMap((row, i) => row.map((_, a) => `token ${i + 1}, component ${a + 1}`));
    const pick = choice("component of the result ", places, (chosen) => { at = chosen; draw(); });

    function draw() {
      const [i, a] = [Math.floor(at / W.length), at % W.length];
      const found = compute.cell(A, W, X, i, a);
      const whole = compute.kron(A, W);
      const column = X.flat().map((value) => [value]);
      const result = compute.matmul(whole, column);
      const rows = compute.matmul(A, compute.matmul(X, compute.transpose(W)));
      const terms = found.terms.map((term, k) =>
        make("span", { className: term.pattern * term.weight * term.x === 0 ? "widget-zero" : "" },
          `${k ? " + " : ""}${[term.pattern, term.weight, term.x].map(number).join(" · ")}`));
      const block = (r, c) => (Math.floor(c / W.length) % 2 ? "block" : "");
      out.replaceChildren(
        make("div", { className: "judge-matrices" },
          named("A ⊗ W", matrix(whole, (r, c) => `${block(r, c)} ${r === at ? "chosen" : ""}`)),
          named("x", matrix(column)),
          named("(A ⊗ W) x", matrix(result, (r) => (r === at ? "chosen" : "")))),
        make("p", {}, `Row ${at + 1} times x: `, make("span", { className: "widget-sum" }, terms),
          ` = ${number(found.value)}. Each term is an entry of A, one of W and one of x.`),
        make("div", { className: "judge-matrices" },
          named("A X Wᵀ", matrix(rows, (r, c) => (r === i && c === a ? "chosen" : "")))));
    }
    body.append(inputs, controls(pick), out);
    draw();
  }

  /* -- a token is moved ------------------------------------------------------------------------ */

  function move(body, data) {
    const out = live();
    const order = [...data.order];
    const names = Object.keys(data.heads);
    let [name, at] = [names[0], 7];
    const row = make("div", {});
    const step = (by, label) => {
      const button = make("button", { type: "button" }, label);
      button.onclick = () => {
        const to = at + by;
        if (to < 0 || to >= order.length) return;
        [order[at], order[to]] = [order[to], order[at]];
        at = to;
        draw();
      };
      return button;
    };
    const again = make("button", { type: "button" }, "as it was");
    again.onclick = () => { order.splice(0, order.length, ...data.order); draw(); };

    function draw() {
      const tokens = order.map((token) => data.tokens[token]);
      const held = row.contains(document.activeElement);
      row.replaceChildren(buttons("tokens of the prompt", tokens, at, (k) => { at = k; draw(); }));
      if (held) row.querySelectorAll("button")[at].focus();
      const found = compute.head(data.heads[name], order);
      const largest = Math.max(...found.values.flat().map(Math.abs));
      const seen = found.pattern[at].map((weight, j) => [weight, j]).slice(0, at + 1);
      const top = seen.sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([weight]) => weight > 0.005);
      out.replaceChildren(
        heading(`The pattern of ${name}, with the row of ${tokens[at]} at position ${at + 1}`),
        pattern(found.pattern, tokens, `attention pattern of ${name}`, at),
        heading("Values of what it looks at most, and their weighted mean (outlined: negative)"),
        make("table", { className: "widget-bars" }, make("tbody", {},
          top.map(([weight, j]) => make("tr", {},
            make("th", { scope: "row" }, `${shown(weight)} × ${tokens[j]} (${j + 1})`),
            make("td", { className: "widget-track" }, strip(found.values[j], largest, `value of ${tokens[j]}`)))),
          make("tr", {}, make("th", { scope: "row" }, "mean"),
            make("td", { className: "widget-track" }, strip(found.mixed[at], largest, "weighted mean"))))),
        heading("What the head adds to the logits of the four tokens"),
        bars(data.tokens, found.logits[at]));
    }
    body.append(
      controls(choice("head ", names, (k) => { name = names[k]; draw(); })), row,
      make("div", { className: "widget-row" }, step(-1, "◀ move left"), step(1, "move right ▶"), again), out);
    draw();
  }

  /* -- heads are switched off ------------------------------------------------------------------ */

  function paths(body, data) {
    const out = live();
    let asked = data.predictions[0];
    const on = [0, 1].map(() => [true, true, true, true]);
    const heads = on.map((row, layer) => make("div", { role: "group", className: "widget-row",
      "aria-label": `heads of layer ${layer}` }, row.map((_, h) =>
      toggle(`${layer}.${h}`, (yes) => { on[layer][h] = yes; draw(); }))));

    function draw() {
      const found = compute.orders(asked, on);
      const sum = found.reduce((total, value) => total + value, 0);
      out.replaceChildren(
        heading("The logit: by the number of heads on the path, all paths, and in the model itself"),
        bars(["no head", "one head", "two heads", "sum", "model"],
          [...found, sum, compute.recomputed(asked, on)]));
    }
    body.append(
      controls(choice("prediction ", data.predictions.map((each) => each.label),
        (k) => { asked = data.predictions[k]; draw(); })), ...heads, out);
    draw();
  }

  /* -- two heads are composed ------------------------------------------------------------------ */

  function compose(body, data) {
    const out = live();
    const n = data.tokens.length;
    let [writer, reader] = [1, 3];
    const names = (layer) => [0, 1, 2, 3].map((h) => `${layer}.${h}`);

    function draw() {
      const earlier = compute.triangle(data.patterns[0][writer], n);
      const later = compute.triangle(data.patterns[1][reader], n);
      const scores = ["Q", "K", "V"].map((kind) => data.scores[kind][writer][reader]);
      out.replaceChildren(
        heading(`First 0.${writer}, then 1.${reader}: the product of their patterns`),
        pattern(compute.matmul(later, earlier), data.tokens, "pattern of the virtual head"),
        heading("Composition scores"),
        bars(["Q-composition", "K-composition", "V-composition", "by chance"], [...scores, data.chance], 3));
    }
    body.append(
      heading("Head of layer 0"), buttons("head of layer 0", names(0), writer, (k) => { writer = k; draw(); }),
      heading("Head of layer 1"), buttons("head of layer 1", names(1), reader, (k) => { reader = k; draw(); }),
      out);
    draw();
  }

  /* -- eigenvalues ----------------------------------------------------------------------------- */

  function eigenvalues(body, data) {
    const out = live();
    const names = Object.keys(data);
    const kinds = [["full", "full circuit, W_E W_V W_O W_U"], ["bare", "bare W_V W_O"]];
    let [head, kind] = [7, "full"];

    function draw() {
      const upper = data[names[head]][kind];
      const all = upper.flatMap(([re, im]) => (im > 0 ? [[re, im], [re, -im]] : [[re, im]]));
      const largest = Math.max(...all.map(([re, im]) => Math.hypot(re, im)));
      const drawn = svg("svg", { class: "chart", viewBox: "-110 -110 220 220", role: "img",
        "aria-label": `eigenvalues of ${names[head]}`, style: "max-width:22rem" },
      svg("path", { class: "axis", d: "M-105 0H105M0 -105V105" }));
      for (const [re, im] of all)
        drawn.append(svg("circle", { cx: (100 * re / largest).toFixed(1), cy: (-100 * im / largest).toFixed(1),
          r: 3, class: re < 0 ? "second" : "" },
        svg("title", {}, `${shown(re)} ${im < 0 ? "−" : "+"} ${shown(Math.abs(im))} i`)));
      out.replaceChildren(drawn, make("p", {},
        `Copying score of the ${kind} circuit of ${names[head]}: ${shown(compute.copying(upper))}. `
        + `${all.filter(([re]) => re > 0).length} of ${all.length} have a positive real part. `
        + `The largest has the absolute value ${shown(largest)}.`));
    }
    body.append(
      controls(choice("circuit ", kinds.map(([, text]) => text), (k) => { kind = kinds[k][0]; draw(); })),
      buttons("head", names.map((name) => name.replace("head ", "")), head, (k) => { head = k; draw(); }), out);
    draw();
  }

  /* -- the induction circuit on a prompt ------------------------------------------------------- */

  function circuit(body, data) {
    const out = live();
    const row = make("div", {});
    let [asked, head, at] = [data.prompts[0], "head 1.3", 7];
    const names = Object.keys(asked.second);

    function draw() {
      const { tokens } = asked;
      const n = tokens.length;
      const [first, second] = [compute.triangle(asked.first, n), compute.triangle(asked.second[head], n)];
      const found = compute.induction(first, second, tokens, at);
      const held = row.contains(document.activeElement);
      row.replaceChildren(buttons("tokens of the prompt", tokens, at, (k) => { at = k; draw(); }));
      row.querySelectorAll("button").forEach((button, j) => {
        button.style.setProperty("--weight", `${(100 * (second[at][j] || 0)).toFixed(0)}%`);
      });
      if (held) row.querySelectorAll("button")[at].focus();
      const key = second[at].indexOf(Math.max(...second[at]));
      const source = first[key].indexOf(Math.max(...first[key]));
      const says = tokens[source] === tokens[at] && source < at
        ? "It is the same token as the chosen one: this is induction."
        : "That is not the chosen token: this is not induction.";
      out.replaceChildren(
        make("p", {}, `From ${tokens[at]} (${at + 1}), ${head} looks at `, make("strong", {}, tokens[key]),
          ` (${key + 1}) with a weight of ${shown(second[at][key])}. At that token, head 0.1 has looked at `,
          make("strong", {}, tokens[source]), ` (${source + 1}) with ${shown(first[key][source])}. ${says}`),
        make("p", {}, `Of its attention, ${shown(found.matched)} goes to keys to which head 0.1 has moved an `
          + `earlier ${tokens[at]}. The model predicts `, make("strong", {}, asked.best[at]), "."));
    }
    const pick = choice("prompt ", data.prompts.map((each) => each.tokens.join("").replaceAll("␣", " ")),
      (k) => { asked = data.prompts[k]; at = asked.tokens.length - 1; draw(); });
    body.append(controls(pick, choice("head ", names, (k) => { head = names[k]; draw(); })), row, out);
    head = names.includes(head) ? head : names[0];
    body.querySelectorAll("select")[1].value = String(names.indexOf(head));
    draw();
  }

  /* -- rotary positions ------------------------------------------------------------------------ */

  function rotary(body, data) {
    const out = live();
    let [i, j] = data.at;

    function plane({ query, key }) {
      const size = Math.max(Math.hypot(...query), Math.hypot(...key));
      const [qx, qy, kx, ky] = [...query, ...key].map((value) => Number((40 * value / size).toFixed(1)));
      return svg("svg", { class: "chart plane", viewBox: "-48 -48 96 96", role: "img", "aria-label": "a plane" },
        svg("circle", { class: "axis ring", r: 44 }),
        svg("path", { class: "curve", d: `M0 0L${qx} ${-qy}` }), svg("circle", { cx: qx, cy: -qy, r: 4 }),
        svg("path", { class: "curve dashed", d: `M0 0L${kx} ${-ky}` }),
        svg("rect", { x: kx - 4, y: -ky - 4, width: 8, height: 8 }));
    }

    function draw() {
      const found = compute.rotary(data, i, j);
      const total = (those) => those.reduce((sum, each) => sum + each.score, 0);
      const seen = data.planes.map((k) => found[k]);
      const names = data.planes.map((k) => `plane ${k + 1}`);
      const sum = total(found);
      out.replaceChildren(
        make("div", { className: "widget-planes" }, seen.map((each, k) =>
          make("div", {}, plane(each), make("span", {}, names[k])))),
        bars([...names, `the other ${found.length - seen.length}`, "score"],
          [...seen.map((each) => each.score), sum - total(seen), sum]),
        make("p", {}, `The distance i − j is ${shown(i - j, 0)}, and the score ${shown(sum)}.`));
    }
    const fields = [slider("position of the query, i =", 0, 40, i, (value) => { i = value; draw(); }),
      slider("position of the key, j =", 0, 40, j, (value) => { j = value; draw(); })];
    const both = (by, label) => {
      const button = make("button", { type: "button" }, label);
      button.onclick = () => {
        if (Math.min(i, j) + by < 0 || Math.max(i, j) + by > 40) return;
        [i, j] = [i + by, j + by];
        [i, j].forEach((value, k) => {
          fields[k].querySelector("input").value = value;
          fields[k].querySelector("output").textContent = String(value);
        });
        draw();
      };
      return button;
    };
    body.append(controls(...fields),
      make("div", { className: "widget-row" }, both(-1, "both one back"), both(1, "both one on")), out);
    draw();
  }

  /* -- rounding against its bound -------------------------------------------------------------- */

  function rounding(body, data) {
    const out = live();
    const formats = ["float32", "bfloat16"];
    const mistakes = [0, ...[7, 6, 5, 4, 3, 2, 1].map((k) => 10 ** -k)];
    let [format, count, change] = ["float32", data.x.length, 0];

    function draw() {
      const found = compute.sum(data.x, data.y, count, format, change);
      const excess = found.error > found.bound;
      const [low, high] = [-9, 2];
      const share = (value) => 100 * Math.min(Math.max((Math.log10(value || 1e-9) - low) / (high - low), 0), 1);
      const line = (label, value, mark) => {
        const bar = make("span", { className: `widget-bar ${mark}` });
        bar.style.width = `${share(value)}%`;
        return make("tr", {}, make("th", { scope: "row" }, label),
          make("td", { className: "widget-track" }, make("div", {}, bar)),
          make("td", { className: "widget-value" }, small(value)));
      };
      out.replaceChildren(
        make("p", {}, `${format}: ${shown(found.computed, 6)}; exact: ${shown(found.exact, 6)}`),
        make("table", { className: "widget-bars" }, make("tbody", {},
          line("difference", found.error, excess ? "bad" : ""), line("bound", found.bound, "second"))),
        make("p", {}, "The bars are logarithmic. ", make("strong", {}, excess
          ? "No rounding explains this difference: it is a mistake."
          : change ? "The mistake is hidden: rounding could have made this difference."
            : "Rounding explains the difference.")));
    }
    body.append(controls(
      choice("numbers ", formats, (k) => { format = formats[k]; draw(); }),
      choice("mistake in the first factor ", mistakes.map((value) => (value ? `off by ${small(value)} of it` : "none")),
        (k) => { change = mistakes[k]; draw(); }),
      slider("number of products:", 1, data.x.length, count, (value) => { count = value; draw(); })), out);
    draw();
  }

  const kinds = { kronecker, move, paths, compose, eigenvalues, circuit, rotary, rounding };
  document.querySelectorAll("[data-widget]").forEach((body) => {
    kinds[body.dataset.widget](body, JSON.parse(body.dataset.data));
  });
})();
