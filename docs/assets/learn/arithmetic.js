/* What the widgets of the lessons compute, without a page: tests/docs/test_widgets.py compares each
   function with NumPy. Matrices are arrays of rows. */
const otimesArithmetic = (() => {
  "use strict";

  const dot = (x, y) => x.reduce((sum, value, k) => sum + value * y[k], 0);
  const transpose = (a) => a[0].map((_, j) => a.map((row) => row[j]));
  const add = (x, y) => x.map((value, k) => value + y[k]);

  function matmul(a, b) {
    const columns = transpose(b);
    return a.map((row) => columns.map((column) => dot(row, column)));
  }

  function kron(a, b) {
    return a.flatMap((row) => b.map((inner) => row.flatMap((x) => inner.map((y) => x * y))));
  }

  /* The lower triangle of a matrix, given row by row as one list. */
  function triangle(flat, n) {
    return Array.from({ length: n }, (_, i) =>
      Array.from({ length: n }, (_, j) => (j > i ? 0 : flat[(i * (i + 1)) / 2 + j])));
  }

  /* Component `a` of what token `i` receives by (A ⊗ W) x: its terms, and the block row of A ⊗ W. */
  function cell(A, W, X, i, a) {
    const terms = A[i].flatMap((pattern, j) =>
      W[a].map((weight, b) => ({ j, b, pattern, weight, x: X[j][b] })));
    return {
      row: terms.map((term) => term.pattern * term.weight),
      terms,
      value: terms.reduce((sum, term) => sum + term.pattern * term.weight * term.x, 0),
    };
  }

  function softmax(scores) {
    const largest = Math.max(...scores);
    const raised = scores.map((score) => Math.exp(score - largest));
    const sum = raised.reduce((total, value) => total + value, 0);
    return raised.map((value) => value / sum);
  }

  /* A head of layer 0 on tokens in any order: `order` has, for each position, the token's number in
     the tables of queries, keys and values. Positions are added to what queries and keys read. */
  function head(data, order) {
    const queries = order.map((token, at) => add(data.queries[token], data.position_queries[at]));
    const keys = order.map((token, at) => add(data.keys[token], data.position_keys[at]));
    const values = order.map((token) => data.values[token]);
    const root = Math.sqrt(queries[0].length);
    const pattern = queries.map((query, i) => {
      const weights = softmax(keys.slice(0, i + 1).map((key) => dot(query, key) / root));
      return [...weights, ...Array(order.length - i - 1).fill(0)];
    });
    const mixed = matmul(pattern, values);
    return { pattern, values, mixed, logits: matmul(mixed, data.out) };
  }

  /* A logit by the number of heads on the path, with the heads that are off left out of all paths.
     `on` has a list of truth values for each of the two layers. */
  function orders(data, on) {
    const kept = (layer) => data.single[layer].filter((_, h) => on[layer][h]);
    const pairs = data.pairs.flatMap((row, first) =>
      row.filter((_, second) => on[0][first] && on[1][second]));
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    return [data.direct, sum(kept(0)) + sum(kept(1)), sum(pairs)];
  }

  /* The same logit where the patterns of layer 1 are computed anew without those heads. */
  function recomputed(data, on) {
    const { stream, writes } = data.without[on[0].reduce((bits, yes, h) => bits + yes * 2 ** h, 0)];
    return writes.reduce((total, write, h) => total + (on[1][h] ? write : 0), stream);
  }

  /* The copying score: Σ Re λ / Σ |λ|. Each λ is [real, imaginary], and of a conjugate pair only the
     one above the axis is given. */
  function copying(eigenvalues) {
    let real = 0;
    let size = 0;
    for (const [re, im] of eigenvalues) {
      const times = im > 0 ? 2 : 1;
      real += times * re;
      size += times * Math.hypot(re, im);
    }
    return real / size;
  }

  /* Of the attention of token i, how much goes to each key, and how much of what the first head has
     moved to that key comes from an earlier occurrence of the token of i. */
  function induction(first, second, tokens, i) {
    const told = tokens.slice(0, i + 1).map((_, j) =>
      first[j].reduce((sum, weight, m) => sum + (m < i && tokens[m] === tokens[i] ? weight : 0), 0));
    return { told, matched: told.reduce((sum, share, j) => sum + second[i][j] * share, 0) };
  }

  /* A plane's vectors, turned by their positions, and what the plane adds to the score. */
  function rotary(data, i, j) {
    const half = data.query.length / 2;
    const turned = (vector, k, angle) => {
      const [x, y] = [vector[k], vector[k + half]];
      return [x * Math.cos(angle) - y * Math.sin(angle), x * Math.sin(angle) + y * Math.cos(angle)];
    };
    return data.speeds.map((speed, k) => {
      const query = turned(data.query, k, i * speed);
      const key = turned(data.key, k, j * speed);
      return { query, key, score: dot(query, key) / Math.sqrt(data.query.length) };
    });
  }

  /* Rounding to a number of significant bits, ties to even. */
  function rounded(x, bits) {
    if (x === 0) return 0;
    const unit = 2 ** (Math.floor(Math.log2(Math.abs(x))) - bits + 1);
    const whole = x / unit;
    const floor = Math.floor(whole);
    const over = whole - floor;
    const up = over > 0.5 || (over === 0.5 && floor % 2 !== 0);
    return (floor + (up ? 1 : 0)) * unit;
  }

  const BITS = { float32: 24, bfloat16: 8 };

  /* The sum of the first `count` products, computed term by term in a format; what float64 makes of the
     same numbers; and the bound on the difference. The first product is multiplied by 1 + change. */
  function sum(x, y, count, format, change) {
    const bits = BITS[format];
    const round = bits === 24 ? Math.fround : (value) => rounded(value, bits);
    const unit = 2 ** -bits;
    let [computed, exact, sizes] = [0, 0, 0];
    for (let k = 0; k < count; k += 1) {
      const [a, b] = [round(x[k]), round(y[k])];
      const mistaken = k === 0 ? round(a * (1 + change)) : a;
      computed = round(computed + round(mistaken * b));
      exact += a * b;
      sizes += Math.abs(a * b);
    }
    const bound = ((count * unit) / (1 - count * unit)) * sizes;
    return { computed, exact, bound, error: Math.abs(computed - exact) };
  }

  return {
    cell, copying, head, induction, kron, matmul, orders, recomputed, rotary, rounded, softmax, sum,
    transpose, triangle,
  };
})();
