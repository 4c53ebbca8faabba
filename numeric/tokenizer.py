r"""Read and write text as tokens: byte-level byte-pair encoding in plain Python.

Three steps, each a page long:

1. *pieces*: the regular expression in the tokenizer file cuts the text into words, numbers, signs
   and white space; no token crosses a piece;
2. *symbols*: each byte of a piece becomes one printable character (`byte_alphabet`), so that a
   token is a readable string whatever bytes it stands for;
3. *merges*: neighbours that form the earliest pair of the merge list are joined until none is left.

The file is the one the `tokenizers` library writes (`numeric/training.py` trains it), but nothing
here needs that library.  Source: Sennrich, Haddow and Birch 2016; the byte alphabet is GPT-2's.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from algebra.errors import OtimesError

BUNDLED = Path(__file__).parent / "bundled"


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A byte-level vocabulary and its merges, in the order in which they were learned."""

    vocabulary: dict[str, int]
    merge_ranks: dict[tuple[str, str], int]
    pieces: re.Pattern[str]
    _strings: tuple[str, ...]
    _known_pieces: dict[str, tuple[int, ...]] = field(default_factory=dict, compare=False)

    @property
    def d_vocab(self) -> int:
        """How many tokens there are."""
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text.

        >>> tokenizer = load_tokenizer()
        >>> tokenizer.decode(tokenizer.encode("for x in range(3):"))
        'for x in range(3):'
        """
        tokens: list[int] = []
        for piece in self.pieces.findall(text):
            known = self._known_pieces.get(piece)
            if known is None:
                known = self._known_pieces[piece] = self._merge(piece)
            tokens.extend(known)
        return tokens

    def decode(self, tokens: Iterable[int]) -> str:
        """Return the text of some tokens; bytes that are not UTF-8 become U+FFFD."""
        byte_of = {character: byte for byte, character in byte_alphabet().items()}
        symbols = "".join(self.token_symbols(tokens))
        return bytes(byte_of[symbol] for symbol in symbols).decode("utf-8", errors="replace")

    def token_strings(self, tokens: Iterable[int]) -> list[str]:
        """Return the text of each token by itself, for the label of an axis or a column."""
        return [self.decode([token]) for token in tokens]

    def token_symbols(self, tokens: Iterable[int]) -> list[str]:
        """Return each token as the vocabulary spells it (`Ġ` is a space, `Ċ` a new line)."""
        symbols = []
        for token in tokens:
            if not 0 <= token < self.d_vocab:
                raise OtimesError(
                    f"token {token} is not in the vocabulary, which has the tokens"
                    f" 0 to {self.d_vocab - 1}"
                )
            symbols.append(self._strings[token])
        return symbols

    def _merge(self, piece: str) -> tuple[int, ...]:
        """Join the bytes of one piece, always the pair that was learned earliest."""
        alphabet = byte_alphabet()
        symbols = [alphabet[byte] for byte in piece.encode("utf-8", errors="replace")]
        never = len(self.merge_ranks)
        while len(symbols) > 1:
            ranks = [self.merge_ranks.get(pair, never) for pair in pairwise(symbols)]
            best = min(ranks)
            if best == never:
                break
            joined = []
            at = 0
            while at < len(symbols):
                if at < len(ranks) and ranks[at] == best:
                    joined.append(symbols[at] + symbols[at + 1])
                    at += 2
                else:
                    joined.append(symbols[at])
                    at += 1
            symbols = joined
        return tuple(self.vocabulary[symbol] for symbol in symbols)


@cache
def byte_alphabet() -> dict[int, str]:
    """Return a printable character for each byte: itself where it prints, else one from U+0100 on.

    >>> byte_alphabet()[ord("a")], byte_alphabet()[ord(" ")]
    ('a', 'Ġ')
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    alphabet = {byte: chr(byte) for byte in printable}
    alphabet.update({byte: chr(0x100 + place) for place, byte in enumerate(others)})
    return alphabet


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer file; raise an `OtimesError` when it is missing or not of this kind."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        vocabulary: dict[str, int] = content["model"]["vocab"]
        merges: list[Sequence[str]] = content["model"]["merges"]
        (split,) = (
            step["pattern"]["Regex"]
            for step in content["pre_tokenizer"]["pretokenizers"]
            if step["type"] == "Split"
        )
    except FileNotFoundError:
        raise OtimesError(f"there is no tokenizer file {path}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise OtimesError(
            f"{path} is not a byte-level tokenizer file of the `tokenizers` library: {error!r}"
        ) from None
    return Tokenizer(
        vocabulary=vocabulary,
        merge_ranks={(pair[0], pair[1]): rank for rank, pair in enumerate(merges)},
        pieces=re.compile(split),
        _strings=tuple(sorted(vocabulary, key=vocabulary.__getitem__)),
    )


@cache
def load_tokenizer() -> Tokenizer:
    """Return the bundled tokenizer, which all bundled models share."""
    return read_tokenizer(BUNDLED / "tokenizer.json")


def sample_text() -> str:
    """Return the bundled sample, a few lines of Python of our own: the default prompt."""
    return (BUNDLED / "sample.txt").read_text(encoding="utf-8")


def sample_tokens(max_tokens: int | None = None) -> list[int]:
    """Return the tokens of the bundled sample, all of them or the first `max_tokens`.

    >>> len(sample_tokens(12))
    12
    """
    if max_tokens is not None and max_tokens < 1:
        raise OtimesError(f"a prompt has at least one token, asked was max_tokens={max_tokens}")
    return load_tokenizer().encode(sample_text())[:max_tokens]
