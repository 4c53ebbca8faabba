"""Equations whose left side a text defines elsewhere, as by columns or a recurrence."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from otimes.algebra.notation.derivatives import layouts
from otimes.algebra.notation.functions import is_loss
from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Group,
    Name,
    Node,
    Power,
    Sum,
    bare,
    is_constant,
    latex,
    walk,
)
from otimes.proofs.documents.containers.source import Document
from otimes.proofs.documents.prose.assumptions import plain_words
from otimes.proofs.documents.prose.items import Item
from otimes.proofs.documents.proving.attempts import attempted, named
from otimes.proofs.documents.proving.cross_entropy import distributions
from otimes.proofs.documents.proving.derivatives import (
    Chain,
    by_chain_rule,
    derivative_in,
    free,
    turned_gradients,
)
from otimes.proofs.documents.proving.differentials import as_gradients, in_changes
from otimes.proofs.documents.proving.every_reading import PROPERTY, has_assumption
from otimes.proofs.documents.proving.parts_of_functions import of_part
from otimes.proofs.documents.proving.related import keys_in
from otimes.proofs.documents.proving.unrolled import unrolled
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.pseudo_inverses import PENROSE, conditions, is_pseudo_inverse
from otimes.proofs.documents.symbols.recurrences import is_of, recurs
from otimes.proofs.documents.verdicts.by_members import as_member, by_members
from otimes.proofs.documents.verdicts.circumstances import (
    doubted_by,
    is_of_another,
    is_revised,
)
from otimes.proofs.documents.verdicts.conditions import Conditions
from otimes.proofs.documents.verdicts.false_claims import ASSUMPTION, DIFFER

# “If $G$ is the gradient of the loss by $Y$” says what G is.
GRADIENT_IF = re.compile(
    r"\bif\b(?=[^.;,]{0,80}\b(?:is|be|denotes)\s+the\s+(?:\w+\s+)?(?:gradient|derivative)\b"
    r"|\s*\$*\s*\\?[\w{}]{1,12}\s*=\s*(?:\\[dt]?frac\s*\{)?\s*\\(?:partial|nabla)\b)",
    re.IGNORECASE,
)
INVERTIBLE = re.compile(r"\binvertible\b|\bnonsingular\b", re.IGNORECASE)
LAYOUT = re.compile(
    r"\b(?:layout|convention|notation|numerator|denominator|jacobian)\b", re.IGNORECASE
)
TURNED = "true if the derivative has the shape of the transpose"


class DefinedSides(Conditions):
    """Judges equations whose left side a text defines in another way, too."""

    def __init__(self, document: Document, context: Context, items: list[Item]) -> None:
        super().__init__(document, context, items)
        self.layouts: dict[bool, int] = {}  # whether derivatives have the other shape, first lines

    def _of_order(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the verdict on an equation up to an order, `… + O(x^2)`, None on another."""
        if not any(isinstance(e, Name) and e.base == "O" for e in walk(right)):
            return None
        from otimes.proofs.documents.verdicts.approximations import of_order

        return of_order(self.judge, left, right, item.line)

    def _said_again(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the verdict on an equation that a definition at other indices decides."""
        others = self.context.instances([left, right])
        said = others.get(latex(bare(left)))
        if said is None or isinstance(said.lhs, Apply):
            return None
        if not self.context.in_scope(said.line, item.line) or _has_first_case(item, left, right):
            return None
        found = self.judge.claim(left, right, item.line, item.formula.tex)
        if found.verdict == "proved":
            return found
        apart = {t: d for t, d in others.items() if not self.context.is_member(d.lhs)}
        for each in (others, apart):  # rows of a matrix may be put in on one side only
            used: dict[str, Definition] = {}
            put, by = (self.context.unfolded(side, used, None, each) for side in (left, right))
            if keys_in(put) == keys_in(by):
                break
        words = plain_words(self.document.sentence_before(item.formula))
        if keys_in(put) != keys_in(by) or doubted_by(words):
            return None
        found = self.judge.claim(Group(put), by, item.line, "")
        members = any(self.context.is_member(e) for e in walk(right))
        if found.verdict != "refuted" and not (found.verdict == "shape" and members):
            return None
        return replace(found, why=f"{found.why}; with {named(used)}", against=(said.line,))

    def _stacked(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the verdict on a matrix whose rows or columns are defined one by one, or None."""
        judged = partial(self.judge.claim, line=item.line, source="")
        member = as_member(self.context, left, right, item.line, judged)
        if member is not None:
            self.context.define(bare(left), right, item.line)
            return member
        found = by_members(self.context, left, right, item.line, judged)
        words = plain_words(self.document.sentence_before(item.formula))
        if found is None or (found.verdict != "proved" and doubted_by(words)):
            return None
        if not self.context.definitions.get(latex(bare(left))):
            self.context.define(bare(left), right, item.line)
        return found

    def _restated(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the verdict on a second definition that says the first again, or None.

        “We write S = X W X^T” after S = Q K^T claims that both are equal. Where they are not, one
        edit of it tells a mistake from a new S.
        """
        known = self.context.definitions.get(latex(bare(left)))
        if not known or not self.context.in_scope(known[0].line, item.line):
            return None
        found = self.judge.claim(left, right, item.line, item.formula.tex)
        if found.verdict == "proved":
            return found
        if found.verdict != "refuted" or not found.suggestion:
            return None
        words = plain_words(self.document.sentence_before(item.formula))
        since = self.document.prose[self.document.lines[known[0].line - 1] : item.formula.start]
        revised = is_revised(since) or is_of_another(words) or doubted_by(words)
        return None if revised or self._redefines(left, right, item) else found

    def _of_part(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the verdict on a part of a function of which the whole is defined before."""
        judged = partial(self.judge.claim, line=item.line, source="")
        found = of_part(self.context, left, right, item.line, judged)
        words = plain_words(self.document.sentence_before(item.formula))
        return None if found is not None and found.is_wrong and doubted_by(words) else found

    def _unrolled(self, item: Item, left: Node, right: Node) -> Found | None:
        """Return the refutation of a sum by the recurrence that it unrolls, or None."""
        name = bare(left)
        if not isinstance(name, Name):
            return None
        for said in [each for known in self.context.generic.values() for each in known]:
            if getattr(said.lhs, "base", "") != name.base:  # the L of X_L is a layer, too
                continue
            found = unrolled(left, right, said)
            here = found is not None and self.context.in_scope(said.line, item.line)
            if found is not None and here and not self._is_doubted(item, found, (left, right)):
                return replace(found, against=(said.line,))
        return None

    def _applied(self, left: Node, right: Node, item: Item) -> Found | None:
        """Return the verdict on a function of arguments that its definition decides, or None."""
        term = bare(left)
        if not isinstance(term, Apply) or latex(term) in self.context.definitions:
            return None
        said = self.context.instances([term]).get(latex(term))
        if said is None or not self.context.in_scope(said.line, item.line):
            return None
        found = self.judge.claim(left, right, item.line, item.formula.tex)
        if found.verdict == "undecided":
            found = self.judge.shapes([Group(said.rhs), right], item.line, "") or found
        plain = all(isinstance(bare(each), Name) for each in term.arguments)
        sure = found.verdict in ("proved", "refuted", "shape")
        return found if sure or not plain else None

    def _inverted(self, left: Node, right: Node, item: Item) -> Found | None:
        """Return the verdict on a pseudo-inverse by the conditions of Penrose, None if open.

        Exactly one matrix satisfies all four.
        """
        whole = bare(left)
        if not (is_pseudo_inverse(whole) and self.context.pseudo):
            return None
        if latex(whole) in self.context.definitions:
            return None
        used: dict[str, Definition] = {}
        base = Group(self.context.unfolded(whole.base, used))
        with_definitions = f", with {named(used)}" if used else ""
        given: list[str] = []
        for condition in conditions(base, Group(right)):
            found = self.judge.claim(*condition, item.line, "")
            given += found.hypotheses
            if found.verdict == "refuted" and not has_assumption(
                self.document.sentence_before(item.formula)
            ):
                shown = conditions(whole.base, whole)[0]
                why = f"{found.why}; a pseudo-inverse has {latex(shown[0])} = {latex(shown[1])}"
                return replace(found, why=f"{why}{with_definitions}", suggestion="")
            if found.verdict != "proved":
                return None
        self.context.define(whole, right, item.line)
        why = f"it satisfies the four conditions of Penrose{with_definitions}"
        return Found("proved", why, hypotheses=tuple(dict.fromkeys(given)), facts=PENROSE)

    def _derived(self, left: Node, right: Node, item: Item) -> Found | None:
        """Return the verdict on the derivative of what the text composes, None on any other.

        It is a claim, and no definition. A number may depend on a matrix in ways that are not said:
        a term more is no error.
        """
        asked = derivative_in(self.context, left)
        if asked is None:
            return None
        every = []
        for chain in by_chain_rule(self.context, asked, right, item.line):
            found = self._by_chain(chain, asked, right, item)
            if found.verdict == "refuted":
                found = self._with_constants(chain, asked, right, item.line) or found
            every.append(found)
            if found.verdict == "proved" or found.is_wrong:
                break
        if not every:
            return None
        found = every[-1] if every[-1].verdict == "proved" or every[-1].is_wrong else every[0]
        words = GRADIENT_IF.sub("", self.document.sentence_before(item.formula))
        if found.is_wrong and has_assumption(words):
            found = Found("undecided", "it is false unless the sentence assumes more")
        found = (
            found.verdict == "undecided" and self._misfit_of_gradient(asked, right, item)
        ) or found
        if not found.is_wrong and not self.context.is_circular(asked, right):
            self.context.define(asked, right, item.line)
        return self._in_one_layout(found, asked, right, item.line)

    def _misfit_of_gradient(self, asked: Derivative, right: Node, item: Item) -> Found | None:
        """Return the shape error where the gradient of a loss has not the shape of its variable."""
        symbols, loss = self.context.symbols_at(item.line), bare(asked.target)
        known = symbols.lookup(asked.variable)[1]
        if not asked.gradient or not isinstance(loss, Name) or not is_loss(loss, symbols):
            return None
        if known is None or not known.line or not known.rows:
            return None
        every = right, self.context.unfolded(right, {})
        found = [self.judge.shapes([asked.variable, e], item.line, item.formula.tex) for e in every]
        wrong = next((each for each in found if each is not None), None)
        said = "a gradient has the shape of its variable"
        return wrong and replace(wrong, why=f"{said}: {wrong.why}")

    def _by_chain(self, chain: Chain, left: Node, right: Node, item: Item) -> Found:
        """Return the verdict on a derivative as the chain rule gives it."""
        found = self._as_function(chain, item.line)
        if found.verdict == "shape":
            return self._in_another_layout(found, chain, left, right, item)
        if found.verdict == "refuted":
            others = layouts([chain.value, chain.other])
            if any(self.judge.claim(a, b, item.line, "").verdict == "proved" for a, b in others):
                return Found("needs-hypothesis", TURNED)
            single = not isinstance(bare(chain.other), Sum)  # another dependence adds a term
            if not (chain.whole or single) and found.edit in ("", "term"):
                why = f"the chain rule gives another value, with {chain.how}"
                return Found("needs-hypothesis", f"{why}: are there other dependences?")
        elif found.why.startswith(ASSUMPTION) and not is_constant(right):
            found = self._refuted(chain.value, chain.other, item.line) or found
        if found.verdict not in ("proved", "refuted"):
            return found
        return replace(found, why=f"{found.why}; by the chain rule, with {chain.how}")

    def _in_changes(self, left: Node, right: Node, item: Item, words: str) -> Found | None:
        """Return the verdict on an equation of differentials, or of gradients, None if open."""
        gradients = as_gradients(self.context, left, right, item.line)
        if gradients is not None:
            return self._derived(*gradients, item)
        change = in_changes(self.context, left, right, item.line)
        if change is None:
            return None
        with ExitStack() as stack:
            for name in change.variables:
                stack.enter_context(free(self.context, name))
            found = self.judge.claim(change.left, change.right, item.line, "")
            if found.why.startswith(ASSUMPTION):  # it is said of changes in all directions
                found = self._refuted(change.left, change.right, item.line) or found
        composed = any(latex(e) in self.context.definitions for e in change.variables)
        if found.is_wrong and (composed or has_assumption(words)):
            return Found("undecided", "it is false of changes in all directions")
        if found.verdict == "proved" and change.constant:
            return Found("needs-hypothesis", f"true if {', '.join(change.constant)} is constant")
        how = f", with {named(change.used)}" if change.used else ""
        return replace(found, why=f"{found.why}; of differentials{how}")

    def _refuted(self, left: Node, right: Node, line: int) -> Found | None:
        """Return the refutation of an equation that is meant of all values, None where it is open.

        A section about matrices of a kind may mean those only.
        """
        if PROPERTY.search(INVERTIBLE.sub("", self.context.words_of_section(line))):
            return None
        symbols = self.context.symbols_at(line)
        verdict, reading = attempted(left, right, (), symbols, certain=True)
        if verdict is None or verdict.status != "refuted":
            return None
        return Found("refuted", DIFFER, verdict.counterexample, reading=reading)

    def _with_constants(
        self, chain: Chain, left: Derivative, right: Node, line: int
    ) -> Found | None:
        """Return where a symbol that another section defines has to be constant, or None."""
        known = chain.used.items()
        apart = [text for text, each in known if not self.context.in_scope(each.line, line)]
        for without in (*([text] for text in apart), apart):
            for other in by_chain_rule(self.context, left, right, line, without):
                if self._as_function(other, line).verdict == "proved":
                    why = f"true if {', '.join(without)} does not depend on {latex(left.variable)}"
                    return Found("needs-hypothesis", why)
        return None

    def _as_function(self, chain: Chain, line: int) -> Found:
        """Return the verdict on a derivative at any value of its variable, or at what it is.

        What is false of any value may be true of the one that is defined.
        """
        with free(self.context, chain.derivative.variable):
            sides = chain.value, self.context.unfolded(chain.other, {})
            found = self._of_distributions(chain, *sides, line)
            if found is None or found.verdict == "undecided":
                found = self.judge.claim(chain.value, chain.other, line, "")
                refuted = found.verdict == "refuted" and any(distributions(chain.target))
                found = replace(found, verdict="undecided") if refuted else found
        if found.verdict in ("proved", "shape") or found.why.startswith("true"):
            return found
        put_in = chain.in_full(self.context)
        if put_in is None:
            open_ = "its definitions cannot all be put in"
            return Found("undecided", open_) if found.verdict == "refuted" else found
        full = self._of_distributions(chain, *put_in, line)
        full = full or self.judge.claim(*put_in, line, "")
        return found if full.verdict == found.verdict else full

    def _of_distributions(self, chain: Chain, a: Node, b: Node, line: int) -> Found | None:
        """Return the verdict where the entries of a target add up to one, None without targets."""
        symbols = self.context.symbols_at(line)
        given = [*distributions(chain.target)]
        tried = [attempted(a, b, each, symbols) for each in given]
        every = [(each, *made) for each, made in zip(given, tried, strict=True)]
        for sums, verdict, reading in every:
            if verdict is not None and verdict.status == "proved":
                why = f"true given {'; '.join(map(str, sums))}"
                return Found("needs-hypothesis", why, reading=reading)
        for _, verdict, reading in every:
            if verdict is not None and verdict.status == "refuted":
                return Found("refuted", DIFFER, verdict.counterexample, reading=reading)
        return Found("undecided", "its target may be a distribution") if every else None

    def _in_another_layout(
        self, found: Found, chain: Chain, left: Node, right: Node, item: Item
    ) -> Found:
        """Return the shape error of a derivative, or where another layout excuses it."""
        alone = self.judge.shapes([left, right], item.line, item.formula.tex)
        if alone is None and LAYOUT.search(self.document.sentence(item.formula)):
            return Found("needs-hypothesis", TURNED)
        if alone or found.suggestion:
            return alone or found
        of = Power(Group(chain.other), "T")
        turned = self.judge.claim(chain.value, of, item.line, "")
        if turned.verdict == "proved":
            mended = f"{latex(left)} = {latex(Power(Group(right), 'T'))}"
            return replace(found, suggestion=mended)
        turned_within = turned_gradients(chain.other)
        others = [turned_within, Power(Group(turned_within), "T")]
        every = [turned, *[self.judge.claim(chain.value, e, item.line, "") for e in others]]
        if all(each.verdict == "shape" for each in every):
            return found
        true = any(each.verdict == "proved" for each in every)
        why = "its derivatives have another layout, perhaps"
        return Found("needs-hypothesis", TURNED) if true else Found("undecided", why)

    def _in_one_layout(self, found: Found, left: Node, right: Node, line: int) -> Found:
        """Return a proof, in question if derivatives before have the shape of the transpose."""
        asked = bare(left)
        if not isinstance(asked, Derivative) or found.verdict != "proved":
            return found
        as_it_is = self.judge.shapes([replace(asked, gradient=True), right], line, "") is None
        turned = Power(Group(right), "T")
        as_other = self.judge.shapes([replace(asked, gradient=True), turned], line, "") is None
        if as_it_is == as_other:  # a square matrix
            return found
        said = self.layouts.setdefault(not as_it_is, line)
        other = self.layouts.get(as_it_is, 0)
        if not 0 < other < said:
            return found
        why = f"{found.why}; in the other layout of derivatives than on line {other}"
        return replace(found, verdict="needs-hypothesis", why=why)

    def _is_derived_anew(self, left: Node, item: Item) -> bool:
        """Return whether a derivative was given in another paragraph, maybe of another number."""
        known = self.context.definitions.get(latex(bare(left)), ())
        return any(not self.context.together(each.line, item.line) for each in known)

    def _declare_again(self, name: Node, line: int) -> None:
        """Record that a symbol is the one declared before, where its definition is said again."""
        said = self.context.definitions.get(latex(name))
        if not said or not isinstance(name, Name) or name.sub or name.sup:
            return
        key, known = self.context.symbols_at(line).lookup(name)
        if known is not None and known.line and not self.context.in_scope(known.line, line):
            self.context.declared.append((key, replace(known, line=line)))
            said[0] = replace(said[0], line=line)

    def _is_again(self, left: Node, right: Node, item: Item) -> bool:
        """Return whether an equation that conforms by itself is about a symbol that is defined."""
        known = isinstance(bare(left), Name) and latex(bare(left)) in self.context.definitions
        return known and self.judge.shapes([left, right], item.line, item.formula.tex) is None


def _has_first_case(item: Item, left: Node, right: Node) -> bool:
    r"""Return whether a recurrence stands beside its first case: `x_n = b, x_j = f(x_{j+1})`."""
    name = bare(left)
    heads = [bare(statement.terms[0]) for statement in item.statements]
    if not isinstance(name, Name) or not recurs(name, right):
        return False
    return any(isinstance(head, Name) and head != name and is_of(head, name) for head in heads)
