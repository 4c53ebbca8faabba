"""The program of the lesson on a model of one's own: it is shown there, and run for its numbers.

Each part is shown in the lesson where it stands, `<!-- code: name -->`.
"""

STORED = """\
import numpy as np
import otimes as ot
from otimes.numeric.tokenizer import load_tokenizer

tokens = load_tokenizer().encode("import os\\nimport sys\\nimport os\\nimport sys\\n")
trained = ot.load_model("induction")


def linear(weight):
    \"\"\"Return W[head, inputs, outputs] as one matrix for all heads: (outputs, inputs).\"\"\"
    heads, inputs, outputs = weight.shape
    return weight.transpose(0, 2, 1).reshape(heads * outputs, inputs)


state = {"embed": trained.W_E, "unembed": trained.W_U.T, "positions": trained.W_pos}
for layer in range(2):
    for name in ("W_Q", "W_K", "W_V"):
        state[f"{layer}.{name}"] = linear(getattr(trained, name)[layer])
    state[f"{layer}.W_O"] = trained.W_O[layer].reshape(-1, 128).T
"""

LOADED = """\
def by_head(name):
    \"\"\"Return the matrices of a name as [layer, head, inputs, outputs].\"\"\"
    stored = np.stack([state[f"{layer}.{name}"] for layer in range(2)])
    return stored.reshape(2, 4, 32, 128).transpose(0, 1, 3, 2)


arrays = {"W_E": state["embed"], "W_U": state["unembed"].T, "W_pos": state["positions"]}
arrays |= {name: by_head(name) for name in ("W_Q", "W_K", "W_V")}
arrays["W_O"] = np.stack([state[f"{layer}.W_O"].T.reshape(4, 32, 128) for layer in range(2)])
mine = ot.load_model(arrays, config={"positions": "shortformer"})
"""

FORWARD = """\
def forward(tokens, divisor=np.sqrt(mine.d_model), dtype=np.float64):
    tokens = np.asarray(tokens)
    weights = {name: array.astype(dtype) for name, array in arrays.items()}
    x, seen = weights["W_E"][tokens], np.tril(np.ones((len(tokens), len(tokens)), bool))
    found = {}
    for layer in range(2):
        w_q, w_k, w_v, w_o = (weights[f"W_{name}"][layer] for name in "QKVO")
        y = x + weights["W_pos"][: len(tokens)]
        scores = (y @ w_q) @ (y @ w_k).transpose(0, 2, 1) / dtype(divisor)
        pattern = np.exp(np.where(seen, scores, -np.inf))
        pattern /= pattern.sum(axis=-1, keepdims=True)
        found[f"scores.{layer}"] = np.where(seen, scores, -np.inf)
        found[f"pattern.{layer}"] = pattern
        x = x + (pattern @ (x @ w_v) @ w_o).sum(axis=0)
    return x @ weights["W_U"], found


report = ot.audit(forward, tokens, weights=mine)
print(report.first_failure)
"""

ANALYSED = """\
print(ot.paths(mine, tokens[:8]).by_order(7, tokens[8]))
ot.composition_scores(mine, "K").top(1)
ot.activation_patching(mine, tokens[:8], [*tokens[:2], 15, *tokens[3:8]], tokens[8], kind="z")
"""
