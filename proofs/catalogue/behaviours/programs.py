"""Chapter 11: programs that are compiled to the weights of a transformer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sympy import BlockMatrix, Identity, MatrixSymbol, OneMatrix, ZeroMatrix

from otimes.algebra.language.linear import matmul
from otimes.algebra.language.nonlinear import RowSoftmax
from otimes.numeric.model import Model
from otimes.numeric.programs.compiler import CompiledProgram
from otimes.numeric.programs.library import compile_program
from otimes.numeric.rounding import gamma
from otimes.proofs.catalogue.symbols import m, n
from otimes.proofs.claims import Method, Statement, Trial
from otimes.proofs.theorem import theorem

RASP = "Weiss, Goldberg and Yahav 2021, “Thinking Like Transformers”"
TRACR = "Lindner et al. 2023, “Tracr: Compiled Transformers as a Laboratory for Interpretability”"
UNIT = 2.0**-53


@theorem(
    title="RASP: the width of a selector is read from the weight of the first position",
    chapter=11,
    source=f"{RASP}, §3; {TRACR}, §3.2",
    covers=("S3-151",),
)
def width_is_read_from_the_first_position() -> Statement:
    """Attention takes means, so a head cannot count directly. But it can count with the help of the
    first position: give that position the same score as the m selected ones and all others a very
    low score. Each of the m + 1 then has the weight 1/(m + 1), and a value that is 1 at the first
    position and 0 elsewhere is read as 1/(m + 1). An MLP turns this into m. In the formula v holds
    the common score for each query, and only the m + 1 positions are shown.

    RASP programs count in this way when they are compiled to transformers. If nothing is selected,
    all weight is on the first position and m = 0.
    """
    score = MatrixSymbol("v", n, 1)
    scores = BlockMatrix([[score, matmul(score, OneMatrix(1, m))]])
    at_first = BlockMatrix([[Identity(1)], [ZeroMatrix(m, 1)]])
    return Statement(
        matmul(RowSoftmax(scores), at_first), matmul(1 / (m + 1), OneMatrix(n, 1)), on_models=False
    )


def _by_python(name: str, sequence: Sequence[Any]) -> list[Any]:
    """Return what a program should put out, in plain Python."""
    return {
        "length": [len(sequence)] * len(sequence),
        "histogram": [[*sequence].count(each) for each in sequence],
        "reverse": [*sequence][::-1],
        "sort": sorted(sequence),
        "fraction": [[*sequence[: end + 1]].count(1) / (end + 1) for end in range(len(sequence))],
    }[name]


def _symbols(
    name: str, program: CompiledProgram, alphabet: Sequence[int], longest: int
) -> Iterator[Trial]:
    """Yield the numbers that a program reads or puts out, and the longest sequence that it takes.

    Counts go up to the length of a prompt, which has a slot for each token.
    """
    counts = range(2 * longest + 1) if name in ("length", "histogram") else ()
    plain = [*alphabet, *(each for each in counts if each not in alphabet)]
    found = [each for each in program.vocabulary if not isinstance(each, str)]
    yield Trial(f"symbols of {name}", np.array(found, float), np.array(plain, float), 0.0)
    read = np.array(program.alphabet, float)
    yield Trial(f"alphabet of {name}", read, np.array(alphabet, float), 0.0)
    yield Trial(f"longest of {name}", float(program.max_length), float(longest), 0.0)


@theorem(
    title="compile_program: RASP programs as transformers",
    chapter=11,
    source=f"{RASP}; {TRACR}",
    covers=("S3-151",),
)
def compile_program_method() -> Method:
    """`compile_program` turns programs in the language RASP into transformers with weights: length,
    histogram, reverse, sort by counting, and the share of a token so far. Their outputs are
    compared with plain Python. Scores are multiplied by β = 1600, so that exp(−β/2) is 0 in float64
    and attention is exactly uniform over what is selected.

    The circuit of such a model is known, so it can test methods of circuit discovery. The compiler
    Tracr is not on PyPI; its weights would be held to the same outputs.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if model.n_layers:
            return  # the programs are the same beside every model
        sequence = [1 + token % 3 for token in tokens][:5]
        for name in ("length", "histogram", "reverse", "sort"):
            program = compile_program(name, (1, 2, 3), 5)
            yield from _symbols(name, program, (1, 2, 3), 5)
            found = program(sequence)
            yield Trial(name, np.array(found, float), np.array(_by_python(name, sequence)), 0.0)
        found = compile_program("fraction", (1, 2, 3), 5, token=1)(sequence)
        plain = np.array(_by_python("fraction", sequence))
        yield Trial("fraction", np.array(found), plain, gamma(20, UNIT) * plain)

    rests = ("width_is_read_from_the_first_position", "softmax_of_equal_scores")
    return Method("ot.compile_program", rests, trials)
