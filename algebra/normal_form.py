"""The normal form of an expression: a linear combination of tensor diagrams.

Each diagram has three equivalent notations: the drawing, the einsum that evaluates it, and the sum
over indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from string import ascii_letters
from typing import Any

import sympy

from otimes.algebra.diagrams.diagram import Diagram, Wire
from otimes.algebra.diagrams.sums import DiagramSum, Label, is_affine
from otimes.algebra.draw.svg import draw
from otimes.algebra.language import coefficients
from otimes.algebra.language.binders import standardised
from otimes.algebra.language.coefficients import Coefficient
from otimes.algebra.language.index_arithmetic import without_arithmetic
from otimes.algebra.language.latex import latex, typeset_name
from otimes.algebra.language.positions import kind_of
from otimes.algebra.language.shapes import inspect, with_ranges
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.sympy_forms import in_language
from otimes.algebra.reading.affine import index_texts
from otimes.algebra.reading.constants import (
    constant_tex,
    constant_text,
    is_causal_mask,
    is_constant,
    mask_size,
)
from otimes.algebra.reading.interpretation import Interpretation
from otimes.algebra.reading.read import read

POSITIONS, HEADS, FEATURES = "ijklpqrstuvw", "hgf", "abcdexyz"


class NormalForm:
    """A sum of diagrams: `.terms` are pairs (coefficient, diagram), `.labels` name the boxes.

    Two linear expressions are equal for all sizes if and only if their normal forms, computed
    together, have the same terms; `decide` tests this. Labels are numbered in order of occurrence,
    so normal forms that are computed separately may number them differently.
    """

    def __init__(self, reading: Interpretation, value: DiagramSum) -> None:
        self.labels: tuple[Label, ...] = tuple(reading.labels)
        self.terms: tuple[tuple[Coefficient, Diagram], ...] = tuple(
            (coefficient, diagram) for diagram, coefficient in value.terms.items()
        )
        stated = {known.name: known.stated for known in reading.applied}
        stated |= {name: sympy.Inverse(e) for name, (_, e) in reading.inverses.items()}
        self._stated: dict[str, sympy.Basic] = stated
        # what the sorts of the wires stand for
        self.sizes: tuple[sympy.Expr, ...] = tuple(reading.dimensions.expressions)

    def einsum(self) -> str:
        """Return the sum as NumPy calls, one einsum a term; `eye` and `ones` stand for bare legs.

        >>> from sympy import MatrixSymbol, Symbol
        >>> n = Symbol("n")
        >>> A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
        >>> normal_form(A * B + A).einsum()
        "einsum('ab->ab', A) + einsum('ac,cb->ab', A, B)"
        """
        terms = sorted(self.terms, key=lambda term: len(term[1].boxes))
        return " + ".join(self._einsum(*term) for term in terms) or "0"

    def latex(self) -> str:
        """Return the entry of the expression in index notation, as TeX."""
        terms = sorted(self.terms, key=lambda term: len(term[1].boxes))
        return " + ".join(self._indexed(*term) for term in terms).replace("+ -", "- ") or "0"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def _repr_svg_(self) -> str:
        return draw(self.terms, self.labels, self.sizes)

    def __len__(self) -> int:
        return len(self.terms)

    def __repr__(self) -> str:
        return f"<normal form: {self.einsum()}>"

    def _einsum(self, coefficient: Coefficient, diagram: Diagram) -> str:
        fresh = iter(_letters())
        letter = {wire: next(fresh) for wire in range(len(diagram.sorts))}
        inputs = ["".join(letter[w] for w in box[1:]) for box in diagram.boxes]
        operands = [self._operand(self.labels[box[0]]) for box in diagram.boxes]
        touched = {wire for box in diagram.boxes for wire in box[1:]}
        output = ""
        met: set[Wire] = set()
        named = [wire for _, wire in diagram.named]
        for wire in (*named, *_wires(diagram.rows), *_wires(diagram.cols)):
            size = self.sizes[diagram.sorts[wire]]
            if wire in met:  # one wire on two legs
                twin = next(fresh)
                inputs.append(letter[wire] + twin)
                operands.append(f"eye({size})")
                output += twin
            else:
                output += letter[wire]
                if wire not in touched:
                    inputs.append(letter[wire])
                    operands.append(f"ones({size})")
            met.add(wire)
        call = f"einsum('{','.join(inputs)}->{output}'{''.join(', ' + o for o in operands)})"
        if not inputs:
            return str(coefficients.to_sympy(coefficient))
        plain = not isinstance(coefficient, coefficients.Scalar) and coefficient == 1
        return call if plain else f"({coefficients.to_sympy(coefficient)})*{call}"

    @staticmethod
    def _operand(label: Label) -> str:
        name = f"tri({mask_size(label)})" if is_causal_mask(label) else label.name
        name = constant_text(label) if kind_of(label.name) else name
        name += _blocks(label)
        if is_affine(label):
            return f"{name}[{', '.join(index_texts(label))}]"
        if not label.indices or all(i is None for i in label.indices):
            return name
        return f"{name}[{', '.join(':' if i is None else str(i) for i in label.indices)}]"

    def _indexed(self, coefficient: Coefficient, diagram: Diagram) -> str:
        name = self._wire_names(diagram)
        ends = (*_wires(diagram.rows), *_wires(diagram.cols))
        outside = {*ends, *[wire for _, wire in diagram.named]}
        inside = [wire for wire in range(len(diagram.sorts)) if wire not in outside]
        factors = [self._factor(box, name) for box in diagram.boxes]
        seen: set[Wire] = set()
        for position, wire in enumerate(ends):
            if wire in seen:
                factors.append(rf"\delta_{{{name[wire]}\,{name[-1 - position]}}}")
            seen.add(wire)
        sums = rf"\sum_{{{','.join(name[w] for w in inside)}}} " if inside else ""
        number = "" if _is_one(coefficient) else latex(coefficients.to_sympy(coefficient)) + r"\, "
        return number + sums + (r"\, ".join(factors) or "1")

    def _factor(self, box: tuple[int, ...], name: dict[Wire, str]) -> str:
        label = self.labels[box[0]]
        wires = iter(box[1:])
        legs = len(_wires(label.row_branch)) + len(_wires(label.col_branch))
        free = len(box) - 1 - legs
        above = [name[next(wires)] for _ in range(free)]
        fixed = [str(i + 1) for i in label.indices if isinstance(i, int)] + index_texts(label)
        below = "".join(f"{name[w]}" + r"\," for w in wires).removesuffix(r"\,")
        upper = ",".join(fixed + above)
        stated = self._stated.get(label.name)
        text = typeset_name(label.name) if stated is None else latex(stated)
        text = (constant_tex(label) if is_constant(label) else text) + _blocks(label)
        text = rf"({text})" if ("_" in text or stated is not None) and below else text
        return text + (rf"^{{{upper}}}" if upper else "") + (rf"_{{{below}}}" if below else "")

    def _wire_names(self, diagram: Diagram) -> dict[Wire, str]:
        """Name wires by what they run over: positions i, j, …, heads h, g, …, features a, b, …

        A leg that shares its wire with an earlier leg gets a name of its own, keyed -1 - position.
        """
        pools = {pool: iter(_letters(pool)) for pool in (POSITIONS, HEADS, FEATURES)}
        name: dict[Wire, str] = {w: index.partition("@")[0] for index, w in diagram.named}
        taken = set(name.values())

        def fresh(wire: Wire) -> str:
            size = str(self.sizes[diagram.sorts[wire]])
            pool = HEADS if size[0] in "HL" else POSITIONS if size[0] in "nmp" else FEATURES
            return next(letter for letter in pools[pool] if letter not in taken)

        for position, wire in enumerate((*_wires(diagram.rows), *_wires(diagram.cols))):
            if wire in name:
                name[-1 - position] = fresh(wire)
            else:
                name[wire] = fresh(wire)
        for wire in range(len(diagram.sorts)):
            if wire not in name:
                name[wire] = fresh(wire)
        return name


def normal_form(expression: Any) -> NormalForm:
    """Return the normal form of an expression: the sum of diagrams that decides equality.

    Raises ShapeError or LanguageError as `decide` does.
    """
    return normal_forms(expression)[0]


def normal_forms(*expressions: Any) -> list[NormalForm]:
    """Return the normal forms of expressions that are read together, so that equal ones are equal.

    Raises ShapeError, LanguageError or Undecided as reading does.
    """
    known = [in_language(e) if isinstance(e, sympy.Basic) else e for e in expressions]
    clean, signature = without_arithmetic(_inspected, known)
    reading, values = read(signature, *[[with_ranges(e, signature)] for e in clean])
    return [NormalForm(reading, value) for (value,) in values]


def _inspected(expressions: Sequence[Any], _: Any) -> tuple[list[Any], Signature]:
    """Return expressions with unique names, and their signature."""
    clean = standardised(expressions).sides
    return clean, inspect(*clean)


def _wires(legs: tuple[int, ...]) -> tuple[Wire, ...]:
    """Return the wires among legs, without the marks of blocks."""
    return tuple([wire for wire in legs if wire >= 0])


def _blocks(label: Label) -> str:
    """Return which block of a tensor that is cut in blocks: `⟨0,1⟩` for row block 0, column 1."""
    marks = [-1 - item for item in (*label.row_branch, *label.col_branch) if item < 0]
    return f"⟨{','.join(map(str, marks))}⟩" if marks else ""


def _is_one(coefficient: Coefficient) -> bool:
    return not isinstance(coefficient, coefficients.Scalar) and coefficient == 1


def _letters(pool: str = "") -> Iterator[str]:
    """Yield names for wires: those of a pool and then the same with numbers, or einsum's own."""
    for number in count():
        if not pool:
            # beyond z and Z, what opt_einsum goes on with; NumPy's einsum takes no more
            yield ascii_letters[number] if number < len(ascii_letters) else chr(number + 140)
            continue
        for letter in pool:
            yield f"{letter}_{{{number}}}" if number else letter
