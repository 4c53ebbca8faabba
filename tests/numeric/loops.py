"""Every place of a forward pass by sums over indices, on lists of plain Python floats.

Written from the papers' formulas with nothing of the package but the stored weights: one loop for
each index, no array arithmetic. Grouped keys and tied embeddings are looked up where they are.
"""

import math

from otimes.numeric.model import Model

Rows = list[list[float]]


def by_loops(model: Model, tokens: list[int]) -> dict[str, list]:
    c = model.config
    W = {name: weight.astype(float).tolist() for name, weight in model.weights.items()}
    n, D = len(tokens), range(c.d_model)
    X = [[W["W_E"][t][j] for j in D] for t in tokens]
    places: dict[str, list] = {"embed": X}
    if c.positions == "learned":
        X = [[X[i][j] + W["W_pos"][i][j] for j in D] for i in range(n)]
    for L in range(c.n_layers):
        of = {name: values[L] for name, values in W.items() if _per_layer(name)}
        at = {"resid_pre": X}
        Y = X
        after = c.norm_order == "post"
        if c.norm != "none" and not after:
            Y = at["ln1"] = [norm(c, row, of["ln1_gain"], of.get("ln1_bias")) for row in X]
        heads_of(c, of, W, Y, at)
        at["attn_out"] = [
            [
                math.fsum(at["head_out"][h][i][j] for h in range(c.n_heads))
                + (of["b_O"][j] if "b_O" in of else 0.0)
                for j in D
            ]
            for i in range(n)
        ]
        at["resid_mid"] = M = [[X[i][j] + at["attn_out"][i][j] for j in D] for i in range(n)]
        end = M
        if after:
            at["ln1"] = end = [norm(c, row, of["ln1_gain"], of.get("ln1_bias")) for row in M]
        at["resid_post"] = end
        if c.d_mlp:
            N = X if c.parallel else end
            if c.norm != "none" and not after:
                N = at["ln2"] = [norm(c, row, of["ln2_gain"], of.get("ln2_bias")) for row in N]
            linear = affine(N, of["W_in"], of.get("b_in"))
            pre = affine(N, of["W_gate"], of.get("b_gate")) if c.gated else linear
            post = [
                [
                    activated(c.activation, x) * (linear[i][m] if c.gated else 1.0)
                    for m, x in enumerate(row)
                ]
                for i, row in enumerate(pre)
            ]
            out = affine(post, of["W_out"], of.get("b_out"))
            at |= {"mlp_pre": pre, "mlp_post": post, "mlp_out": out}
            end = [[end[i][j] + out[i][j] for j in D] for i in range(n)]
            at["resid_post"] = end
            if after:
                at["ln2"] = [norm(c, row, of["ln2_gain"], of.get("ln2_bias")) for row in end]
                end = at["ln2"]
        X = end
        places |= {f"{place}.{L}": value for place, value in at.items()}
    places["final"] = X
    if c.final_norm:
        X = [norm(c, row, W["ln_final_gain"], W.get("ln_final_bias")) for row in X]
        places["ln_final"] = X
    W_U = [list(column) for column in zip(*W["W_E"], strict=True)] if c.tied else W["W_U"]
    places["logits"] = affine(X, W_U, W.get("b_U"))
    return places


def _per_layer(name: str) -> bool:
    return name not in ("W_E", "W_U", "W_pos", "b_U", "ln_final_gain", "ln_final_bias")


def heads_of(c, of: dict, W: dict, Y: Rows, at: dict) -> None:
    """Put what the heads of a layer compute into `at`."""
    n = len(Y)
    P = Y
    if c.positions == "shortformer":
        P = [[Y[i][j] + W["W_pos"][i][j] for j in range(c.d_model)] for i in range(n)]
    at["qk_in"] = P
    for place in ("q", "k", "v", "scores", "pattern", "z", "head_out"):
        at[place] = []
    for h in range(c.n_heads):
        g = h // (c.n_heads // (c.n_kv_heads or c.n_heads))
        q = affine(P, of["W_Q"][h], of["b_Q"][h] if "b_Q" in of else None)
        k = affine(P, of["W_K"][g], of["b_K"][g] if "b_K" in of else None)
        v = affine(Y, of["W_V"][g], of["b_V"][g] if "b_V" in of else None)
        if c.positions == "rotary":
            q = [turned(c, row, i) for i, row in enumerate(q)]
            k = [turned(c, row, i) for i, row in enumerate(k)]
        scores = [
            [math.fsum(q[i][a] * k[j][a] for a in range(c.d_head)) / math.sqrt(c.d_head)
             for j in range(n)]
            for i in range(n)
        ]  # fmt: skip
        pattern = [
            [
                math.exp(scores[i][j]) / math.fsum(math.exp(s) for s in scores[i][: i + 1])
                if j <= i
                else 0.0
                for j in range(n)
            ]
            for i in range(n)
        ]
        z = affine(pattern, v, None)
        values = (q, k, v, scores, pattern, z, affine(z, of["W_O"][h], None))
        for place, value in zip(
            ("q", "k", "v", "scores", "pattern", "z", "head_out"), values, strict=True
        ):
            at[place].append(value)


def affine(rows: Rows, weight: Rows, bias: list[float] | None) -> Rows:
    """Each row times the matrix, plus the bias."""
    width = len(weight[0])
    return [
        [
            math.fsum(row[a] * weight[a][b] for a in range(len(weight)))
            + (bias[b] if bias else 0.0)
            for b in range(width)
        ]
        for row in rows
    ]


def norm(c, row: list[float], gain: list[float], bias: list[float] | None) -> list[float]:
    d = len(row)
    mean = math.fsum(row) / d if c.norm == "layer" else 0.0
    variance = math.fsum((x - mean) ** 2 for x in row) / d
    return [
        (x - mean) / math.sqrt(variance + c.norm_eps) * gain[j] + (bias[j] if bias else 0.0)
        for j, x in enumerate(row)
    ]


def activated(kind: str, x: float) -> float:
    if kind == "relu":
        return x if x > 0 else 0.0
    if kind == "relu2":
        return x * x if x > 0 else 0.0
    if kind == "silu":
        return x / (1 + math.exp(-x))
    if kind == "quick_gelu":
        return x / (1 + math.exp(-1.702 * x))
    if kind == "gelu":
        return x * math.erfc(-x / math.sqrt(2)) / 2
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def ramped(c, pair: int, frequency: float) -> float:
    """A rotary frequency after the stretch of YaRN, by the number of its pair (Peng et al., §3.2).

    The pair that turns r times in the context L is d log(L / 2πr) / 2 log b, in real numbers.
    """
    factor, low, high, context, _ = c.rotary_stretch
    first, last = (
        c.rotary_dims * math.log(context / (2 * math.pi * times)) / (2 * math.log(c.rotary_base))
        for times in (high, low)
    )
    first, last = max(math.floor(first), 0), min(math.ceil(last), c.rotary_dims - 1)
    if pair <= first:
        return frequency
    if pair >= last:
        return frequency / factor
    share = (pair - first) / (last - first)
    return share * frequency / factor + (1 - share) * frequency


def slowed(c, frequency: float) -> float:
    """A rotary frequency after the stretch, by its wavelength as Meta's code for Llama 3.1."""
    if len(c.rotary_stretch) < 4:
        return frequency / (c.rotary_stretch[0] if c.rotary_stretch else 1.0)
    factor, low, high, context = c.rotary_stretch
    wavelength = 2 * math.pi / frequency
    if wavelength < context / high:
        return frequency
    if wavelength > context / low:
        return frequency / factor
    smooth = (context / wavelength - low) / (high - low)
    return (1 - smooth) * frequency / factor + smooth * frequency


def turned(c, row: list[float], position: int) -> list[float]:
    """Pair i of the first `rotary_dims` entries, as a complex number, times e^(i · angle)."""
    half = c.rotary_dims // 2
    out = list(row)
    for i in range(half):
        a, b = (i, i + half) if c.rotary_layout == "half" else (2 * i, 2 * i + 1)
        plain = 1 / c.rotary_base ** (2 * i / c.rotary_dims)
        yarn = len(c.rotary_stretch) == 5
        angle = position * (ramped(c, i, plain) if yarn else slowed(c, plain))
        number = complex(row[a], row[b]) * complex(math.cos(angle), math.sin(angle))
        number *= c.rotary_stretch[4] if yarn else 1.0
        out[a], out[b] = number.real, number.imag
    return out
