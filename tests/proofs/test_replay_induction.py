"""Certificates of claims about every depth: accepted when true, and hard to forge."""

from __future__ import annotations

import copy
import json
import random
import time
from functools import cache
from typing import Any

import pytest
import sympy
from sympy import Identity, MatrixSymbol, OneMatrix

import algebra.decide as judge
from algebra.certificate import to_json
from algebra.decide import decide
from algebra.induction import _Opened
from algebra.language import Family, HeadSum, LayerProduct, OneHot, OrderSum, kron, matadd, matmul
from algebra.nonlinear import Activation
from proofs import replay
from proofs.catalogue import catalogue
from proofs.claims import Statement
from tests.algebra.test_induction import FALSE, TRUE
from tests.proofs.certificates import changed, changes, is_false

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
    claim = judge._Claim(matadd(bound, every), matadd(free, every), ())
    deadline = time.thread_time() + 60
    assert judge._by_induction(claim, deadline) is None

    def as_it_stands(self: Any, e: Any, index: Any, scope: Any) -> Any:
        return e.func(e.body, (e.index, self.depth), *e.args[2:-1], e.reverse)

    monkeypatch.setattr(_Opened, "before_last", as_it_stands)
    forged = judge._by_induction(claim, deadline)
    assert forged is not None
    assert forged.status == "proved"
    assert refused(json.loads(to_json(forged.certificate)))


def refused(made: dict[str, Any]) -> str:
    """Return why a certificate is rejected, "" if it is accepted."""
    try:
        replay.check(json.loads(json.dumps(made)))
    except replay.Rejected as why:
        return str(why)
    return ""


@pytest.mark.parametrize("name", [*LINEAR, *THEOREMS])
def test_it_is_accepted(name: str) -> None:
    assert replay.check(certificate(name)).startswith(("by induction over L", "1 diagrams"))


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
            assert not is_false(wrong, draw), path
    assert accepted < CHANGES / 2


@pytest.mark.parametrize("name", FALSE)
def test_no_proof_of_another_claim_proves_what_is_false(name: str) -> None:
    lhs, rhs, *_ = FALSE[name]
    claim = to_json_claim(lhs, rhs)
    for other in LINEAR:
        forged = {**certificate(other), **claim}
        assert refused(forged), other


def to_json_claim(lhs: Any, rhs: Any) -> dict[str, Any]:
    """Return the parts of a certificate that state a claim."""
    from algebra.certificate import certificate as made

    stated = made(lhs, rhs, mode="same trees")
    keys = ("sizes", "scalars", "indices", "tensors", "lhs", "rhs", "given")
    return {key: stated[key] for key in keys}


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
    names = [name for _, name, _ in made["opaque"]]
    assert all(name[0] == "FamilyMember" and name[2:] == ["i"] for name in names)
    assert "a name lacks an index" in refused(
        changed(made, ["opaque", 0, 1], ["MatrixSymbol", names[0][1]])
    )


def test_what_is_opaque_is_one_matrix_for_each_value_of_a_free_index() -> None:
    """Were Π the same for each i, Π e_i = P e_i for all i would give Π = P for the one i."""
    column = OneHot(i, n)
    turned = Family("R", (L, n), n, n)
    lhs = matmul(LayerProduct(turned[l, i], (l, L)), column)
    assert decide(lhs, matmul(P, column)).status == "refuted"
    made = decide(matmul(lhs, OneMatrix(1, n)), matmul(lhs, OneMatrix(1, n))).certificate
    assert made is not None


def test_two_products_do_not_share_a_name() -> None:
    made = copy.deepcopy(certificate("transpose"))
    made["opaque"][1][1] = made["opaque"][0][1]
    assert "one name for two products" in refused(made)


def test_a_shared_name_needs_a_proof_about_these_bodies() -> None:
    made = certificate("bodies in other words")
    assert made["opaque"][1][2] is not None
    assert refused(changed(made, ["opaque", 1, 2], made["base"]))
    assert refused(changed(made, ["opaque", 1, 2], certificate("order zero")))


def test_a_name_is_new() -> None:
    made = copy.deepcopy(certificate("transpose"))
    text = json.dumps(made).replace("\\u03a0_L\\u2032", "W")
    assert refused(json.loads(text))
    assert "a name is taken" in refused(changed(made, ["last"], "L"))


def test_the_depth_is_no_size_and_in_no_hypothesis() -> None:
    made = certificate("a projection many times")
    hypothesis = copy.deepcopy(made["given"])
    hypothesis[0][1] = ["MatMul", ["Symbol", "L"], hypothesis[0][1]]
    assert "hypothesis names the depth" in refused(changed(made, ["given"], hypothesis))
    sized = changed(made, ["tensors", "P"], [[], ["Symbol", "L"], ["Symbol", "L"]])
    assert refused(sized)


def test_a_part_may_not_bring_its_own_hypothesis() -> None:
    made = certificate("transpose")
    for part in ("base", "step"):
        wrong = copy.deepcopy(made)
        wrong[part]["given"].append([wrong[part]["lhs"], wrong[part]["rhs"]])
        assert refused(wrong)


def test_parts_are_not_exchanged() -> None:
    made = certificate("what each layer adds")
    assert refused({**made, "base": made["step"]})
    assert refused({**made, "step": made["base"]})
    assert refused({**made, "step": {**made["step"], "given": []}})


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
    text = json.dumps(made["step"]).replace('"F", "l"', '"F", "last"')
    assert refused({**made, "step": json.loads(text)})


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
    claim = judge._Claim(marked, HeadSum(graded, (k, L)), ())
    deadline = time.monotonic() + 60
    assert judge._by_induction(claim, deadline) is None

    def whatever_the_count(self: Any, e: Any) -> Any:
        return graded.args[0], S

    monkeypatch.setattr(_Opened, "graded_orders", whatever_the_count)
    forged = judge._by_induction(claim, deadline)
    assert forged is not None
    assert forged.status == "proved"
    assert refused(json.loads(to_json(forged.certificate)))
