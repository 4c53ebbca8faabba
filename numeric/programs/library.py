"""A few programs that are ready: their circuits are known exactly, for tests of circuit discovery.

Source: Weiss, Goldberg and Yahav 2021, “Thinking Like Transformers”, §3; Lindner et al. 2023.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from otimes.algebra.errors import OtimesError
from otimes.numeric.programs.compiler import CompiledProgram, compiled
from otimes.numeric.programs.language import (
    Operation,
    Selector,
    aggregate,
    indices,
    mapped,
    select,
    tokens,
    total,
    width,
)

PROGRAMS = ("length", "histogram", "reverse", "sort", "fraction")


def compile_program(
    program: str | Operation,
    alphabet: Sequence[Hashable],
    max_length: int,
    *,
    token: Hashable = None,
) -> CompiledProgram:
    """Return a program as a transformer with exact weights: `.model`, and a call runs it.

    - "length": the number of tokens;
    - "histogram": how often each token occurs in the sequence;
    - "reverse": the sequence backwards;
    - "sort": the tokens in the order of the alphabet, by counting;
    - "fraction": for each position, the share of `token` so far (a number).

    All but "fraction" read the whole sequence: the prompt is BOS, the sequence and a "?" for each
    of its tokens, where the answers are read. A program of one's own is an operation of
    `otimes.numeric.programs.language`, read at the tokens. The model is a `Model` like any other:
    `ot.intervene`, `ot.graph` and `ot.acdc` take it, and its circuit is known.
    Proved by: width_is_read_from_the_first_position.
    Source: Weiss, Goldberg and Yahav 2021; Lindner et al. 2023 (Tracr).

    >>> compile_program("sort", "abc", 4)("cab")
    ['a', 'b', 'c']
    >>> compile_program("fraction", "ab", 4, token="a")("abaa")
    [1.0, 0.5, 0.6666666666666666, 0.75]

    Raises: OtimesError for an unknown program, or an alphabet or length that does not fit.
    """
    if not isinstance(alphabet, Iterable):
        raise OtimesError(f"the alphabet is a string or a list of symbols, got {alphabet!r}")
    if isinstance(program, Operation):
        return compiled(program, alphabet, max_length)
    if program not in PROGRAMS:
        raise OtimesError(
            f"there is no program {program!r}; there are {', '.join(PROGRAMS)}, or give an"
            " operation of otimes.numeric.programs.language"
        )
    if program == "fraction":
        if token not in tuple(alphabet):
            raise OtimesError(f"'fraction' needs a token of the alphabet, got token={token!r}")
        share = aggregate(_everywhere(), mapped(lambda each: int(each == token), tokens))
        return compiled(share, alphabet, max_length, number=True, name=program)
    if program == "sort":
        return compiled(sort(tuple(alphabet)), alphabet, max_length, slots=True, name=program)
    made = {"length": length, "histogram": histogram, "reverse": reverse}[program]()
    return compiled(made, alphabet, max_length, slots=True, name=program)


def _everywhere() -> Selector:
    return select(tokens, tokens, lambda key, query: True)


def length() -> Operation:
    """Return the number of tokens that are no slots."""
    return width(select(tokens, tokens, lambda key, query: key != "?"))


def _slot(count: Operation) -> Operation:
    """Return the number of a slot, from 0; tokens have none."""
    return mapped(lambda at, n: at - n if 0 <= at - n < n else None, indices, count)


def reverse() -> Operation:
    """Return, at slot j of n, the token at n - 1 - j."""
    count = length()
    source = mapped(lambda at, n: 2 * n - 1 - at if 0 <= at - n < n else None, indices, count)
    return aggregate(select(indices, source, lambda key, query: key == query), tokens)


def histogram() -> Operation:
    """Return, at slot j, how often the token at j occurs."""
    slot = _slot(length())
    mine = aggregate(select(indices, slot, lambda key, query: key == query), tokens)
    return width(select(tokens, mine, lambda key, query: key == query != "?"))


def _among(symbols: frozenset[Hashable]) -> Callable[[Any, Any], bool]:
    return lambda key, query: key in symbols


def sort(alphabet: tuple[Hashable, ...]) -> Operation:
    """Return, at slot j, the first symbol up to which more than j tokens have been counted."""
    slot = _slot(length())
    passed = []
    for last in range(len(alphabet) - 1):
        lower = frozenset(alphabet[: last + 1])
        count = width(select(tokens, tokens, _among(lower)))
        passed.append(mapped(lambda n, j: int(n <= j), count, slot))
    if not passed:
        return mapped(lambda j: alphabet[0], slot)
    return mapped(lambda at: alphabet[at], total(*passed))
