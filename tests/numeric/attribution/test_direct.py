"""Direct logit attribution against loops over the formula, and against what must not change it."""

import math

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.direct import direct_logit_attribution
from otimes.numeric.model import Model
from otimes.numeric.tokenizer import load_tokenizer
from tests.numeric.attribution.cases import BUNDLED, FOIL, POSITION, TARGET, case, near
from tests.numeric.loops import by_loops
from tests.numeric.random_models import KINDS, TINY_TOKENS, random_model

every_kind = pytest.mark.parametrize("kind", KINDS)


def by_the_formula(model: Model, tokens: list[int], token: int, at: int) -> dict[str, float]:
    """Return what every part writes into a logit, by loops: its row, the norm, the unembedding."""
    c = model.config
    places = by_loops(model, tokens)
    W = {name: weight.astype(float).tolist() for name, weight in model.weights.items()}
    D, last = range(c.d_model), places["final"][at]
    centring = c.final_norm and c.norm == "layer"
    mean = math.fsum(last) / c.d_model if centring else 0.0
    variance = math.fsum((x - mean) ** 2 for x in last) / c.d_model
    scale = math.sqrt(variance + c.norm_eps) if c.final_norm else 1.0
    gain = W["ln_final_gain"] if c.final_norm else [1.0] * c.d_model
    column = [W["W_E"][token][j] if c.tied else W["W_U"][j][token] for j in D]

    def into_logit(row: list[float]) -> float:
        mean = math.fsum(row) / c.d_model if centring else 0.0
        return math.fsum((row[j] - mean) / scale * gain[j] * column[j] for j in D)

    parts = {"embed": into_logit(places["embed"][at])}
    if c.positions == "learned":
        parts["positions"] = into_logit(W["W_pos"][at])
    for L in range(c.n_layers):
        for h in range(c.n_heads):
            pattern, v = places[f"pattern.{L}"][h], places[f"v.{L}"][h]
            for i in range(len(tokens)):
                moved = [
                    math.fsum(v[i][k] * W["W_O"][L][h][k][j] for k in range(c.d_head)) for j in D
                ]
                parts[f"source {L}.{h} {i}"] = pattern[at][i] * into_logit(moved)
        if "b_O" in W:
            parts[f"b_O {L}"] = into_logit(W["b_O"][L])
        for u in range(c.d_mlp):
            parts[f"neuron {L}.{u}"] = places[f"mlp_post.{L}"][at][u] * into_logit(W["W_out"][L][u])
        if "b_out" in W:
            parts[f"b_out {L}"] = into_logit(W["b_out"][L])
    if "ln_final_bias" in W:
        parts["ln_final_bias"] = math.fsum(W["ln_final_bias"][j] * column[j] for j in D)
    if "b_U" in W:
        parts["b_U"] = W["b_U"][token]
    return parts


@every_kind
@pytest.mark.parametrize("foil", [None, FOIL])
def test_every_table_is_what_the_formula_gives(kind: str, foil: int | None) -> None:
    model, tokens = case(kind)
    parts = by_the_formula(model, tokens, TARGET, POSITION)
    if foil is not None:
        of_foil = by_the_formula(model, tokens, foil, POSITION)
        parts = {name: each - of_foil[name] for name, each in parts.items()}
    found = direct_logit_attribution(model, tokens, TARGET, foil, POSITION)
    L, H, n = model.n_layers, model.n_heads, len(tokens)
    of_source = np.array(
        [[[parts[f"source {a}.{h} {i}"] for i in range(n)] for h in range(H)] for a in range(L)]
    ).reshape(L, H, n)
    neurons = [
        [parts[f"neuron {a}.{u}"] for u in range(model.config.d_mlp)]
        for a in range(L if model.config.d_mlp else 0)
    ]
    assert near(found.by_source().values, of_source)
    assert near(found.by_head().values, of_source.sum(axis=2))
    of_neuron = np.array(neurons).reshape(len(neurons), model.config.d_mlp)
    assert near(found.by_neuron().values, of_neuron)
    rest = {name: each for name, each in parts.items() if name[:6] not in ("source", "neuron")}
    attention = {f"attention {a}": of_source[a].sum() for a in range(L)}
    heads = {f"head {a}.{h}": of_source[a, h].sum() for a in range(L) for h in range(H)}
    mlps = {f"mlp {a}": math.fsum(row) for a, row in enumerate(neurons)}
    for split, expected in ((False, attention), (True, heads)):
        table = found.by_component(heads=split)
        by_name = dict(zip(table.labels["component"], table.values.tolist(), strict=True))
        expected = {**rest, **mlps, **expected}
        assert by_name.keys() == expected.keys()
        assert near(list(by_name.values()), [expected[name] for name in by_name])


@pytest.mark.parametrize("kind", [*KINDS, *BUNDLED])
def test_the_parts_make_up_the_logit_of_the_pass(kind: str) -> None:
    model, tokens = case(kind)
    logits = model.forward(tokens)["logits"]
    expected = logits[:, TARGET] - logits[:, FOIL]
    found = direct_logit_attribution(model, tokens, TARGET, FOIL, None)
    assert near(found.logit, expected)
    for heads in (False, True):
        assert near(found.by_component(heads).values.sum(axis=0), expected)
    assert near(found.by_source().values.sum(axis=2), found.by_head().values)
    assert found.closure.ratio <= 1
    assert found.closure.error <= 1e-12 * np.abs(expected).max() or found.closure.error == 0
    one = direct_logit_attribution(model, tokens, TARGET, FOIL, -2)
    assert near(one.logit, expected[-2])
    assert near(one.by_component().whole, expected[-2])


def test_the_bound_sees_a_part_that_is_off_by_little() -> None:
    """A relative change of 1e-9 in what one head wrote is many times what rounding may do."""
    model, tokens = case("gpt2")
    found = direct_logit_attribution(model, tokens, TARGET, FOIL, POSITION)
    found._z[1] = found._z[1] * (1 + 1e-9)
    assert found.closure.ratio > 1


def test_a_norm_of_each_part_by_itself_does_not_add_up() -> None:
    model, tokens = case("gpt2")
    places = model.forward(tokens)
    parts = [places["embed"] + model.W_pos[: len(tokens)]]
    parts += [places[f"attn_out.{a}"] + places[f"mlp_out.{a}"] for a in range(model.n_layers)]

    def logits(rows: np.ndarray, scale: np.ndarray) -> np.ndarray:
        centred = rows - rows.mean(axis=1, keepdims=True)
        return (centred / scale * model.ln_final_gain) @ model.W_U

    def scale(rows: np.ndarray) -> np.ndarray:
        return np.sqrt(rows.var(axis=1, keepdims=True) + model.config.norm_eps)

    expected = places["logits"] - model.ln_final_bias @ model.W_U
    assert near(sum(logits(part, scale(places["final"])) for part in parts), expected)
    assert not near(sum(logits(part, scale(part)) for part in parts), expected, 0.1)


def test_a_lead_is_a_log_ratio_of_probabilities_and_a_difference_of_attributions() -> None:
    model, tokens = case("everything")
    logits = model.forward(tokens)["logits"][POSITION]
    probabilities = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    lead = direct_logit_attribution(model, tokens, TARGET, FOIL, POSITION)
    expected = math.log(probabilities[TARGET] / probabilities[FOIL])
    assert near(lead.logit, expected)
    target, foil = (
        direct_logit_attribution(model, tokens, token, None, POSITION) for token in (TARGET, FOIL)
    )
    for table in ("by_component", "by_head", "by_source", "by_neuron"):
        one, other, both = (getattr(each, table)().values for each in (target, foil, lead))
        assert near(both, one - other, 1e-11)


def test_logits_count_up_to_a_constant() -> None:
    """Adding a row to all columns of W_U changes logits but no logit difference."""
    model, tokens = case("llama")
    row = np.random.default_rng(0).standard_normal((model.d_model, 1))
    moved = model.changed({"W_U": model.W_U + row})

    def of_heads(model: Model, foil: int | None) -> np.ndarray:
        return direct_logit_attribution(model, tokens, TARGET, foil, POSITION).by_head().values

    assert near(of_heads(moved, FOIL), of_heads(model, FOIL), 1e-11)
    assert not near(of_heads(moved, None), of_heads(model, None), 0.1)


def test_the_basis_of_a_head_s_values_does_not_matter() -> None:
    model, tokens = case("gpt2")
    M = np.random.default_rng(0).standard_normal((2, model.n_heads, model.d_head, model.d_head))
    gauged = model.changed(
        {
            "W_V": model.W_V @ M,
            "b_V": np.einsum("lhk,lhkm->lhm", model.b_V, M),
            "W_O": np.linalg.inv(M) @ model.W_O,
        }
    )
    for table in ("by_head", "by_source"):
        one, other = (
            getattr(direct_logit_attribution(each, tokens, TARGET, None, None), table)().values
            for each in (model, gauged)
        )
        assert near(other, one, 1e-10)  # M has a condition of up to a few hundred


def test_permuted_heads_have_permuted_attributions() -> None:
    model, tokens = case("gpt2")
    order = [2, 0, 3, 1]
    per_head = [f"{kind}_{letter}" for kind in "Wb" for letter in "QKV"] + ["W_O"]
    permuted = model.changed({name: model.weights[name][:, order] for name in per_head})
    one, other = (
        direct_logit_attribution(each, tokens, TARGET, FOIL, POSITION) for each in (model, permuted)
    )
    assert near(other.by_head().values, one.by_head().values[:, order])
    assert near(other.by_source().values, one.by_source().values[:, order])


def test_a_rotated_stream_has_the_same_attributions() -> None:
    """Without norms; what reads the stream turns back what writes it."""
    model, tokens = case("biases only")
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))
    turned = model.changed(
        {
            **{name: model.weights[name] @ Q for name in ("W_E", "W_O", "b_O", "W_pos")},
            **{name: Q.T @ model.weights[name] for name in ("W_Q", "W_K", "W_V", "W_U")},
        }
    )
    one, other = (
        direct_logit_attribution(each, tokens, TARGET, FOIL, POSITION) for each in (model, turned)
    )
    assert near(other.by_component(heads=True).values, one.by_component(heads=True).values, 1e-11)


def test_without_a_target_it_is_the_likeliest_token() -> None:
    model, tokens = case("two_layer")
    best = model.forward(tokens)["logits"].argmax(axis=1)
    found = direct_logit_attribution(model, tokens, position=[1, -1])
    assert found.target.tokens.tolist() == [best[1], best[-1]]


def test_each_position_has_its_own_target() -> None:
    model, tokens = case("gpt2")
    found = direct_logit_attribution(model, tokens[:-1], tokens[1:], 9, None)
    assert found.by_head().axes == ("layer", "head", "position")
    for at, token in enumerate(tokens[1:]):
        alone = direct_logit_attribution(model, tokens[: at + 1], token, 9)
        assert near(found.by_head().values[..., at], alone.by_head().values)
        assert near(found.by_source().at(position=at).values[..., : at + 1],
                    alone.by_source().values)  # fmt: skip
        assert not found.by_source().at(position=at).values[..., at + 1 :].any()


def test_text_and_pictures() -> None:
    found = direct_logit_attribution("two_layer", "for i in range", "(", "[")
    assert repr(found).startswith("<direct attribution of the logit difference '(' - '[' after")
    table = found.by_component()
    assert table.labels["component"] == ["embed", "attention 0", "attention 1"]
    assert f"sum {found.logit:.4g} of {found.logit:.4g}" in found._repr_html_()
    strings = load_tokenizer().token_strings(load_tokenizer().encode("for i in range"))
    assert list(found.by_source().labels["source"]) == strings


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"position": 6}, "position 6 is out of range: the prompt has the positions 0 to 5"),
        ({"position": -7}, "position -7 is out of range: the prompt has the positions 0 to 5"),
        ({"position": 1.0}, r"a position must be an integer, got 1\.0"),
        ({"position": []}, "the list of positions is empty"),
        ({"target": 11}, "token 11 is not in the vocabulary of random, which has the token ids 0"),
        ({"target": True}, "a token must be an integer or a string, got True"),
        (
            {"target": " x"},
            "' x' is text, but random has 11 tokens and the bundled vocabulary 1024:",
        ),
        ({"foil": -1}, "token -1 is not in the vocabulary"),
        (
            {"target": 3, "foil": 3},
            "the foil equals the target, '3': their logit difference is always zero",
        ),
        ({"target": [1, 2], "position": [0, 1, 2]}, "2 targets for 3 positions"),
        ({"target": 1, "foil": [1, 2], "position": 0}, "2 foils for 1 position$"),
        (
            {"prompt": "x"},
            "the prompt is text, but random has 11 tokens and the bundled vocabulary",
        ),
        ({"prompt": []}, "the prompt is empty"),
        ({"prompt": [99]}, "token 99 at position 0 is not in the vocabulary"),
    ],
)
def test_wrong_use_is_said_in_a_sentence(asked: dict, said: str) -> None:
    with pytest.raises(OtimesError, match=said):
        direct_logit_attribution(random_model(), **{"prompt": TINY_TOKENS, **asked})


def test_text_that_is_not_one_token() -> None:
    with pytest.raises(OtimesError, match=r"' range' is 3 tokens \(' ra', 'n', 'ge'\), not one"):
        direct_logit_attribution("one_layer", "x", " range")
    with pytest.raises(OtimesError, match=r"'' is 0 tokens, not one"):
        direct_logit_attribution("one_layer", "x", "")
    model = random_model()
    likeliest = int(model.forward(TINY_TOKENS)["logits"][-1].argmax())
    with pytest.raises(
        OtimesError, match=r"the foil equals the target, '10' \(the default, the token with the"
    ):
        direct_logit_attribution(model, TINY_TOKENS, foil=likeliest)
