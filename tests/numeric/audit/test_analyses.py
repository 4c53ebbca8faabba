"""What people compute from a model: right values pass, the usual mistakes are named."""

import numpy as np
import pytest

import otimes as ot
from otimes.numeric.processing import fold_norm_biases, fold_norm_gains
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.catalogue import GPT2

BARE = random_model(seed=4)
FULL = random_model(GPT2, seed=4)
TOKENS = [3, 1, 4, 1, 5, 9, 2, 6]
V, W_O, Q, K = (m[0, 1] for m in (BARE.W_V, BARE.W_O, BARE.W_Q, BARE.W_K))


def composition(norm=lambda m: np.linalg.norm(m), right=True):
    """Plain loops over the pairs of heads of `BARE`, for queries."""
    table = np.zeros((BARE.n_layers, BARE.n_heads) * 2)
    for a, h, b, g in np.ndindex(table.shape):
        ov, qk = BARE.W_V[a, h] @ BARE.W_O[a, h], BARE.W_Q[b, g] @ BARE.W_K[b, g].T
        table[a, h, b, g] = norm(ov @ qk if right else qk @ ov) / (norm(ov) * norm(qk))
    return table


def lens(model, norm=True):
    places, c = model.forward(TOKENS), model.config
    rows = []
    for name in [*(f"resid_pre.{n}" for n in range(c.n_layers)), "final"]:
        x = places[name]
        if norm:
            x = x - x.mean(1, keepdims=True)
            x = x / np.sqrt((x**2).mean(1, keepdims=True) + c.norm_eps)
            x = x * model.ln_final_gain + model.ln_final_bias
        rows.append(x @ model.W_E.T)
    return np.stack(rows)


def attribution(model, own=False):
    places, c = model.forward(TOKENS), model.config
    every = []
    for layer in range(c.n_layers):
        for head in range(c.n_heads):
            part = places[f"z.{layer}"][head] @ model.W_O[layer, head]
            by = part if own else places["final"]
            scale = np.sqrt(by.var(1, keepdims=True) + c.norm_eps)
            part = (part - part.mean(1, keepdims=True)) / scale * model.ln_final_gain
            every.append(part @ model.W_E.T)
    return np.stack(every).reshape(c.n_layers, c.n_heads, len(TOKENS), -1)


def path(reverse=False):
    places = BARE.forward(TOKENS)
    one, two = places["pattern.0"][1], places["pattern.1"][2]
    mixed = one @ two if reverse else two @ one
    ov = [BARE.W_V[n, h] @ BARE.W_O[n, h] for n, h in ((0, 1), (1, 2))]
    return mixed @ BARE.W_E[TOKENS] @ ov[0] @ ov[1] @ BARE.W_U


def eigenvalues(absolute=np.abs):
    found = np.linalg.eigvals(BARE.W_E @ V @ W_O @ BARE.W_U)
    return np.array(found.real.sum() / absolute(found).sum())


U, S, W = np.linalg.svd(V @ W_O, full_matrices=False)
HEAD = {"layer": 0, "head": 1}
PAIR = {"layer": (0, 1), "head": (1, 2), "tokens": TOKENS}

CASES = [
    ("ov_circuit", BARE, V @ W_O, (V @ W_O).T, "W_O W_V for W_V W_O", HEAD),
    ("ov_circuit", BARE, V @ W_O, BARE.W_V[0, 2] @ BARE.W_O[0, 2], "another head", HEAD),
    ("qk_circuit", BARE, Q @ K.T, K @ Q.T, "the circuit transposed", HEAD),
    ("qk_circuit", BARE, Q @ K.T, Q @ K.T / np.sqrt(BARE.d_head), "√d_head", HEAD),
    ("copying_score", BARE, eigenvalues(), eigenvalues(lambda e: abs(e.real)), "Σ |Re λ|", HEAD),
    ("q_composition", BARE, composition(), composition(right=False), "in the other order", {}),
    (
        "q_composition",
        BARE,
        composition(),
        composition(lambda m: np.linalg.norm(m, 2)),
        "another norm: the spectral",
        {},
    ),
    ("logit_lens", FULL, lens(FULL), lens(FULL, norm=False), "no final norm", {"tokens": TOKENS}),
    (
        "direct_logit_attribution",
        FULL,
        attribution(FULL),
        attribution(FULL, own=True),
        "per-part norm statistics",
        {"tokens": TOKENS},
    ),
    ("path_term", BARE, path(), path(reverse=True), "the product of patterns reversed", PAIR),
    ("svd", BARE, (U, S, W), (U, S**2, W), "squared singular values", HEAD),
    ("svd", BARE, (U, S, W), (-U, S, W), "signs of U and Vᵀ", HEAD),
    ("svd", BARE, (U, S, W), (U * S, S, W), "scaled by S", HEAD),
    ("ov_circuit", BARE, V @ W_O, BARE.W_V[1, 0] @ BARE.W_O[1, 0], "layer and head swapped", HEAD),
    ("qk_circuit", BARE, Q @ K.T, Q @ K.T / BARE.d_head, "1/d_head", HEAD),
    ("q_composition", BARE, composition(), composition().transpose(2, 3, 0, 1), "its axes", {}),
    ("path_term", BARE, path(), path() / 2, "multiplied by 0.5", PAIR),
    ("svd", BARE, (-U, S, -W), (U, S, W.T), "V for Vᵀ", HEAD),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "model", "right", "wrong", "says", "options"), CASES)
def test_right_values_pass_and_mistakes_are_named(
    name, model, right, wrong, says, options, dtype
) -> None:
    def cast(value):
        if isinstance(value, tuple):
            return tuple(each.astype(dtype) for each in value)
        return value.astype(dtype)

    assert ot.audit_analysis(name, cast(right), model, **options).passed
    report = ot.audit_analysis(name, cast(wrong), model, **options)
    assert not report.passed
    assert says in report.first_failure.diagnosis


def test_weights_that_were_folded() -> None:
    both = fold_norm_gains(fold_norm_biases(FULL))
    assert ot.audit_analysis("folded_weights", both.weights, FULL).passed
    only = {name: fold_norm_biases(FULL).part(name) for name in ("W_Q", "b_Q", "W_in")}
    report = ot.audit_analysis("folded_weights", only, FULL)
    assert report.first_failure.diagnosis == "matches biases folded and gains not"


def test_one_tensor_that_was_folded_wrongly() -> None:
    both = dict(fold_norm_gains(fold_norm_biases(FULL)).weights)
    both["W_V"] = FULL.W_V * FULL.ln1_gain[:, None, :, None] ** 2
    both["W_in"] = FULL.W_in
    report = ot.audit_analysis("folded_weights", both, FULL)
    said = {finding.place: finding.diagnosis for finding in report.findings}
    assert said == {
        "W_V": "matches W_V with the gain of ln1 folded in twice (squared)",
        "W_in": "matches W_in as it was: it is not folded",
    }


def through(model, final=True, begin="resid_pre.0"):
    """The path through heads 0.1 and 1.2 of a model with LayerNorms, whose scales are frozen."""
    places, ends = model.forward(TOKENS), [("resid_pre.0", model.ln1_gain[0])]
    ends += [("resid_pre.1", model.ln1_gain[1]), ("final", model.ln_final_gain)]
    x = places[begin]
    for number, (place, gain) in enumerate(ends[: 2 + final]):
        x = (x - x.mean(1, keepdims=True)) * gain
        x = x / np.sqrt(places[place].var(1, keepdims=True) + model.config.norm_eps)
        if number < 2:
            head = number, number + 1
            x = places[f"pattern.{number}"][head[1]] @ x @ model.W_V[head] @ model.W_O[head]
    return x @ model.W_E.T


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"final": False}, "without the final norm"),
        ({"begin": "embed"}, "the embedding without positions"),
    ],
)
def test_a_path_through_norms_has_their_frozen_scales(wrong, says) -> None:
    assert ot.audit_analysis("path_term", through(FULL), FULL, **PAIR).passed
    report = ot.audit_analysis("path_term", through(FULL, **wrong), FULL, **PAIR)
    assert says in report.first_failure.diagnosis


def test_a_path_between_norms_of_outputs_is_refused() -> None:
    with pytest.raises(
        ot.OtimesError, match="norms come before the heads, got norm_order='output'"
    ):
        ot.audit_analysis("path_term", np.zeros(3), random_model(kind="olmo2"), **PAIR)


def test_logits_that_are_moved_alike_are_no_mistake() -> None:
    shown = lens(FULL)
    report = ot.audit_analysis("logit_lens", shown - shown.max(-1, keepdims=True), FULL, TOKENS)
    assert report.passed
    assert "changes no probability" in str(report)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("ov", HEAD, "there is no analysis 'ov'; known are ov_circuit, qk_circuit"),
        ("ov_circuit", {}, "give layer= and head= as numbers"),
        ("ov_circuit", {"layer": 0, "head": 9}, "there is no head 0.9 in random"),
        ("logit_lens", {}, "give tokens="),
        ("path_term", {**HEAD, "tokens": TOKENS}, r"two heads: layer=\(0, 1\), head=\(2, 3\)"),
        ("path_term", {"layer": (1, 1), "head": (0, 2)}, r"two layers, got layer=\(1, 1\)"),
        ("logit_lens", {"tokens": [[1, 2], [3, 4]]}, "one of a prompt, got a batch of 2"),
    ],
)
def test_incomplete_questions_are_refused(name, options, says) -> None:
    with pytest.raises(ot.OtimesError, match=says):
        ot.audit_analysis(name, np.zeros((3, 3)), BARE, **options)


def test_a_wrong_shape_is_said_so() -> None:
    report = ot.audit_analysis("ov_circuit", np.zeros((3, 3)), BARE, **HEAD)
    assert "has the shape (3, 3), and" in str(report.first_failure)


ARRAY = np.zeros((BARE.d_model, BARE.d_model))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ov_circuit", "W_OV", "a value is an array of real numbers, got a str"),
        ("ov_circuit", [[1.0, 2.0], [3.0]], "got lists of different lengths"),
        ("svd", ARRAY, r"three arrays \(U, S, Vᵀ\) of a .* and got one array of the shape"),
        ("svd", (U, S), r"and got a tuple of 2: give what np.linalg.svd returns"),
        ("svd", (S, S, S), r"got arrays of the shapes \(32,\), \(32,\), \(32,\): give what"),
        ("svd", (U, S, None), "Vᵀ is an array of real numbers, got a NoneType"),
        ("svd", (U + 1j, S, W), "U is real, got complex numbers"),
        ("folded_weights", ARRAY, r"a mapping from .* and got a ndarray of the shape \(32, 32\)"),
        ("folded_weights", {}, "got an empty mapping: give it as {'W_Q': …"),
        ("folded_weights", {"W_Q": None}, "W_Q is an array of real numbers, got a NoneType"),
    ],
)
def test_values_that_cannot_be_read_are_refused(name, value, says) -> None:
    with pytest.raises(ot.OtimesError, match=says):
        ot.audit_analysis(name, value, FULL if name == "folded_weights" else BARE, **HEAD)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(ot.OtimesError, match="the weights lack W_E, W_Q, W_K and W_O"):
        ot.audit_analysis("ov_circuit", ARRAY, {"W_V": ARRAY}, **HEAD)


def nowhere(array, entry=(0, 0)):
    array = np.array(array)
    array[entry] = np.nan
    return array


@pytest.mark.parametrize(
    ("name", "model", "value", "says"),
    [
        ("ov_circuit", BARE, nowhere(V @ W_O, (3, 4)), r"has 1 of 1024 entries that are no finite"),
        ("ov_circuit", BARE, nowhere(V @ W_O, (3, 4)), r"the first nan at [3, 4]"),
        ("copying_score", BARE, np.nan, "entries that are no finite numbers, the first nan"),
        ("svd", BARE, (U, nowhere(S, 2), W), "S has 1 of 32 entries that are no finite numbers"),
        ("folded_weights", FULL, {"W_in": nowhere(FULL.W_in)}, "no finite numbers, the first nan"),
        ("ov_circuit", BARE, V @ W_O + 1j, "is complex, and real numbers are expected"),
        ("svd", BARE, (U[1:], S, W), "and (32, 8), (8,), (8, 32) or (32, 32), (32,), (32, 32) is"),
        ("folded_weights", FULL, {"W_X": ARRAY}, "W_X is no weight that is known; known are W_E"),
        ("folded_weights", FULL, {"W_Q": ARRAY}, "has the shape (32, 32), and (2, 4, 24, 6) is"),
    ],
)
def test_values_that_are_no_answer_are_findings(name, model, value, says) -> None:
    report = ot.audit_analysis(name, value, model, **HEAD)
    assert not report.passed
    assert says in str(report.first_failure)
