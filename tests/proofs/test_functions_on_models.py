"""Statements with softmax, norms and activations on models: within their bounds, mistakes not."""

from dataclasses import replace

import numpy as np
import pytest
from sympy import HadamardProduct, MatrixSymbol, OneMatrix, Rational, Symbol, Transpose, sqrt
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.numeric.binding import Run, run_of
from otimes.numeric.load import bundled_models, load_model
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.claims import Statement
from otimes.proofs.on_models import ModelEvidence, check_on_model
from otimes.proofs.theorem import Theorem
from tests.numeric.random_models import FULL, KINDS, TINY_TOKENS, random_model

n, d, d_head, d_mlp = (
    Symbol(name, positive=True, integer=True) for name in ("n", "d", "d_head", "d_mlp")
)
X, M = MatrixSymbol("X", n, d), MatrixSymbol("resid_mid", n, d)
QK = MatrixSymbol("qk_in", n, d)
W_Q, W_K, W_V = (MatrixSymbol(name, d, d_head) for name in ("W_Q", "W_K", "W_V"))
W_in, W_gate = (MatrixSymbol(name, d, d_mlp) for name in ("W_in", "W_gate"))
EPS = Rational(1, 100_000)

SCORES = matmul(1 / sqrt(d_head), QK, W_Q, Transpose(W_K), Transpose(QK))
PATTERN = RowSoftmax(SCORES, CausalMask(n))


def _check(stated: Statement, run: Run) -> ModelEvidence:
    theorem = Theorem("tried", "tried", 1, "row", "none", (), "A statement.", lambda: stated)
    return check_on_model(theorem.statement(), run)


@pytest.mark.parametrize("name", [name for name in bundled_models() if load_model(name).n_layers])
def test_a_pattern_is_a_softmax_of_a_product(name: str) -> None:
    model = load_model(name)
    if not model.config.bare:
        pytest.skip("the statement is about heads without biases")
    run = run_of(model, [int(token) for token in sample_tokens(12)])
    places = {"pattern": PATTERN, "z": matmul(PATTERN, X, W_V)}
    evidence = _check(Statement(matmul(PATTERN, X), matmul(PATTERN, X), places), run)
    assert evidence.passed, evidence.why
    assert evidence.sensitivity < 1e-8
    for wrong in (
        RowSoftmax(matmul(sqrt(d_head), SCORES), CausalMask(n)),
        RowSoftmax(SCORES),
        RowSoftmax(Transpose(SCORES), CausalMask(n)),
    ):
        assert not _check(Statement(wrong, wrong, {"pattern": wrong}), run).passed


@pytest.mark.parametrize(
    ("norm", "activation", "gated"),
    [("layer", "gelu", False), ("layer", "gelu_tanh", True), ("rms", "silu", True)],
)
def test_an_mlp_is_an_activation_of_a_product_of_a_norm(
    norm: str, activation: str, gated: bool
) -> None:
    config = replace(
        FULL, norm=norm, activation=activation, gated=gated, biases=(), positions="none"
    )
    model = random_model(config)
    plain = {w: np.ones_like(a) if w.endswith("gain") else 0 * a for w, a in model.weights.items()}
    model = model.changed({w: a for w, a in plain.items() if w.startswith("ln")})
    run = run_of(model, TINY_TOKENS)
    of = LayerNorm if norm == "layer" else RMSNorm

    def claimed(name: str, eps: Rational) -> Statement:
        N = of(M, eps)
        post = Activation(name, matmul(N, W_gate if gated else W_in))
        post = HadamardProduct(post, matmul(N, W_in)) if gated else post
        return Statement(post, post, {"ln2": N, "mlp_post": post}, bare=False)

    evidence = _check(claimed(activation, EPS), run)
    assert evidence.applies
    assert evidence.passed, evidence.why
    assert evidence.sensitivity < 1e-6  # a norm hardly sees the size of what it reads
    assert not _check(claimed(activation, EPS / 10), run).passed
    assert not _check(claimed("relu", EPS), run).passed


def _affine_norm(of: type, stream: MatrixSymbol, name: str, eps: object = "eps") -> object:
    eps = Symbol("eps", positive=True) if eps == "eps" else eps
    scaled = matmul(of(stream, eps), DiagMatrix(MatrixSymbol(f"{name}_gain", d, 1)))
    if of is RMSNorm:
        return scaled
    return matadd(scaled, matmul(OneMatrix(n, 1), MatrixSymbol(f"{name}_bias", 1, d)))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_norm_with_its_gain_its_bias_and_the_eps_of_the_model(kind: str) -> None:
    """Names alone bind them; another eps, another norm or another place's gain is noticed."""
    run = run_of(random_model(KINDS[kind]), TINY_TOKENS)
    of, other = (LayerNorm, RMSNorm) if run.config.norm == "layer" else (RMSNorm, LayerNorm)

    def claimed(norm: type, eps: object = "eps", gain_of: str = "ln1") -> Statement:
        ln1, ln2 = _affine_norm(norm, X, gain_of, eps), _affine_norm(norm, M, "ln2", eps)
        of_this_kind = {"norm": run.config.norm}
        return Statement(ln1, ln1, {"ln1": ln1, "ln2": ln2}, bare=False, config=of_this_kind)

    evidence = _check(claimed(of), run)
    assert evidence.applies
    assert evidence.passed, evidence.why
    for wrong in (claimed(of, Rational(str(run.config.norm_eps)) / 10), claimed(of, gain_of="ln2")):
        assert not _check(wrong, run).passed
    if other is RMSNorm:  # of the other no bias is there, so nothing is said
        assert not _check(claimed(other), run).passed


def test_a_query_has_a_bias_and_a_statement_may_be_about_one_kind_of_model() -> None:
    run = run_of(random_model(KINDS["gpt2"]), TINY_TOKENS)
    q = matadd(matmul(QK, W_Q), matmul(OneMatrix(n, 1), MatrixSymbol("b_Q", 1, d_head)))
    assert _check(Statement(q, q, {"q": q}, bare=False), run).passed
    assert not _check(Statement(q, q, {"k": q}, bare=False), run).passed
    elsewhere = _check(Statement(q, q, {"k": q}, bare=False, config={"positions": "rotary"}), run)
    assert (elsewhere.applies, elsewhere.passed) == (False, True)
    assert elsewhere.why == "it is about models with positions='rotary'"
    found = _check(Statement(q, q, {"k": q}), run)  # its places are those of attention-only models
    assert (found.applies, found.passed, found.recorded) == (True, True, False)


@pytest.mark.parametrize("kind", ["gpt2", "relu, no norm at the end"])
def test_any_activation_is_the_one_of_the_model(kind: str) -> None:
    run = run_of(random_model(KINDS[kind]), TINY_TOKENS)
    pre = MatrixSymbol("mlp_pre", n, d_mlp)

    def claimed(name: str) -> Statement:
        post = Activation(name, pre)
        return Statement(Transpose(Transpose(post)), post, {"mlp_post": post}, bare=False)

    assert _check(claimed("g"), run).passed
    assert not _check(claimed("silu"), run).passed
    with pytest.raises(OtimesError, match="activation f"):
        _check(claimed("f"), run)
