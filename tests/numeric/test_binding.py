"""Symbols find their arrays: by name, laid out as their shape says, a layer and head at a time."""

import numpy as np
import pytest
from sympy import MatrixSymbol, Symbol

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.algebra.language.linear import Family, matmul
from otimes.algebra.language.shapes import inspect
from otimes.numeric.binding import Run, Source, cases, run_of, take
from otimes.numeric.config import Config
from otimes.numeric.model import make_model
from tests.numeric.random_models import KINDS, random_model

n, d, d_head, V, H, L = (
    Symbol(name, positive=True, integer=True) for name in ("n", "d", "d_head", "V", "H", "L")
)
h, l = Symbol("h", integer=True), Symbol("l", integer=True)  # noqa: E741
CONFIG = Config(2, 3, 8, 4, 20, 16, "shortformer")
TOKENS = (3, 1, 4, 1, 5)


@pytest.fixture(scope="module")
def run() -> Run:
    draw = np.random.default_rng(0)
    shapes = CONFIG.tensor_shapes()
    model = make_model("tiny", CONFIG, {k: draw.standard_normal(s) for k, s in shapes.items()})
    return run_of(model, TOKENS)


def _cases(run: Run, expression, bind=None) -> list:
    return list(cases(inspect(expression), run, bind or {}))


def test_every_layer_and_head_is_a_case(run: Run) -> None:
    W_V = MatrixSymbol("W_V", d, d_head)
    found = _cases(run, matmul(MatrixSymbol("A", n, n), MatrixSymbol("X", n, d), W_V))
    assert [str(case) for case in found[:4]] == [
        "layer 0, head 0",
        "layer 0, head 1",
        "layer 0, head 2",
        "layer 1, head 0",
    ]
    assert np.array_equal(found[4].arrays["W_V"], run.arrays["W_V"][1, 1])
    assert np.array_equal(found[4].arrays["X"], run.arrays["resid_pre"][1])


def test_a_family_takes_its_axis_whole(run: Run) -> None:
    over_heads = _cases(run, Family("W_O", (H,), d_head, d)[h])
    assert len(over_heads) == 2
    assert np.array_equal(over_heads[1].arrays["W_O"], run.arrays["W_O"][1])
    (everything,) = _cases(run, Family("W_O", (L, H), d_head, d)[l, h])
    assert np.array_equal(everything.arrays["W_O"], run.arrays["W_O"])


def test_the_shape_says_how_an_array_is_laid(run: Run) -> None:
    column = _cases(run, MatrixSymbol("W_V", d_head, d))[0].arrays["W_V"]
    assert np.array_equal(column, run.arrays["W_V"][0, 0].T)
    turned = _cases(run, MatrixSymbol("X", d, n))[0].arrays["X"]
    assert np.array_equal(turned, run.arrays["resid_pre"][0].T)
    stacked = _cases(run, MatrixSymbol("x", n * d, 1))[0].arrays["x"]
    assert np.array_equal(stacked[:, 0], run.arrays["resid_pre"][0].reshape(-1))


def test_sources_fix_and_cut(run: Run) -> None:
    where = {"late": 1, "head": 2}
    source = Source("W_Q", layer="late", rows=3, cols=2, transposed=True)
    expected = run.arrays["W_Q"][1, 2][:3, :2].T
    assert np.array_equal(take(source, ["p", "q"], where, run), expected)
    assert str(source) == "W_Q[:3, :2].T"
    assert np.array_equal(
        take(Source("W_Q", layer=0, head=1), ["d", "d_head"], {}, run), run.arrays["W_Q"][0, 1]
    )


def test_a_model_without_heads_has_no_case() -> None:
    config = Config(0, 1, 8, 4, 20, 16, "none")
    weights = {k: np.ones(shape) for k, shape in config.tensor_shapes().items()}
    run = run_of(make_model("flat", config, weights), TOKENS)
    assert _cases(run, MatrixSymbol("A", n, n)) == []
    assert len(_cases(run, MatrixSymbol("W_E", V, d))) == 1


def test_a_full_block_has_places_and_weights_of_its_own() -> None:
    model = random_model(KINDS["llama"])
    found = run_of(model, TOKENS)
    shapes = {
        "ln1": (2, 5, 9), "ln2": (2, 5, 9), "mlp_pre": (2, 5, 13), "mlp_post": (2, 5, 13),
        "mlp_out": (2, 5, 9), "final": (5, 9), "ln_final": (5, 9), "k": (2, 4, 5, 6),
        "W_in": (2, 9, 13), "W_gate": (2, 9, 13), "W_out": (2, 13, 9), "W_K": (2, 4, 9, 6),
    }  # fmt: skip
    assert {name: found.arrays[name].shape for name in shapes} == shapes
    assert np.array_equal(found.arrays["final"], found.arrays["resid_post"][1])
    d_mlp = Symbol("d_mlp", positive=True, integer=True)
    (first, second) = _cases(
        found, matmul(MatrixSymbol("mlp_post", n, d_mlp), MatrixSymbol("W_out", d_mlp, d))
    )
    assert np.array_equal(second.arrays["W_out"], model.W_out[1])
    assert not np.array_equal(first.arrays["mlp_post"], second.arrays["mlp_post"])


def test_biases_and_gains_are_rows_columns_or_the_same_at_every_position() -> None:
    model = random_model(KINDS["gpt2"])
    found = run_of(model, TOKENS)
    d_mlp = Symbol("d_mlp", positive=True, integer=True)
    widths = {
        **dict.fromkeys(("b_Q", "b_K", "b_V"), d_head),
        **dict.fromkeys(("b_O", "b_out", "ln1_gain", "ln1_bias", "ln2_gain", "ln2_bias"), d),
        "b_in": d_mlp, "ln_final_gain": d, "ln_final_bias": d,
    }  # fmt: skip
    for name, width in widths.items():
        whole = getattr(model, name)
        flat = whole.reshape(-1, whole.shape[-1])  # each layer, or each layer's heads
        for shape, laid in (
            ((1, width), lambda vector: vector[None, :]),
            ((width, 1), lambda vector: vector[:, None]),
            ((n, width), lambda vector: np.stack([vector] * len(TOKENS))),
            ((width, n), lambda vector: np.stack([vector] * len(TOKENS), axis=1)),
        ):
            cases_of = _cases(found, MatrixSymbol(name, *shape))
            assert len(cases_of) == len(flat)
            for case, vector in zip(cases_of, flat, strict=True):
                assert np.array_equal(case.arrays[name], laid(vector)), (name, shape)
    by_head = _cases(found, Family("b_V", (H,), 1, d_head)[h])[1].arrays["b_V"]
    assert np.array_equal(by_head[:, 0], model.b_V[1])


def test_a_model_has_only_the_biases_and_gains_of_its_kind(run: Run) -> None:
    assert not any(name.startswith(("b_", "ln")) for name in run.arrays)
    llama = run_of(random_model(KINDS["llama"]), TOKENS)
    assert "ln1_gain" in llama.arrays
    assert not {"ln1_bias", "b_Q", "b_in", "b_U"} & {*llama.arrays}
    assert "W_gate" not in run_of(random_model(KINDS["gpt2"]), TOKENS).arrays
    assert _cases(run, MatrixSymbol("b_V", 1, d_head)) == []


def test_a_layer_that_is_not_there_is_no_case(run: Run) -> None:
    A = Family("A", (L, H), n, n)
    assert len(_cases(run, A[1, h])) == 1
    assert _cases(run, A[2, h]) == []


def test_a_layer_that_a_source_names_must_be_there(run: Run) -> None:
    W = MatrixSymbol("W", d, d_head)
    assert len(_cases(run, W, {"W": Source("W_V", layer=1)})) == 3
    assert not _cases(run, W, {"W": Source("W_V", layer=2)})


def test_what_has_no_meaning_is_named(run: Run) -> None:
    with pytest.raises(
        OtimesError, match="the symbol Q is bound to no array of a model: bind it to one of W_E,"
    ):
        _cases(run, MatrixSymbol("Q", n, n))
    with pytest.raises(ShapeError, match="cannot be laid out"):
        take(Source("W_E"), ["H", "V", "d"], {}, run)
