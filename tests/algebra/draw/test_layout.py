"""The geometry of a picture: every wire ends where it should, and nothing stands on anything."""

from __future__ import annotations

import random
from typing import Any

import pytest
import sympy
from sympy import Identity, MatrixSymbol, OneMatrix, Trace

from otimes.algebra.draw.layout import SMALL, Picture, lay_out
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.normal_form import normal_form
from tests.algebra.expressions import SHAPES, random_expression

n, d, d_head, H = sympy.symbols("n d d_head H", integer=True, positive=True)
h, g, i = sympy.symbols("h g i", integer=True)
A, B, C = (MatrixSymbol(name, n, n) for name in "ABC")
W, X = MatrixSymbol("W", d, d), MatrixSymbol("X", n, d)
P = Family("P", (H,), n, n)
A_h = Family("A", (2, H), n, n)
W_O, W_V = Family("W_O", (2, H), d, d_head), Family("W_V", (2, H), d_head, d)


def layer(number: int, index: Any) -> Any:
    OV = matmul(W_O[number, index], W_V[number, index])
    return matadd(kron(Identity(n), Identity(d)), HeadSum(kron(A_h[number, index], OV), (index, H)))


EXPRESSIONS: dict[str, Any] = {
    "a product": A * B,
    "a Kronecker product": kron(A, W),
    "on vec": matmul(kron(A, W), vec_rows(X)),
    "a trace": Trace(A),
    "a longer trace": matmul(Trace(A * B * C), A),
    "a Hadamard product": matmul(sympy.HadamardProduct(A, B), C),
    "ones": OneMatrix(n, d),
    "row sums": A * OneMatrix(n, 1),
    "column sums": OneMatrix(1, n) * A * B,
    "a transpose": A.T * B,
    "an identity": kron(Identity(n), W),
    "columns first": vec_cols(X),
    "a sum over heads": HeadSum(kron(P[h], MatrixSymbol("W", d, d)), (h, H)),
    "one head": P[h] * P[h].T,
    "heads side by side": ConcatHeads(P[h], (h, H)),
    "two layers": matmul(layer(1, g), layer(0, h)),
    "a row of a matrix": matmul(OneHot(i, n).T, A),
    "blocks": sympy.BlockMatrix([[A, X], [X.T, W]]),
    "a diagonal": sympy.DiagMatrix(MatrixSymbol("x", n, 1)),
    "a form": MatrixSymbol("x", n, 1).T * A * MatrixSymbol("y", n, 1),
}


def pictures(expression: Any) -> list[tuple[Any, Picture]]:
    form = normal_form(expression)
    sizes = [str(size) for size in form.sizes]
    return [(diagram, lay_out(diagram, form.labels, sizes)) for _, diagram in form.terms]


def check(diagram: Any, picture: Picture) -> None:
    """Hold a picture against its diagram: parts, places, and where the wires end."""
    rows = [wire for wire in diagram.rows if wire >= 0]
    cols = [wire for wire in diagram.cols if wire >= 0]
    left = [leg for leg in picture.legs if leg.side == "left"]
    right = [leg for leg in picture.legs if leg.side == "right"]
    assert [leg.wire for leg in left] == rows
    assert [leg.wire for leg in right] == cols
    for legs in (left, right):
        heights = [leg.at[1] for leg in legs]
        assert heights == sorted(set(heights))
    assert [tuple(p.wire for p in box.ports) for box in picture.boxes] == [
        box[1:] for box in diagram.boxes
    ]
    spots: dict[int, list[Any]] = {}
    for wire, at in [
        *[(p.wire, p.at) for box in picture.boxes for p in box.ports],
        *[(leg.wire, leg.at) for leg in picture.legs],
    ]:
        spots.setdefault(wire, []).append(at)
    dots = {dot.wire: dot.at for dot in picture.dots}
    assert len(dots) == len(picture.dots)
    for stroke in picture.strokes:
        known = [*spots[stroke.wire], *([dots[stroke.wire]] if stroke.wire in dots else [])]
        assert stroke.points[0] in known, "a wire begins at a port, a leg or its dot"
        assert stroke.points[-1] in known, "a wire ends at a port, a leg or its dot"
    for wire, places in spots.items():
        strokes = [stroke for stroke in picture.strokes if stroke.wire == wire]
        ends = [point for stroke in strokes for point in (stroke.points[0], stroke.points[-1])]
        for place in places:
            assert place in ends, "every port and every leg has its wire"
        if wire in dots:
            assert len(strokes) == len(places), "a stroke from the dot to each end"
        else:
            assert len(places) == 2
            assert len(strokes) == 1
    for box in picture.boxes:
        (x, y), w, height = box.at, box.width / 2, box.height / 2
        for port in box.ports:
            px, py = port.at
            on_edge = {
                "left": abs(px - (x - w)),
                "right": abs(px - (x + w)),
                "above": abs(py - (y - height)),
                "below": abs(py - (y + height)),
            }
            assert on_edge[port.side] < 0.02
            assert abs(px - x) <= w + 0.02
            assert abs(py - y) <= height + 0.02
        assert len({port.at for port in box.ports}) == len(box.ports)
    for k, one in enumerate(picture.boxes):
        for other in picture.boxes[:k]:
            apart_x = abs(one.at[0] - other.at[0]) - (one.width + other.width) / 2
            apart_y = abs(one.at[1] - other.at[1]) - (one.height + other.height) / 2
            assert max(apart_x, apart_y) > 5, "boxes stand apart"
    for x, y in [p for stroke in picture.strokes for p in stroke.points]:
        assert -0.01 <= x <= picture.width + 0.01
        assert -0.01 <= y <= picture.height + 0.01


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_wires_end_at_ports(name: str) -> None:
    found = pictures(EXPRESSIONS[name])
    assert found
    for diagram, picture in found:
        check(diagram, picture)


def test_wires_end_at_ports_in_random_diagrams() -> None:
    draw = random.Random(5)
    seen = 0
    for _ in range(400):
        expression = random_expression(draw, draw.choice(SHAPES), 3)
        for diagram, picture in pictures(expression)[:6]:
            check(diagram, picture)
            seen += len(diagram.boxes) > 1
    assert seen > 100


def test_the_same_diagram_has_the_same_picture() -> None:
    for expression in EXPRESSIONS.values():
        assert repr(pictures(expression)) == repr(pictures(expression))


def test_an_identity_is_a_straight_line() -> None:
    ((_, picture),) = pictures(kron(Identity(n), W))
    (line,) = [stroke for stroke in picture.strokes if stroke.wire == 0]
    assert len({y for _, y in line.points}) == 1
    assert {y for _, y in line.points}.isdisjoint({box.at[1] for box in picture.boxes})


def test_a_product_is_drawn_as_it_is_written() -> None:
    ((_, picture),) = pictures(A * B * C)
    names = [box.name.base for box in sorted(picture.boxes, key=lambda box: box.at)]
    assert names == ["A", "B", "C"]
    assert len({box.at[1] for box in picture.boxes}) == 1
    assert {p.side for box in picture.boxes for p in box.ports if p.kind == "row"} == {"left"}
    ((_, turned),) = pictures(A.T)
    assert {p.side for p in turned.boxes[0].ports if p.kind == "row"} == {"right"}


def test_a_trace_goes_round_its_boxes() -> None:
    ((_, picture),) = pictures(Trace(A * B))
    (round_,) = [stroke for stroke in picture.strokes if stroke.bends == "round"]
    assert min(y for _, y in round_.points) < min(b.at[1] - b.height / 2 for b in picture.boxes)


def test_a_caption_lies_in_the_frame_of_its_picture() -> None:
    x = MatrixSymbol("x", n, 1)
    blocks = sympy.BlockMatrix([[A, x], [sympy.ZeroMatrix(1, n), Identity(1)]])
    found = pictures(blocks)
    assert {picture.caption for _, picture in found} == {"block 0, 0", "block 0, 1", "block 1, 1"}
    assert all(picture.width >= SMALL * len(picture.caption) for _, picture in found)


def test_an_index_that_is_free_has_its_name_and_a_hidden_one_its_size() -> None:
    ((_, picture),) = pictures(P[h] * P[h])
    assert [(dot.label, dot.free) for dot in picture.dots] == [("h", True)]
    ((_, picture),) = pictures(HeadSum(P[h] * P[h], (h, H)))
    assert [(dot.label, dot.free) for dot in picture.dots] == [("H", False)]
    ((_, picture),) = pictures(matmul(OneHot(i, n).T, A))
    assert [(dot.label, dot.free) for dot in picture.dots] == [("i", True)]
