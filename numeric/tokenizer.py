r"""A tokenizer: byte-level byte-pair encoding (BPE) in plain Python.

Three steps:

1. *pieces*: the regular expression in the tokenizer file splits the text into words, numbers,
   punctuation and white space; a token never crosses the boundary of a piece;
2. *symbols*: each byte of a piece is mapped to one printable character (`byte_alphabet`);
3. *merges*: adjacent symbols are merged, always the pair that is earliest in the merge list, until
   no pair of the list is left.

The file has the format of the `tokenizers` library (`numeric/training.py` trains it), which is not
needed here. Source: Sennrich, Haddow and Birch 2016; the byte alphabet is GPT-2's.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from otimes.algebra.errors import OtimesError

BUNDLED = Path(__file__).parent / "bundled"


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A byte-level vocabulary and its merges, ranked in the order in which they were learned."""

    vocabulary: dict[str, int]
    merge_ranks: dict[tuple[str, str], int]
    pieces: re.Pattern[str]
    _strings: tuple[str, ...]
    _known_pieces: dict[str, tuple[int, ...]] = field(default_factory=dict, compare=False)

    @property
    def d_vocab(self) -> int:
        """The number of tokens in the vocabulary."""
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
        byte_of, symbols = _byte_of(), "".join(self.token_symbols(tokens))
        return bytes(byte_of[symbol] for symbol in symbols).decode("utf-8", errors="replace")

    def token_strings(self, tokens: Iterable[int]) -> list[str]:
        """Return the text of each token by itself, for labels."""
        return [self.decode([token]) for token in tokens]

    def token_symbols(self, tokens: Iterable[int]) -> list[str]:
        """Return each token as spelled in the vocabulary (`Ġ` is a space, `Ċ` a new line).

        Raises: OtimesError for an id that is not in the vocabulary.
        """
        symbols = []
        for token in tokens:
            if not 0 <= token < self.d_vocab:
                raise OtimesError(
                    f"token {token} is not in the vocabulary, which has the token ids"
                    f" 0 to {self.d_vocab - 1}"
                )
            symbols.append(self._strings[token])
        return symbols

    def _merge(self, piece: str) -> tuple[int, ...]:
        """Return the tokens of one piece: merge the earliest learned pair until none is left."""
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
def _byte_of() -> dict[str, int]:
    return {character: byte for byte, character in byte_alphabet().items()}


@cache
def byte_alphabet() -> dict[int, str]:
    """Return a printable character for each byte: itself if printable, else one from U+0100 on.

    >>> byte_alphabet()[ord("a")], byte_alphabet()[ord(" ")]
    ('a', 'Ġ')
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    alphabet = {byte: chr(byte) for byte in printable}
    alphabet.update({byte: chr(0x100 + place) for place, byte in enumerate(others)})
    return alphabet


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer file. Raises: OtimesError if it is missing or not byte-level BPE."""
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
        raise OtimesError(f"the tokenizer file {path} does not exist") from None
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
    """Return the bundled sample, a few lines of Python code: the default prompt."""
    return (BUNDLED / "sample.txt").read_text(encoding="utf-8")


def sample_tokens(max_tokens: int | None = None) -> list[int]:
    """Return the tokens of the bundled sample, all of them or the first `max_tokens`.

    >>> len(sample_tokens(12))
    12
    """
    if max_tokens is not None and max_tokens < 1:
        raise OtimesError(f"max_tokens must be at least 1, got max_tokens={max_tokens}")
    return load_tokenizer().encode(sample_text())[:max_tokens]
