"""Certificates of claims about every depth: accepted when true, and hard to forge."""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from typing import Any

import pytest
import sympy
from sympy import Identity, MatrixSymbol, OneMatrix

import otimes.algebra.decide.induction
from otimes.algebra.decide.certificate import certificate_of, to_json
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decide import decided
from otimes.algebra.decide.decision import Proof
from otimes.algebra.decide.induction import Opened
from otimes.algebra.decide.inductive_proof import by_induction
from otimes.algebra.language.binders import Standard
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum, OneHot, kron, matadd, matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.verdict import decide
from otimes.proofs import replay
from otimes.proofs.catalogue import catalogue
from otimes.proofs.claims import Statement
from tests.algebra.decide.test_induction import FALSE, TRUE
from tests.proofs.certificates import changed, changes, disguised
from tests.proofs.test_replay import assert_true

CHANGES = 60  # of each certificate, drawn from several hundred
LINEAR = [name for name in TRUE if "softmax" not in name]

n, L, H = sympy.symbols("n L H", integer=True, positive=True)
l, i, h = sympy.symbols("l i h", integer=True)  # noqa: E741 (as on paper)
W = Family("W", (L,), n, n)
V = Family("V", (L, H), n, n)
P = MatrixSymbol("P", n, n)


THEOREMS = {
    theorem.name: (stated.lhs, stated.rhs)
    for theorem in catalogue()
    if isinstance(stated := theorem.claim(), Statement)
    and not stated.given
    and stated.lhs.has(LayerProduct, OrderSum)
}


@cache
def certificate(name: str) -> dict[str, Any]:
    verdict = decide(*(THEOREMS | TRUE)[name])
    assert verdict.status == "proved"
    made = verdict.certificate
    assert made is not None
    return dict(json.loads(to_json(made)))


def test_a_body_that_speaks_of_an_outer_layer_is_not_left_as_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proof in which l stays l, though the last layer was put for it, is no proof: see
    `test_a_body_that_speaks_of_an_outer_layer_speaks_of_the_last_one`.
    """
    j, U = sympy.Symbol("j", integer=True), Family("U", (L,), n, n)
    bound = HeadSum(matmul(U[l], LayerProduct(matmul(W[j], U[l]), (j, l))), (l, L))
    free = HeadSum(matmul(U[i], LayerProduct(matmul(W[j], U[l]), (j, i))), (i, L))
    every = LayerProduct(W[j], (j, L))
    claim = Claim(matadd(bound, every), matadd(free, every), ())
    assert by_induction(claim, decided) is None

    put = Opened.put

    def as_it_stands(self: Any, e: Any, index: Any) -> Any:
        if isinstance(e, LayerProduct) and e.count == index:
            return e.func(e.body, (e.index, self.depth), e.reverse)
        return put(self, e, index)

    monkeypatch.setattr(Opened, "put", as_it_stands)
    # clean names alone would stop it
    for module in (otimes.algebra.decide.claim, otimes.algebra.decide.induction):
        monkeypatch.setattr(module, "standardised", lambda *claim: Standard(*claim, {}))
    claim = Claim(matadd(bound, every), matadd(free, every), ())
    forged = by_induction(claim, decided)
    assert forged is not None
    assert forged.status == "proved"
    assert refused(json.loads(to_json(certificate_of(forged.claim, forged.proof))))


def refused(made: dict[str, Any]) -> str:
    """Return why a certificate is rejected, "" if it is accepted."""
    try:
        replay.check(made)
    except replay.Rejected as why:
        return str(why)
    return ""


@pytest.mark.parametrize("name", [*LINEAR, *THEOREMS])
def test_it_is_accepted(name: str) -> None:
    assert replay.check(certificate(name)).startswith(
        ("by induction", "by cancel", "by generalise")
    )
    draw = random.Random(name)
    for _ in range(3):
        replay.check(disguised(certificate(name), draw))


def test_most_are_by_induction() -> None:
    rules = [certificate(name)["proof"]["rule"] for name in [*LINEAR, *THEOREMS]]
    assert rules.count("induction") > 0.6 * len(rules)


@pytest.mark.parametrize("name", LINEAR)
def test_a_changed_certificate_is_rejected_or_its_claim_is_true(name: str) -> None:
    """Exact numbers, put into the changed trees by another program, do not refute what passes."""
    draw = random.Random(name)
    every = list(changes(certificate(name)))
    accepted = 0
    for path, value in draw.sample(every, min(CHANGES, len(every))):
        wrong = changed(certificate(name), path, value)
        if not refused(wrong):
            accepted += 1
            assert_true(wrong, certificate(name), draw, path)
    assert accepted < 0.7 * CHANGES


@pytest.mark.parametrize("name", FALSE)
def test_no_proof_of_another_claim_proves_what_is_false(name: str) -> None:
    lhs, rhs, *_ = FALSE[name]
    claim = to_json_claim(lhs, rhs)
    for other in LINEAR:
        forged = {**certificate(other), **claim}
        assert refused(forged), other


def to_json_claim(lhs: Any, rhs: Any) -> dict[str, Any]:
    """Return the parts of a certificate that state a claim."""
    stated = certificate_of(Claim(lhs, rhs, ()), Proof("normal forms"))
    return {part: value for part, value in stated.items() if part != "proof"}


def with_index() -> dict[str, Any]:
    """Return the certificate of a claim about the layers of one head, whichever it is."""
    head = V[l, i]
    lhs = sympy.Transpose(LayerProduct(head, (l, L)))
    verdict = decide(lhs, LayerProduct(sympy.Transpose(head), (l, L), True))
    made = verdict.certificate
    assert made is not None
    return dict(json.loads(to_json(made)))


def test_what_is_opaque_keeps_its_index() -> None:
    made = with_index()
    assert refused(made) == ""
    use = made["proof"]["step"]["uses"][0]
    assert use["context"]["free"]  # the head, whichever it is
    for path, value in ((["at", 0], [0]), (["context", "free"], [])):
        assert refused(changed(made, ["proof", "step", "uses", 0, *path], value))


def test_what_is_opaque_is_one_matrix_for_each_value_of_a_free_index() -> None:
    """Were Π the same for each i, Π e_i = P e_i for all i would give Π = P for the one i."""
    column = OneHot(i, n)
    turned = Family("R", (L, n), n, n)
    lhs = matmul(LayerProduct(turned[l, i], (l, L)), column)
    assert decide(lhs, matmul(P, column)).status == "refuted"
    made = decide(matmul(lhs, OneMatrix(1, n)), matmul(lhs, OneMatrix(1, n))).certificate
    assert made is not None


def test_the_depth_is_no_size_and_in_no_hypothesis() -> None:
    made = certificate("a projection many times")
    over = made["proof"]["over"]
    hypothesis = copy.deepcopy(made["given"])
    hypothesis[0][1] = ["MatMul", ["size", over], hypothesis[0][1]]
    assert "hypothesis names the depth" in refused(changed(made, ["given"], hypothesis))
    shape = ["size", over]
    sized = changed(made, ["tensors", 0], [made["tensors"][0][0], [], shape, shape])
    assert "the depth is the size of a matrix" in refused(sized)
    assert refused(changed(made, ["proof", "over"], 1 - over))


def test_a_part_may_not_bring_its_own_hypothesis() -> None:
    made = certificate("transpose")
    for part in ("base", "step"):
        wrong = copy.deepcopy(made)
        wrong["proof"][part]["given"] = [[[], made["lhs"], made["rhs"]]]
        assert "a proof has other parts" in refused(wrong)


def test_the_base_has_no_hypothesis() -> None:
    made = certificate("transpose")
    wrong = copy.deepcopy(made)
    wrong["proof"]["base"]["uses"] = [{"fact": len(made["given"]), "coefficient": 1, "at": []}]
    assert "a use of no fact" in refused(wrong)


def test_parts_are_not_exchanged() -> None:
    made = certificate("what each layer adds")
    proof = made["proof"]
    assert refused({**made, "proof": {**proof, "base": proof["step"]}})
    assert refused({**made, "proof": {**proof, "step": proof["base"]}})
    assert refused({**made, "proof": {**proof, "step": {**proof["step"], "uses": []}}})
    assert refused({**made, "proof": proof["step"]})
    assert refused({**made, "proof": {**proof, "step": proof}})  # twice over one depth


def test_heads_and_orders() -> None:
    body = HeadSum(kron(V[l, h], V[l, h]), (h, H))
    both = matadd(OrderSum(body, (l, L), 1), Identity(n * n))
    verdict = decide(both, matadd(Identity(n * n), HeadSum(body, (l, L))))
    assert verdict.status == "proved"
    assert refused(dict(json.loads(to_json(verdict.certificate or {})))) == ""


def test_an_index_that_is_bound_inside_a_layer_is_another() -> None:
    """Were the last layer put into the inner sum, it would be that layer many times over."""
    inner = Family("F", (H,), n, n)
    layer = matmul(HeadSum(inner[l], (l, H)), W[l])
    turned = matmul(sympy.Transpose(W[l]), sympy.Transpose(HeadSum(inner[h], (h, H))))
    verdict = decide(
        sympy.Transpose(LayerProduct(layer, (l, L))), LayerProduct(turned, (l, L), True)
    )
    assert verdict.status == "proved"
    made = dict(json.loads(to_json(verdict.certificate or {})))
    assert refused(made) == ""
    step = json.dumps(made["proof"]["step"])
    last = '["i", 0]'  # of the first index in scope of the step: the last layer
    for inner in ('["i", 1]', '["i", 2]'):
        if inner in step:
            wrong = {**made["proof"], "step": json.loads(step.replace(inner, last))}
            assert refused({**made, "proof": wrong})


def test_a_function_called_like_the_index_of_layers_keeps_its_name() -> None:
    g = sympy.Symbol("g", integer=True)
    layer = Activation("g", W[g])
    turned = LayerProduct(Activation("g", sympy.Transpose(W[g])), (g, L), True)
    verdict = decide(sympy.Transpose(LayerProduct(layer, (g, L))), turned)
    assert verdict.status == "proved"
    assert refused(dict(json.loads(to_json(verdict.certificate or {})))) == ""


def test_a_sum_that_lacks_an_order_does_not_unfold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders 0 to L - 1, each with a power, are not all: with one layer more they are others."""
    S, (k, j) = MatrixSymbol("S", n, n), sympy.symbols("k j", integer=True)
    marked = LayerProduct(matadd(kron(Identity(n), Identity(n)), kron(W[l], S)), (l, L))
    graded = kron(OrderSum(W[l], (l, L), k), LayerProduct(S, (j, k)))
    claim = Claim(marked, HeadSum(graded, (k, L)), ())
    assert by_induction(claim, decided) is None

    def whatever_the_count(self: Any, e: Any) -> Any:
        return graded.args[0], S

    monkeypatch.setattr(Opened, "graded_orders", whatever_the_count)
    forged = by_induction(claim, decided)
    assert forged is not None
    assert forged.status == "proved"
    assert refused(json.loads(to_json(certificate_of(forged.claim, forged.proof))))
