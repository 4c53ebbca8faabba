"""Sums, products and tensor products, and the scripts and arguments of symbols."""

from __future__ import annotations

from dataclasses import replace

from otimes.algebra.notation.atoms import Atoms
from otimes.algebra.notation.derivatives import applied_to_what_follows, derivative
from otimes.algebra.notation.expectations import is_statistic, of_what_follows
from otimes.algebra.notation.ranges import range_of
from otimes.algebra.notation.slices import selection
from otimes.algebra.notation.slots import slots_of, split_operations, written
from otimes.algebra.notation.tokens import NotationError, Token
from otimes.algebra.notation.tree import (
    Apply,
    Cases,
    Entry,
    Fraction,
    Grid,
    Group,
    Indexed,
    Listing,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Space,
    Sum,
    Tensor,
)
from otimes.algebra.notation.vocabulary import (
    ACCENTS,
    ADDING,
    BEYOND_ALGEBRA,
    BIG,
    CASES,
    DOTS,
    GREEK,
    JOINING,
    MATRICES,
    NAMED,
    PREFIXED,
    PRODUCTS,
    RELATIONS,
    SIGNS,
    SIGNS_OF_NUMBERS,
    STYLES,
    TENSORS,
)

DEEPEST = 40  # brackets within brackets


def is_annotation(text: str) -> bool:
    """Return whether words in a formula say something about it, and are no symbol of it.

    >>> is_annotation("for all"), is_annotation("(embedding)"), is_annotation("softmax")
    (True, True, False)
    """
    joins = text.rstrip(",").lower() in JOINING
    return " " in text or text[:1] in ("(", "[") or text.endswith(":") or joins or not text


class Expressions(Atoms):
    """Reads expressions, by how tightly their signs bind."""

    # -- sums and products -------------------------------------------------------------------------

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"brackets are nested more than {DEEPEST} deep")
        start = self.at
        signs = [self._sign()]
        terms = [self.dotted()]
        while True:
            self.line_breaks()
            if not self.is_at(*ADDING):
                break
            signs.append(self._sign())
            terms.append(self._signed_term() if self.is_at("+", "-") else self.dotted())
        self.depth -= 1
        if len(terms) == 1 and not signs[0]:
            return terms[0]
        return Sum(tuple(terms), tuple(signs), span=self.from_(start))

    def _signed_term(self) -> Node:
        """Read a term with a sign after another, as in `1 + -2`."""
        start = self.at
        sign = self.take().text
        return Sum((self.dotted(),), (sign,), span=self.from_(start))

    def _sign(self) -> str:
        return self.take().text if self.is_at(*ADDING) else ""

    def dotted(self) -> Node:
        """Read factors joined by signs, which bind less than ⊗, and ⊗ less than none."""
        start = self.at
        parts = [self.tensor()]
        marks = [""]
        while self.is_at(*PRODUCTS - {"/"}):
            mark = self.take().text
            if mark == r"\times" and self.is_at("_"):  # a product along one mode of a tensor
                self.take()
                mark += f"_{{{written(self._script())}}}"
            marks.append(r"\cdot" if mark == "*" else mark)
            parts.append(self._signed() if self.is_at("+", "-") else self.tensor())
        if len(parts) == 1:
            return parts[0]
        factors: list[Node] = []
        signs: list[str] = []
        for part, mark in zip(parts, marks, strict=True):
            inner = part.marks if isinstance(part, Product) else ("",)
            factors += part.factors if isinstance(part, Product) else [part]
            signs += [mark, *inner[1:]]
        return Product(tuple(factors), tuple(signs), span=self.from_(start))

    def _signed(self) -> Node:
        """Read a factor with a sign, as in a product with `-3`."""
        start = self.at
        sign = self.take().text
        return Sum((self.tensor(),), (sign,), span=self.from_(start))

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
            if self._divides_one():
                self.take()
                factors[-1] = Fraction(factors[-1], self.factor(), span=self.from_(start))
                continue
            if self.is_at("/"):
                mark = self.take().text
            elif self.begins_factor():
                mark = ""
            else:
                break
            after = self.factor()
            divided = derivative(factors[-1], after, self.from_(start)) if mark == "/" else None
            if divided is not None:  # `\partial \ell / \partial W`
                factors[-1] = divided
                continue
            factors.append(after)
            marks.append(mark)
        factors, marks = applied_to_what_follows(factors, marks)
        factors, marks = of_what_follows(factors, marks, self.from_(start))
        if len(factors) == 1:
            return factors[0]
        return Product(tuple(factors), tuple(marks), span=self.from_(start))

    def _divides_one(self) -> bool:
        """Return whether a slash without space around it comes next, as in `1/d A`."""
        pair = self.tokens[self.at : self.at + 2]
        close = len(pair) == 2 and not (pair[0].spaced or pair[1].spaced)
        return self.plain and self.is_at("/") and close

    def begins_factor(self) -> bool:
        here = self.here
        if here is None:
            return False
        if here.kind in ("letter", "number"):
            return True
        if here.kind == "word":
            text = here.text.strip()
            return text in self.words or not is_annotation(text)
        if here.kind == "command":
            text = here.text
            if text == r"\begin":
                return self._environment_ahead() in MATRICES | CASES
            if text in (r"\overset", r"\stackrel", r"\underset"):
                return False
            return (
                text in GREEK or text in BEYOND_ALGEBRA or text in STYLES or text in ACCENTS
                or text in BIG or text in NAMED or text in PREFIXED
                or text in DOTS - {r"\leftarrow", r"\to"}
                or text in (r"\frac", r"\sqrt", r"\langle", r"\underbrace", r"\overbrace",
                            r"\binom", r"\boxed", r"\textcolor", r"\mathop", r"\lfloor", r"\lceil")
            )  # fmt: skip
        if here.text in ("|", r"\|"):
            return not self.bars and not self.is_lone_bar()
        return here.text in ("(", "[", r"\{", "{") or here.text in SIGNS

    # -- factors -----------------------------------------------------------------------------------

    def factor(self) -> Node:
        here = self.here
        if here is not None and here.kind == "command" and here.text in BIG:
            return self.indexed()
        if here is not None and here.text == r"\Sigma" and self._sums():
            return self.indexed()
        return self.postfix()

    def _sums(self) -> bool:
        r"""Return whether `\Sigma` is a sum sign: a range or an index below, and what is summed."""
        mark = self.at
        self.take()
        arrow = self.plain and self.is_at(r"\leftarrow", r"\to")
        if arrow:
            self.take()
        below: list[Token] = []
        above: list[Token] = []
        while self.is_at("_", "^"):
            sign = self.take().text
            script = [] if self.here is None else self._below() if sign == "_" else self._script()
            below, above = (script, above) if sign == "_" else (below, script)
        follows = self.begins_factor()
        self.at = mark
        texts = [token.text for token in below]
        ranged = bool({"=", r"\in", r"\le", "<"} & set(texts))
        after = [token.text for token in self.tokens[self.at :]]
        # the braces of `\Sigma_{h=1}^H`
        lost = after[3:4] == ["="] and after[4:5] in (["0"], ["1"]) and after[5:6] == ["^"]
        operated = bool(split_operations(above)[0])  # `\Sigma_j^{-1}` is a matrix
        usual = "abcdefghijklmnopqrstuvwxyz" if self.plain else "hijklmnpqstuv"
        index = len(below) == 1 and below[0].kind == "letter" and texts[0] in usual
        return arrow or ranged or (index and (follows or lost) and not operated)

    def indexed(self) -> Node:
        start = self.at
        opened = self.take()
        mark = r"\sum" if opened.text == r"\Sigma" else opened.text
        arrow = self.take().text if self.is_at(r"\leftarrow", r"\to") else ""
        below: list[Token] = []
        upper: Node | None = None
        while self.is_at("_", "^"):
            if self.take().text == "_":
                below = self._below()
            else:
                upper = self._parsed(self._script())
        indices, kind, lower = range_of(below, opened) if below else ((), "other", "")
        if self.here is None or not self._begins_body():
            raise NotationError(
                f"nothing is summed after {written(self.tokens[start : self.at])}",
                (opened.start, self.tokens[self.at - 1].end),
            )
        body = self.dotted()
        return Indexed(mark, indices, kind, lower, upper, body, arrow, span=self.from_(start))

    def _below(self) -> list[Token]:
        """Return what stands below a sum sign; in a line of text, `h`, `l<L` or `0≤j≤i`."""
        if self.is_at("{") or not self.plain:
            return self._script()
        run = self._script(subscript=True)
        while self.is_at("<", r"\le") and not self.here.spaced:  # type: ignore[union-attr]
            run += [self.take(), *self._script(subscript=True)]
        return run

    def _begins_body(self) -> bool:
        return self.begins_factor()

    def postfix(self) -> Node:
        start = self.at
        atom = self.atom()
        return self.suffixes(atom, start)

    def suffixes(self, atom: Node, start: int) -> Node:
        while True:
            if self.is_at("{") and self._is_empty_group():
                self.at += 2
            elif self.is_at("**"):
                self.take()
                atom = Power(atom, self.atom(), span=self.from_(start))
            elif self.is_at("_") and isinstance(atom, Number) and atom.text in ("0", "1"):
                atom = self._constant(atom, start)
            elif self.is_at("'", "''", "'''"):
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
            elif isinstance(atom, Name) and self.is_at("[", "(") and is_statistic(atom):
                atom = self._call(atom, start)
            elif self.is_at("[") and self._may_have_entries(atom) and self._is_entry():
                atom = self._entry(atom, start)
            elif self.is_at("(") and isinstance(atom, Name) and self._is_call(atom):
                atom = self._call(atom, start)
            else:
                return atom

    def _constant(self, atom: Number, start: int) -> Name:
        """Read the size of a matrix of ones or zeros: `1_n`, `1_n×1`."""
        self.take()
        run = self._script(subscript=True)
        if self.plain and self.is_at(r"\times") and not self.here.spaced:  # type: ignore[union-attr]
            run += [self.take(), *self._script(subscript=True)]
        return Name(atom.text, "bf", sub=slots_of(run), span=self.from_(start))

    def _may_have_entries(self, atom: Node) -> bool:
        several = (Apply, Entry, Power) if self.plain else ()
        return isinstance(atom, (Name, Group, *several))

    def _is_empty_group(self) -> bool:
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].text == "}"

    def _subscript(self, atom: Node, tokens: list[Token], start: int) -> Node:
        if not tokens:
            raise self.error("a subscript is empty")
        if isinstance(atom, Name):
            if (select := selection(tokens)) and not atom.select:
                return replace(atom, select=select, span=self.from_(start))
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
        if isinstance(atom, Group | Listing | Grid | Power | Cases):
            return Entry(atom, slots_of(tokens), span=self.from_(start))
        raise self.error("a subscript follows what cannot have one")

    def _superscript(self, atom: Node, tokens: list[Token], start: int) -> Node:
        if not tokens:
            raise self.error("a superscript is empty")
        if [t.text for t in tokens] in (["'"], ["''"]) and isinstance(atom, Name):
            return replace(atom, marks=(*atom.marks, "'"), span=self.from_(start))
        if tokens[0].text == r"\circ" and len(tokens) > 1:
            return Power(atom, written(tokens), span=self.from_(start))
        operations, rest = split_operations(tokens)
        if rest and isinstance(atom, Name):
            primes = [t for t in rest if set(t.text) == {"'"}]
            if len(primes) < len(rest):  # of an index, not of the symbol
                primes = []
            rest = [] if primes else rest
            if atom.sup:
                raise self.error("two superscripts follow each other")
            marks = atom.marks + ("'",) * len(primes)
            atom = replace(atom, sup=slots_of(rest), marks=marks, span=self.from_(start))
        elif len(rest) == 1 and rest[0].text in ("*", r"\circ"):  # degrees, all words over a set
            atom = Power(atom, rest[0].text, span=self.from_(start))
        elif rest:
            atom = Power(atom, self._parsed(rest), span=self.from_(start))
        for operation in operations:
            atom = Power(atom, operation, span=self.from_(start))
        return atom

    def _is_entry(self) -> bool:
        """Return whether a square bracket right after a name selects an entry: it has a comma.

        In a line of text it may have one index, of a member of a family: `W[h]`.
        """
        if self.here is None or self.here.spaced:
            return False
        if self.plain:
            return True
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
        return Entry(atom, slots_of(inside), square=True, span=self.from_(start))

    def _is_call(self, atom: Name) -> bool:
        return atom.base in self.functions

    def _call(self, atom: Name, start: int) -> Node:
        opened = self.take()
        closing = "]" if opened.text == "[" else ")"
        if self.is_at(closing):
            self.take()
            return Apply(atom, (), span=self.from_(start))
        parts, marks = self.parts()
        self.expect(closing, opened)
        if not set(marks[1:]) <= {",", ";"}:
            parts = (Listing(parts, marks, span=(parts[0].span[0], parts[-1].span[1])),)
        return Apply(atom, parts, span=self.from_(start))

    def _parsed(self, tokens: list[Token]) -> Node:
        """Parse the tokens of a script as an expression."""
        inner = type(self)(tokens, self.functions, self.words, self.plain)
        inner.depth = self.depth + 1
        found = inner.expression()
        if inner.here is not None:
            raise inner.error(f"{inner.here.text!r} was not expected here")
        return found

    def space(self) -> Node:
        """Read what stands to the right of ∈: a space of matrices, or a set."""
        start = self.at
        try:
            return self._space()
        except NotationError:
            self.at = start
            return self.expression()

    def _space(self) -> Node:
        start = self.at
        if not (self.is_at(r"\mathbb") or self.is_at("R")):
            return self.expression()
        mark = self.at
        self.take()
        inside = self.raw_group() if self.tokens[mark].text == r"\mathbb" else [self.tokens[mark]]
        if not inside or inside[0].text != "R":
            self.at = mark
            return self.expression()
        sizes = inside[2:] if len(inside) > 2 and inside[1].text == "^" else []
        if sizes and sizes[0].text == "{":
            sizes = sizes[1:-1]
        signs = ""
        while self.is_at("^") or (self.is_at("_") and not signs):
            if self.take().text == "_":
                signs = "".join(token.text for token in self._script()).strip("{}")
                if signs not in SIGNS_OF_NUMBERS:
                    raise NotationError(f"ℝ has a subscript {signs}", self.from_(start))
            else:
                sizes = self._script()
        parts: list[list[Token]] = [[]]
        depth = 0
        times = {r"\times", ","} & {token.text for token in sizes}
        by_x = (
            self.plain or (not times and "x" not in (sizes[0].text, sizes[-1].text))
            if sizes
            else False
        )
        for token in sizes:
            depth += (token.text == "{") - (token.text == "}")
            if depth == 0 and (token.text in (r"\times", ",") or (token.text == "x" and by_x)):
                parts.append([])
            else:
                parts[-1].append(token)
        if parts == [[]]:
            return Space((), signs, span=self.from_(start))
        if not all(parts):
            raise NotationError("a size is missing", self.from_(start))
        return Space(tuple(self._parsed(part) for part in parts), signs, span=self.from_(start))
