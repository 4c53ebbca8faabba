"""The tokens of a formula as a stream: what comes next, groups in braces, scripts."""

from __future__ import annotations

from collections.abc import Collection

from otimes.algebra.notation.tokens import NotationError, Token
from otimes.algebra.notation.vocabulary import (
    STYLES,
    WORDS,
)


class Stream:
    """A position in the tokens of a formula, and the known names."""

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
        self.functions = frozenset(functions)
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

    # -- raw parts ---------------------------------------------------------------------------------

    def _environment_ahead(self) -> str:
        texts = []
        for token in self.tokens[self.at + 1 : self.at + 40]:
            if token.text == "}":
                break
            texts.append(token.text)
        return "".join(texts).lstrip("{")

    def raw_group(self) -> list[Token]:
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
            return [t for t in self.raw_group() if t.text != r"\scriptsize"]
        if self.is_at(*STYLES):
            return [self.take(), *self._braced()]
        if self._is_entrywise():
            return self._bracketed()[1:-1]
        if self.plain and self.is_at("(") and not self.here.spaced:
            return self._bracketed()
        run = [self.take()]
        if (
            run[0].text in ("-", "+")
            and not subscript
            and self.here is not None
            and (self.here.kind == "number")
        ):
            run.append(self.take())
        if self.plain and subscript and run[0].kind in ("letter", "number"):
            while self._goes_on():
                run.append(self.take())
        return run

    def _goes_on(self) -> bool:
        """Return whether a subscript of several letters goes on: `d_head`, `out_later`."""
        here, after = [*self.tokens[self.at : self.at + 2], None, None][:2]
        if here is None or here.spaced:
            return False
        joins = here.text == "_" and after is not None and after.kind in ("letter", "number")
        return here.kind in ("letter", "number") or joins

    def _bracketed(self) -> list[Token]:
        """Return the tokens of a group in round brackets, and the brackets."""
        opened, depth = self.take(), 1
        run = [opened]
        while depth and self.here is not None:
            depth += self.is_at("(") - self.is_at(")")
            run.append(self.take())
        if depth:
            raise NotationError("'(' is not closed", (opened.start, opened.end))
        return run

    def _is_entrywise(self) -> bool:
        r"""Return whether an exponent such as (∘2) follows, for a power entry by entry."""
        texts = [token.text for token in self.tokens[self.at : self.at + 2]]
        return texts == ["(", r"\circ"]

    def _braced(self) -> list[Token]:
        if not self.is_at("{"):
            return [self.take()]
        first = self.tokens[self.at]
        inside = self.raw_group()
        last = self.tokens[self.at - 1]
        return [first, *inside, last]
