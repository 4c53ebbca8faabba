"""Claims in which one size is split in several ways, rewritten so that they can be read.

The normal form cuts each size in one way. An identity, ones, zeros and a causal mask can be cut in
any way: I_{d+1} is I_d ⊕ I_1 and I_1 ⊕ I_d, and I_{dn} is I_d ⊗ I_n. So each occurrence of these
gets a size of its own, and is cut as what is beside it (`cut_as_needed`). Where matrices in
different cuts meet, as in tr((B ⊗ A)(A ⊗ B)), any matrices are put in their place: what holds for
all matrices holds for these (`with_any`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

import sympy
from sympy import MatrixExpr

from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Decision, Proof, ProofInParts
from otimes.algebra.diagrams.dimensions import Clash
from otimes.algebra.diagrams.legs import Blocks, Legs, sorts_of
from otimes.algebra.errors import Undecided
from otimes.algebra.language.binders import names_in
from otimes.algebra.language.linear import as_product, kron, matadd, matmul, vec_cols, vec_rows
from otimes.algebra.language.nonlinear import CausalMask, LayerNorm, RMSNorm, definition
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.sizes import normal_size, same_size
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.reading.interpretation import Interpretation
from otimes.algebra.reading.read import READERS

Sides = tuple[Any, Any]
Decides = Callable[[Claim], Decision]
Given = Sequence[tuple[Any, Any]]

ANY_CUT = (sympy.Identity, sympy.OneMatrix, sympy.ZeroMatrix, CausalMask)
CUT = (sympy.KroneckerProduct, sympy.BlockMatrix, sympy.BlockDiagMatrix, vec_rows, vec_cols)
MAX_LEAVES, MAX_PARTS = 60, 12
DEEPEST = 3  # claims in one another that are put so

Link = tuple[Any, ...]
"""Expressions each of which equals the next; the first is a part of a claim, the last its mend."""


def in_parts(claim: Claim, decides: Decides) -> Decision | None:
    """Return the decision on a claim in which one size is cut in several ways, or None."""
    if claim.sides in claim.within or len(claim.within) >= DEEPEST:
        return None

    def decided(sides: Sides, given: Sequence[Any] = ()) -> Decision:
        other = Claim(*sides, given)
        other.within, other.whole = claim.within | {claim.sides}, claim.whole
        return decides(other)

    return _with_cuts(claim, decided) or _with_any(claim, decided) or _with_runs(claim, decided)


def _with_cuts(claim: Claim, decided: Callable[..., Decision]) -> Decision | None:
    found = cut_as_needed(claim.signature, claim.sides, claim.given)
    if found is None:
        return None
    sides, links = found
    how = "each identity, ones and mask is cut as what is beside it"
    return _with_equals(claim, decided(sides, claim.hypotheses), links, decided, how)


def _with_any(
    claim: Claim, decided: Callable[..., Decision], runs: Sequence[Any] = ()
) -> Decision | None:
    """Return a proof with arbitrary matrices for the split parts, and for `runs` of them."""
    found = with_any(claim.sides, lambda *pair: decided(pair).status == "proved", runs)
    if found is None:
        return None
    sides, any_for, links = found
    whole = decided(sides, claim.hypotheses)
    if whole.status != "proved":
        return None
    reason = f"for any matrices in the place of those that are cut, {whole.reason}"
    proof = Proof("in parts", parts=ProofInParts(whole, any_for=tuple(any_for)))
    if not links:
        return replace(whole, reason=reason, claim=claim, proof=proof, strategy="")
    one, two = (replaced(side, links) for side in claim.sides)
    middle = replace(whole, claim=Claim(one, two, claim.hypotheses), proof=proof)
    return _with_equals(claim, middle, links, decided, "equal parts are read as one")


def _with_runs(claim: Claim, decided: Callable[..., Decision]) -> Decision | None:
    """Return a proof where adjacent factors of a product that are cut alike are one part."""
    links: list[Link] = []
    runs: list[Any] = []

    def grouped(e: Any) -> Any:
        found = _runs(e.args) if type(e) is sympy.MatMul else []
        if not 1 < len(found) < len(e.args):
            return mapped(grouped, e)
        parts = [matmul(*run) if len(run) > 1 else run[0] for run in found]
        runs.extend(part for part, run in zip(parts, found, strict=True) if len(run) > 1)
        links.append((e, matmul(*parts)))
        return links[-1][1]

    left, right = map(grouped, claim.sides)
    if not links:
        return None
    whole = _with_any(Claim(left, right, claim.hypotheses), decided, runs)
    how = "adjacent factors are multiplied first"
    return whole and _with_equals(claim, whole, links, decided, how)


def _with_equals(
    claim: Claim,
    whole: Decision,
    links: Sequence[Link],
    decided: Callable[..., Decision],
    how: str,
) -> Decision | None:
    """Return the decision on a claim from that on `whole`, with parts replaced by equals."""
    if whole.status == "refuted":
        return replace(whole, claim=claim, strategy="")
    if whole.status == "undecided":
        return None
    equal = [(link, tuple([decided(pair) for pair in pairwise(link)])) for link in links]
    if any(one.status != "proved" for _, proofs in equal for one in proofs):
        return None
    proof = Proof("in parts", parts=ProofInParts(whole, tuple(equal)))
    return replace(whole, reason=f"{how}; {whole.reason}", claim=claim, proof=proof, strategy="")


def cut_as_needed(
    signature: Signature, sides: Sides, given: Given
) -> tuple[Sides, list[Link]] | None:
    """Return the sides with identities, ones, zeros and masks cut as the claim needs them.

    With them the parts that were changed. None if nothing has to be cut, or if no cut of these
    makes the claim readable.
    """
    names = names_in(*sides, *[side for pair in given for side in pair])
    leaves = _Leaves(f"s{k}" for k in count() if f"s{k}" not in names)
    tagged = [leaves.tagged(side) for side in sides]
    if not leaves.sizes or len(leaves.sizes) > MAX_LEAVES:
        return None
    reading = Interpretation(signature, READERS)
    reading.dimensions.aliases.update(leaves.sizes)
    try:
        reading.read(tagged, *given)
    except Undecided:
        return None
    links: list[Link] = []
    left, right = (leaves.cut(side, reading, links) for side in tagged)
    return ((left, right), links) if links else None


def with_any(
    sides: Sides, same: Callable[[Any, Any], bool], runs: Sequence[Any]
) -> tuple[Sides, list[tuple[Any, Any]], list[Link]] | None:
    """Return the sides with any matrices for the parts that are cut, and these with their parts.

    Parts that are the `same`, or one the transpose of the other, share a matrix; the last list has
    the parts that were so replaced. Each of `runs` is a part by itself.
    """
    names = names_in(*sides)
    fresh = (f"X{k}" for k in count() if f"X{k}" not in names)
    parts: list[tuple[Any, Any]] = []
    links: dict[Any, Link] = {}

    def walk(e: Any) -> Any:
        cut = e in runs or isinstance(e, CUT)
        return any_matrix(e) if cut and not inspect(e).indices else mapped(walk, e)

    def any_matrix(e: Any) -> Any:
        for matrix, part in parts:
            if part == e:
                return matrix
        for matrix, part in parts:
            for turn in (False, True):
                other = sympy.Transpose(part) if turn else part
                if all(map(same_size, other.shape, e.shape)) and same(e, other):
                    links[e] = (e, other)
                    return sympy.Transpose(matrix) if turn else matrix
        parts.append((sympy.MatrixSymbol(next(fresh), *e.shape), e))
        return parts[-1][0]

    left, right = map(walk, sides)
    if not 0 < len(parts) <= MAX_PARTS:
        return None
    return (left, right), parts, [*links.values()]


def _runs(factors: Sequence[Any]) -> list[list[Any]]:
    """Return the factors of a product, those together that are adjacent and cut alike."""
    found: list[list[Any]] = []
    for factor in factors:
        if found and isinstance(factor, CUT) and isinstance(found[-1][-1], CUT):
            signature = inspect(run := matmul(*found[-1], factor))
            with suppress(Clash):
                if not signature.indices:
                    Interpretation(signature, READERS).read([run])
                    found[-1].append(factor)
                    continue
        found.append([factor])
    return found


def replaced(e: Any, links: Sequence[Link]) -> Any:
    """Return an expression with the first of each link replaced by its last, wherever it occurs."""
    known = {link[0]: link[-1] for link in links}

    def walk(e: Any) -> Any:
        return known[e] if e in known else mapped(walk, e)

    return walk(e)


def mapped(change: Callable[[Any], Any], e: Any) -> Any:
    """Return an expression with its arguments changed, unevaluated."""
    if not e.args or isinstance(e, sympy.MatrixSymbol):
        return e
    if type(e) is sympy.BlockMatrix:
        return _blocks([[change(part) for part in line] for line in e.blocks.tolist()])
    args = [change(arg) for arg in e.args]
    return e if args == list(e.args) else rebuilt(e, args)


def _blocks(table: list[list[Any]]) -> Any:
    """Return a block matrix as stated: a size may have two symbols here."""
    return MatrixExpr.__new__(sympy.BlockMatrix, sympy.ImmutableDenseMatrix(table, evaluate=False))


# -- leaves that can be cut in any way -------------------------------------------------------------


class _Leaves:
    """The leaves of a claim that can be cut in any way, each with symbols of its own for sizes.

    `sizes` are the values of these symbols; `meant` the part of the claim, and that part as a leaf;
    `norms` are the norms of the claim, by their definitions.
    """

    def __init__(self, fresh: Iterator[str]) -> None:
        self.fresh = fresh
        self.sizes: dict[sympy.Symbol, Any] = {}
        self.meant: dict[Any, tuple[Any, Any]] = {}
        self.norms: dict[Any, Any] = {}

    def tagged(self, e: Any) -> Any:
        """Return an expression with symbols for the sizes of its leaves."""
        leaf = _as_leaf(e)
        if leaf is None and isinstance(e, RMSNorm | LayerNorm):
            made = self.tagged(definition(e))  # which has ones and an identity
            self.norms[made] = e
            return made
        if leaf is None:
            return mapped(self.tagged, e)
        lengths = [self.tag(size) for size in map(normal_size, leaf.args)]
        if lengths == list(leaf.args):
            return e
        made = type(leaf)(*lengths)
        self.meant[made] = e, leaf
        return made

    def tag(self, size: Any) -> Any:
        if size.is_Symbol or size == 1:
            return size
        symbol = sympy.Symbol(next(self.fresh), integer=True, positive=True)
        self.sizes[symbol] = size
        return symbol

    def cut(self, e: Any, reading: Interpretation, links: list[Link]) -> Any:
        """Return a tagged expression with its leaves cut as they were read."""
        if e in self.norms:
            made = mapped(lambda part: self.cut(part, reading, links), e)
            definition_of: Link = (self.norms[e], made)
            links += [definition_of] * (definition_of not in links)
            return made
        if e not in self.meant:
            return mapped(lambda part: self.cut(part, reading, links), e)
        stated, leaf = self.meant[e]
        legs = [reading.dimensions.legs(size) for size in e.args]
        made = leaf
        if any(len(one) > 1 or sorts_of(one) != one for one in legs):
            made = _Cut(reading).leaf(type(e), legs)
        if made == stated:
            return stated
        link = (stated, made) if leaf in (stated, made) else (stated, leaf, made)
        if link not in links:
            links.append(link)
        return made


def _as_leaf(e: Any) -> Any:
    """Return an identity, ones, zeros or a mask as one leaf, also if given in parts, else None."""
    if isinstance(e, ANY_CUT):
        return e
    if type(e) is sympy.BlockMatrix:
        return _blocks_as_leaf([[_as_leaf(part) for part in line] for line in e.blocks.tolist()])
    if not isinstance(e, sympy.BlockDiagMatrix | sympy.KroneckerProduct):
        return None
    parts = [_as_leaf(arg) for arg in e.args]
    kinds = {type(part) for part in parts}
    if kinds == {sympy.Identity}:
        combine = sympy.Add if isinstance(e, sympy.BlockDiagMatrix) else sympy.Mul
        return sympy.Identity(normal_size(combine(*[part.shape[0] for part in parts])))
    if kinds == {sympy.OneMatrix} and isinstance(e, sympy.KroneckerProduct):
        sizes = [sympy.Mul(*lengths) for lengths in zip(*[p.shape for p in parts], strict=True)]
        return sympy.OneMatrix(*map(normal_size, sizes))
    return None


def _blocks_as_leaf(parts: list[list[Any]]) -> Any:
    """Return a table of leaves as one identity, mask, or matrix of ones or zeros, or None."""
    if any(part is None for line in parts for part in line):
        return None
    rows = normal_size(sympy.Add(*[line[0].shape[0] for line in parts]))
    cols = normal_size(sympy.Add(*[part.shape[1] for part in parts[0]]))
    for kind in (sympy.OneMatrix, sympy.ZeroMatrix):
        if all(type(part) is kind for line in parts for part in line):
            return kind(rows, cols)
    spots = [(i - j, part) for i, line in enumerate(parts) for j, part in enumerate(line)]
    if len(parts) != len(parts[0]) or any(
        part.shape[0] != part.shape[1] for k, part in spots if not k
    ):
        return None
    for leaf, below in ((sympy.Identity, sympy.ZeroMatrix), (CausalMask, sympy.OneMatrix)):
        if all(
            _is_a(leaf if k == 0 else below if k > 0 else sympy.ZeroMatrix, x) for k, x in spots
        ):
            return leaf(rows)
    return None


def _is_a(kind: type, leaf: Any) -> bool:
    """Return whether a leaf is of a kind; a 1 × 1 matrix of one is an identity and a mask."""
    is_one = leaf.shape == (1, 1) and not isinstance(leaf, sympy.ZeroMatrix)
    return isinstance(leaf, kind) or (is_one and kind is not sympy.ZeroMatrix)


class _Cut:
    """Leaves of one reading as expressions in blocks and Kronecker products."""

    def __init__(self, reading: Interpretation) -> None:
        self.dimensions = reading.dimensions

    def leaf(self, kind: type, legs: Sequence[Legs]) -> Any:
        """Return a leaf of a kind with these legs."""
        if kind is sympy.Identity:
            return self.identity(legs[0])
        if kind is CausalMask:
            return self.mask(legs[0])
        rows, cols = (self.column(one) for one in legs)
        middle = [sympy.ZeroMatrix(1, 1)] if kind is sympy.ZeroMatrix else []
        factors = [*([rows] if legs[0] else []), *middle]
        factors += [sympy.Transpose(cols)] if legs[1] else []
        return as_product(factors)

    def size(self, legs: Legs) -> Any:
        return self.dimensions.total(legs)

    def column(self, legs: Legs) -> Any:
        """Return the column of ones with these legs."""
        factors = [sympy.OneMatrix(self.size((sort,)), 1) for sort in sorts_of(legs)]
        if legs and isinstance(legs[-1], Blocks):
            factors.append(_blocks([[self.column(block)] for block in legs[-1]]))
        return _beside(factors) if factors else sympy.OneMatrix(1, 1)

    def identity(self, legs: Legs) -> Any:
        """Return the identity with these legs; its factors are kept apart from one another."""
        factors = [sympy.Identity(self.size((sort,))) for sort in sorts_of(legs)]
        factors = [*map(sympy.Transpose, factors[:-1]), *factors[-1:]]
        if legs and isinstance(legs[-1], Blocks):
            factors.append(self.table(legs[-1], self.identity, sympy.ZeroMatrix, sympy.ZeroMatrix))
        return _beside(factors) if factors else sympy.Identity(1)

    def table(
        self,
        blocks: Blocks,
        diagonal: Callable[[Legs], Any],
        below: Callable[..., Any],
        above: Callable[..., Any],
    ) -> Any:
        """Return a table of blocks."""
        sizes = [self.size(block) for block in blocks]
        return _blocks(
            [
                [
                    diagonal(block) if i == j else (below if j < i else above)(sizes[i], sizes[j])
                    for j in range(len(blocks))
                ]
                for i, block in enumerate(blocks)
            ]
        )

    def mask(self, legs: Legs) -> Any:
        """Return the causal mask with these legs."""
        if not legs:
            return sympy.OneMatrix(1, 1)
        if isinstance(legs[0], Blocks):
            return self.table(legs[0], self.mask, sympy.OneMatrix, sympy.ZeroMatrix)
        first, rest = legs[:1], legs[1:]
        size = self.size(first)
        if not rest:
            return CausalMask(size)
        before = matadd(CausalMask(size), matmul(-1, sympy.Identity(size)))
        ones = self.leaf(sympy.OneMatrix, (rest, rest))
        return matadd(_beside([before, ones]), _beside([sympy.Identity(size), self.mask(rest)]))


def _beside(factors: Sequence[Any]) -> Any:
    """Return a Kronecker product as stated, or its only factor."""
    return factors[0] if len(factors) == 1 else kron(*factors)
