"""What a proof hands to somebody who does not trust it: a certificate, as plain JSON data.

A certificate holds both sides and the hypotheses as trees, and the claim that

    lhs - rhs  =  sum over uses of  coefficient * context[ lhs - rhs of a fact ]

where a fact is a hypothesis, what a hypothesis gives besides, or an equation of an inverse; so that
whoever checks it plugs and adds, and need not search. The format is told at the head of
`proofs/replay.py`, which checks it and shares nothing with this file. A certificate carries no
digest and no signature: it is checked, not believed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra import scalars
from algebra.applied import is_causal_mask
from algebra.diagram import DEAD, Diagram, Wire
from algebra.entailment import Fact
from algebra.errors import LanguageError, RuleError
from algebra.expansion import Multiple
from algebra.induction import Induction
from algebra.interpret import Interpretation, read
from algebra.language import (
    ConcatHeads,
    FamilyMember,
    HeadSum,
    LayerProduct,
    OneHot,
    OrderSum,
    StackHeads,
    key,
    vec_cols,
    vec_rows,
)
from algebra.legs import Blocks, Legs
from algebra.matching import HOLE
from algebra.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from algebra.scalars import Coefficient
from algebra.shapes import inspect, shape_of
from algebra.signature import Signature

SCHEMA = 2
STATED = {"schema", "sizes", "scalars", "indices", "tensors", "lhs", "rhs", "given"}

Tree: TypeAlias = Any  # an integer, or a list [kind, argument, ...]
Limits = Sequence[tuple[sympy.Symbol, Any]]
Mode = Literal["normal forms", "written out", "same trees", "induction"]


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a fact: coefficient * context[lhs - rhs of the fact].

    `fact` names it: ("given", k) for hypothesis k, ("turned", k, j) and ("root", k) for what a
    hypothesis gives besides (see `entailment.consequences`), ("inverse", name, side) for an
    equation of the inverse that the reading calls so, and for an axiom what `axiom` makes.
    `context` is a diagram in the labels and
    sorts of the Interpretation that goes with it; exactly one of its boxes is `(HOLE, wire, ...)`:
    the row legs, the column legs and the for-all indices of the fact, in order, block marks among
    them. It need not be canonical; wires of sort DEAD do not count. The coefficient may divide only
    by numbers and by monomials in sizes and in scalars declared positive, and is divided by each of
    the `divisors`, which the statement divides by: whoever checks the certificate refuses others.
    """

    fact: Fact
    coefficient: Coefficient | sympy.Expr
    context: Diagram
    divisors: tuple[Coefficient, ...] = ()


def certificate(
    lhs: Any,
    rhs: Any,
    given: Sequence[Any] = (),
    uses: Sequence[Use | Multiple] = (),
    reading: Interpretation | None = None,
    mode: Mode = "normal forms",
) -> dict[str, Any]:
    """Return the certificate of lhs = rhs, as data for JSON.

    `given`: pairs (lhs, rhs) or `sympy.Eq`; a third entry lists the limits (index, count) of the
    indices that the hypothesis holds for all of. `reading`: the Interpretation that read both sides
    and the hypotheses, whose splits of sizes are told and whose labels the contexts of `uses` are
    in; made when it is None. Nothing is proved here: a claim that is false gets a certificate too,
    one that is rejected.

    >>> from sympy import MatrixSymbol, Symbol, Transpose
    >>> n = Symbol("n")
    >>> A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
    >>> made = certificate(Transpose(A * B), Transpose(B) * Transpose(A))
    >>> made["lhs"]
    ['Transpose', ['MatMul', ['MatrixSymbol', 'A'], ['MatrixSymbol', 'B']]]
    >>> made["mode"], made["splits"], made["uses"]
    ('normal forms', [], [])
    """
    lhs, rhs = sympy.sympify(lhs), sympy.sympify(rhs)
    hypotheses = [_hypothesis(one) for one in given]
    signature = inspect(lhs, rhs, *[side for h in hypotheses for side in h[:2]])
    if reading is None and mode == "normal forms":
        reading, _ = read(signature, (lhs, rhs), *[h[:2] for h in hypotheses])
    shapes = [shape_of(side) or () for side in (lhs, *[h[0] for h in hypotheses])]
    return {
        "schema": SCHEMA,
        **_declarations(signature, [use for use in uses if isinstance(use, Use)]),
        "indices": _indices((lhs, rhs, ()), *hypotheses),
        "lhs": tree(lhs),
        "rhs": tree(rhs),
        "given": [[tree(h[0]), tree(h[1]), *_limits(h[2])] for h in hypotheses],
        "mode": mode,
        "splits": _splits(reading) if reading else [],
        "fused": reading is not None and reading.fuse,
        "defined": _defined(reading, [use for use in uses if isinstance(use, Use)]),
        "uses": [
            _multiple(use, signature, shapes) if isinstance(use, Multiple) else _use(use, reading)
            for use in uses
        ],
    }


def by_induction(
    lhs: Any,
    rhs: Any,
    given: Sequence[Any],
    plan: Induction,
    parts: Sequence[Mapping[str, Any] | None],
    alike: Mapping[Any, Mapping[str, Any] | None],
) -> dict[str, Any]:
    """Return the certificate of a claim for every depth: those of its base and of its step.

    `alike` are the certificates that the bodies are equal of what goes by one name.
    """
    hypotheses = [_hypothesis(one) for one in given]
    signature = inspect(lhs, rhs, *[side for h in hypotheses for side in h[:2]])
    base, step = parts
    return {
        "schema": SCHEMA,
        **_declarations(signature, ()),
        "indices": _indices((lhs, rhs, ()), *hypotheses),
        "lhs": tree(lhs),
        "rhs": tree(rhs),
        "given": [[tree(h[0]), tree(h[1]), *_limits(h[2])] for h in hypotheses],
        "mode": "induction",
        "depth": key(plan.depth),
        "last": key(plan.last),
        "opaque": [[tree(e), tree(name), alike.get(e)] for e, name in plan.opaque.items()],
        "base": base,
        "step": step,
    }


def axiom(name: str, of: Sequence[Any], limits: Limits, proofs: Sequence[Any]) -> Fact:
    """Return as a fact what an axiom says of some functions.

    `limits`: the indices it holds for all of; `proofs`: certificates of its premises, in order.
    """
    shown = [{k: proof[k] for k in proof if k not in STATED} for proof in proofs]
    return ("axiom", name, [tree(e) for e in of], _limits(limits), shown)


def to_json(made: Mapping[str, Any]) -> str:
    """Return a certificate as JSON text, the same text for the same certificate."""
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n"


def from_json(text: str) -> dict[str, Any]:
    """Return the certificate in a JSON text; raise LanguageError for what is none."""
    try:
        made = json.loads(text)
    except ValueError as error:
        raise LanguageError(f"this is not the JSON of a certificate: {error}") from None
    if not isinstance(made, dict) or made.get("schema") != SCHEMA:
        raise LanguageError(f"this is not a certificate of schema {SCHEMA}")
    return made


# -- trees -----------------------------------------------------------------------------------------

PLAIN = (
    sympy.MatAdd,
    sympy.Add,
    sympy.MatMul,
    sympy.Mul,
    sympy.MatPow,
    sympy.Pow,
    sympy.Transpose,
    sympy.Adjoint,
    sympy.KroneckerProduct,
    sympy.HadamardProduct,
    sympy.HadamardPower,
    sympy.Trace,
    sympy.Identity,
    sympy.OneMatrix,
    sympy.ZeroMatrix,
    sympy.BlockDiagMatrix,
    RowSoftmax,
    CausalMask,
    RMSNorm,
    LayerNorm,
    DiagMatrix,
    DiagonalOf,
    DiagonalMatrix,
    vec_rows,
    vec_cols,
)


def tree(e: Any) -> Tree:
    """Return an expression as a tree: an integer, or [name of its class, argument, ...].

    >>> from sympy import Symbol, sqrt
    >>> tree(1 / sqrt(Symbol("d")))
    ['Pow', ['Symbol', 'd'], ['Rational', -1, 2]]
    """
    kind = type(e)
    if isinstance(e, sympy.Integer):
        return int(e)
    if isinstance(e, sympy.Rational):
        return ["Rational", int(e.p), int(e.q)]
    if isinstance(e, sympy.Symbol):
        return ["Symbol", key(e)]
    if kind in PLAIN:
        return [kind.__name__, *map(tree, e.args)]
    if kind is sympy.Inverse:
        return ["MatPow", tree(e.base), -1]
    if kind is sympy.MatrixSymbol:
        return [kind.__name__, e.name]
    if kind is FamilyMember:
        return [kind.__name__, e.family.name, *map(_index, e.indices)]
    if kind is Activation:
        return [kind.__name__, e.name, tree(e.argument)]
    if kind is OneHot:
        return [kind.__name__, _index(e.args[0]), tree(e.args[1])]
    if kind is MatrixElement:
        return [kind.__name__, tree(e.args[0]), *map(_index, e.args[1:])]
    if kind is sympy.KroneckerDelta:
        return [kind.__name__, *map(_index, e.args[:2]), tree(sympy.expand(e.args[2][1] + 1))]
    if kind in (HeadSum, ConcatHeads, StackHeads):
        return [kind.__name__, tree(e.body), *_limits(e.limits)]
    if kind is LayerProduct:
        return [kind.__name__, tree(e.body), *_limits([(e.index, e.count)]), e.reverse]
    if kind is OrderSum:
        limit = _limits([(e.index, e.count)])
        return [kind.__name__, tree(e.body), *limit, tree(e.order), e.reverse]
    if kind is sympy.Sum:
        return [kind.__name__, tree(e.function), *_limits(_ranges(e))]
    if kind is sympy.ImmutableDenseMatrix:
        return [kind.__name__, e.rows, e.cols, *map(tree, e)]
    if kind is sympy.BlockMatrix:
        height, width = e.blockshape
        return [
            kind.__name__,
            *[[tree(e.blocks[i, j]) for j in range(width)] for i in range(height)],
        ]
    raise LanguageError(f"a certificate has no tree for {kind.__name__} yet, in {e!s:.100}")


def _index(index: Any) -> Any:
    return int(index) if isinstance(index, int | sympy.Integer) else key(index)


def _limits(limits: Limits) -> list[Tree]:
    return [[key(index), tree(sympy.sympify(count))] for index, count in limits]


def _ranges(e: sympy.Sum) -> list[tuple[sympy.Symbol, Any]]:
    """Return the limits of a Sum as (index, count), the outermost first; SymPy has it last."""
    return [(index, sympy.expand(last + 1)) for index, _, last in reversed(e.limits)]


def _number_tree(value: Coefficient) -> Tree:
    """Return a coefficient as a tree."""
    if isinstance(value, int):
        return value
    if isinstance(value, Fraction):
        return ["Rational", value.numerator, value.denominator]

    def of(polynomial: scalars.Polynomial) -> Tree:
        terms = [
            ["Mul", _number_tree(factor), *[_power_tree(*leg) for leg in monomial]]
            for monomial, factor in polynomial.items()
        ]
        return ["Add", *terms]

    return ["Mul", of(value.numerator), ["Pow", of(value.denominator), -1]]


def _divided(tree: Tree, divisors: Sequence[Coefficient]) -> Tree:
    if not divisors:
        return tree
    return ["Mul", tree, *[["Pow", _number_tree(divisor), -1] for divisor in divisors]]


def _power_tree(name: str, exponent: scalars.Number) -> Tree:
    base = int(name[1:]) if name.startswith("#") else ["Symbol", name]
    return ["Pow", base, _number_tree(exponent)]


# -- the parts of a certificate --------------------------------------------------------------------


def _hypothesis(given: Any) -> tuple[Any, Any, Limits]:
    if isinstance(given, sympy.Eq):
        return given.lhs, given.rhs, ()
    lhs, rhs, *limits = given
    return sympy.sympify(lhs), sympy.sympify(rhs), limits[0] if limits else ()


def _declarations(signature: Signature, uses: Sequence[Use]) -> dict[str, Any]:
    known = signature.scalars
    named = {name: "positive" if known[name].is_positive else "real" for name in known}
    for use in uses:
        for name in scalars.names(_coefficient(use)) - set(signature.sizes):
            named.setdefault(name, "real")
    return {
        "sizes": list(signature.sizes),
        "scalars": named,
        "tensors": {
            name: [list(map(tree, getattr(tensor, "counts", ()))), *map(tree, tensor.shape)]
            for name, tensor in signature.tensors.items()
        },
    }


def _indices(*equations: tuple[Any, Any, Limits]) -> dict[str, Tree]:
    """Return the free indices with their counts, without those that a hypothesis holds for."""
    found: dict[str, Tree] = {}
    for lhs, rhs, limits in equations:
        every = {key(index) for index, _ in limits}
        for name, (_, count) in inspect(lhs, rhs).indices.items():
            if name not in every:
                found[name] = tree(count)
    return found


def _coefficient(use: Use) -> Coefficient:
    value = use.coefficient
    return scalars.from_sympy(value) if isinstance(value, sympy.Basic) else value


def _splits(reading: Interpretation) -> list[Tree]:
    """Return each split as [size, its parts]; a part that is cut is ["|", parts, parts, ...]."""
    sizes = reading.dimensions.expressions

    def shown(legs: Legs) -> list[Tree]:
        return [
            ["|", *map(shown, leg)] if isinstance(leg, Blocks) else tree(sizes[leg]) for leg in legs
        ]

    table = reading.dimensions._split
    return [[tree(sizes[whole]), shown(parts)] for whole, parts in table.items()]


def _defined(reading: Interpretation | None, uses: Sequence[Use]) -> dict[str, Tree]:
    """Return what each box that is no tensor stands for, of those that the uses speak of."""
    if reading is None:
        return {}
    sizes = reading.dimensions
    boxes = [box[0] for use in uses for box in use.context.boxes if box[0] != HOLE]
    labels = [reading.labels[number] for number in boxes]
    spoken = {label.name for label in labels}
    spoken |= {use.fact[1] for use in uses if use.fact[0] == "inverse"}
    found = reading.inverses.items()
    defined = {name: [["MatPow", tree(e), -1]] for name, (_, e) in found if name in spoken}
    for known in reading.applied:
        if known.name in spoken:
            limits = [[_held(name), tree(sizes.expressions[sort])] for name, sort in known.names]
            defined[known.name] = [tree(known.stated), *limits]
    for label in filter(is_causal_mask, labels):
        defined[label.name] = [["CausalMask", tree(sizes.total(label.rows))]]
    return defined


def _multiple(use: Multiple, signature: Signature, shapes: Sequence[Any]) -> dict[str, Any]:
    """Return a multiple of an entry as data: every box and the hole lie in blocks of one value.

    `shapes` are those of the claim and of the hypotheses.
    """
    rows, cols = _blocks(use.entry, shapes[0])
    own = _blocks(use.given_entry, shapes[1 + use.given])
    numbers, boxes = [], [["hole", [*own[0], *own[1]]]]
    for factor in use.factors:
        name, bracket, place = factor.removesuffix("]").rpartition("[")
        if not bracket:
            numbers.append(["Symbol", factor])
            continue
        *indices, row, col = map(int, place.split(","))
        legs = _blocks((row, col), signature.tensors[name].shape)
        boxes.append(["box", name, indices, [], *[[-1 - mark for mark in leg] for leg in legs]])
    return {
        "fact": ["given", use.given, *use.given_at],
        "at": list(use.at),
        "coefficient": ["Mul", _number_tree(use.coefficient), *numbers],
        "context": {
            "rows": rows,
            "cols": cols,
            "named": [],
            "boxes": boxes,
            "sorts": [],
        },
    }


def _blocks(place: Sequence[int], shape: Any) -> list[list[int]]:
    """Return the marks of a row and of a column; none where there is only one, or for a scalar."""
    return [[-1 - k] if size != 1 else [] for k, size in zip(place, shape, strict=True)] or [[], []]


def _use(use: Use, reading: Interpretation | None) -> dict[str, Any]:
    """Return a use as data: only live wires, the boxes by name."""
    if reading is None:
        raise RuleError("uses come with the Interpretation that their contexts were made with")
    d = use.context
    live = [wire for wire, sort in enumerate(d.sorts) if sort != DEAD]
    new = {wire: k for k, wire in enumerate(live)}
    applied = {known.name: known for known in reading.applied}
    named = [[_held(name), new[wire]] for name, wire in d.named]
    sorts = [d.sorts[wire] for wire in live]

    def legs(wires: Sequence[Wire]) -> list[int]:
        return [new[w] if w >= 0 else w for w in wires]

    boxes: list[Tree] = []
    for number, *wires in d.boxes:
        if number == HOLE:
            boxes.append(["hole", legs(wires)])
        else:
            label = reading.labels[number]
            branches, indices, mine = (
                (label.row_branch, label.col_branch),
                label.indices,
                legs(wires),
            )
            known = applied.get(label.name)
            if known is not None:  # on all legs of what is stated, in order
                branches, indices = (known.row, known.col), (None,) * len(known.names)
                slots = dict(zip(known.kept, mine, strict=False))
                ends = [s for branch in branches for s in branch if s >= 0]
                count = len(ends) - len(known.features)
                every = [*ends[:count], *[sort for _, sort in known.names]]
                for place, sort in enumerate(every):
                    if place not in slots:  # it does not depend on it, so it may be held anywhere
                        slots[place] = len(sorts)
                        named.append([0, len(sorts)])
                        sorts.append(sort)
                order = [*range(count, len(every)), *range(count)]
                mine = [*[slots[place] for place in order], *mine[len(known.kept) :]]
            marks = [[-1 - mark for mark in branch if mark < 0] for branch in branches]
            boxes.append(["box", label.name, list(indices), mine, *marks])
    sizes = reading.dimensions.expressions
    return {
        "fact": list(use.fact),
        "coefficient": _divided(_number_tree(_coefficient(use)), use.divisors),
        "context": {
            "rows": legs(d.rows),
            "cols": legs(d.cols),
            "named": named,
            "boxes": boxes,
            "sorts": [tree(sizes[sort]) for sort in sorts],
        },
    }


def _held(name: str) -> Any:
    value, at, _ = name.partition("@")
    return int(value) if at else name
