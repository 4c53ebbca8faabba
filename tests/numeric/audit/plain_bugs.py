"""Mistakes, as steps of `plain.Net` that do something else: where each shows, and in which words.

Written from what people get wrong and without a look at what the audit knows, so that it may be
surprised. A row: a name, the families (g GPT-2, l Llama, n NeoX, p GPT-1), the first place, a
pattern that the diagnosis must hold, and the steps.
"""

import math

import torch
from torch.nn import functional

from tests.numeric.audit.plain import Net

BUGS: dict[str, tuple[str, str, str, dict[str, object]]] = {}


def bug(name, families, place, words, **steps):
    assert name not in BUGS
    BUGS[name] = (families, place, words, steps)


def right(step):
    """The step as it should be, to be called with the net first."""
    return getattr(Net, step)


def at(layer, function, step):
    """A wrong step in one layer, the right one elsewhere; the last argument is the layer."""

    def either(n, *given):
        return function(n, *given) if given[-1] == layer else right(step)(n, *given)

    return either


def half(x):
    return x.half().to(x.dtype)


def bfloat(x):
    return x.bfloat16().to(x.dtype)


def dropout(n, p, lay):
    g = torch.Generator().manual_seed(lay + 1)
    m = torch.rand(p.shape, generator=g) > 0.1
    return p * m.to(p.dtype) / 0.9


# -- embedding

bug(
    "pos offset 2 (OPT)",
    "gp",
    "resid_pre.0",
    "position",
    positions=lambda n, t: torch.arange(len(t)) + 2,
)
bug(
    "embedding scaled sqrt d",
    "glp",
    "resid_pre.0",
    "sqrt|√|scale|times",
    embed=lambda n, t: right("embed")(n, t) * n.c["d"] ** 0.5,
)
bug(
    "tokens shifted right",
    "ln",
    "resid_pre.0",
    "token|shift|rows",
    embed=lambda n, t: right("embed")(n, torch.cat([t[:1], t[:-1]])),
)
bug(
    "tokens reversed",
    "n",
    "resid_pre.0",
    "revers|position 0 has that of position",
    embed=lambda n, t: right("embed")(n, t.flip(0)),
)
bug(
    "embedding in half",
    "gnp",
    "resid_pre.0",
    "half|float16",
    embed=lambda n, t: half(right("embed")(n, t)),
)
bug(
    "pos re-added in every layer",
    "gp",
    "resid_pre.1",
    "position",
    block=lambda n, x, lay, R: right("block")(
        n, x if lay == 0 else x + n.w["W_pos"][: len(x)], lay, R
    ),
)
bug(
    "embedding layernormed",
    "gp",
    "resid_pre.0",
    "norm",
    embed=lambda n, t: n.norm(right("embed")(n, t), "ln1", 0),
)

# -- norms

bug("eps 1e-6", "glp", "ln1.0", "ε|eps", eps=lambda n, w, lay: 1e-6)
bug(
    "eps only in the final norm",
    "gl",
    "ln_final",
    "ε|eps",
    eps=lambda n, w, lay: 1e-6 if w == "ln_final" else n.c["eps"],
)


def ln(x, g, b, e, unb=False, out=False, ax=-1, mean=True, std=True):
    c = x - x.mean(ax, keepdim=True) if mean else x
    v = x.var(ax, keepdim=True, unbiased=unb)
    y = c / (v.sqrt() + e) if out else c / (v + e).sqrt()
    return y * g + (0 if b is None else b)


bug(
    "centred over uncentred rms",
    "gp",
    "ln1.0",
    "mean|RMS|centr",
    normed=lambda n, x, w, lay, g, b: (
        (x - x.mean(-1, keepdim=True)) / (x.pow(2).mean(-1, keepdim=True) + n.c["eps"]).sqrt() * g
        + b
    ),
)
bug(
    "not divided by std",
    "gp",
    "ln1.0",
    "scale|divid|deviation",
    normed=lambda n, x, w, lay, g, b: (x - x.mean(-1, keepdim=True)) * g + b,
)
bug(
    "gain and bias swapped",
    "gnp",
    "ln1.0",
    "gain|bias",
    normed=lambda n, x, w, lay, g, b: right("normed")(n, x, w, lay, b, g),
)
bug(
    "ln1 weights in ln2",
    "glnp",
    "ln2.0",
    "ln1|other norm|weights of|one norm",
    norm=lambda n, x, w, lay: right("norm")(n, x, "ln1" if w == "ln2" else w, lay),
)
bug(
    "ln1 and ln2 swapped",
    "gp",
    "ln1.0",
    "ln2|other norm|weights of|wrong order",
    norm=lambda n, x, w, lay: right("norm")(n, x, {"ln1": "ln2", "ln2": "ln1"}.get(w, w), lay),
)
bug(
    "norm weights of layer 0 everywhere",
    "l",
    "ln1.1",
    "layer",
    norm=lambda n, x, w, lay: right("norm")(n, x, w, None if lay is None else 0),
)
bug(
    "final norm twice",
    "gl",
    "ln_final",
    "twice|double|norm",
    final=lambda n, x: right("final")(n, right("final")(n, x)),
)
bug(
    "final norm with last ln2",
    "n",
    "ln_final",
    "ln2|weights|norm",
    final=lambda n, x: n.norm(x, "ln2", n.c["L"] - 1),
)

# -- streams

bug(
    "mlp residual from before attention",
    "gp",
    "resid_post.0",
    "attention|resid_pre|before",
    end=lambda n, mid, m, x, lay: x + m,
)
bug(
    "residual counted twice",
    "n",
    "resid_post.0",
    "twice|double|resid_pre|added again",
    end=lambda n, mid, m, x, lay: mid + m + x,
)
bug(
    "residual halved /sqrt2",
    "l",
    "resid_post.0",
    "scale|times|√|sqrt|multipl",
    end=lambda n, mid, m, x, lay: (mid + m) / 2**0.5,
)


def post_norm_block(n, x, lay, R):
    R[f"resid_pre.{lay}"] = x
    save = n.norm
    n.norm = lambda y, w, lay: y
    a = R[f"attn_out.{lay}"] = n.attn(x, lay, R)
    n.norm = save
    mid = n.norm(x + a, "ln1", lay)
    R[f"resid_mid.{lay}"] = x + a
    R[f"ln1.{lay}"] = mid
    m = R[f"mlp_out.{lay}"] = n.mlp(mid, lay, R)
    y = R[f"resid_post.{lay}"] = n.norm(mid + m, "ln2", lay)
    R[f"ln2.{lay}"] = y
    return y


bug("post-norm block", "g", "ln1.0", "norm", block=post_norm_block)
bug(
    "W_Q of layer 0 in layer 1",
    "n",
    "q.1",
    "layer",
    q=lambda n, x, lay: right("lin")(n, x, "Q", 0 if lay == 1 else lay),
)


def mlp_other(n, x, lay, R):
    k = 1 if lay == 0 else lay
    pre = R[f"mlp_pre.{lay}"] = n.pre(x, k, "gate" if n.c["gated"] else "in")
    m = R[f"mlp_post.{lay}"] = n.post(pre, x, k)
    return n.down(m, k)


# -- mlp

bug(
    "gelu without sqrt",
    "gp",
    "mlp_post.0",
    "√|sqrt|constant|root",
    act=lambda n, x: 0.5 * x * (1 + torch.tanh((2 / math.pi) * (x + 0.044715 * x**3))),
)
bug(
    "gelu erf without sqrt2",
    "n",
    "mlp_post.0",
    "√2|sqrt",
    act=lambda n, x: 0.5 * x * (1 + torch.erf(x)),
)
bug(
    "gelu 0.7978",
    "gp",
    "mlp_post.0",
    "constant|0.79|rounded",
    act=lambda n, x: 0.5 * x * (1 + torch.tanh(0.7978 * (x + 0.044715 * x**3))),
)
bug(
    "activation twice",
    "n",
    "mlp_post.0",
    "twice",
    act=lambda n, x: functional.gelu(functional.gelu(x)),
)
bug(
    "up missing", "l", "mlp_post.0", "up|gate|without", post=lambda n, p, x, lay: functional.silu(p)
)
bug(
    "act on both",
    "l",
    "mlp_post.0",
    "both|up",
    post=lambda n, p, x, lay: functional.silu(p) * functional.silu(n.pre(x, lay, "in")),
)
bug(
    "b_in after activation",
    "n",
    "mlp_pre.0",
    "b_in|bias",
    pre=lambda n, x, lay, name="in": x @ n.w["W_in"][lay],
    post=lambda n, p, x, lay: functional.gelu(p) + n.w["b_in"][lay],
)
bug(
    "b_out is b_O",
    "gp",
    "mlp_out.0",
    "b_O|bias",
    down=lambda n, m, lay: m @ n.w["W_out"][lay] + n.w["b_O"][lay],
)
bug(
    "activation clamped",
    "n",
    "mlp_post.0",
    "clamp|clip",
    post=lambda n, p, x, lay: right("post")(n, p, x, lay).clamp(max=1.0),
)
bug(
    "mlp out scaled",
    "l",
    "mlp_out.0",
    "scale|times|factor",
    down=lambda n, m, lay: right("down")(n, m, lay) * 0.5,
)
bug(
    "a neuron dead",
    "gp",
    "mlp_post.0",
    "neuron|column|zero",
    post=lambda n, p, x, lay: (
        right("post")(n, p, x, lay)
        * torch.cat([torch.zeros(1, dtype=p.dtype), torch.ones(p.shape[-1] - 1, dtype=p.dtype)])
    ),
)
bug(
    "mlp dropout",
    "n",
    "mlp_post.0|mlp_out.0",
    "dropout",
    post=lambda n, p, x, lay: dropout(n, right("post")(n, p, x, lay), lay),
)
bug(
    "mlp dropped in layer 2",
    "gp",
    "mlp_out.2",
    "zero|MLP|dropped|missing",
    down=at(2, lambda n, m, lay: 0 * right("down")(n, m, lay), "down"),
)

# -- ends

bug("tied for untied", "ln", "logits", "tied|W_E", unembed=lambda n, x: x @ n.w["W_E"].T)
bug(
    "softcap 30",
    "l",
    "logits",
    "cap|tanh",
    unembed=lambda n, x: 3 * torch.tanh(right("unembed")(n, x) / 3),
)
bug(
    "bias on the unembedding",
    "gp",
    "logits",
    "bias|column|constant",
    unembed=lambda n, x: (
        right("unembed")(n, x) + torch.linspace(-0.1, 0.1, n.c["V"], dtype=x.dtype)
    ),
)
bug(
    "vocabulary off by one",
    "n",
    "logits",
    "vocab|shift|roll|column|token",
    unembed=lambda n, x: right("unembed")(n, x).roll(1, -1),
)
bug(
    "logits temperature .7",
    "l",
    "logits",
    "temperature|scale|times|factor",
    unembed=lambda n, x: right("unembed")(n, x) / 0.7,
)
bug(
    "last position stale",
    "l",
    "logits",
    "last|stale|position",
    unembed=lambda n, x: (lambda y: torch.cat([y[:-1], y[-2:-1]]))(right("unembed")(n, x)),
)
bug("W_U in bf16", "n", "logits", "half|bfloat16", unembed=lambda n, x: x @ bfloat(n.w["W_U"]))
