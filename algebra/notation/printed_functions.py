r"""Functions as the printers write them: masks and ε as arguments, activations by their names.

`softmax(S, M_n)` or `\operatorname{softmax}_{M_n}(S)`; `RMSNorm(X, eps)`, `LayerNorm(X)` or
`LN(X)`, without gain and bias; an activation of the language such as `gelu_tanh(X)`, or a letter
declared as a function, `g(X)`, acts entry by entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
from sympy import Transpose
from sympy.matrices.expressions.diagonal import DiagonalOf

from otimes.algebra.language.defined import LogSoftmax, LogSumExp
from otimes.algebra.language.functions import KNOWN
from otimes.algebra.language.linear import matmul
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.notation.dimensions import ONE, Shape
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import Apply
from otimes.algebra.notation.typed import FormulaShapeError, Typed

OF_MATRICES = ("exp", "log", "sin", "cos")
MASKED: dict[str, Any] = {
    "softmax": RowSoftmax,
    "logsoftmax": LogSoftmax,
    "logsumexp": LogSumExp,
}
NORMS: dict[str, Any] = {
    **dict.fromkeys(("RMSNorm", "rmsnorm"), RMSNorm),
    **dict.fromkeys(("LayerNorm", "layernorm", "LN"), LayerNorm),
}
ALONG = {
    **dict.fromkeys(("row", "rows"), "rows"),
    **dict.fromkeys(("col", "cols", "column", "columns"), "columns"),
}
FUNCTIONS = frozenset(KNOWN) | MASKED.keys() | NORMS.keys() | {"DiagonalOf", "sqrt"}


def printed_function(reader: Any, e: Apply, arguments: Sequence[Typed]) -> Typed | None:
    """Return the value of a function as the printers write it, or None where it is another."""
    if e.below or e.function.sup or e.function.marks or not all(each.known for each in arguments):
        return None
    base, sub = e.function.base, e.function.sub
    name = activation_of(e) or (base if base in reader.symbols.elementwise and not sub else None)
    if name is not None:
        return _activation(reader, name, arguments[0], e) if len(arguments) == 1 else None
    if not arguments or base not in {*MASKED, *NORMS, "DiagonalOf"} or len(sub) > 1:
        return None
    if base == "softmax" and len(sub) == 1 and sub[0].text in ALONG:
        return None  # it says along what, and no mask
    below = [reader.infer(reader._parsed(slot.text)) for slot in sub]
    first, others = arguments[0], [*arguments[1:], *below]
    if base in MASKED and len(others) == 1:
        return _masked(reader, MASKED[base], first, others[0], e)
    if base in NORMS and len(others) <= 1:
        return _norm(reader, NORMS[base], first, others, e)
    if base == "DiagonalOf" and not others:
        return _diagonal(reader, first, e)
    return None


def activation_of(e: Apply) -> str | None:
    r"""Return the name of an activation that a function is, by its text or its TeX."""
    below = "_".join(slot.text for slot in e.function.sub)
    text = f"{e.function.base}_{below}" if below else e.function.base
    if text in KNOWN:
        return text
    return next((name for name, known in KNOWN.items() if _tex(known.tex) == text), None)


def _tex(tex: str) -> str:
    r"""Return the TeX of a function as the name that it is read as: `GELU_\tanh`."""
    return tex.replace(r"\operatorname{", "").replace("}", "").replace("{", "")


def _activation(reader: Any, name: str, argument: Typed, e: Apply) -> Typed:
    if argument.shape is not None:
        return Typed(argument.shape, lambda: Activation(name, argument.build()), e.span)
    if name == "sqrt":
        return Typed(None, lambda: sympy.sqrt(argument.build()), e.span)
    if name in OF_MATRICES:
        raise NotationError(f"{name} of a number is not in the language", e.span)
    entry: Shape = (ONE, ONE)
    return Typed(entry, lambda: Activation(name, one_by_one(argument)), e.span)


def one_by_one(number: Typed) -> Any:
    """Return a number as the 1 × 1 matrix that has it as its entry."""
    return matmul(number.build(), sympy.Identity(1))


def _masked(reader: Any, cls: Any, scores: Typed, mask: Typed, e: Apply) -> Typed:
    shape = reader._needs_matrix(e, scores)
    fits = mask.shape is not None and all(map(reader.solver.unify, shape, mask.shape))
    if not fits:
        raise FormulaShapeError(
            f"the scores are {reader.solver.show_shape(shape)}, and their mask "
            f"{reader.solver.show_shape(mask.shape)}",
            e.span,
        )
    found: Shape = (shape[0], ONE) if cls is LogSumExp else shape
    return Typed(found, lambda: cls(scores.build(), mask.build()), e.span)


def _norm(reader: Any, cls: Any, argument: Typed, eps: Sequence[Typed], e: Apply) -> Typed:
    rows, cols = reader._needs_matrix(e, argument)

    def build() -> Any:
        added = [reader.as_scalar(each) for each in eps]
        if reader.solver.resolved(cols) == ONE and reader.solver.resolved(rows) != ONE:
            return Transpose(cls(Transpose(argument.build()), *added))
        return cls(argument.build(), *added)

    return Typed((rows, cols), build, e.span)


def _diagonal(reader: Any, argument: Typed, e: Apply) -> Typed:
    shape = reader._needs_matrix(e, argument)
    if not reader.solver.unify(*shape):
        raise FormulaShapeError("cannot take the diagonal of a matrix not square", e.span)
    return Typed((shape[0], ONE), lambda: DiagonalOf(argument.build()), e.span)
