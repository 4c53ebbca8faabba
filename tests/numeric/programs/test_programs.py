"""Compiled programs on all short sequences, beside plain Python, and what the compiler refuses."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.interventions.passes import intervene
from otimes.numeric.programs.language import aggregate, indices, mapped, select, tokens, width
from otimes.numeric.programs.library import compile_program

PLAIN: dict[str, Any] = {
    "length": lambda seq: [len(seq)] * len(seq),
    "histogram": lambda seq: [seq.count(each) for each in seq],
    "reverse": lambda seq: list(seq[::-1]),
    "sort": sorted,
}


def sequences(alphabet: str, longest: int) -> list[tuple[str, ...]]:
    return [seq for n in range(1, longest + 1) for seq in product(alphabet, repeat=n)]


@pytest.mark.parametrize("name", PLAIN)
def test_every_short_sequence(name: str) -> None:
    program = compile_program(name, "abc", 4)
    for seq in [*sequences("abc", 3), tuple("cbaa"), tuple("abca"), tuple("cccc")]:
        assert program(seq) == PLAIN[name](seq), seq


def test_a_longer_sequence_and_another_order() -> None:
    assert compile_program("sort", "zyx", 9)("xyzzyxxyz") == list("zzzyyyxxx")
    assert compile_program("reverse", range(5), 12)([4, 0, 0, 3, 2, 1]) == [1, 2, 3, 0, 0, 4]
    assert compile_program("sort", "a", 3)("aa") == ["a", "a"]


def test_the_fraction_is_a_mean_up_to_rounding() -> None:
    program = compile_program("fraction", "ab", 6, token="a")
    for seq in sequences("ab", 6)[::3]:
        wanted = [seq[:end].count("a") / end for end in range(1, len(seq) + 1)]
        assert np.abs(np.array(program(seq)) - wanted).max() <= 8 * 2.0**-53


def test_patterns_are_exactly_uniform_on_what_is_selected() -> None:
    program = compile_program("histogram", "abc", 4)
    at = program.model.forward(program.prompt("abab"))
    last = at["pattern.3"][0, -1]  # the slot of the second b: BOS and both b have a third each
    assert last.tolist() == [1 / 3 if place in (0, 2, 4) else 0.0 for place in range(9)]


def test_a_program_of_one_s_own() -> None:
    before = select(indices, indices, lambda key, query: key == query - 1)
    previous = aggregate(before, tokens)
    program = compile_program(mapped(lambda a, b: a + b, previous, tokens), "xyz", 5)
    assert program("zyxx")[1:] == ["zy", "yx", "xx"]
    seen = width(select(tokens, tokens, lambda key, query: key == query))
    assert compile_program(seen, "ab", 5)("abbab") == [1, 1, 2, 2, 3]


def test_its_circuit_is_known() -> None:
    program = compile_program("reverse", "abc", 4)
    prompt = program.prompt("abca")
    plain = program.model.forward(prompt)["logits"]
    without = intervene(program.model, prompt, {"head_out.0": "zero"})["logits"]
    idle = intervene(program.model, prompt, {"head_out.1": "zero"})["logits"]
    assert np.array_equal(plain, idle)  # layer 1 has an MLP only
    assert (plain[-4:].argmax(1) != without[-4:].argmax(1)).any()


def test_what_cannot_be_compiled_is_refused_in_a_sentence() -> None:
    with pytest.raises(OtimesError, match="there is no program 'shuffle'; there are length"):
        compile_program("shuffle", "ab", 3)
    with pytest.raises(OtimesError, match="one symbol or more, each once"):
        compile_program("length", "aa", 3)
    with pytest.raises(OtimesError, match="max_length must be a whole number of at least 1"):
        compile_program("length", "ab", 0)
    with pytest.raises(OtimesError, match="'fraction' needs a token of the alphabet"):
        compile_program("fraction", "ab", 3)
    with pytest.raises(OtimesError, match="smaller alphabet or a smaller max_length"):
        compile_program("reverse", "ab", 3000)
    program = compile_program("length", "ab", 3)
    with pytest.raises(OtimesError, match="'c' is not in the alphabet"):
        program("abc")
    with pytest.raises(OtimesError, match="takes 1 to 3 tokens, got 4"):
        program("abab")
