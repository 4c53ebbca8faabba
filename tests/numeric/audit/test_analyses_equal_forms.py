"""Right values in any form that is equally right: none is accused, and other gauges are named."""

import numpy as np
import pytest
import torch

import otimes as ot
from otimes.numeric.processing import (
    centre_readers,
    centre_unembedding,
    centre_writers,
    drop_key_biases,
    fold_norm_biases,
    fold_norm_gains,
    fold_value_biases,
)
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.analyses_mistakes import HEAD, MODELS, PATH, TEXT, TOKENS, normalised

DTYPES = [np.float64, np.float32]


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def passes(analysis, value, model, gauge="", **asked) -> None:
    report = ot.audit_analysis(analysis, value, model, **asked)
    assert report.passed, str(report)
    assert gauge in str(report)


@pytest.mark.parametrize("dtype", DTYPES)
def test_circuits(model, dtype) -> None:
    V, W_O, Q, K = (
        each[1, 2].astype(dtype) for each in (model.W_V, model.W_O, model.W_Q, model.W_K)
    )
    rank_one = sum(np.outer(v, w) for v, w in zip(V.T, W_O, strict=True))
    passes("ov_circuit", rank_one, model, **HEAD)
    passes(
        "ov_circuit",
        (W_O.T @ V.T).T.tolist() if dtype == np.float64 else W_O.T.dot(V.T).T,
        model,
        **HEAD,
    )
    passes("qk_circuit", torch.tensor(Q, requires_grad=True) @ torch.tensor(K).T, model, **HEAD)
    passes("qk_circuit", (Q @ K.T)[None], model, "axes of length one more", **HEAD)


@pytest.mark.parametrize("dtype", DTYPES)
def test_copying_scores_of_the_whole_circuit_or_a_small_one(model, dtype) -> None:
    E, V, W_O, U = (each.astype(dtype) for each in (model.W_E, model.W_V, model.W_O, model.W_U))
    for circuit in (E @ (V @ W_O) @ U, V @ W_O @ (U @ E), W_O @ U @ E @ V):
        found = np.linalg.eigvals(circuit)
        scores = found.sum(-1) / np.abs(found).sum(-1)  # complex, with imaginary parts of rounding
        passes("copying_score", scores, model)
        passes("copying_score", scores[1, 2].real, model, **HEAD)


@pytest.mark.parametrize("dtype", DTYPES)
def test_compositions_by_gram_matrices(model, dtype) -> None:
    ov = (model.W_V @ model.W_O).astype(dtype)
    qk = (model.W_Q @ model.W_K.swapaxes(2, 3)).astype(dtype)
    for kind, read in {"q": qk, "k": qk.swapaxes(2, 3), "v": ov}.items():
        ways = np.einsum("lhij,mgjk->lhmgik", ov, read)
        sizes = np.linalg.norm(ways, axis=(-2, -1))
        norms = np.linalg.norm(ov, axis=(-2, -1)), np.linalg.norm(read, axis=(-2, -1))
        passes(f"{kind}_composition", sizes / np.multiply.outer(*norms), model)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_lens_folded_shifted_or_in_a_batch(model, dtype) -> None:
    places = model.forward(TOKENS)
    rows = [*(places[f"resid_pre.{layer}"] for layer in range(model.n_layers)), places["final"]]
    behind = normalised(model, np.stack(rows).astype(dtype)).astype(dtype)
    U, gain = model.W_U.astype(dtype), model.ln_final_gain.astype(dtype)
    logits = behind @ (gain[:, None] * U) + (model.ln_final_bias @ model.W_U + model.b_U)
    passes("logit_lens", logits.astype(dtype), model, **TEXT)
    log_p = torch.log_softmax(torch.tensor(logits.astype(dtype)), -1)
    passes("logit_lens", log_p, model, "changes no probability", **TEXT)
    passes("logit_lens", log_p[:, None], model, "axes of length one more", tokens=[TOKENS])


@pytest.mark.parametrize("dtype", DTYPES)
def test_attributions_head_by_head(model, dtype) -> None:
    places, U = model.forward(TOKENS), (model.ln_final_gain[:, None] * model.W_U).astype(dtype)
    each = [
        normalised(model, (places[f"z.{n}"][h] @ model.W_O[n, h]).astype(dtype), places["final"])
        @ U
        for n, h in np.ndindex(model.n_layers, model.n_heads)
    ]
    shape = (model.n_layers, model.n_heads, len(TOKENS), model.d_vocab)
    parts = np.stack(each).reshape(shape).astype(dtype)
    passes("direct_logit_attribution", parts, model, **TEXT)
    centred = parts - parts.mean(-1, keepdims=True)
    passes("direct_logit_attribution", centred, model, "changes no probability", **TEXT)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_path_from_its_end(dtype) -> None:
    model, places = MODELS["bare"], MODELS["bare"].forward(TOKENS)
    one, two = places["pattern.0"][1], places["pattern.1"][2]
    reads = (model.W_V[0, 1] @ model.W_O[0, 1]) @ (model.W_V[1, 2] @ (model.W_O[1, 2] @ model.W_U))
    term = two.astype(dtype) @ (one.astype(dtype) @ (model.W_E @ reads).astype(dtype)[TOKENS])
    passes("path_term", term, model, **PATH)
    passes("path_term", term, model, tokens=TOKENS, layer=(1, 0), head=(2, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_vectors_of_any_sign(model, dtype) -> None:
    V, W_O = model.W_V[1, 2].astype(dtype), model.W_O[1, 2].astype(dtype)
    r = model.d_head
    U, S, W = np.linalg.svd(V @ W_O)
    passes("svd", (U, S, W), model, **HEAD)
    signs = np.resize([1, -1], r).astype(dtype)
    passes("svd", [U[:, :r] * signs, S[:r], signs[:, None] * W[:r]], model, **HEAD)
    passes("svd", (U[:, :r], np.diag(S[:r]), W[:r]), model, **HEAD)
    passes("svd", torch.linalg.svd(torch.tensor(V @ W_O)), model, **HEAD)
    (Q, R), (P, T) = np.linalg.qr(V), np.linalg.qr(W_O.T)
    left, values, right = np.linalg.svd(R @ T.T)
    passes("svd", (Q @ left, values, right @ P.T), model, **HEAD)


def test_singular_vectors_of_one_value_in_any_basis() -> None:
    model, rng = (
        random_model(n_layers=1, n_heads=1, d_model=12, d_head=4, seed=1),
        np.random.default_rng(2),
    )
    Q, P, R = (np.linalg.qr(rng.standard_normal((n, 4)))[0] for n in (12, 12, 4))
    W_V, W_O = 3 * Q[None, None], P.T[None, None]
    model = model.changed({"W_V": W_V, "W_O": W_O})
    passes("svd", (Q @ R, np.full(4, 3.0), R.T @ P.T), model, layer=0, head=0)
    none = model.changed({"W_O": 0 * W_O})
    passes("svd", np.linalg.svd(np.zeros((12, 12))), none, layer=0, head=0)


FOLDED = {name: fold_norm_gains(fold_norm_biases(MODELS[name])) for name in ("gpt2", "llama")}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "change", "gauge"),
    [
        ("gpt2", lambda m: m, ""),
        ("llama", lambda m: m, ""),
        ("gpt2", fold_value_biases, "b_V is in b_O"),
        ("gpt2", drop_key_biases, ""),
        ("gpt2", centre_readers, "which what a LayerNorm gives does not see"),
        ("gpt2", centre_writers, "which no LayerNorm sees"),
        ("gpt2", centre_unembedding, "which changes no probability"),
        (
            "gpt2",
            lambda m: centre_unembedding(centre_writers(centre_readers(fold_value_biases(m)))),
            "b_V is in b_O",
        ),
    ],
)
def test_folded_weights_in_other_gauges(name, change, gauge, dtype) -> None:
    made = change(FOLDED[name])
    weights = {name: each.astype(dtype) for name, each in made.weights.items()}
    passes("folded_weights", weights, MODELS[name], gauge)
    by_head = {name: made.part(name).astype(dtype) for name in ("W_Q", "W_K", "W_V")}
    passes("folded_weights", by_head, MODELS[name])


def test_biases_that_are_kept_as_zeros() -> None:
    made = fold_value_biases(FOLDED["gpt2"])
    weights = dict(made.weights) | {"b_V": made.b_V, "b_K": 0 * made.b_K}
    passes("folded_weights", weights, MODELS["gpt2"], "b_K is dropped")
    weights["b_O"] = FOLDED["gpt2"].b_O
    report = ot.audit_analysis("folded_weights", weights, MODELS["gpt2"])
    assert [finding.place for finding in report.findings] == ["b_V"]
    assert "the bias is lost" in report.first_failure.diagnosis
