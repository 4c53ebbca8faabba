r"""Products of rotations: their angles add, and a transpose turns back.

Rotary embeddings are a family of rotations `R_m` with `R_m R_n = R_{m+n}` and `R_m^\top = R_{-m}`,
whatever the angle of one step is. So an equation between products of them holds only if the angles
agree, and the same is true of `e^{im\theta}`. A matrix of cosines and sines is a rotation only if
its columns are orthogonal.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import sympy

from otimes.algebra.notation.arithmetic import arithmetic
from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Apply,
    Grid,
    Name,
    Node,
    Power,
    Product,
    Slot,
    Sum,
    bare,
    latex,
    walk,
)
from otimes.proofs.documents.reporting.found import Found

Factor = tuple[
    str, Any
]  # a family of rotations with an angle, or another factor as LaTeX, and None


def rotated_wrongly(lhs: Node, rhs: Node) -> Found | None:
    r"""Return the refutation of an equation between products of rotations whose angles differ.

    >>> right, wrong = parse_formula(r"R_m^\top R_n = R_{n-m}, R_m^\top R_n = R_{m-n}")
    >>> rotated_wrongly(*right.terms) is None, rotated_wrongly(*wrong.terms).verdict
    (True, 'refuted')
    """
    if _is_no_rotation(rhs):
        why = "its columns are not orthogonal, and those of a rotation are"
        return Found("refuted", why)
    left, right = _reduced(lhs), _reduced(rhs)
    if left is None or right is None or not _has_product(lhs, rhs):
        return None
    left, right = _with_identity(left, right), _with_identity(right, left)
    if [text for text, _ in left] != [text for text, _ in right]:
        return None
    angles = [[angle for _, angle in side if angle is not None] for side in (left, right)]
    letters = [{letter for angle in side for letter in angle.free_symbols} for side in angles]
    if letters[0] != letters[1] and 0 not in [*angles[0], *angles[1]]:
        return None  # an index may be a label
    if not letters[0] | letters[1]:
        return None
    for (text, a), (_, b) in zip(left, right, strict=True):
        if a is not None and sympy.expand(a - b) != 0:
            sides = " and ".join(f"{text}({sympy.sstr(sympy.expand(angle))})" for angle in (a, b))
            return Found("refuted", f"rotations add their angles: the sides have {sides}")
    return None


def rotated_rightly(lhs: Node, rhs: Node) -> bool:
    r"""Return whether an equation between products holds since rotations add their angles.

    >>> (right,) = parse_formula(r"q^\top R_m^\top R_n k = q^\top R_{n-m} k")
    >>> (wrong,) = parse_formula(r"q^\top R_m^\top R_n k = q^\top R_{m-n} k")
    >>> rotated_rightly(*right.terms), rotated_rightly(*wrong.terms)
    (True, False)
    """
    sides = [_reduced(side) for side in (lhs, rhs)]
    left, right = (_without_angle(side) if side else None for side in sides)
    return left is not None and left == right and _has_product(lhs, rhs)


def _without_angle(factors: list[Factor]) -> list[Factor]:
    """Return the factors with angles expanded, without rotations by no angle."""
    angles = [(text, None if a is None else sympy.expand(a)) for text, a in factors]
    return [(text, a) for text, a in angles if a != 0 and text != "I"]


def _has_product(lhs: Node, rhs: Node) -> bool:
    """Return whether some side multiplies or turns back a rotation, so that it says something."""
    for e in (e for side in (lhs, rhs) for e in walk(side)):
        parts = e.factors if isinstance(e, Product) else (e,) if isinstance(e, Power) else ()
        turned = [_rotation(bare(p.base) if isinstance(p, Power) else bare(p)) for p in parts]
        if any(each is not None for each in turned):
            return True
    return False


def _with_identity(factors: list[Factor], others: list[Factor]) -> list[Factor]:
    """Return the factors of an identity as a rotation by no angle, where the others are one."""
    if factors == [("I", None)] and len(others) == 1 and others[0][1] is not None:
        return [(others[0][0], sympy.Integer(0))]
    return factors


def _reduced(node: Node) -> list[Factor] | None:
    """Return the factors of a product, with one rotation for each run of them, or None."""
    found: list[Factor] = []
    for text, angle in _factors(node, turned=False) or ():
        if angle is not None and found and found[-1][0] == text and found[-1][1] is not None:
            found[-1] = (text, found[-1][1] + angle)
        else:
            found.append((text, angle))
    return found or None


def _factors(node: Node, turned: bool) -> list[Factor] | None:
    """Return the factors of a product from left to right, of its transpose if it is `turned`."""
    inner = bare(node)
    if isinstance(inner, Power) and inner.exponent == "T":
        return _factors(inner.base, not turned)
    backward = isinstance(inner, Power) and inner.exponent == "-1"
    rotation = _rotation(bare(inner.base) if isinstance(inner, Power) and backward else inner)
    if rotation is not None:
        return [(rotation[0], -rotation[1] if turned != backward else rotation[1])]
    if isinstance(inner, Product):
        if not {*inner.marks} <= {"", r"\cdot"}:
            return None
        parts = [_factors(factor, turned) for factor in inner.factors]
        if any(part is None for part in parts):
            return None
        return [each for part in (parts[::-1] if turned else parts) for each in part or ()]
    if isinstance(inner, Sum):
        return None
    return [(latex(Power(inner, "T") if turned else inner), None)]


def _rotation(node: Node) -> tuple[str, Any] | None:
    """Return the family of a rotation and its angle, or None."""
    if isinstance(node, Apply) and len(node.arguments) == 1 and node.function.base in ("R", "Rot"):
        angle = arithmetic(node.arguments[0], lambda name: sympy.Symbol(latex(name)))
        return None if angle is None else (latex(node.function), angle)
    if not isinstance(node, Name):
        return None
    if node.base == "e" and len(node.sup) == 1 and node.sup[0].kind == "expression":
        angle = _angle(node.sup[0]) if re.search(r"(?<![a-z\\])i", node.sup[0].text) else None
        return None if angle is None or node.sub else ("exp", angle)
    if node.base != "R" or not node.sub or node.sup or node.select:
        return None
    angle = _angle(node.sub[-1])
    family = replace(node, sub=node.sub[:-1], style="", span=(0, 0))
    return None if angle is None else (latex(family), angle)


def _angle(slot: Slot) -> Any:
    try:
        statements = parse_formula(slot.text)
    except NotationError:
        return None
    if len(statements) != 1 or statements[0].relations:
        return None
    return arithmetic(statements[0].terms[0], lambda name: sympy.Symbol(latex(name)))


def _is_no_rotation(node: Node) -> bool:
    """Return whether a matrix has cosines on one diagonal, sines on the other, and is no rotation.

    It is one, or a reflection, if one or three of the four signs are negative.
    """
    grid = bare(node)
    if not isinstance(grid, Grid) or [len(row) for row in grid.rows] != [2, 2]:
        return False
    cells = [_signed(cell) for row in grid.rows for cell in row if cell is not None]
    names = [cell[1] for cell in cells if cell is not None]
    if len(names) != 4 or len({cell[2] for cell in cells if cell is not None}) != 1:
        return False
    if names not in (["cos", "sin", "sin", "cos"], ["sin", "cos", "cos", "sin"]):
        return False
    return sum(cell[0] for cell in cells if cell is not None) % 2 == 0


def _signed(node: Node) -> tuple[int, str, str] | None:
    """Return whether a cosine or sine has a minus before it, which it is, and of what."""
    inner, minus = bare(node), 0
    if isinstance(inner, Sum) and inner.signs == ("-",):
        inner, minus = bare(inner.terms[0]), 1
    if not isinstance(inner, Apply) or inner.function.base not in ("cos", "sin"):
        return None
    if inner.function.sup or len(inner.arguments) != 1:
        return None
    return minus, inner.function.base, latex(bare(inner.arguments[0]))
