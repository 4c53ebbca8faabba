"""The rules by which facts about an expression follow from facts about its arguments.

They are applied from the leaves up. Each handles one class of expression, and adds facts whose
premises are facts about its arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf

from otimes.algebra.facts import heads, nonlinear
from otimes.algebra.facts.fact import PROPERTIES, Fact
from otimes.algebra.facts.fact_set import TRIANGLES, FactSet, Known
from otimes.algebra.facts.hypotheses import MIRRORED
from otimes.algebra.facts.normalise import normalise, product, split, times, transposed
from otimes.algebra.facts.walk import Rules, Walk
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import OneHot, vec_cols, vec_rows
from otimes.algebra.language.nonlinear import CausalMask

LARGEST_FOR_NORMAL_FORM = 16  # nodes


# -- leaves --------------------------------------------------------------------------------------


def _identity(walk: Walk, e: Any, found: FactSet) -> None:
    found.add("identity", "by definition")


def _zero(walk: Walk, e: Any, found: FactSet) -> None:
    found.add("zero", "by definition")


def _ones(walk: Walk, e: Any, found: FactSet) -> None:
    rows, cols = e.shape
    found.add("rank_at_most", "all its rows are equal", (), sympy.S.One)
    found.add("nonnegative", "every entry is one")
    found.add("rows_sum_to", "every entry is one", (), cols)
    found.add("columns_sum_to", "every entry is one", (), rows)
    found.add("positive_semidefinite", "it is 1 1ᵀ")


def _one_hot(walk: Walk, e: Any, found: FactSet) -> None:
    found.add("orthonormal_columns", "a one-hot column")
    found.add("nonnegative", "a one-hot column")
    found.add("columns_sum_to", "a one-hot column", (), sympy.S.One)


def _explicit(walk: Walk, e: Any, found: FactSet) -> None:
    if not all(isinstance(entry, sympy.Rational) for entry in e):
        return
    matrix, (rows, cols) = sympy.Matrix(e), e.shape
    rule = "read off its entries"
    rank = matrix.rank()
    found.add("rank_at_most", rule, (), sympy.Integer(rank))
    sums = {"rows_sum_to": [sum(matrix[i, :]) for i in range(rows)]}
    sums["columns_sum_to"] = [sum(matrix[:, j]) for j in range(cols)]
    for name, values in sums.items():
        if len(set(values)) == 1:
            found.add(name, rule, (), sympy.sympify(values[0]))
    square = rows == cols
    holds = {
        "nonnegative": all(entry >= 0 for entry in matrix),
        "lower_triangular": square and matrix.is_lower,
        "upper_triangular": square and matrix.is_upper,
        "symmetric": square and matrix == matrix.T,
        "antisymmetric": square and matrix == -matrix.T,
        "projection": square and matrix * matrix == matrix,
        "orthonormal_columns": matrix.T * matrix == sympy.eye(cols),
        "orthonormal_rows": matrix * matrix.T == sympy.eye(rows),
        "invertible": square and rank == rows,
    }
    for name, is_true in holds.items():
        if is_true:
            found.add(name, rule)


# -- products ------------------------------------------------------------------------------------


def _mul(walk: Walk, e: Any, found: FactSet) -> None:
    scalar, factors = split(e)
    if scalar != 1:
        _scaled(walk, scalar, walk.known(product(sympy.S.One, factors)), found)
        return
    parts = [walk.known(factor) for factor in factors]
    found.keep("product", parts)
    for part in parts:
        rank = part["rank_at_most"]
        found.add("rank_at_most", "at most the rank of a factor", [rank], rank.value)
    found.sums("rows_sum_to", "row sums multiply in a product", parts, sympy.Mul)
    found.sums("columns_sum_to", "column sums multiply in a product", parts, sympy.Mul)
    for name, part in (("rows_sum_to", parts[-1]), ("columns_sum_to", parts[0])):
        if name in part and part[name].value == 0:
            end = "last" if name == "rows_sum_to" else "first"
            rule = f"the {end} factor {PROPERTIES[name].one.format(0)}"
            found.add(name, rule, [part[name]], sympy.S.Zero)
    _mirror(walk, factors, found)
    _sandwich(walk, factors, found)
    _commuting(walk, factors, parts, found)


def _scaled(walk: Walk, c: Any, part: Known, found: FactSet) -> None:
    """Add the facts about a scalar multiple c X."""
    kept = [*TRIANGLES, "symmetric", "antisymmetric", "zero"]
    rule = "a multiple of {}"
    if walk.numbers.nonnegative(c):
        kept += ["nonnegative", "positive_semidefinite"]
        rule = "a multiple, not negative, of {}"
    if c in (1, -1):
        kept += ["orthonormal_columns", "orthonormal_rows"]
    if (isinstance(c, sympy.Rational) and c != 0) or walk.numbers.positive(c):
        kept.append("invertible")
    for name in kept:
        if name in part:
            found.add(name, rule.format(PROPERTIES[name].many), [part[name]])
    if c == 0:
        found.add("zero", "zero times a matrix")
    rank = part["rank_at_most"]
    found.add("rank_at_most", "scaling does not raise the rank", [rank], rank.value)
    for name in ("rows_sum_to", "columns_sum_to"):
        if name in part:
            value = walk.numbers.tidy(sympy.Mul(c, part[name].value))
            found.add(name, "scaling scales the sums", [part[name]], value)


def _mirror(walk: Walk, factors: Sequence[Any], found: FactSet) -> None:
    """Add the facts about X Xᵀ and X M Xᵀ."""
    sign, premises = 1, list[Fact]()
    for a, b in zip(factors, reversed(factors[(len(factors) + 1) // 2 :]), strict=False):
        pair = walk.transposed(a, b)
        if pair is None:
            return
        sign, premises = sign * pair[0], premises + pair[1]
    if len(factors) % 2 == 0:
        name = "positive_semidefinite" if sign > 0 else "symmetric"
        found.add(name, "minus " * (sign < 0) + "a matrix times its transpose", premises)
        return
    middle = walk.known(factors[len(factors) // 2])
    for name in ("symmetric", "antisymmetric", "positive_semidefinite"):
        if name in middle and (sign > 0 or name != "positive_semidefinite"):
            rule = f"X M Xᵀ, where M {PROPERTIES[name].one}"
            found.add(name, rule, [*premises, middle[name]])


def _sandwich(walk: Walk, factors: Sequence[Any], found: FactSet) -> None:
    """Add the facts about a conjugation X P Y with Y X = I."""
    if len(factors) < 2:
        return
    first, *inner, last = factors
    if not inner:
        forward = walk.undone(first, last)
        if forward is not None:
            found.add("identity", "a left inverse times its matrix", forward)
    back = walk.undone(last, first)
    if back is None:
        return
    if not inner:
        found.add("projection", "X Y with Y X the identity", back)
        return
    middle = walk.known(product(sympy.S.One, tuple(inner)))
    if "projection" in middle:
        rule = "X P Y with P a projection and Y X the identity"
        found.add("projection", rule, [middle["projection"], *back])


def _commuting(walk: Walk, factors: Sequence[Any], parts: Sequence[Known], found: FactSet) -> None:
    for name in ("symmetric", "projection", "positive_semidefinite"):
        if name not in found.known and all(name in part for part in parts):
            commuting = walk.commuting(factors)
            if commuting is None:
                return
            premises = dict.fromkeys([*[part[name] for part in parts], *commuting])
            found.add(name, f"a product of {PROPERTIES[name].many} that commute", premises)


def _power(walk: Walk, e: Any, found: FactSet) -> None:
    base, exponent = walk.known(e.base), e.exp
    if not (isinstance(exponent, sympy.Integer) and exponent >= 1):
        return
    found.keep("power", [base])
    rank = base["rank_at_most"]
    found.add("rank_at_most", "at most the rank of a factor", [rank], rank.value)
    for name in ("rows_sum_to", "columns_sum_to"):
        if name in base:
            value = walk.numbers.tidy(base[name].value ** exponent)
            found.add(name, "the sums of a power are powers", [base[name]], value)
    if exponent % 2 == 0 and "symmetric" in base:
        found.add(
            "positive_semidefinite", "an even power of a symmetric matrix", [base["symmetric"]]
        )
    if "antisymmetric" in base:
        name = "symmetric" if exponent % 2 == 0 else "antisymmetric"
        parity = "an even" if exponent % 2 == 0 else "an odd"
        rule = f"{parity} power of an antisymmetric matrix"
        found.add(name, rule, [base["antisymmetric"]])
        if exponent % 4 == 0:
            rule = "an even power of the symmetric square of an antisymmetric matrix"
            found.add("positive_semidefinite", rule, [base["antisymmetric"]])


def _layers(walk: Walk, e: LayerProduct, found: FactSet) -> None:
    """Add the facts about a product over layers that hold for each layer."""
    body = walk.known(e.body)
    found.keep("product", [body])
    rank = body["rank_at_most"]
    if e.index not in rank.value.free_symbols:
        found.add("rank_at_most", "at most the rank of a factor", [rank], rank.value)
    for name in ("rows_sum_to", "columns_sum_to"):
        if name in body and e.index not in body[name].value.free_symbols:
            value = walk.numbers.tidy(body[name].value ** e.count)
            found.add(name, "equal sums of all layers multiply", [body[name]], value)


def _inverse(walk: Walk, e: Any, found: FactSet) -> None:
    part = walk.known(e.args[0])
    found.add("invertible", "an inverse is invertible")
    found.keep("inverse", [part])
    for name in ("rows_sum_to", "columns_sum_to"):
        if name in part and part[name].value != 0:
            value = walk.numbers.tidy(1 / part[name].value)
            found.add(name, "A 1 = r 1 gives A⁻¹ 1 = (1/r) 1", [part[name]], value)


def _transpose(walk: Walk, e: Any, found: FactSet) -> None:
    for name, fact in walk.known(e.args[0]).items():
        found.add(MIRRORED.get(name, name), "the transpose", [fact], fact.value)


# -- sums ----------------------------------------------------------------------------------------


def _add(walk: Walk, e: Any, found: FactSet) -> None:
    parts = [walk.known(term) for term in e.args]
    found.keep("sum", parts)
    ranks = [part["rank_at_most"] for part in parts]
    value = walk.numbers.plus(*[rank.value for rank in ranks])
    found.add("rank_at_most", "ranks add in a sum", dict.fromkeys(ranks), value)
    found.sums("rows_sum_to", "row sums add in a sum", parts, sympy.Add)
    found.sums("columns_sum_to", "column sums add in a sum", parts, sympy.Add)
    _pairs(e, parts, found)
    _complement(walk, e, found)
    definite = [p for p in parts if "positive_semidefinite" in p and "invertible" in p]
    names = ("positive_semidefinite", "antisymmetric")
    if definite and all(any(name in part for name in names) for part in parts):
        facts = [next(part[name] for name in names if name in part) for part in parts]
        rule = "xᵀ M x > 0 for every nonzero x"
        found.add("invertible", rule, dict.fromkeys([definite[0]["invertible"], *facts]))


def _pairs(e: Any, parts: Sequence[Known], found: FactSet) -> None:
    """Add the (anti)symmetry of a sum of pairs X ± Xᵀ and (anti)symmetric terms."""
    for name, sign in (("symmetric", 1), ("antisymmetric", -1)):
        premises: list[Fact] = []
        left: list[Any] = []
        for term, part in zip(e.args, parts, strict=True):
            if name in part:
                premises.append(part[name])
            elif (partner := times(sign, transposed(term))) in left:
                left.remove(partner)
            else:
                left.append(term)
        if not left:
            rule = f"a sum of terms X {'-' if sign < 0 else '+'} Xᵀ"
            found.add(name, rule, dict.fromkeys(premises))


def _complement(walk: Walk, e: Any, found: FactSet) -> None:
    """Add the facts about I - P and ±(I - 2P) for a projection P."""
    if len(e.args) != 2:
        return
    for unit, term in (e.args, tuple(reversed(e.args))):
        scale, factors = split(term)
        sign, units = split(unit)
        inner = walk.known(product(sympy.S.One, factors))
        bare = walk.known(product(sympy.S.One, units))
        if "identity" not in bare or "projection" not in inner:
            continue
        if sign == 1 and scale == -1:
            found.add(
                "projection",
                "the identity minus a projection",
                [bare["identity"], inner["projection"]],
            )
        if (sign, scale) in ((1, -2), (-1, 2)) and "symmetric" in inner:
            rule = "a reflection: I - 2 P for a symmetric projection P"
            premises = [bare["identity"], inner["projection"], inner["symmetric"]]
            found.add("orthogonal", rule, premises)


def _kron(walk: Walk, e: Any, found: FactSet) -> None:
    parts = [walk.known(factor) for factor in e.args]
    found.keep("Kronecker product", parts)
    ranks = [part["rank_at_most"] for part in parts]
    value = walk.numbers.times(*[rank.value for rank in ranks])
    found.add("rank_at_most", "ranks multiply in a Kronecker product", dict.fromkeys(ranks), value)
    rule = "sums multiply in a Kronecker product"
    found.sums("rows_sum_to", rule, parts, sympy.Mul)
    found.sums("columns_sum_to", rule, parts, sympy.Mul)
    _signs("Kronecker product", parts, found)


def _hadamard(walk: Walk, e: Any, found: FactSet) -> None:
    parts = [walk.known(factor) for factor in e.args]
    found.keep("Hadamard product", parts)
    ranks = [part["rank_at_most"] for part in parts]
    value = walk.numbers.times(*[rank.value for rank in ranks])
    rule = "at most the product of the ranks"
    found.add("rank_at_most", rule, dict.fromkeys(ranks), value)
    _signs("Hadamard product", parts, found)
    counts = Counter(e.args)
    odd = [walk.known(factor) for factor, count in counts.items() if count % 2]
    if all("nonnegative" in part for part in odd):
        rule = "an even power of each entry" + " times a nonnegative matrix" * bool(odd)
        found.add("nonnegative", rule, [part["nonnegative"] for part in odd])


def _hadamard_power(walk: Walk, e: Any, found: FactSet) -> None:
    base, exponent = e.args
    if not (isinstance(exponent, sympy.Integer) and exponent >= 1):
        return
    part = walk.known(normalise(base))
    found.keep("Hadamard product", [part])
    if exponent % 2 == 0:
        found.add("nonnegative", "an even power of each entry")


def _signs(operation: str, parts: Sequence[Known], found: FactSet) -> None:
    """Add (anti)symmetry if each factor is symmetric or antisymmetric, and one is the latter."""
    names = ("symmetric", "antisymmetric")
    if not all(any(name in part for name in names) for part in parts):
        return
    facts = [next(part[name] for name in names if name in part) for part in parts]
    minus = sum(fact.name == "antisymmetric" for fact in facts)
    if minus:
        rule = f"a {operation} of symmetric and {minus} antisymmetric factors"
        found.add(names[minus % 2], rule, dict.fromkeys(facts))


def _vec(walk: Walk, e: Any, found: FactSet) -> None:
    part = walk.known(normalise(e.args[0]))
    for name in ("nonnegative", "zero"):
        if name in part:
            found.add(name, "the same entries as a column", [part[name]])


def _diag_matrix(walk: Walk, e: Any, found: FactSet) -> None:
    part = walk.known(normalise(e.args[0]))
    found.add("diagonal", "by definition")
    if nonlinear.is_positive(normalise(e.args[0])):
        found.add("invertible", "its diagonal entries are nonzero")
    for name in ("nonnegative", "zero"):
        if name in part:
            found.add(name, "the same entries on a diagonal", [part[name]])


def _diagonal_of(walk: Walk, e: Any, found: FactSet) -> None:
    part = walk.known(normalise(e.args[0]))
    for name in ("nonnegative", "positive_semidefinite"):
        if name in part:
            found.add("nonnegative", "its diagonal entries are nonnegative", [part[name]])
    if isinstance(e.args[0], CausalMask):
        rule = "the axiom causal_mask_diagonal, the diagonal of a causal mask is one"
        found.add("rows_sum_to", rule, (), sympy.S.One)
    if "antisymmetric" in part:
        found.add("zero", "the diagonal of an antisymmetric matrix", [part["antisymmetric"]])


def _block_diagonal(walk: Walk, e: Any, found: FactSet) -> None:
    parts = [walk.known(normalise(block)) for block in e.args]
    found.keep("block diagonal of", parts)
    ranks = [part["rank_at_most"] for part in parts]
    value = walk.numbers.plus(*[rank.value for rank in ranks])
    found.add("rank_at_most", "ranks add along a diagonal", dict.fromkeys(ranks), value)
    for name in ("rows_sum_to", "columns_sum_to"):
        if all(name in part for part in parts):
            facts = [part[name] for part in parts]
            if all(walk.numbers.equal(fact.value, facts[0].value) for fact in facts):
                found.add(name, "equal sums of all blocks", dict.fromkeys(facts), facts[0].value)


def _blocks(walk: Walk, e: Any, found: FactSet) -> None:
    grid = e.args[0]
    rows, cols = grid.shape
    parts = [[walk.known(normalise(grid[i, j])) for j in range(cols)] for i in range(rows)]
    found.keep("concatenation", [part for row in parts for part in row])
    ranks = [part["rank_at_most"] for row in parts for part in row]
    value = walk.numbers.plus(*[rank.value for rank in ranks])
    found.add(
        "rank_at_most", "at most the sum of the ranks of the blocks", dict.fromkeys(ranks), value
    )
    for name, lines in (("rows_sum_to", parts), ("columns_sum_to", list(zip(*parts, strict=True)))):
        if all(name in part for line in lines for part in line):
            totals = [sympy.Add(*[part[name].value for part in line]) for line in lines]
            if all(walk.numbers.equal(total, totals[0]) for total in totals):
                facts = dict.fromkeys(part[name] for line in lines for part in line)
                value = walk.numbers.tidy(totals[0])
                found.add(name, "the sums of adjacent blocks add", facts, value)


RULES: Rules = {
    sympy.Identity: _identity,
    sympy.ZeroMatrix: _zero,
    sympy.OneMatrix: _ones,
    OneHot: _one_hot,
    sympy.ImmutableDenseMatrix: _explicit,
    sympy.MatMul: _mul,
    sympy.MatPow: _power,
    LayerProduct: _layers,
    sympy.Inverse: _inverse,
    sympy.Transpose: _transpose,
    sympy.MatAdd: _add,
    sympy.KroneckerProduct: _kron,
    sympy.HadamardProduct: _hadamard,
    sympy.HadamardPower: _hadamard_power,
    vec_rows: _vec,
    vec_cols: _vec,
    DiagMatrix: _diag_matrix,
    DiagonalMatrix: _diag_matrix,
    DiagonalOf: _diagonal_of,
    sympy.BlockDiagMatrix: _block_diagonal,
    sympy.BlockMatrix: _blocks,
    **heads.RULES,
    **nonlinear.RULES,
}
