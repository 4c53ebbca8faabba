"""The numbers of worked examples in the prose of theorems are computed here, and found there."""

from collections.abc import Iterator
from fractions import Fraction
from math import comb, exp, log, sqrt

import numpy as np
import pytest

from otimes.proofs.catalogue import find


def _row(numbers: np.ndarray) -> str:
    """Return a vector as the prose writes it."""
    return f"({', '.join(map(_number, numbers))})"


def _matrix(numbers: np.ndarray) -> str:
    return f"[{', '.join(f'[{_row(row)[1:-1]}]' for row in numbers)}]"


def _number(number: float) -> str:
    return str(Fraction(float(number)).limit_denominator(1000)).replace("-", "−")


def _softmax(scores: list[float]) -> np.ndarray:
    weights = np.exp(scores)
    return weights / weights.sum()


def _jacobian(weights: np.ndarray) -> np.ndarray:
    return np.diag(weights) - np.outer(weights, weights)


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def _tensors() -> Iterator[tuple[str, str]]:
    X = np.array([[1, 2], [3, 4]])
    yield "kron_of_columns_is_outer_product", _row(np.kron([1, 2], [3, 4]))
    yield "vec_cols_is_vec_rows_of_transpose", f"first is {_row(X.reshape(-1))}"
    yield "vec_cols_is_vec_rows_of_transpose", f"second {_row(X.T.reshape(-1))}"
    yield "row_of_product", f"= {_row(np.array([2, 3]) @ np.array([[1, 0], [1, 1]]))}"
    R = np.linalg.inv(np.array([[1, 0], [1, 1]]))
    yield "read_and_write_directions_are_dual", f"second is {_row(R[:, 1])}"
    W = np.array([[1, 4], [0, 1]])
    yield "W_QK_symmetric_split", _matrix((W + W.T) / 2)
    yield "W_QK_symmetric_split", _matrix((W - W.T) / 2)
    yield "mean_subtraction_is_a_product", _matrix(np.eye(2) - 1 / 2)
    wide = np.linalg.eigvals(np.array([[-1, 5], [-1, 4]]))
    yield "positive_eigenvalues_without_copying", f"about {max(wide):.2f} and {min(wide):.2f}"


def _streams() -> Iterator[tuple[str, str]]:
    yield "bandwidth_demand", f"it is {12 * (3072 + 768) // 768}."
    yield "gram_of_random_columns", f"root is {sqrt(768 * 769 / 50257):.1f}, against"
    angles = 2 * np.pi * np.arange(3) / 3
    F = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    yield "welch_bound", f"= {_number(((F @ F.T) ** 2).sum() - 3)}."
    yield "random_direction", f"is {1 / sqrt(768):.3f} for"
    yield "projection_interference", f"{1 / sqrt(64):.3f} for"
    yield "composition_by_chance", f"which is {1 / sqrt(768):.4f} for"
    yield "composition_by_chance", f"= {64 * 64 / 768:.1f} on average"
    yield "subspace_overlap", f"overlap {_number(np.cos(np.pi / 3) ** 2)}."
    x = np.array([1, -1])
    yield "mlp_is_positionwise", f"gives {_number(_relu(x.mean()))}, and"
    yield "mlp_is_positionwise", f"is {_number(_relu(x).mean())}."
    z = np.array([1, 3])
    yield "layer_norm_with_gain_and_bias", f"becomes {_row((z - z.mean()) / z.std())}"
    mean = np.array([[1, 0], [0, 1]]).mean(axis=0)
    yield "context_no_longer_than_the_longest", f"squared length {_number(mean @ mean)}."
    x, step = np.array([3, -1]), 0.1
    yield "quantisation_error", f"the bound is {abs(x).sum() * step / 2:.1f}."
    yield "kfac_step", f"have {768 * 3072 / 1e6:.1f} million"


def _attention() -> Iterator[tuple[str, str]]:
    yield "next_token_distribution", " and ".join(map(_number, _softmax([log(3), 0])))
    yield "softmax_of_log_counts", " and ".join(map(_number, _softmax([log(3), log(1)])))
    yield "softmax_of_rows", _row(_softmax([0, log(3)]))
    yield "softmax_jacobian", _matrix(_jacobian(_softmax([0, 0])))
    yield "softmax_differential", f"+ds/{_number(1 / _jacobian(_softmax([0, 0]))[0, 0])}"[:4]
    yield "softmax_ratio", f"log 2 ≈ {log(2):.2f}"
    p, q = np.array([1 / 2, 1 / 2]), np.array([1 / 4, 3 / 4])
    yield "kl_is_nonnegative", f"{(p * np.log(p / q)).sum():.3f} nats"
    yield "qk_rank_at_most_d_head", f"{2 * 768 * 64:,} against {768**2:,}"
    ratios = [Fraction(64 * (2 * 768 + n), 768 * (768 + n)) for n in (0, 10**12)]
    close = [ratio.limit_denominator(100) for ratio in ratios]
    yield "factored_heads_cost_ratio", f"that is {close[0]} and {close[1]}."
    yield "weights_are_strictly_inside", f"this is {exp(-2) / 10:.4f}."
    beta = log(99 * 99)
    yield "weights_of_groups", f"takes β = {beta:.1f} to"
    uniform = sum(1 / (i + 1) for i in range(1, 4)) / 3
    yield "uniform_attention_scores", f"{uniform:.2f} for four tokens"
    yield "convolution_receptive_field", f"width 3 see {1 + 3 * (3 - 1)} positions"
    odds = exp(14 - 12)
    yield "illustrated_transformer_method", f"{odds / (1 + odds):.2f} and {1 / (1 + odds):.2f}"


def _paths() -> Iterator[tuple[str, str]]:
    L = H = 12
    by_order = [comb(L, k) * H**k for k in range(L + 1)]
    yield "paths_count", f"{sum(by_order):,} paths"
    mean = sum(k * count for k, count in enumerate(by_order)) / sum(by_order)
    yield "paths_mean_order", f"the mean is {mean:.2f}."
    pairs = sum(comb(11, k) * H**k for k in range(12)) ** 2
    yield "score_path_pairs_count", f"13²² or about {pairs / 1e24:.0f} · 10²⁴"
    first, second = (1.3 + 0.05) / 2, (5.2 + 4.0) / 2
    yield "two_player_shapley", f"are {first:.2f} and {second:.1f}."
    change = 1.1**2 - 1
    yield "taylor_of_quadratic", f"the true change is {change:.2f}, and the error is {0.1**2:.2f}."


def _features() -> Iterator[tuple[str, str]]:
    kept = _relu(np.array([1, 0.05]) - 0.2 / 2)
    yield "soft_threshold", f"1 gives the feature {kept[0]:.1f}, and 0.05 gives {kept[1]:.0f}."
    yield "suppression_neurons_seen", f"√(6/1024) = {sqrt(6 / 1024):.2f}."
    yield "token_frequency_neurons_seen", f"1/√1023 = {1 / sqrt(1023):.2f}."
    yield "streams_are_anisotropic", f"which is {1 / sqrt(128):.2f} here"
    yield "full_qk_rank", f"{50_000**2 / 1e9:.1f} billion"
    yield "embedding_space_rank", f"{50_257**2 / 1e9:.1f} billion"


EXAMPLES = [*_tensors(), *_streams(), *_attention(), *_paths(), *_features()]


@pytest.mark.parametrize(("name", "said"), EXAMPLES)
def test_the_numbers_of_a_worked_example_are_computed(name: str, said: str) -> None:
    assert said in " ".join(find(name).prose.split())
