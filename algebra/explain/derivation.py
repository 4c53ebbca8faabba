"""A readable proof: a chain of expressions, each step one named rule at one subexpression.

A `Derivation` goes from its left side to its right side. Every single use of a rule is a `Step`.
When printed, consecutive uses of one rule form one line, as does a run of bookkeeping steps
(brackets, units, order); each line names all its rules. `Derivation.outline` is the same chain in
at most eight lines, each named by its idea.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from typing import Any

from otimes.algebra.decide.decide import decision
from otimes.algebra.errors import OtimesError
from otimes.algebra.explain.outline import outlined
from otimes.algebra.explain.picture import draw_steps
from otimes.algebra.language.latex import latex
from otimes.algebra.language.unicode import unicode_text, wrapped
from otimes.algebra.rules import RULES, Rule
from otimes.algebra.rules.given import hypotheses
from otimes.algebra.rules.rule import Path, at, children, replaced

WIDTH, NARROWEST = 100, 20
FEW_LINES = 6  # in chains of at most this many, steps that move brackets have their own lines
BRACKETS = frozenset({"mul_assoc", "add_assoc", "kron_assoc", "hadamard_assoc", "head_sum_nested"})


@dataclass(frozen=True, slots=True)
class Step:
    """One use of a rule: `before` becomes `after` by the rule named at `path`.

    `path` lists positions of arguments from the root down. A reverse step uses the rule from right
    to left: the rule rewrites the part of `after` to that of `before`.
    """

    rule: str
    path: Path
    reverse: bool
    before: Any
    after: Any
    given: tuple[tuple[Any, Any], ...] = ()

    @property
    def named(self) -> Rule | None:
        """The rule of this name, a hypothesis (`given_1`, …) among them; None if there is none."""
        return RULES.get(self.rule) or hypotheses(self.given).get(self.rule)

    @property
    def reading(self) -> str:
        """The rule as an equation, read in the direction it was used."""
        return self.named.reading(self.reverse) if self.named else ""

    def matches(self) -> bool:
        """Return whether the rule, applied at `path`, gives the other side; purely syntactic."""
        try:
            old, new = at(self.before, self.path), at(self.after, self.path)
        except (IndexError, AttributeError):
            return False
        rule = self.named
        if rule is None or replaced(self.before, self.path, new) != self.after:
            return False
        return rule.relates(*((new, old) if self.reverse else (old, new)))

    def check(self) -> bool:
        """Return whether the step matches its rule and the judge proves `before = after`.

        The replaced parts are compared first: if they are equal for all values of their indices, so
        are the two expressions.
        """
        if not self.matches():
            return False
        if _proved(at(self.before, self.path), at(self.after, self.path), self.given):
            return True
        return self.path != () and _proved(self.before, self.after, self.given)

    def turned(self) -> Step:
        """Return the step from `after` to `before`, read forwards if the rule permits."""
        back = Step(self.rule, self.path, False, self.after, self.before, self.given)
        return back if self.reverse or back.matches() else replace(back, reverse=True)


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line: an expression, and the steps from the previous line to it."""

    expression: Any
    steps: tuple[Step, ...]
    idea: str = ""

    @property
    def rules(self) -> str:
        """The names of the rules used, with how often, and ← for those used right to left.

        In an outline, what the line does in words.
        """
        if self.idea:
            return self.idea
        uses = Counter((step.rule, step.reverse) for step in self.steps)
        return ", ".join(
            f"{name}{' ←' if reverse else ''}{f' ×{count}' if count > 1 else ''}"
            for (name, reverse), count in uses.items()
        )

    @property
    def readings(self) -> str:
        """The rules used, as equations."""
        return "; ".join(dict.fromkeys(step.reading for step in self.steps))


@dataclass(frozen=True, slots=True)
class Derivation:
    """A chain of steps from `lhs` to `rhs`; none when the two sides are the same expression.

    `opaque` are symbols with the products over layers that they stand for. In a proof by induction
    over `depth` the chain is the induction step, these products are over the earlier layers, and
    the last hypothesis is the induction hypothesis. `few`: whether it is printed in few lines.
    """

    lhs: Any
    rhs: Any
    steps: tuple[Step, ...]
    depth: Any = None
    opaque: tuple[tuple[Any, Any], ...] = ()
    few: bool = False

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @property
    def expressions(self) -> tuple[Any, ...]:
        """Every expression of the chain, both sides included."""
        return (self.lhs, *[step.after for step in self.steps])

    def check(self) -> bool:
        """Return whether the chain leads from `lhs` to `rhs` without gaps and every step checks."""
        return self.joined and all(step.check() for step in self.steps)

    @property
    def joined(self) -> bool:
        """Whether each step starts at the result of the previous one, from `lhs` to `rhs`."""
        ends = self.expressions
        joined = all(step.before == e for step, e in zip(self.steps, ends, strict=False))
        return joined and bool(ends[-1] == self.rhs)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The printed lines: consecutive uses of one rule, or bookkeeping steps, form one line.

        In a long chain, steps that only move brackets join an adjacent line. An outline has at most
        eight lines.
        """
        if self.few:
            groups = outlined(self.steps)
            return tuple(Line(group.steps[-1].after, group.steps, group.label) for group in groups)
        fine = _grouped(self.steps, frozenset())
        return fine if len(fine) <= FEW_LINES else _grouped(self.steps, BRACKETS)

    def outline(self) -> Derivation:
        """Return the same chain for reading: at most eight lines, each named by its idea.

        >>> from sympy import Identity, MatrixSymbol, Symbol
        >>> from otimes.algebra.explain.search import explain
        >>> from otimes.algebra.language.linear import kron, matmul
        >>> n, d = Symbol("n"), Symbol("d")
        >>> A, W = MatrixSymbol("A", n, n), MatrixSymbol("W", d, d)
        >>> chain = explain(matmul(kron(A, Identity(d)), kron(Identity(n), W)), kron(A, W))
        >>> print(chain.outline())
          (A ⊗ I_d) (I_n ⊗ W)
        = A ⊗ W                 mixed product
        """
        return replace(self, few=True)

    def preface(self, math: Callable[[Any], str]) -> str:
        """Return definitions of symbols, and the claims of a proof by induction, or "".

        `math` formats a formula.
        """
        names = [f"{math(name)} for {math(e)}" for name, e in self.opaque]
        if self.depth is None:
            return f"With {' and '.join(names)}:" if names else ""
        used = max((len(step.given) for step in self.steps), default=0)
        return (
            f"By induction over {math(self.depth)}. For one layer both sides are equal. "
            f"For one layer more than {math(self.depth)}, with {' and '.join(names)}, where "
            f"given_{used} is the claim for {math(self.depth)} layers:"
        )

    # -- renderers -----------------------------------------------------------------------------

    def text(self, width: int = WIDTH) -> str:
        """Return the chain as Unicode for a terminal, the rule at the side of each line.

        Lines have `width` columns, and at least 20.
        """
        width = max(width, NARROWEST)
        rows = [("  ", unicode_text(self.lhs), "")]
        rows += [("= ", unicode_text(line.expression), line.rules) for line in self.lines]
        column = min(max(len(expression) for _, expression, _ in rows) + 5, width // 2)
        preface = self.preface(unicode_text)
        shown = wrapped(preface, width, 2) if preface else []
        for sign, expression, rules in rows:
            first, *rest = wrapped(expression, width - 2, 2)
            if not rest and len(first) + 4 <= column and column + len(rules) <= width:
                first = f"{first:<{column - 2}}{rules}" if rules else first
            elif rules:
                shown += [f"    by {part}" for part in wrapped(rules, width - 7, 2)]
            shown += [sign + first, *[f"    {part}" for part in rest]]
        return "\n".join(shown)

    def latex(self) -> str:
        r"""Return the chain as a TeX `aligned`, the rule at the side of each line."""
        rows = [rf"&\phantom{{={{}}}} {latex(self.lhs)}"]
        rows += [rf"&= {latex(line.expression)} && {_tex_rules(line.rules)}" for line in self.lines]
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def markdown(self) -> str:
        """Return the chain as a numbered list: each expression, the rules used, their equations.

        A list and not a table, so that a long expression has the whole width of the page.
        """
        preface = self.preface(lambda e: f"${latex(e)}$")
        shown = [preface] if preface else []
        shown.append(f"$\\displaystyle {latex(self.lhs)}$")
        for number, line in enumerate(self.lines, 1):
            shown.append(
                f"{number}. by `{line.rules}` ({line.readings})\n\n"
                f"    $\\displaystyle = {latex(line.expression)}$"
            )
        return "\n\n".join(shown)

    def _repr_latex_(self) -> str:
        return f"$$\n{self.latex()}\n$$"

    def _repr_html_(self) -> str:
        cell = '<td style="text-align:left">'
        preface = self.preface(lambda e: f"${html.escape(latex(e))}$")
        rows = [f"<caption>{preface}</caption>"] if preface else []
        rows.append(f"<tr>{cell}${html.escape(latex(self.lhs))}$</td><td></td></tr>")
        rows += [
            f"<tr>{cell}$= {html.escape(latex(line.expression))}$</td>"
            f'{cell}<span title="{html.escape(line.readings)}">{html.escape(line.rules)}</span>'
            "</td></tr>"
            for line in self.lines
        ]
        return "<table>\n" + "\n".join(rows) + "\n</table>"

    def _repr_svg_(self) -> str:
        lines = [(line.expression, line.rules) for line in self.lines]
        return draw_steps([(self.lhs, ""), *lines])

    def __str__(self) -> str:
        return self.text()


@lru_cache(maxsize=8192)
def _proved(before: Any, after: Any, given: tuple[tuple[Any, Any], ...]) -> bool:
    """Return whether the judge proves an equation; the search asks it, and who checks its chain."""
    try:
        return decision(before, after, given).status == "proved"
    except OtimesError:  # one of the parts is not in the language
        return False


def one_step(before: Any, after: Any, given: tuple[tuple[Any, Any], ...] = ()) -> Step | None:
    """Return one step that rewrites `before` to `after`, or None.

    The smallest differing subexpression is tried first, then those that contain it.
    """
    if before == after:
        return None
    paths: list[Path] = [()]
    while (k := _only_difference(at(before, paths[-1]), at(after, paths[-1]))) is not None:
        paths.append((*paths[-1], k))
    known = list(hypotheses(given).values())
    for path in reversed(paths):
        old, new = at(before, path), at(after, path)
        rules = [*known, *_rules_between(old, new)]
        for rule, (reverse, left, right) in product(rules, ((False, old, new), (True, new, old))):
            if type(left) in rule.kinds and rule.relates(left, right):
                return Step(rule.name, path, reverse, before, after, given)
    return None


def _rules_between(old: Any, new: Any) -> tuple[Rule, ...]:
    """Return the rules that may relate two nodes, the coarse ones excepted.

    Those whose results are compared as they stand are among them only if one node is a result for
    the other.
    """
    kinds: Any = type(old), type(new)
    compared, others = _rules_of(*kinds)
    if hash(new) in _results(old) or hash(old) in _results(new):
        return compared
    return others


@cache
def _rules_of(*kinds: type) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Return the rules for these classes of nodes: all, and those that `_results` leaves out."""
    fine = [rule for rule in RULES.values() if not rule.coarse and {*kinds} & {*rule.kinds}]
    return tuple(fine), tuple(rule for rule in fine if not _compared(rule))


def _compared(rule: Rule) -> bool:
    """Return whether a rule relates a node to its results and to nothing else."""
    return rule.relate is None and not rule.binds


@lru_cache(maxsize=16_384)
def _results(e: Any) -> frozenset[int]:
    """Return the hashes of all results of such rules for a node."""
    kind: Any = type(e)
    rules, _ = _rules_of(kind)
    return frozenset(hash(new) for rule in rules if _compared(rule) for new in rule.results(e))


def _only_difference(a: Any, b: Any) -> int | None:
    """Return the position of the only argument in which two nodes of one class differ, or None."""
    if type(a) is not type(b) or len(a.args) != len(b.args):
        return None
    pairs = enumerate(zip(a.args, b.args, strict=True))
    # hashes, which SymPy keeps, tell most trees apart
    differing = [k for k, (x, y) in pairs if hash(x) != hash(y) or x != y]
    one = len(differing) == 1 and differing[0] in dict(children(a))
    return differing[0] if one else None


def _grouped(steps: Sequence[Step], silent: frozenset[str]) -> tuple[Line, ...]:
    """Return steps grouped into lines; a step by a rule in `silent` joins an adjacent line."""
    groups: list[list[Step]] = []
    for step in steps:
        if groups and _together(groups[-1], step, silent):
            groups[-1].append(step)
        else:
            groups.append([step])
    return tuple(Line(group[-1].after, tuple(group)) for group in groups)


def _together(line: list[Step], step: Step, silent: frozenset[str]) -> bool:
    """Return whether a step belongs on a line: the same rule, or bookkeeping on both sides."""
    named = [s for s in line if s.rule not in silent]
    if step.rule in silent or not named:
        return True
    if all(rule is not None and rule.bookkeeping for rule in (named[-1].named, step.named)):
        return True
    return named[-1].rule == step.rule and named[-1].reverse == step.reverse


def _tex_rules(rules: str) -> str:
    text = rules.replace("_", r"\_").replace("←", r"$\leftarrow$").replace("×", r"$\times$")
    return rf"\text{{{text}}}"
