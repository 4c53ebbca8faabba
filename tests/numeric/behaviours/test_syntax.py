"""The words of texts and the relations of Python source, by hand."""

from __future__ import annotations

import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.behaviours.syntax import python_relations, word_numbers
from otimes.numeric.tokenizer import load_tokenizer

SOURCE = """def area(width):
    total = width * size(width, 2)
    if total < 3:
        return self.total
"""


def named(relation: str) -> set[tuple[str, str]]:
    """Return the relation as pairs of texts of tokens (dependent, head)."""
    tokenizer = load_tokenizer()
    texts = tokenizer.token_strings(tokenizer.encode(SOURCE))
    found = python_relations(SOURCE)[relation]
    return {(texts[i], texts[j]) for i, j in enumerate(found) if j >= 0}


def test_relations_are_those_of_the_parser() -> None:
    """A dependent is its first token and a head its last: `size` is ` s`, `ize`."""
    assert named("argument") == {("w", "ize"), (" 2", "ize")}
    assert named("value") == {(" w", "al")}
    assert named("operand") == {(" s", "th"), (" 3", "al")}
    assert named("attribute") == {("t", " self")}
    assert named("body") == {(" t", "def"), (" if", "def"), (" return", " if")}


def test_a_word_is_a_run_of_letters_or_of_digits() -> None:
    assert word_numbers([]) == []
    assert word_numbers([" he", "ig", "ht", " he", "12", "3", "(", "(", "a"]) == [
        *(0, 0, 0, 1, 2, 2, 3, 4, 5)
    ]


def test_what_is_not_python_is_refused() -> None:
    with pytest.raises(OtimesError, match="not Python source"):
        python_relations("def :")
    with pytest.raises(OtimesError, match="ASCII"):
        python_relations("x = 'é'")
