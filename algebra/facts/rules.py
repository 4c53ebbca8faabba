"""The rules by which facts about an expression follow from facts about its arguments.

They are applied from the leaves up. Each handles one class of expression, and adds facts whose
premises are facts about its arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf

from otimes.algebra.facts import nonlinear
from otimes.algebra.facts.fact import PROPERTIES, Fact
from otimes.algebra.facts.fact_set import TRIANGLES, FactSet, Known, without_indices
from otimes.algebra.facts.hypotheses import MIRRORED
from otimes.algebra.facts.normalise import normalise, product, split, times, transposed
from otimes.algebra.facts.walk import Rules, Walk
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    ConcatHeads,
    HeadSum,
    OneHot,
    StackHeads,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, CausalMask

# -- leaves --------------------------------------------------------------------------------------


def _by_definition(name: str) -> Callable[[Walk, Any, FactSet], None]:
    return lambda walk, e, found: found.add(name, "by definition")


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
        found.carry(["rank_at_most"], part, "at most the rank of a factor")
    found.sums("row sums multiply in a product", parts, sympy.Mul, ["rows_sum_to"])
    found.sums("column sums multiply in a product", parts, sympy.Mul, ["columns_sum_to"])
    for name, end, part in (
        ("rows_sum_to", "last", parts[-1]),
        ("columns_sum_to", "first", parts[0]),
    ):
        if name in part and part[name].value == 0:
            found.carry([name], part, f"the {end} factor {PROPERTIES[name].one.format(0)}")
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
        found.carry([name], part, rule.format(PROPERTIES[name].many))
    if c == 0:
        found.add("zero", "zero times a matrix")
    found.carry(["rank_at_most"], part, "scaling does not raise the rank")
    found.sums("scaling scales the sums", [part], lambda value: sympy.Mul(c, value))


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
    for name in ("symmetric", "antisymmetric", "positive_semidefinite")[: 3 if sign > 0 else 2]:
        found.carry([name], middle, f"X M Xᵀ, where M {PROPERTIES[name].one}", *premises)


def _sandwich(walk: Walk, factors: Sequence[Any], found: FactSet) -> None:
    """Add the facts about a conjugation X P Y with Y X = I."""
    if len(factors) < 2:
        return
    first, *inner, last = factors
    if not inner:
        forward = walk.left_inverse(first, last)
        if forward is not None:
            found.add("identity", "a left inverse times its matrix", forward)
    back = walk.left_inverse(last, first)
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
    found.carry(["rank_at_most"], base, "at most the rank of a factor")
    found.sums("the sums of a power are powers", [base], lambda value: value**exponent)
    if exponent % 2 == 0 and "symmetric" in base:
        rule = "an even power of a symmetric matrix"
        found.add("positive_semidefinite", rule, [base["symmetric"]])
    if "antisymmetric" in base:
        name, parity = ("antisymmetric", "odd") if exponent % 2 else ("symmetric", "even")
        found.add(name, f"an {parity} power of an antisymmetric matrix", [base["antisymmetric"]])
        if exponent % 4 == 0:
            rule = "an even power of the symmetric square of an antisymmetric matrix"
            found.add("positive_semidefinite", rule, [base["antisymmetric"]])


def _layers(walk: Walk, e: LayerProduct, found: FactSet) -> None:
    """Add the facts about a product over layers that hold for each layer."""
    body = walk.known(e.body)
    found.keep("product", [body])
    equal = without_indices(body, [e.index])
    found.carry(["rank_at_most"], equal, "at most the rank of a factor")
    found.sums("equal sums of all layers multiply", [equal], lambda value: value**e.count)


def _inverse(walk: Walk, e: Any, found: FactSet) -> None:
    part = walk.known(e.args[0])
    found.add("invertible", "an inverse is invertible")
    found.keep("inverse", [part])
    nonzero = {name: fact for name, fact in part.items() if fact.value != 0}
    found.sums("A 1 = r 1 gives A⁻¹ 1 = (1/r) 1", [nonzero], lambda value: 1 / value)


def _transpose(walk: Walk, e: Any, found: FactSet) -> None:
    for name, fact in walk.known(e.args[0]).items():
        found.add(MIRRORED.get(name, name), "the transpose", [fact], fact.value)


# -- sums ----------------------------------------------------------------------------------------


def _add(walk: Walk, e: Any, found: FactSet) -> None:
    parts = [walk.known(term) for term in e.args]
    found.keep("sum", parts)
    found.rank("ranks add in a sum", parts, walk.numbers.plus)
    found.sums("row sums add in a sum", parts, sympy.Add, ["rows_sum_to"])
    found.sums("column sums add in a sum", parts, sympy.Add, ["columns_sum_to"])
    _pairs(e, parts, found)
    _complement(walk, e, found)
    _above_tangent(e, found)
    definite = [p for p in parts if "positive_semidefinite" in p and "invertible" in p]
    names = ("positive_semidefinite", "antisymmetric")
    if definite and all(any(name in part for name in names) for part in parts):
        facts = [next(part[name] for name in names if name in part) for part in parts]
        rule = "xᵀ M x > 0 for every nonzero x"
        found.add("invertible", rule, dict.fromkeys([definite[0]["invertible"], *facts]))


def _above_tangent(e: Any, found: FactSet) -> None:
    """Add that exp(X) - X - 1 is not negative: exp lies above its tangent at zero."""
    for term in e.args:
        if isinstance(term, Activation) and term.name == "exp":
            x = term.argument
            rest = Counter(e.args) - Counter([term])
            for parts in ((x,), x.args if isinstance(x, sympy.MatAdd) else ()):
                tangent = [times(-1, part) for part in (*parts, sympy.OneMatrix(*e.shape))]
                if parts and Counter(tangent) == rest:
                    found.add("nonnegative", "exp(x) is at least 1 + x")


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
        premises = [bare["identity"], inner["projection"]]
        if sign == 1 and scale == -1:
            found.add("projection", "the identity minus a projection", premises)
        if (sign, scale) in ((1, -2), (-1, 2)) and "symmetric" in inner:
            rule = "a reflection: I - 2 P for a symmetric projection P"
            found.add("orthogonal", rule, [*premises, inner["symmetric"]])


def _kron(walk: Walk, e: Any, found: FactSet) -> None:
    parts = [walk.known(factor) for factor in e.args]
    found.keep("Kronecker product", parts)
    found.rank("ranks multiply in a Kronecker product", parts, walk.numbers.times)
    found.sums("sums multiply in a Kronecker product", parts, sympy.Mul)
    _signs("Kronecker product", parts, found)


def _hadamard(walk: Walk, e: Any, found: FactSet) -> None:
    parts = [walk.known(factor) for factor in e.args]
    found.keep("Hadamard product", parts)
    found.rank("at most the product of the ranks", parts, walk.numbers.times)
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
    """Add (anti)symmetry of a product of symmetric and (one or more) antisymmetric factors."""
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
    found.carry(("nonnegative", "zero"), part, "the same entries as a column")


def _diag_matrix(walk: Walk, e: Any, found: FactSet) -> None:
    part = walk.known(normalise(e.args[0]))
    found.add("diagonal", "by definition")
    if nonlinear.is_positive(normalise(e.args[0])):
        found.add("invertible", "its diagonal entries are nonzero")
    found.carry(("nonnegative", "zero"), part, "the same entries on a diagonal")


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
    found.rank("ranks add along a diagonal", parts, walk.numbers.plus)
    lines = [[part] for part in parts]
    _equal_sums(walk, found, "equal sums of all blocks", lines, lines)


def _blocks(walk: Walk, e: Any, found: FactSet) -> None:
    grid = e.args[0]
    rows, cols = grid.shape
    parts = [[walk.known(normalise(grid[i, j])) for j in range(cols)] for i in range(rows)]
    found.keep("concatenation", [part for row in parts for part in row])
    flat = [part for row in parts for part in row]
    found.rank("at most the sum of the ranks of the blocks", flat, walk.numbers.plus)
    _equal_sums(
        walk, found, "the sums of adjacent blocks add", parts, list(zip(*parts, strict=True))
    )


def _equal_sums(
    walk: Walk,
    found: FactSet,
    rule: str,
    rows: Sequence[Sequence[Known]],
    cols: Sequence[Sequence[Known]],
) -> None:
    """Add the row (column) sums of blocks where every row (column) of blocks has the same total."""
    for name, lines in (("rows_sum_to", rows), ("columns_sum_to", cols)):
        if all(name in part for line in lines for part in line):
            totals = [sympy.Add(*[part[name].value for part in line]) for line in lines]
            if all(walk.numbers.equal(total, totals[0]) for total in totals):
                facts = dict.fromkeys(part[name] for line in lines for part in line)
                found.add(name, rule, facts, walk.numbers.tidy(totals[0]))


# -- heads ---------------------------------------------------------------------------------------


# The sums that add over the heads (the others are those of one head), and the position of a factor
# whose rank bounds the rank where all heads share it.
OVER_HEADS: dict[type, tuple[Sequence[str], Sequence[int]]] = {
    HeadSum: (["rows_sum_to", "columns_sum_to"], [0, -1]),
    ConcatHeads: (["rows_sum_to"], [0]),
    StackHeads: (["columns_sum_to"], [-1]),
}


def _over_heads(walk: Walk, e: Any, found: FactSet) -> None:
    """Add the facts that all heads have, and the ranks and sums that are the same for all."""
    added, ends = OVER_HEADS[type(e)]
    body = walk.known(e.body)
    indices = [index for index, _ in e.limits]
    count = sympy.Mul(*[count for _, count in e.limits])
    found.keep("sum" if isinstance(e, HeadSum) else "concatenation", [body])
    equal = without_indices(body, indices)
    if "rank_at_most" in equal:
        rule = "the number of heads times the rank of one"
        found.rank(rule, [equal], lambda rank: walk.numbers.times(count, rank))
    found.sums("the sums of all heads", [equal], lambda value: count * value, added)
    found.carry(("rows_sum_to", "columns_sum_to"), equal, "the sums of one head")
    _, factors = split(e.body)
    for end in ends:
        if not factors[end].has(*indices):
            rule = "at most the rank of a factor that all heads share"
            found.carry(["rank_at_most"], walk.known(factors[end]), rule)


RULES: Rules = {
    sympy.Identity: _by_definition("identity"),
    sympy.ZeroMatrix: _by_definition("zero"),
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
    **dict.fromkeys(OVER_HEADS, _over_heads),
    **nonlinear.RULES,
}
