r"""The parser of formulas: precedence climbing over tokens, to the tree of what was written.

From loose to tight: relations; + and −; products with a sign, as in `A \otimes B \cdot x`; ⊗, ⊙ and
∘; products without a sign; powers, subscripts and arguments. A sum sign takes the whole product on
its right. Where people disagree on how a formula is bracketed, as in `A / B C`, it is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from otimes.algebra.notation.expressions import Expressions, is_annotation
from otimes.algebra.notation.tokens import NotationError, tokenize
from otimes.algebra.notation.tree import (
    Dots,
    Name,
    Node,
    Space,
    Statement,
    bare,
    latex,
    walk,
)
from otimes.algebra.notation.vocabulary import (
    ARROWS,
    CONDITIONS,
    FUNCTIONS,
    JOINING,
    LINES,
    PRODUCTS,
    RELATIONS,
)


def parse_formula(
    formula: str,
    functions: Collection[str] = (),
    words: Collection[str] = (),
    plain: bool = False,
    values: Collection[str] = (),
) -> list[Statement]:
    r"""Return the statements of a formula, which commas, line breaks and words may separate.

    `functions` are letters that are functions where a bracket follows, `values` letters that are
    none; `words` are names of several letters. With `plain`, `W_OV` has the subscript OV, as in a
    terminal; LaTeX needs `W_{OV}`.
    Raises NotationError with the part of the formula that cannot be read.

    >>> (chain,) = parse_formula(r"h(x) = (A \otimes W) x = y", functions=["h"])
    >>> chain.relations
    ('=', '=')
    """
    known = (FUNCTIONS | frozenset(functions)) - frozenset(values)
    return list(_parsed(formula, known, frozenset(words), plain))


@lru_cache(maxsize=4096)
def _parsed(
    formula: str, functions: frozenset[str], words: frozenset[str], plain: bool
) -> tuple[Statement, ...]:
    return tuple(_Parser(tokenize(formula), functions, words, plain).statements())


def printed_back(
    statements: list[Statement], functions: Collection[str] = (), values: Collection[str] = ()
) -> bool:
    """Return whether the trees, printed as LaTeX, are read as the same trees."""
    words = {e.base for s in statements for e in walk(s) if isinstance(e, Name) and len(e.base) > 1}
    for statement in statements:
        try:
            again = parse_formula(latex(statement), functions, words, values=values)
        except NotationError:
            return False
        if again != [replace(statement, after="")]:
            return False
    return True


BESIDE_ARROWS = frozenset((r"\quad", "&", r"\\", ",", "."))


class _Parser(Expressions):
    """Reads the statements of a formula."""

    # -- statements --------------------------------------------------------------------------------

    def statements(self) -> list[Statement]:
        found: list[Statement] = []
        after = self._arrow()
        self._skip()
        while self.here is not None:
            statement = self.statement(after or self.condition)
            after = self.condition = ""
            if statement is not None:
                found.append(statement)
                if not statement.relations and self._is_verb():
                    if len(found) == 1 or statement.after not in CONDITIONS:
                        raise self.error("the formula has words where it needs a relation")
                    found.pop()  # `where x \text{ is the input}` describes, and states nothing
                    self._skip_line()
            if (arrow := self._arrow()) != "":
                after = arrow
                self._skip()
            elif self.here is not None and not self._skip() and not self._begins_anew(statement):
                raise self.error(f"{self.here.text!r} was not expected here")
        return _with_subjects(found)

    def _arrow(self) -> str:
        """Take an arrow between statements, with the space before it, and return it, or ""."""
        ahead = self.at
        while ahead < len(self.tokens) and self.tokens[ahead].text in BESIDE_ARROWS:
            ahead += 1
        if ahead == len(self.tokens) or self.tokens[ahead].text not in ARROWS:
            return ""
        self.at = ahead
        return self.take().text

    def _begins_anew(self, last: Statement | None) -> bool:
        """Return whether a statement follows a membership in a space, without a comma."""
        return last is not None and isinstance(last.terms[-1], Space) and self.begins_factor()

    def _skip(self) -> bool:
        """Skip what separates statements, and the numbers of equations."""
        start = self.at
        while self.here is not None:
            here = self.here
            if here.text in (",", ";", ".", r"\quad", "&", r"\\", r"\tag", r"\hline"):
                self.take()
                if here.text == r"\tag":
                    self.raw_group()
                if here.text == r"\\" and self.is_at("["):
                    self._skip_to("]")
            elif self._is_described():
                self.at += 2
            elif here.kind == "word" and self._is_aside(here.text.strip()):
                word = self.take().text.replace(",", " ").lower().split()
                if word and word[0] in CONDITIONS:
                    self.condition = word[0]
            elif here.text in (r"\begin", r"\end"):
                name = self._environment_ahead()
                if name not in LINES:
                    break
                self.take()
                self.raw_group()
                if self.is_at("{"):  # the columns of an array
                    self.raw_group()
            elif self._is_number_of_equation():
                self.at += 3
            elif here.text == "?" and self.at + 1 == len(self.tokens):
                self.take()
            else:
                break
        return self.at > start

    def _is_described(self) -> bool:
        r"""Return whether words with a colon follow: `\text{Input} : X`, `n : \text{length}`."""
        pair = self.tokens[self.at : self.at + 2]
        after = self.tokens[self.at + 2].text if self.at + 2 < len(self.tokens) else ""
        if len(pair) < 2 or after == "=" or self._maps():
            return False
        first, second = ((token.kind == "word", token.text == ":") for token in pair)
        return (first[0] and second[1]) or (first[1] and second[0])

    def _is_verb(self) -> bool:
        r"""Return whether words that join nothing follow: `a \text{ is monotonic with } b`."""
        here = self.here
        words = here.text.replace(",", " ").lower().split() if here and here.kind == "word" else []
        joins = bool(words) and (words[0] in JOINING or words[0][0] in "([")
        return bool(words) and not joins and self.at + 1 < len(self.tokens)

    def _is_aside(self, text: str) -> bool:
        """Return whether words stand between statements, and begin none."""
        after = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        begins = after is not None and (
            after.text in RELATIONS or after.text in (*PRODUCTS, "+", "-", "^", "_", "(", ":")
        )
        joins = text.rstrip(",").lower() in JOINING
        return joins or (is_annotation(text) and not (begins and text[:1] not in "(["))

    def _is_number_of_equation(self) -> bool:
        part = self.tokens[self.at : self.at + 3]
        after_space = self.at > 0 and self.tokens[self.at - 1].text in (r"\quad", ".", ",")
        texts = [token.text for token in part]
        return (
            after_space
            and len(part) == 3
            and texts[0] == "("
            and texts[2] == ")"
            and (part[1].kind == "number" and self.at + 3 == len(self.tokens))
        )

    def _skip_line(self) -> None:
        """Skip what follows in a line, as far as it is not closed."""
        while self.here is not None and not self.is_at(r"\\", r"\end"):
            self.take()

    def _skip_to(self, text: str) -> None:
        while self.here is not None and self.take().text != text:
            pass

    def statement(self, after: str) -> Statement | None:
        start = self.at
        begins = self.here is not None and self.here.text in RELATIONS - {r"\xrightarrow"}
        # a line that goes on a chain, of which the left side is not repeated
        terms: list[Node] = [Dots("", span=self.from_(start)) if begins else self.expression()]
        relations: list[str] = []
        while True:
            self.line_breaks()
            relation = self.relation()
            if relation is None:
                break
            relations.append(relation)
            self.line_breaks()
            terms.append(self.space() if relation in (r"\in", r"\notin") else self.expression())
        return Statement(tuple(terms), tuple(relations), (), after, span=self.from_(start))

    def line_breaks(self) -> None:
        r"""Skip `&` and `\\` inside a chain that goes on in the next line."""
        if self.in_cell:  # there they separate entries
            return
        ahead = self.at
        while ahead < len(self.tokens) and self.tokens[ahead].text in ("&", r"\\", r"\quad"):
            ahead += 1
        begins = ahead < len(self.tokens) and self.tokens[ahead].kind != "word"
        goes_on = self.at > 0 and self.tokens[self.at - 1].text in RELATIONS
        if begins and self._states_anew(ahead):
            return
        if goes_on or (begins and self.tokens[ahead].text in RELATIONS | {"+", "-"}):
            self.at = ahead

    def _states_anew(self, ahead: int) -> bool:
        r"""Return whether a row begins with a sign and has a left side: `x &= y \\ -z &= w`.

        A row that only goes on begins with `&`, or has no relation.
        """
        sign = self.tokens[ahead].text in ("+", "-")
        if not sign or self.tokens[ahead - 1].text != r"\\":
            return False
        row = [token.text for token in self.tokens[ahead:]]
        row = row[: row.index(r"\\")] if r"\\" in row else row
        related = any(token.text in RELATIONS for token in self.tokens[:ahead])
        return related and any(a == "&" and b in RELATIONS for a, b in pairwise(row))

    def relation(self) -> str | None:
        here = self.here
        if here is None or here.kind == "word":
            return None
        if here.text in (r"\overset", r"\stackrel", r"\underset"):
            mark = self.at
            self.take()
            self.raw_group()
            inner = self.raw_group()
            if len(inner) == 1 and inner[0].text in RELATIONS:
                return inner[0].text
            self.at = mark
            return None
        if (
            here.text == ":"
            and self.at + 1 < len(self.tokens)
            and (self.tokens[self.at + 1].text == "=")
        ):
            self.at += 2
            return ":="
        if here.text in RELATIONS:
            self.take()
            if here.text == "==":
                return "="
            return here.text
        if here.text == ":" and not self.inside and self._maps():
            return self.take().text
        return None

    def _maps(self) -> bool:
        r"""Return whether a colon introduces sets between which a function maps."""
        return any(token.text in (r"\to", r"\longrightarrow") for token in self.tokens[self.at :])


def _with_subjects(statements: list[Statement]) -> list[Statement]:
    r"""Join the symbols of `A, B \in …` to the membership."""
    found: list[Statement] = []
    waiting: list[Statement] = []
    for statement in statements:
        if not statement.relations and isinstance(bare(statement.terms[0]), Name):
            waiting.append(statement)
            continue
        if statement.relations[:1] == (r"\in",) and waiting:
            subjects = tuple(each.terms[0] for each in waiting)
            span = (waiting[0].span[0], statement.span[1])
            statement = replace(statement, subjects=subjects, span=span)
            waiting = []
        found += [*waiting, statement]
        waiting = []
    return found + waiting
