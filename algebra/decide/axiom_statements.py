"""The statements of the axioms: `axioms.json` as SymPy equations, for values of their symbols."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from otimes.algebra.language.constants import PI
from otimes.algebra.language.latex import latex
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import (
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
)
from otimes.algebra.language.positions import KINDS

Equation = tuple[Any, Any]
LAYER = sympy.Symbol("l", integer=True)  # the index of a power, which is a product of equal layers
Values = Callable[[Any], Iterator[tuple[int, dict[str, Any]]]]
DATA = json.loads(Path(__file__).parents[1].joinpath("axioms.json").read_text(encoding="utf-8"))
STATEMENTS = DATA["axioms"] | DATA["readings"]


@dataclass(frozen=True, slots=True)
class Instance:
    """A form of an axiom for values of its symbols: an equation, and its premises.

    `signs` are expressions that must be positive, nonnegative or nonzero.
    """

    axiom: str
    form: int
    values: dict[str, Any]
    lhs: Any
    rhs: Any
    premises: tuple[Equation, ...]
    signs: tuple[tuple[Any, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Axiom:
    """An axiom with its source and its general statement.

    `values_of` yields (form, values of its symbols) for a function that occurs in a claim, or for a
    pair of functions where `of_pairs`; a reading, which is built into the normal form, has none.
    """

    name: str
    says: str
    source: str
    example: Instance
    values_of: Values | None = None
    of_pairs: bool = False

    def of(self, subject: Any) -> Iterator[Instance]:
        """Yield the instances of the axiom for a function, or for a pair of functions."""
        if self.values_of is not None and isinstance(subject, tuple) == self.of_pairs:
            for form, values in self.values_of(subject):
                yield instance(self.name, form, values)

    def to_json(self) -> dict[str, Any]:
        """Return the axiom as plain data: name, description, source, and statement in TeX."""
        said = self.example
        signs = [f"{latex(e)} {_COMPARED[sign]}" for e, sign in said.signs]
        return {
            "name": self.name,
            "says": self.says,
            "source": self.source,
            "tex": f"{latex(said.lhs)} = {latex(said.rhs)}",
            "premises": [f"{latex(lhs)} = {latex(rhs)}" for lhs, rhs in said.premises] + signs,
        }


_COMPARED = {"positive": "> 0", "nonnegative": r"\ge 0", "nonzero": r"\ne 0"}  # entry by entry

_MADE: dict[str, Callable[..., Any]] = {
    "MatMul": matmul,
    "MatAdd": matadd,
    "MatPow": lambda e, k: sympy.Inverse(e) if k == -1 else sympy.Identity(e.shape[0]),
    "Mul": sympy.Mul,
    "Rational": sympy.Rational,
    "Pow": sympy.Pow,
    "pi": lambda: PI,
    "HadamardProduct": lambda *e: sympy.HadamardProduct(*e, evaluate=False),
    "BlockMatrix": lambda *lines: sympy.BlockMatrix([list(line) for line in lines]),
    "Transpose": sympy.Transpose,
    "HadamardPower": sympy.HadamardPower,
    "DiagMatrix": DiagMatrix,
    "DiagonalOf": DiagonalOf,
    "Identity": sympy.Identity,
    "OneMatrix": sympy.OneMatrix,
    "ZeroMatrix": sympy.ZeroMatrix,
    "OneHot": OneHot,
    "CausalMask": CausalMask,
    **{kind.__name__: kind for kind in KINDS},
    "Add": sympy.Add,
    "LayerProduct": lambda body, many, reverse: LayerProduct(body, (LAYER, many), bool(reverse)),
    "RowSoftmax": RowSoftmax,
    "Activation": Activation,
    "RMSNorm": RMSNorm,
    "LayerNorm": LayerNorm,
}


def _expression(tree: Any, symbols: dict[str, Any]) -> Any:
    """Return a schema of `axioms.json` as an expression in these symbols."""
    if isinstance(tree, int | str):
        return sympy.sympify(tree) if isinstance(tree, int) else tree
    kind, *args = tree
    if kind == "?":
        return symbols[args[0]]
    if isinstance(kind, list):  # a row of blocks
        return [_expression(part, symbols) for part in tree]
    return _MADE[kind](*[_expression(arg, symbols) for arg in args])


def instance(name: str, form: int, values: dict[str, Any]) -> Instance:
    """Return a form of an axiom for these values of its symbols."""
    schema = STATEMENTS[name]["forms"][form]
    symbols = {
        length: size
        for matrix, shape in schema["matrices"].items()
        for length, size in zip(shape, values[matrix].shape, strict=True)
    } | values
    lhs, rhs = (_expression(schema[side], symbols) for side in ("lhs", "rhs"))
    premises = [
        (_expression(x, symbols), _expression(y, symbols)) for x, y in schema.get("premises", ())
    ]
    signs = [(symbols[symbol], sign) for symbol, sign in schema.get("signs", {}).items()]
    return Instance(name, form, values, lhs, rhs, tuple(premises), tuple(signs))


def example(name: str) -> Instance:
    """Return the general statement of an axiom."""
    form = STATEMENTS[name]["forms"][0]
    lengths = [n for shape in form["matrices"].values() for n in shape if isinstance(n, str)]
    symbols: dict[str, Any] = {
        n: sympy.Symbol(n, integer=True, positive=True) for n in (*form.get("sizes", ()), *lengths)
    }
    of = {"g": form.get("functions", ["g"])[0], "i": sympy.Symbol("i", integer=True)}
    of |= {n: sympy.Symbol("epsilon", positive=True) for n in ("e", "eps")}
    of["c"] = sympy.Symbol("c", positive=True)
    symbols |= {n: of[n] for n in form.get("others", ())}
    for matrix, shape in form["matrices"].items():
        symbols[matrix] = sympy.MatrixSymbol(matrix, *[symbols.get(n, n) for n in shape])
    return instance(name, 0, symbols)
