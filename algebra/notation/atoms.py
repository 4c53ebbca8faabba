"""The smallest parts of formulas: symbols, numbers, brackets, commands, matrices."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from itertools import pairwise

from otimes.algebra.notation.derivatives import derivative
from otimes.algebra.notation.expectations import LETTER, before_bracket
from otimes.algebra.notation.lists import CLOSING, Lists
from otimes.algebra.notation.slots import slots_of
from otimes.algebra.notation.tokens import NotationError, Token
from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Dots,
    Fraction,
    Group,
    Indexed,
    Name,
    Node,
    Number,
    Power,
    Product,
    Root,
    Sum,
    Tensor,
    bare,
    restyled,
)
from otimes.algebra.notation.vocabulary import (
    ACCENTS,
    BEYOND_ALGEBRA,
    DOTS,
    GREEK,
    NAMED,
    PREFIXED,
    PREFIXES,
    SIGNS,
    STYLES,
)

TRACES = frozenset(("tr", "Tr", "trace", "Trace"))  # of all factors that follow
INDICES = frozenset("ijklmnpqst")  # that multiply the angle of a cosine or sine without brackets


class Atoms(Lists):
    """Reads what binds tightest; expressions inside brackets are read by the class above it."""

    @abstractmethod
    def factor(self) -> Node:
        """Read one factor of a product."""

    @abstractmethod
    def postfix(self) -> Node:
        """Read an atom with its scripts and arguments."""

    @abstractmethod
    def suffixes(self, atom: Node, start: int) -> Node:
        """Read the scripts and arguments that follow an atom."""

    @abstractmethod
    def begins_factor(self) -> bool:
        """Return whether a factor comes next."""

    @abstractmethod
    def _parsed(self, tokens: list[Token]) -> Node:
        """Parse the tokens of a script as an expression."""

    @abstractmethod
    def _call(self, atom: Name, start: int) -> Node:
        """Read the arguments of a function."""

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
        if token.text in CLOSING:
            return self.brackets(start)
        if token.text == "{":
            opened = self.take()
            inner = self.expression()
            if self.is_at(r"\over"):
                self.take()
                inner = Fraction(inner, self.expression(), span=self.from_(start))
            self.expect("}", opened)
            return (
                inner
                if not isinstance(inner, Sum | Product | Tensor | Indexed)
                else Group(inner, span=self.from_(start))
            )
        if token.text in SIGNS:
            self.take()
            return Name(token.text, span=self.from_(start))
        if token.text in (r"\cdot", ":") and self._stands_alone():  # an argument left open
            self.take()
            return Dots(token.text, span=self.from_(start))
        if token.text in (r"\|", "|"):
            return self.norm(start)
        if token.kind == "command":
            return self._command(start)
        raise self.error(f"{token.text!r} was not expected here")

    def _stands_alone(self) -> bool:
        after = self.tokens[self.at + 1].text if self.at + 1 < len(self.tokens) else ""
        return after in (")", "]", ",", ";", "|", r"\|", r"\mid", "}")

    def _letters(self, start: int) -> Name:
        """Read a letter, or a run of letters that is a known word."""
        end = self._end_of_run(("letter",))
        run = "".join(token.text for token in self.tokens[self.at : end])
        if self.plain and run not in self.words:  # such as ln1
            far = self._end_of_run(("letter", "number"))
            longer = "".join(token.text for token in self.tokens[self.at : far])
            if longer in self.words:
                run, end = longer, far
        first = self.at == 0 or self.tokens[self.at - 1].kind != "letter" or self.here.spaced  # type: ignore[union-attr]
        if len(run) > 1 and first and run in self.words:
            self.at = end
            return Name(run, span=self.from_(start))
        letter = self.take().text
        mean = letter == "E" and LETTER in self.functions and before_bracket(self.tokens, self.at)
        return Name(letter, "bb" if mean else "", span=self.from_(start))

    def _end_of_run(self, kinds: tuple[str, ...]) -> int:
        """Return the end of a run of letters without spaces."""
        end = self.at + 1
        while end < len(self.tokens) and (
            self.tokens[end].kind in kinds and not self.tokens[end].spaced
        ):
            end += 1
        return end

    def _word(self, start: int) -> Node:
        token = self.take()
        text = token.text.strip()
        if not text:
            raise NotationError("a name is empty", (token.start, token.end))
        mean = text == "E" and before_bracket(self.tokens, self.at)
        name = Name(text, "bb" if mean else "", span=self.from_(start))
        if text in PREFIXES:
            return self._applied(name, start)
        if self.is_at("(") and text not in self.functions and len(text) > 1:
            return self.suffixes(self._call(name, start), start)
        return name

    def _applied(self, name: Name, start: int) -> Node:
        """Read the argument of a function such as tr or log that has no brackets."""
        if not self.is_at("(", "_", "^", r"\{", "[") and self.begins_factor():
            at = self.at
            argument = self.factor()
            if name.base in TRACES:
                argument = self._with_what_follows(argument, at)
            multiple = isinstance(argument, Number) or (
                isinstance(argument, Name) and argument.base in INDICES and not argument.sup
            )
            if name.base in ("sin", "cos") and multiple and self.is_at(*GREEK):
                angle = self.factor()  # `\cos m\theta` is of the product
                pair = (argument, angle)
                argument = Product(pair, ("", ""), span=self.from_(at))
            return Apply(name, (argument,), span=self.from_(start))
        return name

    def _with_what_follows(self, factor: Node, start: int) -> Node:
        r"""Return a factor with those after it: `\mathrm{tr}\, A B` is the trace of the product."""
        factors = [factor]
        while self.begins_factor() and not self._is_function_ahead():
            factors.append(self.factor())
        if len(factors) == 1:
            return factor
        return Product(tuple(factors), ("",) * len(factors), span=self.from_(start))

    def _is_function_ahead(self) -> bool:
        here = self.here
        return here is not None and (here.text.strip() in PREFIXES or here.text in NAMED)

    def _command(self, start: int) -> Node:
        token = self.take()
        text = token.text
        if text == r"\Delta" and self._is_change():
            return self._accented("Delta", start)
        if text in GREEK or text in BEYOND_ALGEBRA:
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
            variable: Node | None = None
            while self.is_at("_", "^"):
                mark = self.take().text
                script = self._script()
                variable = self._variable(script) if (text, mark) == (r"\nabla", "_") else None
                slots = slots_of(script)
                name = replace(name, sub=slots) if mark == "_" else replace(name, sup=slots)
            if self.is_at(r"\cdot", r"\times"):  # a divergence
                self.take()
            if not self.begins_factor():
                return name
            target = self.postfix()
            if isinstance(variable, Name) and _is_number(target) and self.begins_factor():
                factors = (target, self.postfix())  # `\nabla_W \frac12 \|W x\|^2`
                target = Group(Product(factors, ("", "")), span=self.from_(start))
            if isinstance(target, Name) and self.is_at("("):  # of a function: `\nabla_W L(W)`
                target = self.suffixes(self._call(target, start), start)
            of = target.arguments if isinstance(target, Apply) else ()
            if name == Name(r"\nabla") and len(of) == 1 and isinstance(bare(of[0]), Name):
                variable = bare(of[0])  # `\nabla f(x)`
            if isinstance(variable, Name):
                return Derivative(target, variable, gradient=True, span=self.from_(start))
            return Apply(name, (target,), span=self.from_(start))
        if text == r"\binom":
            return Apply(Name("binom"), (self._one(), self._one()), span=self.from_(start))
        if text == r"\frac":
            above, below = self._one(), self._one()
            span = self.from_(start)
            return derivative(above, below, span) or Fraction(above, below, span=span)
        if text == r"\sqrt":
            degree = ""
            if self.is_at("["):
                self.take()
                while self.here is not None and not self.is_at("]"):
                    degree += self.take().text
                self.take()
            return Root(self._one(), degree, span=self.from_(start))
        if text == r"\begin":
            return self.matrix(token, start)
        if text in (r"\underbrace", r"\overbrace", r"\boxed", r"\mathop"):
            inner = self._one()
            if text.endswith("brace") and self.is_at("_", "^"):
                self.take()
                self._script()
            return Group(inner, span=self.from_(start))
        if text in (r"\textcolor", r"\underset"):  # what stands below says something about it
            self.raw_group()
            return self._one()
        if text in DOTS:
            return Dots(text, span=self.from_(start))
        if text == r"\mathrm" or text in (r"\text", r"\operatorname"):
            raise NotationError(f"the argument of {text} is not closed", (token.start, token.end))
        raise NotationError(f"{text} is not known", (token.start, token.end))

    def _variable(self, script: list[Token]) -> Name | None:
        """Return the symbol at which a gradient is taken, if one stands below the sign."""
        try:
            found = self._parsed(script)
        except NotationError:
            return None
        return found if isinstance(found, Name) else None

    def _styled(self, style: str, start: int) -> Node:
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
        if isinstance(styled, Product) and self.is_at("^", "_", "'") and "/" not in styled.marks:
            last = self.suffixes(styled.factors[-1], start)  # it stands at the last letter
            styled = replace(styled, factors=(*styled.factors[:-1], last), span=self.from_(start))
        if isinstance(styled, Name):
            return replace(styled, span=self.from_(start))
        return Group(styled, span=self.from_(start)) if not isinstance(styled, Power) else styled

    def _is_change(self) -> bool:
        """Return whether a capital Delta stands before a symbol, and nowhere by itself."""
        return self.tokens[-1].text != r"\Delta" and all(
            follows.kind == "letter" or follows.text in STYLES
            for token, follows in pairwise(self.tokens)
            if token.text == r"\Delta"
        )

    def _accented(self, accent: str, start: int) -> Node:
        inner = bare(self._one())
        if accent == "vec" and isinstance(inner, Number) and inner.text in ("0", "1"):
            return Name(inner.text, "bf", span=self.from_(start))
        if accent == "vec" and inner == Name("I"):  # where all matrices have arrows
            return Name("I", "bf", span=self.from_(start))
        if isinstance(inner, Name):
            return replace(inner, marks=(*inner.marks, accent), span=self.from_(start))
        raise NotationError(f"\\{accent} is over more than one symbol", self.from_(start))

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


def replace_token(token: Token, text: str, start: int, end: int) -> Token:
    """Return a token with another text, at other offsets."""
    return Token(token.kind, text, start, end, token.spaced)


def _is_number(node: Node) -> bool:
    """Return whether a factor is a number, or a fraction of numbers."""
    parts = (node.above, node.below) if isinstance(node, Fraction) else (node,)
    return all(isinstance(part, Number) for part in parts)
