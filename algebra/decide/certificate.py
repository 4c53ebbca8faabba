"""Certificates: proofs as plain JSON data, for an independent checker.

A certificate has the statement and a proof by the rules of `proofs/replay.py`, which checks it and
shares no code with this file. Nothing is identified by name: symbols have the numbers of their
declarations, an index is the number of indices in scope around it. Names are for readers only. A
certificate has no digest and no signature, as it is always checked.

In the prover, a nonlinear function is a box with a name, and so is, under induction, a product over
the first L layers. Here each box is replaced by its expression, and implicit equations become facts
of the proof.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sympy

from otimes.algebra.decide.axiom_statements import DATA, Instance
from otimes.algebra.decide.certificate_context import Context
from otimes.algebra.decide.certificate_differences import differences
from otimes.algebra.decide.certificate_positions import at_position
from otimes.algebra.decide.certificate_trees import (
    Opaque,
    Scope,
    Tree,
    Trees,
    member_of,
)
from otimes.algebra.decide.entailment import Use, factors_of
from otimes.algebra.decide.lemmas import as_it_is
from otimes.algebra.diagrams.legs import Blocks, Legs
from otimes.algebra.errors import LanguageError
from otimes.algebra.evaluate.polynomials import Multiple
from otimes.algebra.language import coefficients
from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    FamilyMember,
    HeadSum,
    StackHeads,
    as_product,
)
from otimes.algebra.language.nonlinear import (
    RSQRT,
    LayerNorm,
    RMSNorm,
    definition,
    mean_square,
)
from otimes.algebra.language.shapes import inspect, shape_of
from otimes.algebra.language.sizes import normal_size
from otimes.algebra.language.trees import key
from otimes.algebra.reading.interpretation import Interpretation

SCHEMA = 4
INTEGERS = "integers"  # in the place of a count, of a family with affine indices


class Writer(Trees):
    """The writer of one certificate: its declarations, and the proofs that use them."""

    # -- proofs ------------------------------------------------------------------------------------

    def proof(self, claim: Any, proof: Any, scope: Scope) -> dict[str, Any]:
        """Return the tree of a proof of a claim in a scope."""
        if proof.induction is not None:
            return self.induction(claim, proof.induction, scope)
        if proof.parts is not None:
            return self.in_parts(claim, proof.parts, scope)
        if proof.position is not None:
            return at_position(self, claim, proof.position, scope)
        if proof.instance is not None:
            lemma, sizes = proof.instance
            source = as_it_is(lemma)
            source = source.at(source.lhs, source.rhs, sizes)
            (_, _, made, values, proofs), _ = self.instance(source, {}, [], scope)
            return {"rule": "lemma", "lemma": made, "values": values, "proofs": proofs}
        if proof.layered is not None:
            plan, verdict = proof.layered
            inner = replace(scope, opaque={**scope.opaque, **self.names(plan.opaque, scope.depths)})
            return self.proof(verdict.claim, verdict.proof, inner)
        facts: list[Any] = []
        uses = [one for use in proof.uses for one in self.use(claim, proof, use, facts, scope)]
        uses += [self.multiple(claim, proof, one, facts, scope) for one in proof.multiples]
        splits = self.splits(claim, proof, scope)
        return {"rule": "cancel", "splits": splits, "facts": facts, "uses": uses}

    def splits(self, claim: Any, proof: Any, scope: Scope) -> list[Tree]:
        """Return each split of a size as [size, parts]; a part in blocks is ["|", parts, ...]."""
        reading = proof.reading
        sizes = reading.dimensions.expressions if reading else []

        def shown(legs: Legs) -> list[Tree]:
            return [
                ["|", *map(shown, leg)] if isinstance(leg, Blocks) else self.tree(sizes[leg], scope)
                for leg in legs
            ]

        table = reading.dimensions._split if reading else {}
        found = [[self.tree(sizes[whole], scope), shown(parts)] for whole, parts in table.items()]
        whole = {normal_size(sizes[whole]) for whole in table}
        found += [pair for size, pair in self.cuts.items() if size not in whole]
        if proof.mode == "written out":
            cut = {int(sizes[whole]) for whole in table if sizes[whole].is_Integer}
            numbers = {int(size) for size in sizes if size.is_Integer}
            for e in (claim.lhs, claim.rhs, *[side for pair in claim.given for side in pair]):
                numbers |= numeric_sizes(e)
            found += [[n, [["|", *[[] for _ in range(n)]]]] for n in sorted(numbers - cut) if n > 1]
        return found

    def induction(self, claim: Any, proof: Any, scope: Scope) -> dict[str, Any]:
        """Return a proof by induction: the last layer is one more index in scope."""
        plan, parts = proof.plan, {}
        kept = [name for name, e in scope.opaque.items() if self.keeps(e, plan.depth)]
        if kept and not scope.depths:
            return self.for_any(claim, proof, scope, kept)
        if not self.parts and not scope.depths and (frozen := _frozen(claim, plan.depth)):
            return self.generalised(claim, proof, scope, frozen)
        opaque = self.names(plan.opaque, (*scope.depths, plan.depth))
        inner = scope.bound(key(plan.last))
        inner = replace(inner, opaque={**scope.opaque, **opaque})
        inner = replace(inner, latest={**scope.latest, key(plan.last): plan.depth})
        for stage, verdict in (("base", proof.base), ("step", proof.step)):
            here = replace(inner, depths={**scope.depths, plan.depth: stage})
            parts[stage] = self.proof(verdict.claim, verdict.proof, here)
        return {"rule": "induction", "over": self.sizes[key(plan.depth)], **parts}

    def keeps(self, one: Opaque, depth: sympy.Symbol) -> bool:
        """Return whether a matrix of the prover stays the same where its expression has layers."""
        return not one.indices and depth in one.expression.free_symbols

    def for_any(self, claim: Any, proof: Any, scope: Scope, names: Sequence[str]) -> dict[str, Any]:
        """Return a proof by induction with arbitrary matrices for names of the prover."""
        shown = []
        for name in names:
            e = scope.opaque[name].expression
            shown.append((self.opaque(name, scope), [self.tree(n, scope) for n in e.shape]))
        for name in names:
            self.tensors[name] = len(self.tensors)
        others = {name: e for name, e in scope.opaque.items() if name not in names}
        made = self.induction(claim, proof, replace(scope, opaque=others))
        for name in names:
            del self.tensors[name]
        return _generalised(made, shown)

    def names(self, opaque: Mapping[Any, Any], depths: Iterable[Any]) -> dict[str, Opaque]:
        """Return the expression that each name of the prover stands for."""
        known, found = frozenset(depths), dict[str, Opaque]()
        for e, name in opaque.items():
            own = name.indices if isinstance(name, FamilyMember) else ()
            called = name.family.name if isinstance(name, FamilyMember) else name.name
            found.setdefault(called, Opaque(e, own, known))
        return found

    def generalised(
        self, claim: Any, proof: Any, scope: Scope, frozen: Mapping[str, Sequence[Any]]
    ) -> dict[str, Any]:
        """Return a proof by induction with arbitrary matrices for family members at a free index.

        A free layer index is neither always the last of L + 1 layers nor always an earlier one.
        """
        members = list(dict.fromkeys(e for found in frozen.values() for e in found))
        shown = [(self.tree(e, scope), [self.tree(n, scope) for n in e.shape]) for e in members]
        for e in members:
            self.parts[member_of(e)] = len(self.tensors) + len(self.parts)
        self.frozen = frozenset(frozen)
        made = self.induction(claim, proof, scope)
        made = _generalised(made, shown)
        self.frozen, self.parts = frozenset(), {}
        return made

    def in_parts(self, claim: Any, found: Any, scope: Scope) -> dict[str, Any]:
        """Return a proof by a rewriting, or with arbitrary matrices for parts of the claim."""
        if found.any_for:
            if self.parts or scope.opaque:
                raise LanguageError("a certificate has no arbitrary matrix under induction")
            parts = [
                (self.tree(e, scope), [self.tree(n, scope) for n in e.shape])
                for _, e in found.any_for
            ]
            for matrix, _ in found.any_for:
                self.tensors[matrix.name] = len(self.tensors)
            made = self.proof(found.whole.claim, found.whole.proof, scope)
            for matrix, _ in found.any_for:
                del self.tensors[matrix.name]
            return _generalised(made, parts)
        known = {}
        for link, proofs in found.equal:
            trees = [self.tree(e, scope) for e in link]
            last = proofs[-1]
            proof = self.proof(last.claim, last.proof, scope)
            for tree, one in zip(trees[-2:0:-1], proofs[-2::-1], strict=True):
                first = self.proof(one.claim, one.proof, scope)
                proof = {"rule": "rewrite", "at": [0], "by": tree, "equal": first, "proof": proof}
            known[json.dumps([trees[0], trees[-1]])] = proof
        sides = [
            [self.tree(side, scope) for side in one.sides] for one in (claim, found.whole.claim)
        ]
        made = self.proof(found.whole.claim, found.whole.proof, scope)
        changes = differences(sides[0], sides[1], known)
        if changes is None:
            raise LanguageError(
                "no certificate can be written where one part of a claim is cut in two ways, such "
                "as d + 1 into d|1 and into 1|d"
            )
        for at, new, proof in changes:
            made = {"rule": "rewrite", "at": at, "by": new, "equal": proof, "proof": made}
        return made

    # -- facts -------------------------------------------------------------------------------------

    def fact(self, facts: list[Any], made: Any, given: int) -> int:
        """Return the number of a fact, which is added if new; hypotheses have the first numbers."""
        text = json.dumps(made)
        for k, known in enumerate(facts):
            if json.dumps(known) == text:
                return given + k
        facts.append(made)
        return given + len(facts) - 1

    def named_fact(
        self, claim: Any, proof: Any, use: Use, facts: list[Any], scope: Scope
    ) -> tuple[int, dict[str, Any]]:
        """Return the number of the used fact, and the ranges of its indices."""
        name, *more = use.relation.fact
        given = claim.facts
        if name in ("given", "shifted", "last"):
            return self.equation(claim, proof, more[0], facts, scope)
        if name == "inverse":
            _, e = proof.reading.inverses[more[0]]
            form, values = int(more[1] == "left"), {"E": self.tree(e, scope)}
            return self.fact(facts, ["axiom", [], "inverse", form, values, []], given), {}
        if name in ("turned", "root"):
            number, *at = more
            limits = list(inspect(*claim.given[number]).indices.values())
            names = {key(index): count for index, count in limits}
            inner = scope.bound(*names)
            lhs, rhs = claim.given[number]
            sign = 1 if isinstance(rhs, sympy.Identity | sympy.ZeroMatrix) else -1
            product = lhs if sign == 1 else rhs
            factors = factors_of(product)
            where = [inner.indices[one] for one in names]
            own: list[Any] = []
            known, _ = self.equation(claim, proof, number, own, inner)
            premise = {"fact": known, "coefficient": sign, "at": where}
            proved: dict[str, Any] = {"rule": "cancel", "splits": self.splits(claim, proof, scope)}
            proved |= {"facts": own, "uses": [premise]}
            counts = [self.range(count, scope) for _, count in limits]
            if name == "turned":
                parts = {"E": factors[: at[0]], "F": factors[at[0] :]}
                values = {k: self.tree(as_product(v), inner) for k, v in parts.items()}
                made = ["axiom", counts, "inverse_of_square", 0, values, [proved]]
            else:
                first = isinstance(factors[0], sympy.Transpose) and factors[0].args[0] == factors[1]
                values = {"X": self.tree(factors[1] if first else factors[0], inner)}
                made = ["axiom", counts, "gram_zero", 0 if first else 1, values, [proved]]
            return self.fact(facts, made, given), names
        return self.axiom(claim, proof, use, facts, scope)

    def equation(
        self, claim: Any, proof: Any, number: int, facts: list[Any], scope: Scope
    ) -> tuple[int, dict[str, Any]]:
        """Return the number of a hypothesis or of an instance of a lemma, and its indices."""
        indices = inspect(*claim.given[number]).indices
        ranges = {k: n for k, (_, n) in indices.items() if k not in scope.latest}
        source = claim.source(number)
        if isinstance(source, int):
            return source, ranges
        made, within = self.instance(source, ranges, self.splits(claim, proof, scope), scope)
        return self.fact(facts, made, claim.facts), within

    def instance(
        self, source: Any, ranges: Mapping[str, Any], splits: list[Tree], scope: Scope
    ) -> tuple[Any, dict[str, Any]]:
        """Return an instance of a lemma as a fact, and its indices with their ranges."""
        within = {k: n for k, n in ranges.items() if k not in source.frees}
        inner = scope.bound(*within)
        lemma = certificate_of(source.lemma.claim, source.lemma.proof)
        values = {
            "sizes": [self.tree(source.sizes[name], inner) for name in lemma["sizes"]],
            "scalars": [self.tree(source.scalars[name], inner) for name, _ in lemma["scalars"]],
            "tensors": [
                self.put_in(source.tensors[name], counts, inner)
                for name, counts, *_ in lemma["tensors"]
            ],
        }
        counts = [self.tree(count, scope) for count in within.values()]
        proofs = [
            self.premise(source.premises[k], len(given), splits, inner)
            for k, (given, *_) in enumerate(lemma["given"])
        ]
        made = ["lemma", counts, {**lemma, "nonzero": []}, values, proofs]
        return made, within | {name: ranges.get(name, 1) for name in source.frees}

    def put_in(self, what: tuple[Any, Any], counts: Sequence[Tree], scope: Scope) -> Tree:
        """Return what is put in for a matrix of a lemma: for one over the integers, another."""
        at, e = what
        if INTEGERS in counts:
            return ["family", self.tensors[e.family.name]]
        return self.tree(e, scope.bound(*map(key, at)))

    def premise(self, known: Any, frees: int, splits: list[Tree], scope: Scope) -> dict[str, Any]:
        """Return the proof of a hypothesis of a lemma: it is one of the claim, or follows."""
        if isinstance(known, int):
            at = [["i", scope.count + k] for k in range(frees)]
            one = {"fact": known, "coefficient": 1, "at": at}
            return {"rule": "cancel", "splits": splits, "facts": [], "uses": [one]}
        verdict, names = known
        return self.proof(verdict.claim, verdict.proof, scope.bound(*names))

    def axiom(
        self, claim: Any, proof: Any, use: Use, facts: list[Any], scope: Scope
    ) -> tuple[int, dict[str, Any]]:
        """Return an instance of an axiom, for all values of its free indices."""
        said: Instance = proof.axioms[0][use.relation.fact[2]]
        at, around = dict(use.context.named), use.context.diagram
        limits = [
            (index, count)
            for index, count in inspect(said.lhs, said.rhs).indices.values()
            if (key(index), at.get(key(index))) not in around.named
            and key(index) not in scope.latest
        ]
        names = {key(index): count for index, count in limits}
        inner = scope.bound(*names)
        proofs = []
        for pair in said.premises:
            verdict = proof.axioms[1][pair]
            proofs.append(self.proof(verdict.claim, verdict.proof, inner))
        range_of = self.tree if said.premises else self.range
        counts = [range_of(count, scope) for _, count in limits]
        values = said.values.items()
        shown = {k: v if isinstance(v, str) else self.tree(v, inner) for k, v in values}
        if said.axiom == "rsqrt_square":
            shown["X"] = self.radicand(claim, said.values["X"], inner)
        made = ["axiom", counts, said.axiom, said.form, shown, proofs]
        return self.fact(facts, made, claim.facts), names

    def radicand(self, claim: Any, e: Any, scope: Scope) -> Tree:
        """Return the tree of a radicand; for a norm of the claim it is that of its definition."""
        for side in (claim.lhs, claim.rhs, *[one for pair in claim.given for one in pair]):
            for norm in side.atoms(RMSNorm, LayerNorm):
                inner = definition(norm) if isinstance(norm, LayerNorm) else norm
                if mean_square(*inner.args) == e:
                    root = self.defined(norm, scope)
                    while root[:2] != ["Activation", RSQRT]:
                        root = root[1]
                    return root[2]
        return self.tree(e, scope)

    def defined(self, norm: Any, scope: Scope) -> Tree:
        """Return the tree of a norm's definition in `axioms.json`."""
        argument, eps = [self.tree(arg, scope) for arg in norm.args]
        rows, cols = [self.tree(size, scope) for size in norm.shape]
        values = {"X": argument, "eps": eps, "n": rows, "d": cols}
        if isinstance(norm, LayerNorm):
            _, values["X"], _ = _filled(DATA["definitions"]["LayerNorm"]["is"], values)
        return _filled(DATA["definitions"]["RMSNorm"]["is"], values)

    # -- uses --------------------------------------------------------------------------------------

    def use(
        self, claim: Any, proof: Any, use: Use, facts: list[Any], scope: Scope
    ) -> Iterable[dict[str, Any]]:
        """Yield the uses of a fact in its context, one for each power of an opaque scalar."""
        number, names = self.named_fact(claim, proof, use, facts, scope)
        reading: Interpretation = proof.reading
        d, sizes = use.context.diagram, reading.dimensions.expressions
        context = Context(self, reading, scope, d)
        at = dict(use.context.named)
        free = []
        for name, wire in d.named:
            value, is_integer, _ = name.partition("@")
            if is_integer:
                context.held.append([wire, int(value)])
            elif name not in scope.latest and name not in self.frozen:
                free.append([scope.indices[name][1], context.at(wire)])
        boxes = [context.box(box) for box in d.boxes]
        hole = [
            context.hole(use.relation.rows, use.context.rows),
            context.hole(use.relation.cols, use.context.cols),
        ]
        every: list[Any] = [
            context.at(at[name]) if name in at and name not in self.frozen else context.first(count)
            for name, count in names.items()
        ]
        kind, *_, places = use.relation.fact
        moved = {name: move for name, *move in places} if kind == "shifted" else {}
        latest = dict(places) if kind == "last" else {}
        shown = [context.legs(d.rows), context.legs(d.cols)]
        for coefficient, more in self.opaque_powers(use.coefficient, scope):
            yield {
                "fact": number,
                "coefficient": self.number(coefficient, use.divisors),
                "at": [
                    context.value(at.get(_index_of(name, moved)), *moved[name][:2])
                    if name in moved
                    else [-2] * (scope.depths[latest[name]] == "step")
                    if name in latest
                    else one
                    for name, one in zip(names, context.renumbered(every), strict=True)
                ],
                "context": {
                    "sizes": [self.tree(sizes[sort], scope) for sort in context.live()],
                    "held": [[context.new[wire], value] for wire, value in context.held],
                    "free": context.renumbered_free(free),
                    "rows": context.renumbered([shown[0]])[0],
                    "cols": context.renumbered([shown[1]])[0],
                    "boxes": [context.renumbered_box(box) for box in [*boxes, *more]],
                    "hole": context.renumbered(hole),
                },
            }

    def opaque_powers(self, value: Any, scope: Scope) -> Iterable[tuple[Any, list[Any]]]:
        """Yield the terms of a coefficient; powers of opaque scalars become boxes."""
        value = coefficients.from_sympy(value) if isinstance(value, sympy.Basic) else value
        named = coefficients.names(value) & set(scope.opaque)
        if not named:
            yield value, []
            return
        for monomial, factor in value.numerator.items():
            rest = tuple(leg for leg in monomial if leg[0] not in named)
            powers = [leg for leg in monomial if leg[0] in named]
            boxes = [
                [self.opaque(name, scope), [], [], []]
                for name, exponent in powers
                for _ in range(int(exponent))
            ]
            yield coefficients.scalar({rest: factor}, value.denominator), boxes

    def multiple(
        self, claim: Any, proof: Any, use: Multiple, facts: list[Any], scope: Scope
    ) -> dict[str, Any]:
        """Return a multiple of one entry of a hypothesis, with block marks for all indices."""
        mine = shape_of(claim.lhs) or ()
        theirs = claim.given[use.given]
        factors: list[Tree] = []
        boxes = []
        for factor in use.factors:
            name, is_entry, place = factor.rpartition("~")
            if not is_entry:
                factors.append(self.symbol(factor))
                continue
            *indices, row, col = map(int, place.split(","))
            legs = _marks((row, col), self.declared[name].shape)
            boxes.append([["tensor", self.tensors[name], *indices], [], *legs])
        frees = list(inspect(claim.lhs, claim.rhs).indices.items())
        free = [
            [scope.indices[name][1], _mark(value, count)]
            for (name, (_, count)), value in zip(frees, use.at, strict=True)
        ]
        counts = [count for _, count in inspect(*theirs).indices.values()]
        at = [_mark(value, n) for value, n in zip(use.given_at, counts, strict=True)]
        rows, cols = _marks(use.entry, mine)
        return {
            "fact": self.equation(claim, proof, use.given, facts, scope)[0],
            "coefficient": ["Mul", self.number(use.coefficient), *factors],
            "at": at,
            "context": {
                "sizes": [],
                "held": [],
                "free": free,
                "rows": rows,
                "cols": cols,
                "boxes": boxes,
                "hole": _marks(use.given_entry, shape_of(theirs[0]) or ()),
            },
        }


def certificate_of(claim: Any, proof: Any) -> dict[str, Any]:
    """Return the certificate of a claim and its proof, as data for JSON."""
    writer = Writer(claim.signature)
    affine = {
        member.family.name
        for side in (claim.lhs, claim.rhs, *[one for pair in claim.given for one in pair])
        for member in side.atoms(AffineMember)
    }
    known = claim.signature.assumptions
    free = inspect(claim.lhs, claim.rhs).indices
    writer.fused = proof.reading is not None and proof.reading.fuse
    scope = Scope().bound(*free)
    given = []
    for lhs, rhs in claim.equations:
        indices = inspect(lhs, rhs).indices
        own = Scope().bound(*indices)
        counts = [writer.tree(count, own) for _, count in indices.values()]
        given.append([counts, writer.tree(lhs, own), writer.tree(rhs, own)])
    sides = [writer.tree(side, scope) for side in (claim.lhs, claim.rhs)]
    made = writer.proof(claim, proof, scope)
    apart = [e for e in (*known.of_kind("nonzero"), *known.of_kind("positive")) if not e.is_Symbol]
    frees = [[name, writer.tree(count, Scope())] for name, (_, count) in free.items()]
    tensors = [
        [
            name,
            [
                INTEGERS if name in affine else writer.tree(c, Scope())
                for c in getattr(t, "counts", ())
            ],
            *[writer.tree(n, Scope()) for n in t.shape],
        ]
        for name, t in claim.signature.tensors.items()
    ]
    return {
        "schema": SCHEMA,
        "sizes": list(writer.sizes),
        "scalars": [[name, flags] for name, flags in writer.scalars.items()],
        "tensors": tensors,
        "indices": frees,
        "given": given,
        "nonzero": [writer.tree(sympy.numer(sympy.together(e)), scope) for e in apart],
        "lhs": sides[0],
        "rhs": sides[1],
        "proof": made,
    }


def _generalised(made: Any, parts: Sequence[tuple[Tree, list[Tree]]]) -> Any:
    """Return a proof for arbitrary matrices as one for parts of given shapes, the first outside."""
    for part, shape in reversed(parts):
        made = {"rule": "generalise", "part": part, "shape": shape, "proof": made}
    return made


def _frozen(claim: Any, depth: Any) -> dict[str, list[Any]]:
    """Return the free indices over a depth that occur only as indices of families."""
    found: dict[str, list[Any]] = {}
    free = inspect(claim.lhs, claim.rhs).indices
    for name, (index, count) in free.items():
        members = [e for side in (claim.lhs, claim.rhs) for e in side.atoms(FamilyMember)]
        mine = [e for e in members if index in e.indices]
        at_free = all(i.is_Integer or key(i) in free for e in mine for i in e.indices)
        places = sum(_places(side, index) for side in (claim.lhs, claim.rhs))
        if count == depth and at_free and places == 0:
            found[name] = mine
    return found


def _places(e: Any, index: Any) -> int:
    """Return the number of occurrences of an index outside family members."""
    if isinstance(e, FamilyMember):
        return 0
    return int(e == index) + sum(_places(a, index) for a in e.args)


def _filled(tree: Tree, values: Mapping[str, Tree]) -> Tree:
    """Return a schema with its symbols replaced by trees."""
    if isinstance(tree, list) and tree[:1] == ["?"]:
        return values[tree[1]]
    return [_filled(one, values) for one in tree] if isinstance(tree, list) else tree


def numeric_sizes(e: Any) -> set[int]:
    """Return the numeric sizes and counts in an expression."""
    found: set[int] = set()
    for node in sympy.preorder_traversal(e):
        sizes = list(node.shape) if getattr(node, "is_Matrix", False) else []
        if isinstance(node, Family):
            sizes += [*node.counts, *node.shape]
        if isinstance(node, HeadSum | ConcatHeads | StackHeads):
            sizes += [count for _, count in node.limits]
        if isinstance(node, sympy.Sum):
            sizes += [last + 1 for _, _, last in node.limits]
        found |= {int(size) for size in map(sympy.sympify, sizes) if size.is_Integer}
    return found


def _mark(value: int, count: Any) -> list[int]:
    return [-1 - value] if count != 1 else []


def _marks(place: Sequence[int], shape: Any) -> list[list[int]]:
    return [_mark(k, size) for k, size in zip(place, shape, strict=True)] or [[], []]


def to_json(made: Mapping[str, Any]) -> str:
    """Return a certificate as JSON text; equal certificates give identical text."""
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n"


def from_json(text: str) -> dict[str, Any]:
    """Return the certificate in a JSON text. Raises LanguageError if there is none."""
    try:
        made = json.loads(text)
    except ValueError as error:
        raise LanguageError(f"this is not the JSON of a certificate: {error}") from None
    if not isinstance(made, dict) or made.get("schema") != SCHEMA:
        raise LanguageError(f"this is not a certificate of schema {SCHEMA}")
    return made


def _index_of(name: str, moved: Mapping[str, Sequence[Any]]) -> Any:
    """Return the name of the index at which that of a fact is; None where that is a number."""
    return moved[name][2] if len(moved[name]) > 2 else name
