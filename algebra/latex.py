"""How expressions of the language are typeset: SymPy's printer, taught our classes.

`latex(expression)` keeps brackets and order as stated, and writes a member of a family with its
indices above (`W_{O}^{l,h}`), transposes included, so that no formula has two superscripts.
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.printing.latex import LatexPrinter, greek_letters_set

from algebra.binders import substituted
from algebra.functions import KNOWN
from algebra.language import (
    ConcatHeads,
    Family,
    FamilyMember,
    HeadSum,
    LayerProduct,
    OneHot,
    OrderSum,
    StackHeads,
    vec_cols,
    vec_rows,
)
from algebra.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax

CAPITALS = ["Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega"]
OF_MATRICES = (sympy.Trace, MatrixElement, sympy.Sum, sympy.KroneckerDelta)
UNICODE = {"Π": "Pi", "Σ": "Sigma", "Ω": "Omega"}  # what induction calls the first layers
GREEK = {*greek_letters_set, *CAPITALS}


def latex(expression: sympy.Basic) -> str:
    r"""Return the TeX of an expression, as stated.

    >>> latex(sympy.MatrixSymbol("W_O", 2, 2).T)
    'W_{O}^{\\top}'
    """
    return str(_Printer().doprint(expression))


def tex_within(expression: sympy.Basic, printer: LatexPrinter) -> str:
    """Return the TeX of one of our classes for any printer: ours knows what stands around it."""
    own = printer if isinstance(printer, _Printer) else _Printer()
    return str(getattr(own, f"_print_{type(expression).__name__}")(expression))


class _Printer(LatexPrinter):
    def __init__(self) -> None:
        super().__init__()
        self.bound: list[Any] = []  # the indices of the sums around

    def _print_Symbol(self, e: sympy.Symbol, style: str = "plain") -> str:
        return _name(e.name)

    def _print_MatrixSymbol(self, e: Any, **_: Any) -> str:
        return _name(e.name)

    def _print_Identity(self, e: Any) -> str:
        return rf"I_{{{self._print(e.shape[0])}}}"

    def _print_OneMatrix(self, e: Any) -> str:
        rows, cols = (self._print(d) for d in e.shape)
        return (
            rf"\mathbf{{1}}_{{{rows}}}"
            if cols == "1"
            else rf"\mathbf{{1}}_{{{rows} \times {cols}}}"
        )

    def _print_FamilyMember(self, e: FamilyMember) -> str:
        return rf"{_name(e.family.name)}^{{{self._indices(e)}}}"

    def _print_Transpose(self, e: Any) -> str:
        inner = e.args[0]
        if isinstance(inner, FamilyMember):
            return rf"{_name(inner.family.name)}^{{{self._indices(inner)}\,\top}}"
        return rf"{self._bracket(inner)}^{{\top}}"

    _print_Adjoint = _print_Transpose

    def _print_KroneckerProduct(self, e: Any) -> str:
        return r" \otimes ".join(
            rf"\left({self._print(a)}\right)"
            if isinstance(a, sympy.MatAdd | HeadSum | sympy.KroneckerProduct)
            else self._print(a)
            for a in e.args
        )

    def _print_HadamardProduct(self, e: Any) -> str:
        return r" \circ ".join(
            self._print(a) if a.is_Symbol or isinstance(a, FamilyMember) else self._bracket(a)
            for a in e.args
        )

    def _print_MatMul(self, e: Any) -> str:
        parts = []
        for k, factor in enumerate(e.args):
            text = self._print(factor)
            last = k == len(e.args) - 1
            open_right = isinstance(factor, HeadSum) and not last
            loose = isinstance(
                factor,
                sympy.MatMul
                | sympy.MatAdd
                | sympy.Add
                | sympy.KroneckerProduct
                | sympy.HadamardProduct,
            )
            if isinstance(factor, sympy.Integer) and factor == -1 and not last:
                parts.append("-")
            elif loose or open_right:
                parts.append(rf"\left({text}\right)")
            else:
                parts.append(text)
        return r" \, ".join(parts).replace(r"- \, ", "-")

    def _print_MatAdd(self, e: Any) -> str:
        text = ""
        for k, term in enumerate(e.args):
            part = self._print(term)
            text += part if not k else (f" - {part[1:]}" if part.startswith("-") else f" + {part}")
        return text

    def _print_Mul(self, e: Any) -> str:
        """Keep the order of a product of traces or entries; SymPy's is as good for the rest."""
        if not e.has(*OF_MATRICES):
            return str(super()._print_Mul(e))
        parts = [
            rf"\left({self._print(x)}\right)"
            if isinstance(x, sympy.Add | sympy.Mul)
            or (isinstance(x, sympy.Sum) and k != len(e.args) - 1)
            else self._print(x)
            for k, x in enumerate(e.args)
        ]
        return r" \, ".join(parts).replace(r"-1 \, ", "-")

    def _print_Add(self, e: Any, order: Any = None) -> str:
        if not e.has(*OF_MATRICES):
            return str(super()._print_Add(e, order=order))
        return " + ".join(self._print(x) for x in e.args).replace("+ -", "- ")

    def _print_Trace(self, e: Any) -> str:
        return rf"\operatorname{{tr}}\left({self._print(e.args[0])}\right)"

    def _print_MatrixElement(self, e: Any) -> str:
        matrix, i, j = e.args
        below = rf"_{{{self._index(i)},{self._index(j)}}}"
        if isinstance(matrix, FamilyMember):
            name = _name(matrix.family.name)
            member = rf"{name}^{{{self._indices(matrix)}}}"
            return rf"\left({member}\right){below}" if "_" in name else f"{member}{below}"
        text = self._print(matrix)
        plain = isinstance(matrix, sympy.MatrixSymbol) and "_" not in text
        return f"{text}{below}" if plain else rf"\left({text}\right){below}"

    def _print_KroneckerDelta(self, e: Any, exp: Any = None) -> str:
        delta = rf"\delta_{{{self._index(e.args[0])},{self._index(e.args[1])}}}"
        return delta if exp is None else rf"{delta}^{{{exp}}}"

    def _print_Sum(self, e: Any) -> str:
        """Count from 1, as papers do."""
        signs = " ".join(
            rf"\sum_{{{self._print(index)}=1}}^{{{self._print(last + 1)}}}"
            for index, _, last in reversed(e.limits)
        )
        body = self._print(e.args[0])
        return (
            rf"{signs} \left({body}\right)"
            if isinstance(e.args[0], sympy.Add)
            else (f"{signs} {body}")
        )

    def _print_BlockDiagMatrix(self, e: Any) -> str:
        return rf"\operatorname{{diag}}\left({', '.join(map(self._print, e.args))}\right)"

    _print_DiagMatrix = _print_BlockDiagMatrix

    def _print_HeadSum(self, e: HeadSum) -> str:
        orders = {part.order for part in e.body.atoms(OrderSum)}
        signs = " ".join(
            rf"\sum_{{{self._print(i)}=0}}^{{{self._print(count - 1)}}}"
            if i in orders  # an order is a number, and not counted from one
            else rf"\sum_{{{self._print(i)}=1}}^{{{self._print(count)}}}"
            for i, count in e.limits
        )
        bound = [index for index, _ in e.limits if index not in orders]
        self.bound += bound
        body = self._print(e.body)
        del self.bound[len(self.bound) - len(bound) :]
        return (
            rf"{signs} \left({body}\right)"
            if isinstance(e.body, sympy.MatAdd)
            else f"{signs} {body}"
        )

    def _print_ConcatHeads(self, e: ConcatHeads) -> str:
        first, last = self._ends(e)
        return rf"\begin{{bmatrix}} {first} & \cdots & {last} \end{{bmatrix}}"

    def _print_StackHeads(self, e: StackHeads) -> str:
        first, last = self._ends(e)
        return rf"\begin{{bmatrix}} {first} \\ \vdots \\ {last} \end{{bmatrix}}"

    def _print_vec_rows(self, e: vec_rows) -> str:
        return rf"\operatorname{{vec}}_r\!\left({self._print(e.args[0])}\right)"

    def _print_vec_cols(self, e: vec_cols) -> str:
        return rf"\operatorname{{vec}}_c\!\left({self._print(e.args[0])}\right)"

    def _print_OneHot(self, e: OneHot) -> str:
        return rf"e_{{{self._print(e.args[0])}}}"

    def _print_LayerProduct(self, e: LayerProduct) -> str:
        """The arrow says on which side the later layer is; below layer l there are l - 1."""
        count = e.count - 1 if e.count in self.bound else e.count
        if e.index not in e.body.free_symbols:  # all layers are alike
            body = self._print(e.body)
            if not isinstance(e.body, sympy.MatrixSymbol):
                body = rf"\left({body}\right)"
            return rf"{body}^{{{self._print(count)}}}"
        ends = [f"{self._print(e.index)}=1", self._print(count)]
        if not e.reverse:
            ends = [f"{self._print(e.index)}={ends[1]}", "1"]
        return rf"\prod_{{{ends[0]}}}^{{{ends[1]}}} {self._bracket(e.body)}"

    def _print_OrderSum(self, e: OrderSum) -> str:
        last = e.count - 1 if e.count in self.bound else e.count  # below layer l there are l - 1
        index, count, order = map(self._print, (e.index, last, e.order))
        ends = [rf"{index}_{{1}}", r"\cdots", rf"{index}_{{{order}}} \leq {count}"]
        members = [
            self._bracket(substituted(e.body, {e.index: sympy.Symbol(f"{e.index}_{at}")}))
            for at in ((1, order) if e.reverse else (order, 1))
        ]
        return rf"\sum_{{{' < '.join(ends)}}} {members[0]} \cdots {members[1]}"

    def _print_CausalMask(self, e: CausalMask) -> str:
        return rf"M_{{{self._print(e.args[0])}}}"

    def _print_RowSoftmax(self, e: RowSoftmax) -> str:
        mask = "" if e.mask is None else rf"_{{{self._print(e.mask)}}}"
        return rf"\operatorname{{softmax}}{mask}\!\left({self._print(e.args[0])}\right)"

    def _print_Activation(self, e: Activation) -> str:
        known = KNOWN.get(e.name)
        name = _name(e.name) if known is None else known.tex
        return rf"{name}\!\left({self._print(e.argument)}\right)"

    def _print_RMSNorm(self, e: RMSNorm | LayerNorm) -> str:
        eps = "" if e.eps == 0 else rf"_{{{self._print(e.eps)}}}"
        argument = self._print(e.args[0])
        return rf"\operatorname{{{type(e).__name__}}}{eps}\!\left({argument}\right)"

    _print_LayerNorm = _print_RMSNorm

    def _print_Family(self, e: Family) -> str:
        return _name(e.name)

    def _index(self, index: Any) -> str:
        """Return an index as the papers count it, from 1."""
        return str(int(index) + 1) if isinstance(index, sympy.Integer) else str(self._print(index))

    def _indices(self, e: FamilyMember) -> str:
        return ",".join(map(self._index, e.indices))

    def _ends(self, e: ConcatHeads | StackHeads) -> tuple[str, str]:
        first = {i: sympy.Symbol("1") for i, _ in e.limits}
        # A name of which SymPy knows nothing: it would refuse the entry beyond the last one.
        last = {i: sympy.Symbol(str(count)) for i, count in e.limits}
        return self._print(substituted(e.body, first)), self._print(substituted(e.body, last))

    def _bracket(self, e: Any) -> str:
        text = self._print(e)
        atomic = isinstance(e, sympy.MatrixSymbol | sympy.Symbol | FamilyMember | sympy.Identity)
        return text if atomic else rf"\left({text}\right)"


def _name(name: str) -> str:
    """Return a name typeset: one subscript, words upright (`d_head`), the rest italic."""
    plain = name.rstrip("′")
    primes = "'" * (len(name) - len(plain))
    base, *parts = plain.split("_")
    base = UNICODE.get(base, base)
    if base in GREEK:
        base = rf"\{base}"
    elif len(base) > 1 and base.islower():
        base = rf"\mathrm{{{base}}}"
    if not parts:
        return base + primes
    words = [len(p) > 1 and p.islower() and p.isidentifier() for p in parts]
    below = ",".join(
        rf"\mathrm{{{p}}}" if word else p for p, word in zip(parts, words, strict=True)
    )
    return rf"{base}_{{{below}}}{primes}"
