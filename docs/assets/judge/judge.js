/* The judge in a page: certificates are replayed, claims decided and exercises checked in the
   reader's browser. The worker and what it loads (30 MB) are fetched when a reader first
   enters the field of an exercise or a claim, or asks. */
(() => {
  "use strict";
  const here = new URL("./", document.currentScript.src).href;
  const fromDisk =
    "Browsers start no worker from a page that was opened from a file. Run “otimes docs” in the " +
    "repository and open the address that it prints: there this works.";
  const notBuilt =
    "This copy of the site was built without the judge: build it with “make docs” where npm is " +
    "installed.";

  let worker = null;
  let asked = 0;
  const waiting = new Map();

  /* -- the worker ------------------------------------------------------------------------------ */

  async function startWorker() {
    if (location.protocol === "file:") throw new Error(fromDisk);
    const found = await fetch(here + "files.json").catch(() => null);
    if (!found || !found.ok) throw new Error(notBuilt);
    const made = new Worker(here + "worker.mjs", { type: "module" });
    made.onmessage = ({ data }) => {
      if (data.status) return waiting.forEach((each) => each.status(data.status));
      const each = waiting.get(data.id);
      waiting.delete(data.id);
      if (!each) return undefined;
      noteUse();
      return data.failed ? each.reject(new Error(data.failed)) : each.resolve(data.answer);
    };
    made.onerror = () => stop("The judge could not be started in this browser.");
    return made;
  }

  /* Who enters a field will ask: the judge starts meanwhile. */
  function warm() {
    if (worker) return;
    const starting = worker = startWorker();
    starting.catch(() => { if (worker === starting) worker = null; }); // the question says why
  }

  /* Who has asked on another page has the files already, and may ask again: for this reader the
     judge starts when a first block comes into view, and the page has nothing else to do. */
  const used = "otimes-judge";
  function asksAgain() {
    try { return sessionStorage.getItem(used) === "1"; } catch { return false; }
  }
  function noteUse() {
    try { sessionStorage.setItem(used, "1"); } catch { /* nothing is kept in this browser */ }
  }
  function warmInView(blocks) {
    const idle = window.requestIdleCallback || setTimeout;
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((each) => each.isIntersecting)) return;
      seen.disconnect();
      idle(warm);
    });
    blocks.forEach((each) => seen.observe(each));
  }

  function stop(why) {
    const stopped = worker;
    worker = null;
    if (stopped) stopped.then((each) => each.terminate(), () => {});
    waiting.forEach((each) => each.reject(new Error(why)));
    waiting.clear();
  }

  async function ask(request, status) {
    status("Starting …");
    worker ??= startWorker();
    let at;
    try {
      at = await worker;
    } catch (error) {
      worker = null;
      throw error;
    }
    const id = ++asked;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject, status });
      at.postMessage({ id, request: JSON.stringify(request) });
    }).then(JSON.parse);
  }

  /* -- what is shown --------------------------------------------------------------------------- */

  function make(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  function verdict(word, good, said) {
    return make("p", { className: `judge-verdict ${good ? "good" : "bad"}` },
      make("strong", {}, word), said ? `: ${said}` : "");
  }

  function matrix({ name, rows, at }) {
    const body = rows.map((row, i) =>
      make("tr", {}, ...row.map((entry, j) =>
        make("td", { className: at && at[0] === i && at[1] === j ? "differs" : "" }, entry))));
    const table = make("table", { className: "judge-matrix" }, make("tbody", {}, ...body));
    return make("div", { className: "judge-equation" }, make("span", {}, `${name} =`), table);
  }

  function numbers(found) {
    const plain = [...found.numbers, ...found.functions].map(([name, value]) =>
      make("span", { className: "judge-number" }, `${name} = ${value}`));
    const shown = [
      plain.length ? make("div", { className: "judge-numbers" }, ...plain) : null,
      found.matrices.length
        ? make("div", { className: "judge-matrices" }, ...found.matrices.map(matrix)) : null,
      make("p", {}, "With these numbers the two sides are:"),
      make("div", { className: "judge-matrices" }, ...found.sides.map(matrix)),
    ];
    if (found.presupposes.length)
      shown.push(make("p", {}, `It presupposes ${found.presupposes.join(" and ")}.`));
    return shown;
  }

  function chain(steps) {
    const rows = [make("li", {}, make("code", {}, steps.first))];
    for (const line of steps.lines)
      rows.push(make("li", {}, make("code", {}, `= ${line.shown}`),
        make("span", { className: "judge-rule", title: line.says }, line.rule)));
    return make("details", { open: steps.lines.length <= 8 },
      make("summary", {}, `${steps.lines.length} step${steps.lines.length > 1 ? "s" : ""}`),
      steps.preface ? make("p", {}, steps.preface) : null,
      make("ol", { className: "judge-steps" }, ...rows));
  }

  function shownVerdict(found) {
    if (found.error) return [verdict("not read", false, found.error)];
    const shown = [make("p", {}, "Read as ", make("code", {}, found.reading))];
    if (found.status === "proved") {
      shown.push(verdict("proved", true, `for every size; ${found.reason}.`));
      if (found.replayed)
        shown.push(make("p", {}, found.replayed.accepted
          ? `The separate checker accepts its certificate: ${found.replayed.said}.`
          : `But the separate checker rejects its certificate: ${found.replayed.said}.`));
      if (found.steps) shown.push(chain(found.steps));
    } else if (found.status === "refuted") {
      const at = found.counterexample && found.counterexample.entry;
      shown.push(verdict("refuted", false, at
        ? `the sides differ at row ${at[0] + 1}, column ${at[1] + 1}.` : "the sides differ."));
      if (found.counterexample) shown.push(...numbers(found.counterexample));
      if (found.needs.length)
        shown.push(make("p", {}, `It would be true if ${found.needs.join("; or if ")}.`));
    } else {
      shown.push(verdict("undecided", false, found.reason));
    }
    return shown;
  }

  /* -- one question at a time per block -------------------------------------------------------- */

  async function run(block, request, show) {
    const out = block.querySelector(".judge-answer");
    const buttons = [...block.querySelectorAll("button.ask")];
    const halt = make("button", { type: "button", className: "halt" }, "Stop");
    const status = make("span", {}, "");
    halt.onclick = () => stop("Stopped.");
    buttons.forEach((each) => { each.disabled = true; });
    out.replaceChildren(make("p", { className: "judge-status" }, status, " ", halt));
    try {
      const found = await ask(request, (said) => { status.textContent = said; });
      out.replaceChildren(...show(found));
      block.dataset.state = found.error ? "error" : found.status
        || (found.accepted ? "accepted" : "rejected");
    } catch (error) {
      out.replaceChildren(verdict("no answer", false, error.message));
      block.dataset.state = "none";
    }
    buttons.forEach((each) => { each.disabled = false; });
  }

  function certificates(block) {
    const text = block.querySelector("textarea");
    let original = null;
    const unpacked = async () => {
      await window.otimesUnpack(text);
      original ??= text.value;
    };
    const show = (found) => [
      found.accepted ? verdict("accepted", true, found.said)
        : verdict("rejected", false, found.said),
      make("p", {}, text.value === original
        ? "This is the certificate as it was made when the site was built."
        : "This is not the certificate that was made when the site was built."),
    ];
    const check = () => run(block, { do: "replay", certificate: text.value }, show);
    block.querySelector("details").addEventListener("toggle", unpacked);
    block.querySelector(".check").onclick = async () => {
      await unpacked();
      text.value = original;
      check();
    };
    block.querySelector(".edited").onclick = check;
    const damage = block.querySelector(".damage");
    if (damage) damage.onclick = async () => {
      await unpacked();
      const { side, tree } = damage.dataset;
      text.value = JSON.stringify({ ...JSON.parse(original), [side]: JSON.parse(tree) });
      check();
    };
  }

  function field(block, name) {
    const found = block.querySelector(`[name=${name}]`);
    return found ? found.value : "";
  }

  function claims(block) {
    const original = field(block, "equation");
    const decide = () => run(block, {
      do: "decide",
      equation: field(block, "equation").replace(/\s+/g, " "),
      shapes: field(block, "shapes").replace(/\s+/g, " "),
      given: field(block, "given"),
    }, shownVerdict);
    block.querySelector("form").onsubmit = (event) => { event.preventDefault(); decide(); };
    block.querySelector(".reset").onclick = () => {
      block.querySelector("[name=equation]").value = original;
      block.querySelector(".judge-answer").replaceChildren();
    };
  }

  /* An equation and the shapes are one line, though their fields may show several: Enter asks. */
  function entering(block) {
    block.querySelectorAll("form textarea:not([name=given])").forEach((field) => {
      field.onkeydown = (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        field.form.requestSubmit();
      };
    });
  }

  /* -- exercises ------------------------------------------------------------------------------- */

  const typed = [["\\otimes", "⊗"], ["\\circ", "∘"], ["\\mathbf{1}", "𝟏"], ["^T", "ᵀ"], ["^{-1}", "⁻¹"]];
  const keys = ["⊗", "ᵀ", "⁻¹", "∘", "𝟏"];

  /* Signs that no keyboard has: a key for each, and what is typed in TeX becomes the sign. */
  function signs(block) {
    const field = block.querySelector("[name=answer]");
    field.oninput = () => {
      for (const [from, to] of typed)
        if (field.value.includes(from)) field.setRangeText(to,
          field.value.indexOf(from), field.value.indexOf(from) + from.length, "end");
    };
    const row = make("div", { className: "judge-keys", role: "group", ariaLabel: "signs" });
    for (const sign of keys) {
      const key = make("button", { type: "button" }, sign);
      key.onclick = () => {
        field.setRangeText(sign, field.selectionStart, field.selectionEnd, "end");
        field.focus();
      };
      row.append(key);
    }
    field.closest("label").after(row);
  }

  function marked(block, right) {
    block.classList.toggle("right", right);
    block.classList.toggle("wrong", !right);
  }

  function equations(block) {
    const asked = JSON.parse(block.dataset.exercise);
    signs(block);
    block.querySelector("form").onsubmit = (event) => {
      event.preventDefault();
      run(block, { do: "exercise", answer: field(block, "answer"), ...asked }, (found) => {
        marked(block, found.status === "proved");
        return shownVerdict(found);
      });
    };
  }

  function judgements(block) {
    const asked = JSON.parse(block.dataset.exercise);
    block.querySelectorAll("button.ask").forEach((button) => {
      button.onclick = () => run(block, { do: "decide", ...asked }, (found) => {
        const right = found.status === button.value;
        marked(block, right);
        return [make("p", {}, right ? "You are right." : "It is the other way round."),
          ...shownVerdict(found)];
      });
    });
  }

  /* The value of a calculation with numbers, such as 3·3·3 or 1/√100 or (1 + 2)/6; NaN if it is none. */
  function calculated(text) {
    const signs = text.match(/\d+\.?\d*(e[-+]?\d+)?|\.\d+(e[-+]?\d+)?|sqrt|pi|[-+*/^()√π%]|\S/gi) || [];
    let at = 0;
    const next = (...ones) => (ones.includes(signs[at]) ? signs[at++] : "");
    function sum() {
      let value = product();
      for (let sign; (sign = next("+", "-"));) value += sign === "+" ? product() : -product();
      return value;
    }
    function product() {
      let value = power();
      while (at < signs.length && !["+", "-", ")", "%"].includes(signs[at]))
        value = next("/") ? value / power() : (next("*"), value * power());
      return next("%") ? value / 100 : value;
    }
    function power() {
      if (next("-")) return -power();
      next("+");
      const base = one();
      return next("^") ? base ** power() : base;
    }
    function one() {
      if (next("√", "sqrt")) return Math.sqrt(one());
      if (next("π", "pi")) return Math.PI;
      if (next("(")) {
        const value = sum();
        return next(")") ? value : NaN;
      }
      return /^[\d.]/.test(signs[at] || "") ? Number(signs[at++]) : (at++, NaN);
    }
    const value = sum();
    return at === signs.length ? value : NaN;
  }

  /* What was typed as a number: 40000 or 40,000 or 0.75 or 0,75, or a calculation. */
  function readings(typed) {
    const said = typed.replace(/[\s\u2009\u202f]/g, "").replace(/^=/, "").replaceAll("−", "-")
      .replace(/[·×]/g, "*").replaceAll("**", "^");
    const both = [said.replaceAll(",", "."), said.replace(/,(?=\d{3}(?!\d))/g, "")];
    return both.map(calculated).filter(Number.isFinite);
  }

  function values(block) {
    const asked = JSON.parse(block.dataset.exercise);
    block.querySelector("form").onsubmit = (event) => {
      event.preventDefault();
      const out = block.querySelector(".judge-answer");
      const numbers = readings(field(block, "answer"));
      if (!numbers.length) {
        block.dataset.state = "error";
        out.replaceChildren(verdict("not read", false, "type a number, such as 12 or 0.75 or 3/4"));
        return;
      }
      const right = numbers.some((one) => Math.abs(one - asked.value) <= asked.within + 1e-9 * Math.abs(asked.value));
      marked(block, right);
      block.dataset.state = right ? "proved" : "refuted";
      out.replaceChildren(right ? verdict("right", true, asked.said)
        : verdict("no", false, "try again, or open a hint."));
    };
  }

  const kinds = {
    certificate: certificates,
    claim: claims,
    equation: equations,
    judgement: judgements,
    value: values,
  };
  function set() {
    const asking = [];
    document.querySelectorAll(".judge[data-kind]").forEach((block) => {
      kinds[block.dataset.kind](block);
      entering(block);
      if (block.dataset.kind === "value") return;
      asking.push(block);
      block.querySelectorAll("input, textarea").forEach((field) => {
        field.addEventListener("focus", warm);
        field.addEventListener("input", warm);
      });
    });
    if (asking.length && asksAgain()) warmInView(asking);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", set);
  else set();
})();
