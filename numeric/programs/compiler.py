r"""A program as the weights of a transformer, with every choice of a softmax exact.

The residual stream has a dimension for each possible value of each operation (one-hot), one that
marks the first position (BOS), and one for each count. Norms there are none.

    select      scores β p(key, query), with β so large that exp(-β/2) is 0 in float64: the weights
                are 1/k on the k selected positions and exactly 0 elsewhere. BOS has β/2: it is
                attended to where nothing is selected, and its value is zero
    width       BOS has β: its weight is 1/(1 + k), and an MLP with a ramp between each two
                such values makes it a one-hot count
    mapped      a ReLU neuron for each combination of values of m arguments: relu(sum - (m - 1))

Source: Weiss, Goldberg and Yahav 2021; Lindner et al. 2023 (Tracr), §3.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import Config
from otimes.numeric.model import Model, make_model
from otimes.numeric.programs.language import (
    Aggregate,
    Indices,
    Mapped,
    Operation,
    Selector,
    Tokens,
    Total,
    Values,
    Width,
    combinations,
)

BOS = "<bos>"
SHARP = 1600.0  # exp(-SHARP / 2) is 0 in float64
LARGEST = 4096  # dimensions, and neurons of a layer


@dataclass(frozen=True)
class Head:
    """A planned head: the positions it selects, and the dimensions it reads and writes."""

    selector: Selector
    first: float  # the score of BOS
    copied: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Neuron:
    """A ReLU neuron: weights of dimensions, bias, and what it adds to dimensions."""

    reads: tuple[tuple[int, float], ...]
    bias: float
    writes: tuple[tuple[int, float], ...]


@dataclass
class Layout:
    """The dimensions, heads and neurons of a program, while it is compiled."""

    alphabet: tuple[Hashable, ...]
    n_pos: int
    width: int = 1  # dimension 0 marks BOS
    start: dict[int, int] = field(default_factory=dict)
    ready: dict[int, int] = field(default_factory=dict)
    inputs: list[tuple[str, int]] = field(default_factory=list)
    heads: dict[int, list[Head]] = field(default_factory=dict)
    neurons: dict[int, list[Neuron]] = field(default_factory=dict)

    def values(self, operation: Operation) -> Values:
        """Return the possible values of an operation."""
        return operation.possible(self.alphabet, self.n_pos)

    def dimensions(self, operation: Operation) -> range:
        """Return the dimensions of an operation, after it and what it reads were placed."""
        if id(operation) not in self.start:
            for read in operation.reads:
                self.dimensions(read)
            self.start[id(operation)] = self._new(len(self.values(operation)))
            after = max((self.ready[id(read)] for read in operation.reads), default=0)
            self.ready[id(operation)] = self._placed(operation, after)
        first = self.start[id(operation)]
        return range(first, first + len(self.values(operation)))

    def _new(self, count: int) -> int:
        self.width += count
        if self.width > LARGEST:
            raise OtimesError(
                f"the program needs more than {LARGEST} dimensions: give it a smaller alphabet or"
                " a smaller max_length"
            )
        return self.width - count

    def _placed(self, operation: Operation, after: int) -> int:
        """Place an operation after some half-layers, and return the half-layer after it.

        Half-layer 2l is before attention of layer l, 2l + 1 before its MLP.
        """
        out = range(self.start[id(operation)], self.width)
        if isinstance(operation, Tokens | Indices):
            table = "W_E" if isinstance(operation, Tokens) else "W_pos"
            self.inputs.append((table, out.start))
            return 0
        if isinstance(operation, Aggregate):
            layer = (after + 1) // 2
            copied = tuple(zip(self.dimensions(operation.values), out, strict=True))
            self.heads.setdefault(layer, []).append(Head(operation.selector, SHARP / 2, copied))
            return 2 * layer + 1
        if isinstance(operation, Width):
            layer, weight = (after + 1) // 2, self._new(1)
            head = Head(operation.selector, SHARP, ((0, weight),))
            self.heads.setdefault(layer, []).append(head)
            points = [1 / (1 + count) for count in self.values(operation)]
            self._neurons(layer, _ramps([(weight, 1.0)], points, out))
            return 2 * layer + 2
        layer = after // 2
        if isinstance(operation, Total):
            weighted = [
                (dimension, float(value))
                for read in operation.arguments
                for dimension, value in zip(self.dimensions(read), self.values(read), strict=True)
            ]
            points = [float(value) for value in self.values(operation)]
            self._neurons(layer, _ramps(weighted, points, out))
        elif isinstance(operation, Mapped):
            self._neurons(layer, self._conjunctions(operation, out))
        return 2 * layer + 2

    def _neurons(self, layer: int, found: Iterator[Neuron]) -> None:
        every = self.neurons.setdefault(layer, [])
        every.extend(found)
        if len(every) > LARGEST:
            raise OtimesError(
                f"layer {layer} of the program needs {len(every)} neurons, more than {LARGEST}:"
                " give it a smaller alphabet or a smaller max_length"
            )

    def _conjunctions(self, operation: Mapped, out: range) -> Iterator[Neuron]:
        places = [self.dimensions(read) for read in operation.arguments]
        number = {value: at for at, value in enumerate(self.values(operation))}
        for which, values in combinations(operation.arguments, self.alphabet, self.n_pos):
            value = operation.function(*values)
            if value is not None:
                reads = tuple((place[at], 1.0) for place, at in zip(places, which, strict=True))
                yield Neuron(reads, 1.0 - len(reads), ((out[number[value]], 1.0),))


def _ramps(
    weighted: Sequence[tuple[int, float]], points: Sequence[float], out: range
) -> Iterator[Neuron]:
    """Yield neurons that write 1 at the number of the point that a weighted sum equals.

    Between two neighbouring points a ramp rises from 0 to 1; a point is one ramp less the next.
    On BOS every neuron is off.
    """
    rising = sorted(range(len(points)), key=lambda at: points[at])
    off = -4.0 * (1.0 + sum(abs(weight) for _, weight in weighted))
    yield Neuron(((0, -1.0),), 1.0, ((out[rising[0]], 1.0),))
    for below, above in pairwise(rising):
        gap = points[above] - points[below]
        low, high = points[below] + gap / 4, points[above] - gap / 4
        for end, sign in ((low, 1.0), (high, -1.0)):
            slope = sign * 2 / gap
            writes = ((out[above], slope), (out[below], -slope))
            yield Neuron((*weighted, (0, off)), -end, writes)


@dataclass(frozen=True)
class CompiledProgram:
    """A program as a model: `model` is its transformer, `program(sequence)` runs it.

    `vocabulary` has the symbols of the model's token ids: BOS, the alphabet, and what the program
    puts out. With `slots` the prompt ends in one "?" for each token of the sequence, and the output
    is read there; else at the tokens themselves.
    """

    model: Model
    vocabulary: tuple[Any, ...]
    alphabet: tuple[Any, ...]
    max_length: int
    slots: bool
    number: bool

    def prompt(self, sequence: Sequence[Hashable]) -> list[int]:
        """Return the token ids of a prompt: BOS, the sequence, and a slot for each answer.

        Raises: OtimesError for a token that is not in the alphabet, or a wrong length.
        """
        if not 1 <= len(sequence) <= self.max_length:
            raise OtimesError(
                f"the program takes 1 to {self.max_length} tokens, got {len(sequence)}"
            )
        for token in sequence:
            if token not in self.alphabet:
                raise OtimesError(f"{token!r} is not in the alphabet {list(self.alphabet)}")
        slots = ["?"] * len(sequence) if self.slots else []
        return [self.vocabulary.index(each) for each in (BOS, *sequence, *slots)]

    def __call__(self, sequence: Sequence[Hashable]) -> list[Any]:
        """Return the outputs of the model on a sequence, as symbols or as numbers."""
        prompt = self.prompt(sequence)
        logits = self.model.forward(prompt, ["logits"])["logits"][-len(sequence) :]
        if self.number:
            return [float(row[-1]) for row in logits]
        return [self.vocabulary[at] for at in logits.argmax(axis=1)]


def compiled(
    operation: Operation,
    alphabet: Sequence[Hashable],
    max_length: int,
    *,
    slots: bool = False,
    number: bool = False,
    name: str = "program",
) -> CompiledProgram:
    """Return a program as a transformer; with `number` the output is the mean of its values.

    Raises: OtimesError if the alphabet is empty or holds a symbol twice, `max_length` is below 1,
    or the model would be too large.
    """
    symbols = _checked(alphabet, max_length)
    n_pos = (2 if slots else 1) * max_length
    layout = Layout((*symbols, "?") if slots else symbols, n_pos)
    out = layout.dimensions(operation)
    values = layout.values(operation)
    vocabulary = [BOS, *layout.alphabet]
    vocabulary += ["mean"] if number else [each for each in values if each not in vocabulary]
    reader = np.zeros((layout.width, len(vocabulary)))
    for dimension, value in zip(out, values, strict=True):
        column = -1 if number else vocabulary.index(value)
        reader[dimension, column] = float(value) if number else 1.0
    model = _model(layout, reader, name)
    return CompiledProgram(model, tuple(vocabulary), symbols, max_length, slots, number)


def _checked(alphabet: Sequence[Hashable], max_length: int) -> tuple[Hashable, ...]:
    symbols = tuple(alphabet)
    if not symbols or len(set(symbols)) < len(symbols) or {BOS, "?"} & set(symbols):
        raise OtimesError(
            f"an alphabet has one symbol or more, each once, and neither {BOS!r} nor '?', got"
            f" {list(symbols)}"
        )
    if isinstance(max_length, bool) or not isinstance(max_length, int) or max_length < 1:
        raise OtimesError(f"max_length must be a whole number of at least 1, got {max_length!r}")
    return symbols


def _model(layout: Layout, reader: np.ndarray, name: str) -> Model:
    """Return the model of a layout: its weights are zero but for what was placed."""
    config = _config(layout, reader.shape[1])
    weights = {tensor: np.zeros(shape) for tensor, shape in config.tensor_shapes().items()}
    weights["W_U"] = reader
    weights["W_E"][0, 0] = 1.0
    for table, first in layout.inputs:
        count = len(layout.alphabet) if table == "W_E" else layout.n_pos
        weights[table][1 : 1 + count, first : first + count] = np.eye(count)
    for layer, heads in layout.heads.items():
        for number, head in enumerate(heads):
            _write_head(layout, weights, (layer, number), head)
    for layer, neurons in layout.neurons.items():
        for number, neuron in enumerate(neurons):
            _write_neuron(weights, (layer, number), neuron)
    return make_model(name, config, weights)


def _config(layout: Layout, d_vocab: int) -> Config:
    """Return the sizes of the model: of each kind as many as the largest layer needs."""
    layers = max((*layout.heads, *layout.neurons), default=0) + 1
    n_heads = max((len(each) for each in layout.heads.values()), default=1)
    every = [head for heads in layout.heads.values() for head in heads]
    sizes = [len(layout.values(head.selector.keys)) + 1 for head in every]
    sizes += [len(head.copied) for head in every]
    return Config(
        n_layers=layers,
        n_heads=n_heads,
        d_model=layout.width,
        d_head=max(sizes, default=1),
        d_vocab=d_vocab,
        n_ctx=layout.n_pos + 1,
        positions="learned",
        d_mlp=max((len(each) for each in layout.neurons.values()), default=1),
        activation="relu",
        attn_scale=1.0,
        biases=("b_Q", "b_in"),
    )


def _write_neuron(weights: dict[str, np.ndarray], at: tuple[int, int], neuron: Neuron) -> None:
    layer, number = at
    weights["b_in"][layer, number] = neuron.bias
    for dimension, weight in neuron.reads:
        weights["W_in"][layer, dimension, number] += weight
    for dimension, weight in neuron.writes:
        weights["W_out"][layer, number, dimension] += weight


def _write_head(
    layout: Layout, weights: dict[str, np.ndarray], at: tuple[int, int], head: Head
) -> None:
    keys, queries = layout.values(head.selector.keys), layout.values(head.selector.queries)
    key_at = layout.dimensions(head.selector.keys)
    query_at = layout.dimensions(head.selector.queries)
    for number, key in enumerate(keys):
        weights["W_K"][(*at, key_at[number], number)] = 1.0
        for dimension, query in zip(query_at, queries, strict=True):
            if head.selector.predicate(key, query):
                weights["W_Q"][(*at, dimension, number)] = SHARP
    weights["W_K"][(*at, 0, len(keys))] = 1.0
    weights["b_Q"][(*at, len(keys))] = head.first
    for column, (source, written) in enumerate(head.copied):
        weights["W_V"][(*at, source, column)] = 1.0
        weights["W_O"][(*at, column, written)] = 1.0
