r"""The parser of formulas: precedence climbing over tokens, to the tree of what was written.

From loose to tight: relations; + and −; products with a sign, as in `A \otimes B \cdot x`; ⊗, ⊙ and
∘; products without a sign; powers, subscripts and arguments. A sum sign takes the whole product on
its right. Where people disagree on how a formula is bracketed, as in `A / B C`, it is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache

from otimes.algebra.notation.slots import slots_of, split_operations, written
from otimes.algebra.notation.tokens import NotationError, Token, tokenize
from otimes.algebra.notation.tree import (
    Apply,
    Dots,
    Entry,
    Fraction,
    Grid,
    Group,
    Indexed,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Root,
    Space,
    Statement,
    Sum,
    Tensor,
    bare,
    latex,
    restyled,
    walk,
)
from otimes.algebra.notation.vocabulary import (
    ACCENTS,
    ARROWS,
    BIG,
    CONDITIONS,
    DOTS,
    FUNCTIONS,
    GREEK,
    JOINING,
    LINES,
    MATRICES,
    NAMED,
    PREFIXED,
    PREFIXES,
    PRODUCTS,
    RELATIONS,
    STYLES,
    TENSORS,
    WORDS,
)

DEEPEST = 40  # brackets within brackets
CLOSING = {"(": ")", "[": "]", r"\{": r"\}", r"\langle": r"\rangle"}


def parse_formula(
    formula: str, functions: Collection[str] = (), words: Collection[str] = (), plain: bool = False
) -> list[Statement]:
    r"""Return the statements of a formula, which commas, line breaks and words may separate.

    `functions` are letters that are functions where a bracket follows; `words` are names of several
    letters. With `plain`, `W_OV` has the subscript OV, as in a terminal; LaTeX needs `W_{OV}`.
    Raises NotationError with the part of the formula that cannot be read.

    >>> (chain,) = parse_formula(r"h(x) = (A \otimes W) x = y", functions=["h"])
    >>> chain.relations
    ('=', '=')
    """
    return list(_parsed(formula, frozenset(functions), frozenset(words), plain))


@lru_cache(maxsize=4096)
def _parsed(
    formula: str, functions: frozenset[str], words: frozenset[str], plain: bool
) -> tuple[Statement, ...]:
    return tuple(_Parser(tokenize(formula), functions, words, plain).statements())


def printed_back(statements: list[Statement], functions: Collection[str] = ()) -> bool:
    """Return whether the trees, printed as LaTeX, are read as the same trees."""
    words = {e.base for s in statements for e in walk(s) if isinstance(e, Name) and len(e.base) > 1}
    for statement in statements:
        try:
            again = parse_formula(latex(statement), functions, words)
        except NotationError:
            return False
        if again != [replace(statement, after="")]:
            return False
    return True


class _Parser:
    def __init__(
        self,
        tokens: list[Token],
        functions: Collection[str],
        words: Collection[str],
        plain: bool,
    ) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.condition = ""  # the word that makes what follows a condition
        self.bars = 0  # norms that are open, so that a bar closes one
        self.functions = FUNCTIONS | frozenset(functions)
        self.words = WORDS | frozenset(words)
        self.plain = plain

    # -- the stream of tokens ----------------------------------------------------------------------

    @property
    def here(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def is_at(self, *texts: str) -> bool:
        here = self.here
        return here is not None and here.kind != "word" and here.text in texts

    def take(self) -> Token:
        token = self.here
        if token is None:
            raise self.error("the formula ends too early")
        self.at += 1
        return token

    def expect(self, text: str, opened: Token) -> Token:
        if not self.is_at(text):
            found = "the end" if self.here is None else f"{self.here.text!r}"
            raise NotationError(
                f"{opened.text!r} is not closed: {text!r} was expected and {found} found",
                (opened.start, opened.end),
            )
        return self.take()

    def error(self, message: str) -> NotationError:
        token = self.here or (self.tokens[-1] if self.tokens else None)
        return NotationError(message, (token.start, token.end) if token else (0, 0))

    def from_(self, start: int) -> tuple[int, int]:
        """Return the offsets from a token to the last one taken."""
        if start >= len(self.tokens):
            return (0, 0)
        return self.tokens[start].start, self.tokens[max(self.at - 1, start)].end

    # -- statements --------------------------------------------------------------------------------

    def statements(self) -> list[Statement]:
        found: list[Statement] = []
        after = ""
        self._skip()
        while self.here is not None:
            statement = self.statement(after or self.condition)
            after = self.condition = ""
            if statement is not None:
                found.append(statement)
            if self.here is not None and self.here.text in ARROWS:
                after = self.take().text
            elif self.here is not None and not self._skip():
                raise self.error(f"{self.here.text!r} was not expected here")
        return _with_subjects(found)

    def _skip(self) -> bool:
        """Skip what separates statements, and the numbers of equations."""
        start = self.at
        while self.here is not None:
            here = self.here
            if here.text in (",", ";", ".", r"\quad", "&", r"\\", r"\tag", r"\hline"):
                self.take()
                if here.text == r"\tag":
                    self._raw_group()
                if here.text == r"\\" and self.is_at("["):
                    self._skip_to("]")
            elif here.kind == "word" and here.text.strip().rstrip(",").lower() in JOINING:
                word = self.take().text.strip().rstrip(",").lower()
                self.condition = word if word in CONDITIONS else self.condition
            elif here.text in (r"\begin", r"\end"):
                name = self._environment_ahead()
                if name not in LINES:
                    break
                self.take()
                self._raw_group()
                if self.is_at("{"):  # the columns of an array
                    self._raw_group()
            elif self._is_number_of_equation():
                self.at += 3
            else:
                break
        return self.at > start

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

    def _skip_to(self, text: str) -> None:
        while self.here is not None and self.take().text != text:
            pass

    def statement(self, after: str) -> Statement | None:
        start = self.at
        if self.here is not None and self.here.text in RELATIONS:  # a line that goes on a chain
            raise self.error(f"nothing stands to the left of {self.here.text!r}")
        terms = [self.expression()]
        relations: list[str] = []
        while True:
            self._line_breaks()
            relation = self._relation()
            if relation is None:
                break
            relations.append(relation)
            self._line_breaks()
            terms.append(self.space() if relation in (r"\in", r"\notin") else self.expression())
        return Statement(tuple(terms), tuple(relations), (), after, span=self.from_(start))

    def _line_breaks(self) -> None:
        r"""Skip `&` and `\\` inside a chain that goes on in the next line."""
        ahead = self.at
        while ahead < len(self.tokens) and self.tokens[ahead].text in ("&", r"\\", r"\quad"):
            ahead += 1
        begins = ahead < len(self.tokens) and self.tokens[ahead].kind != "word"
        moved = any(token.text == "&" for token in self.tokens[self.at : ahead])
        if (
            begins
            and (self.tokens[ahead].text in RELATIONS or self.tokens[ahead].text in ("+", "-"))
        ) or (moved and self.at > 0 and self.tokens[self.at - 1].text in RELATIONS):
            self.at = ahead

    def _relation(self) -> str | None:
        here = self.here
        if here is None or here.kind == "word":
            return None
        if here.text in (r"\overset", r"\stackrel", r"\underset"):
            mark = self.at
            self.take()
            self._raw_group()
            inner = self._raw_group()
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
        return None

    # -- sums and products -------------------------------------------------------------------------

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"brackets are nested more than {DEEPEST} deep")
        start = self.at
        signs = [self._sign()]
        terms = [self.dotted()]
        while True:
            self._line_breaks()
            if not self.is_at("+", "-", r"\pm"):
                break
            if self.is_at(r"\pm"):
                raise self.error("± states two things at once")
            signs.append(self._sign())
            terms.append(self.dotted())
        self.depth -= 1
        if len(terms) == 1 and not signs[0]:
            return terms[0]
        return Sum(tuple(terms), tuple(signs), span=self.from_(start))

    def _sign(self) -> str:
        return self.take().text if self.is_at("+", "-") else ""

    def dotted(self) -> Node:
        """Read factors joined by signs, which bind less than ⊗, and ⊗ less than none."""
        start = self.at
        parts = [self.tensor()]
        marks = [""]
        while self.is_at(*PRODUCTS - {"/"}):
            mark = self.take().text
            marks.append(r"\cdot" if mark == "*" else mark)
            parts.append(self.tensor())
        if len(parts) == 1:
            return parts[0]
        factors: list[Node] = []
        signs: list[str] = []
        for part, mark in zip(parts, marks, strict=True):
            inner = part.marks if isinstance(part, Product) else ("",)
            if "/" in inner and mark:
                raise NotationError("what is divided is not clear: write brackets", part.span)
            factors += part.factors if isinstance(part, Product) else [part]
            signs += [mark, *inner[1:]]
        return Product(tuple(factors), tuple(signs), span=self.from_(start))

    def tensor(self) -> Node:
        start = self.at
        factors = [self.product()]
        mark = ""
        while self.here is not None and self.here.text in TENSORS and self.here.kind != "word":
            here = self.take()
            if mark and here.text != mark:
                raise NotationError(
                    f"{mark} and {here.text} stand side by side: write brackets",
                    (here.start, here.end),
                )
            mark = here.text
            factors.append(self.product())
        if not mark:
            return factors[0]
        return Tensor(mark, tuple(factors), span=self.from_(start))

    def product(self) -> Node:
        start = self.at
        factors = [self.factor()]
        marks = [""]
        while True:
            if self.is_at("/"):
                mark = self.take().text
            elif self.begins_factor():
                mark = ""
            else:
                break
            if marks[-1] == "/" and mark == "":
                raise self.error("what is divided by is not clear: write brackets")
            factors.append(self.factor())
            marks.append(mark)
        if len(factors) == 1:
            return factors[0]
        return Product(tuple(factors), tuple(marks), span=self.from_(start))

    def begins_factor(self) -> bool:
        here = self.here
        if here is None:
            return False
        if here.kind in ("letter", "number"):
            return True
        if here.kind == "word":
            return here.text.strip() in self.words or (
                " " not in here.text.strip() and here.text.strip().lower() not in JOINING
            )
        if here.kind == "command":
            text = here.text
            if text == r"\begin":
                return self._environment_ahead() in MATRICES
            if text in (r"\overset", r"\stackrel", r"\underset"):
                return False
            return (
                text in GREEK or text in STYLES or text in ACCENTS or text in BIG
                or text in NAMED or text in PREFIXED or text in DOTS - {r"\leftarrow", r"\to"}
                or text in (r"\frac", r"\sqrt", r"\langle", r"\underbrace", r"\overbrace",
                            r"\boxed", r"\textcolor", r"\mathop", r"\lfloor", r"\lceil")
            )  # fmt: skip
        return here.text in ("(", "[", r"\{", "{") or (here.text in ("|", r"\|") and not self.bars)

    # -- factors -----------------------------------------------------------------------------------

    def factor(self) -> Node:
        here = self.here
        if here is not None and here.kind == "command" and here.text in BIG:
            return self.indexed()
        if here is not None and here.text == r"\Sigma" and self._next_is("_"):
            return self.indexed()
        return self.postfix()

    def _next_is(self, text: str) -> bool:
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].text == text

    def indexed(self) -> Node:
        start = self.at
        opened = self.take()
        mark = r"\sum" if opened.text == r"\Sigma" else opened.text
        below: list[Token] = []
        upper: Node | None = None
        while self.is_at("_", "^"):
            if self.take().text == "_":
                below = self._script()
            else:
                upper = self._parsed(self._script())
        if not below:
            raise NotationError("a sum or product without an index", (opened.start, opened.end))
        indices, kind, lower = _range(below, opened)
        if self.here is None or not self._begins_body():
            raise NotationError(
                f"nothing is summed after {written(self.tokens[start : self.at])}",
                (opened.start, self.tokens[self.at - 1].end),
            )
        body = self.dotted()
        return Indexed(mark, indices, kind, lower, upper, body, span=self.from_(start))

    def _begins_body(self) -> bool:
        return self.begins_factor()

    def postfix(self) -> Node:
        start = self.at
        atom = self.atom()
        return self.suffixes(atom, start)

    def suffixes(self, atom: Node, start: int) -> Node:
        while True:
            if self.is_at("'", "''", "'''"):
                count = len(self.take().text)
                if not isinstance(atom, Name):
                    raise self.error("a prime stands after a bracket")
                atom = replace(atom, marks=atom.marks + ("'",) * count, span=self.from_(start))
            elif self.is_at("_"):
                self.take()
                atom = self._subscript(atom, self._script(subscript=True), start)
            elif self.is_at("^"):
                self.take()
                atom = self._superscript(atom, self._script(), start)
            elif self.is_at("[") and isinstance(atom, Name | Group) and self._is_entry():
                atom = self._entry(atom, start)
            elif self.is_at("(") and isinstance(atom, Name) and self._is_call(atom):
                atom = self._call(atom, start)
            else:
                return atom

    def _subscript(self, atom: Node, tokens: list[Token], start: int) -> Node:
        if not tokens:
            raise self.error("a subscript is empty")
        if isinstance(atom, Name):
            select = ""
            texts = [token.text for token in tokens]
            if "[" in texts and texts[-1] == "]":
                k = texts.index("[")
                select = written(tokens[k + 1 : -1])
                tokens = tokens[:k]
            if atom.sub and atom.sub != slots_of(tokens):
                raise self.error("two subscripts follow each other")
            return replace(atom, sub=slots_of(tokens), select=select, span=self.from_(start))
        if isinstance(atom, Power) and isinstance(atom.base, Norm):
            base = replace(atom.base, kind=written(tokens))
            return replace(atom, base=base, span=self.from_(start))
        if isinstance(atom, Norm):
            return replace(atom, kind=written(tokens), span=self.from_(start))
        if isinstance(atom, Apply):
            return replace(atom, below=slots_of(tokens), span=self.from_(start))
        if isinstance(atom, Group):
            return Entry(atom, slots_of(tokens), span=self.from_(start))
        raise self.error("a subscript follows what cannot have one")

    def _superscript(self, atom: Node, tokens: list[Token], start: int) -> Node:
        if not tokens:
            raise self.error("a superscript is empty")
        if [t.text for t in tokens] in (["'"], ["''"]) and isinstance(atom, Name):
            return replace(atom, marks=(*atom.marks, "'"), span=self.from_(start))
        operations, rest = split_operations(tokens)
        if rest and isinstance(atom, Name):
            primes = [t for t in rest if t.text == "'"]
            rest = [t for t in rest if t.text != "'"]
            if atom.sup:
                raise self.error("two superscripts follow each other")
            marks = atom.marks + ("'",) * len(primes)
            atom = replace(atom, sup=slots_of(rest), marks=marks, span=self.from_(start))
        elif rest:
            atom = Power(atom, self._parsed(rest), span=self.from_(start))
        for operation in operations:
            atom = Power(atom, operation, span=self.from_(start))
        return atom

    def _is_entry(self) -> bool:
        """Return whether a square bracket right after a name selects an entry: it has a comma."""
        if self.here is None or self.here.spaced:
            return False
        depth = 0
        for token in self.tokens[self.at :]:
            depth += (token.text == "[") - (token.text == "]")
            if token.text == "," and depth == 1:
                return True
            if depth == 0 or token.text in RELATIONS:
                return False
        return False

    def _entry(self, atom: Node, start: int) -> Node:
        opened = self.take()
        inside: list[Token] = []
        while self.here is not None and not self.is_at("]"):
            inside.append(self.take())
        self.expect("]", opened)
        if any(token.text == ":" for token in inside) and isinstance(atom, Name):
            return replace(atom, select=written(inside), span=self.from_(start))
        return Entry(atom, slots_of(inside), span=self.from_(start))

    def _is_call(self, atom: Name) -> bool:
        return atom.base in self.functions

    def _call(self, atom: Name, start: int) -> Node:
        opened = self.take()
        arguments = [self.expression()]
        while self.is_at(",", ";"):
            self.take()
            arguments.append(self.expression())
        self.expect(")", opened)
        return Apply(atom, tuple(arguments), span=self.from_(start))

    # -- atoms -------------------------------------------------------------------------------------

    def atom(self) -> Node:
        start = self.at
        token = self.here
        if token is None:
            raise self.error("the formula ends too early")
        if token.kind == "number":
            self.take()
            return Number(token.text, span=self.from_(start))
        if token.kind == "letter":
            return self._letters(start)
        if token.kind == "word":
            return self._word(start)
        if token.text in ("(", "[", r"\{", r"\langle"):
            return self._brackets(start)
        if token.text == "{":
            opened = self.take()
            inner = self.expression()
            self.expect("}", opened)
            return (
                inner
                if not isinstance(inner, Sum | Product | Tensor | Indexed)
                else Group(inner, span=self.from_(start))
            )
        if token.text in (r"\|", "|"):
            return self._norm(start)
        if token.kind == "command":
            return self._command(start)
        raise self.error(f"{token.text!r} was not expected here")

    def _letters(self, start: int) -> Name:
        """Read a letter, or a run of letters that is a known word."""
        end = self.at + 1
        while end < len(self.tokens) and (
            self.tokens[end].kind == "letter" and not self.tokens[end].spaced
        ):
            end += 1
        run = "".join(token.text for token in self.tokens[self.at : end])
        first = self.at == 0 or self.tokens[self.at - 1].kind != "letter" or self.here.spaced  # type: ignore[union-attr]
        if len(run) > 1 and first and run in self.words:
            self.at = end
            return Name(run, span=self.from_(start))
        return Name(self.take().text, span=self.from_(start))

    def _word(self, start: int) -> Node:
        token = self.take()
        text = token.text.strip()
        before = self.tokens[self.at - 2].text if self.at > 1 else ""
        bracketed = before == "(" and self.is_at(")") and text.replace(" ", "").isalnum()
        plain = " " not in text and text.replace("-", "").replace(".", "").isalnum()
        if not (plain or bracketed):
            raise NotationError(f"words stand in the formula: {text!r}", (token.start, token.end))
        name = Name(text, span=self.from_(start))
        if text in PREFIXES:
            return self._applied(name, start)
        if self.is_at("(") and text not in self.functions and len(text) > 1:
            return self.suffixes(self._call(name, start), start)
        return name

    def _applied(self, name: Name, start: int) -> Node:
        """Read what a function such as tr or log is applied to without brackets."""
        if not self.is_at("(", "_", "^", r"\{", "[") and self.begins_factor():
            return Apply(name, (self.factor(),), span=self.from_(start))
        return name

    def _brackets(self, start: int) -> Node:
        opened = self.take()
        close = CLOSING[opened.text]
        rows: list[list[Node]] = [[]]
        bars, self.bars = self.bars, 0
        while True:
            self._line_breaks()
            rows[-1].append(self.expression())
            if self.is_at(",") and opened.text != r"\{":
                self.take()
            elif self.is_at(";"):
                self.take()
                rows.append([])
            else:
                break
        self.expect(close, opened)
        self.bars = bars
        if opened.text == r"\langle":
            if len(rows) == 1 and len(rows[0]) == 2:
                return Apply(Name("inner"), tuple(rows[0]), span=self.from_(start))
            raise NotationError("an inner product has two arguments", self.from_(start))
        if len(rows) == 1 and len(rows[0]) == 1:
            return Group(rows[0][0], opened.text, span=self.from_(start))
        if opened.text == "[":
            return Grid(tuple(map(tuple, rows)), span=self.from_(start))
        if opened.text == "(" and len(rows) == 1:
            return Grid((tuple(rows[0]),), "(", span=self.from_(start))
        raise NotationError("a list in these brackets is not read", self.from_(start))

    def _norm(self, start: int) -> Node:
        opened = self.take()
        double = opened.text == r"\|"
        if opened.text == "|" and self.is_at("|") and not self.here.spaced:  # type: ignore[union-attr]
            self.take()
            double = True
        bars, self.bars = self.bars, 1
        inner = self.expression()
        if opened.text == r"\|":
            self.expect(r"\|", opened)
        else:
            self.expect("|", opened)
            if double:
                self.expect("|", opened)
        self.bars = bars
        mark = r"\|" if double else "|"
        return Norm(inner, "", mark, span=self.from_(start))

    def _command(self, start: int) -> Node:
        token = self.take()
        text = token.text
        if text in GREEK:
            return Name(text, span=self.from_(start))
        if text in NAMED:
            name = Name(NAMED[text], span=self.from_(start))
            return self._applied(name, start)
        if text in STYLES:
            return self._styled(STYLES[text], start)
        if text in ACCENTS:
            return self._accented(text[1:], start)
        if text in PREFIXED:
            name = Name(text)
            while self.is_at("_", "^"):
                mark = self.take().text
                slots = slots_of(self._script())
                name = replace(name, sub=slots) if mark == "_" else replace(name, sup=slots)
            return Apply(name, (self.postfix(),), span=self.from_(start))
        if text == r"\frac":
            return Fraction(self._one(), self._one(), span=self.from_(start))
        if text == r"\sqrt":
            degree = ""
            if self.is_at("["):
                self.take()
                while self.here is not None and not self.is_at("]"):
                    degree += self.take().text
                self.take()
            return Root(self._one(), degree, span=self.from_(start))
        if text == r"\begin":
            return self._matrix(token, start)
        if text in (r"\underbrace", r"\overbrace", r"\boxed", r"\mathop"):
            inner = self._one()
            if text.endswith("brace") and self.is_at("_", "^"):
                self.take()
                self._script()
            return Group(inner, span=self.from_(start))
        if text == r"\textcolor":
            self._raw_group()
            return self._one()
        if text in DOTS:
            return Dots(text, span=self.from_(start))
        if text == r"\mathrm" or text in (r"\text", r"\operatorname"):
            raise NotationError(f"the argument of {text} is not closed", (token.start, token.end))
        raise NotationError(f"{text} is not known", (token.start, token.end))

    def _styled(self, style: str, start: int) -> Node:
        if style == "bb" and self._is_real_space():
            raise NotationError("a space stands where a formula should", self.from_(start))
        if not self.is_at("{"):
            token = self.here
            if token is not None and token.kind in ("letter", "number"):
                self.take()
                return Name(token.text, style, span=self.from_(start))
            return restyled(self.atom(), style)
        opened = self.take()
        inner = self.expression()
        self.expect("}", opened)
        if isinstance(inner, Number):
            return Name(inner.text, style, span=self.from_(start))
        styled: Node = restyled(inner, style)
        if isinstance(styled, Name):
            return replace(styled, span=self.from_(start))
        return Group(styled, span=self.from_(start)) if not isinstance(styled, Power) else styled

    def _is_real_space(self) -> bool:
        texts = [token.text for token in self.tokens[self.at : self.at + 2]]
        return texts[:1] == ["R"] or texts == ["{", "R"]

    def _accented(self, accent: str, start: int) -> Node:
        inner = self._one()
        inner = bare(inner)
        if isinstance(inner, Name):
            return replace(inner, marks=(*inner.marks, accent), span=self.from_(start))
        raise NotationError(f"\\{accent} stands over more than a symbol", self.from_(start))

    def _one(self) -> Node:
        """Read the argument of a command: a braced expression or a single token."""
        start = self.at
        if self.is_at("{"):
            opened = self.take()
            inner = self.expression()
            self.expect("}", opened)
            return inner
        token = self.here
        if (
            token is not None
            and token.kind == "number"
            and len(token.text) > 1
            and ("." not in token.text)
        ):  # \frac12
            first = replace_token(token, token.text[0], token.start, token.start + 1)
            rest = replace_token(token, token.text[1:], token.start + 1, token.end)
            self.tokens[self.at : self.at + 1] = [first, rest]
        if token is not None and token.kind in ("letter", "number"):
            self.take()
            cls = Name if token.kind == "letter" else Number
            return cls(token.text if token.kind == "letter" else self.tokens[start].text,
                       span=self.from_(start))  # fmt: skip
        return self.atom()

    def _matrix(self, begun: Token, start: int) -> Node:
        name = "".join(token.text for token in self._raw_group())
        if name not in MATRICES:
            raise NotationError(
                f"the environment {name} is not read here", (begun.start, begun.end)
            )
        if name == "array" and self.is_at("{"):
            self._raw_group()
        rows: list[list[Node | None]] = [[]]
        filled = False
        while True:
            here = self.here
            if here is None:
                raise NotationError(f"{name} is not closed", (begun.start, begun.end))
            if self.is_at("&"):
                self.take()
                if not filled:
                    rows[-1].append(None)
                filled = False
            elif self.is_at(r"\\"):
                self.take()
                if not filled:
                    rows[-1].append(None)
                rows.append([])
                filled = False
            elif self.is_at(r"\hline"):
                self.take()
            elif self.is_at(r"\end"):
                self.take()
                self._raw_group()
                break
            else:
                rows[-1].append(self._cell())
                filled = True
        if rows[-1] and not filled:
            rows[-1].append(None)
        if not rows[-1]:
            rows.pop()
        return Grid(tuple(map(tuple, rows)), span=self.from_(start))

    def _cell(self) -> Node:
        """Read one cell; arrows and dots around it show that it is a row or a column."""
        start = self.at
        parts: list[Node] = []
        while self.here is not None and not self.is_at("&", r"\\", r"\end"):
            if self.here.text in DOTS or self.here.text in (r"\uparrow", r"\downarrow"):
                token = self.take()
                parts.append(Dots(token.text, span=(token.start, token.end)))
            else:
                parts.append(self.expression())
        if len(parts) == 1:
            return parts[0]
        return Product(tuple(parts), ("",) * len(parts), span=self.from_(start))

    # -- raw parts ---------------------------------------------------------------------------------

    def _environment_ahead(self) -> str:
        texts = []
        for token in self.tokens[self.at + 1 : self.at + 40]:
            if token.text == "}":
                break
            texts.append(token.text)
        return "".join(texts).lstrip("{")

    def _raw_group(self) -> list[Token]:
        """Return the tokens of a braced group, or the next token."""
        opened = self.take()
        if opened.text != "{":
            return [opened]
        inside: list[Token] = []
        depth = 1
        while True:
            token = self.here
            if token is None:
                raise NotationError("'{' is not closed", (opened.start, opened.end))
            self.take()
            depth += (token.text == "{") - (token.text == "}")
            if depth == 0:
                return inside
            inside.append(token)

    def _script(self, subscript: bool = False) -> list[Token]:
        if self.here is None:
            raise self.error("a subscript or superscript is empty")
        if self.is_at("{"):
            return [t for t in self._raw_group() if t.text != r"\scriptsize"]
        if self.is_at(*STYLES):
            return [self.take(), *self._braced()]
        run = [self.take()]
        if (
            run[0].text in ("-", "+")
            and not subscript
            and self.here is not None
            and (self.here.kind == "number")
        ):
            run.append(self.take())
        if self.plain and subscript and run[0].kind in ("letter", "number"):
            while (
                self.here is not None
                and self.here.kind in ("letter", "number")
                and (not self.here.spaced)
            ):
                run.append(self.take())
        return run

    def _braced(self) -> list[Token]:
        if not self.is_at("{"):
            return [self.take()]
        first = self.tokens[self.at]
        inside = self._raw_group()
        last = self.tokens[self.at - 1]
        return [first, *inside, last]

    def _parsed(self, tokens: list[Token]) -> Node:
        """Parse the tokens of a script as an expression."""
        inner = _Parser(tokens, self.functions, self.words, self.plain)
        inner.depth = self.depth + 1
        found = inner.expression()
        if inner.here is not None:
            raise inner.error(f"{inner.here.text!r} was not expected here")
        return found

    def space(self) -> Node:
        """Read what stands to the right of ∈: a space of matrices, or a set."""
        start = self.at
        if not (self.is_at(r"\mathbb") or self.is_at("R")):
            return self.expression()
        mark = self.at
        self.take()
        inside = self._raw_group() if self.tokens[mark].text == r"\mathbb" else [self.tokens[mark]]
        if not inside or inside[0].text != "R":
            self.at = mark
            return self.expression()
        sizes = inside[2:] if len(inside) > 2 and inside[1].text == "^" else []
        if sizes and sizes[0].text == "{":
            sizes = sizes[1:-1]
        if self.is_at("^"):
            self.take()
            sizes = self._script()
        parts: list[list[Token]] = [[]]
        for token in sizes:
            if token.text in (r"\times", ",") or (token.text == "x" and self.plain):
                parts.append([])
            else:
                parts[-1].append(token)
        if parts == [[]]:
            return Space((), span=self.from_(start))
        if not all(parts):
            raise NotationError("a size is missing", self.from_(start))
        return Space(tuple(self._parsed(part) for part in parts), span=self.from_(start))


def replace_token(token: Token, text: str, start: int, end: int) -> Token:
    """Return a token with another text, at other offsets."""
    return Token(token.kind, text, start, end, token.spaced)


def _range(below: list[Token], opened: Token) -> tuple[tuple[str, ...], str, str]:
    """Return the indices that a sum binds, the kind of its range, and what the range is."""
    texts = [token.text for token in below]
    for relation, kind in (("=", "from"), (r"\in", "in")):
        if relation in texts:
            at = texts.index(relation)
            left, right = below[:at], below[at + 1 :]
            names = _indices(left, opened)
            if not right:
                raise NotationError("the range of a sum is empty", (opened.start, opened.end))
            return names, kind, written(right)
    relations = [k for k, text in enumerate(texts) if text in (r"\le", "<", r"\ge", ">", r"\ne")]
    if relations:
        return _bound_by(below, relations, opened), "range", written(below)
    return _indices(below, opened), "all", ""


def _bound_by(below: list[Token], relations: list[int], opened: Token) -> tuple[str, ...]:
    r"""Return the index of a condition such as `j \le i`: the letter on its left side."""
    first = slots_of(below[: relations[0]])
    if len(first) == 1 and first[0].kind == "index" and len(relations) == 1:
        return (first[0].text,)
    if len(relations) == 2:
        middle = slots_of(below[relations[0] + 1 : relations[1]])
        if len(middle) == 1 and middle[0].kind == "index":
            return (middle[0].text,)
    raise NotationError("it is not clear what a sum runs over", (opened.start, opened.end))


def _indices(tokens: list[Token], opened: Token) -> tuple[str, ...]:
    if any(token.kind == "word" for token in tokens):  # `\text{heads } h`, or no index at all
        tokens = [token for token in tokens if token.kind == "letter"]
        if not tokens:
            return ()
    slots = slots_of(tokens)
    if not slots or any(slot.kind != "index" for slot in slots):
        raise NotationError(
            f"a sum runs over {written(tokens)}, which is not an index", (opened.start, opened.end)
        )
    return tuple(slot.text for slot in slots)


def _with_subjects(statements: list[Statement]) -> list[Statement]:
    r"""Join the symbols of `A, B \in …` to what is said of them."""
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
