r"""Weights in embedding space: expressed over the vocabulary, in which models can be compared.

E [d_model, d_vocab] maps a row of the residual stream to the vocabulary: $W_U$, or $W_E^T$. With
any right inverse, $E E' = I$, every product in the model can be expressed over the vocabulary:

    reads    $X W = (X E)(E' W)$           W_Q, W_K, W_V, W_in, W_gate become E' W
    writes   $Z W E = Z (W E)$             W_O, W_out become W E
    OV       $(X E)(E' W_{OV} E)$          QK   $(X E)(E' W_{QK} E'^T)(X E)^T$

The right inverse is not unique: the pseudo-inverse $E^T (E E^T)^{-1}$ is one, the inverse of d
chosen columns ("basis") another. The transpose $E^T$, which is mostly used in practice, is not one:
`inverse_defects` measures how far it is from one.

**Gram trick.** Inner products of rows over the vocabulary, $(A E_A)(B E_B)^T = A (E_A E_B^T) B^T$,
need one d × d matrix, so correlations do too.

Source: Dar, Geva, Gupta and Berant 2023, “Analyzing Transformers in Embedding Space”.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float
from scipy.linalg import qr
from scipy.optimize import linear_sum_assignment

from otimes.algebra.errors import OtimesError, RuleError
from otimes.numeric.brief import Brief
from otimes.numeric.circuits.factored import Factored, triangle
from otimes.numeric.circuits.heads import ov_circuit, qk_circuit, token_labels
from otimes.numeric.circuits.result import Named
from otimes.numeric.circuits.weights import BLOCK_BYTES, blocks, check_folded, check_head, weight
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.progress import tracked

INVERSES = ("pseudo", "basis", "transpose")
READS = ("W_Q", "W_K", "W_V", "W_in", "W_gate")
WRITES = ("W_O", "W_out")
OF_HEADS = ("W_Q", "W_K", "W_V", "W_O", "W_OV", "W_QK")


def vocabulary(model: ModelSource, table: str = "W_U") -> Float[np.ndarray, "d_model d_vocab"]:
    """Return E: W_U, or the transpose of W_E."""
    model = load_model(model)
    if table == "W_U":
        check_folded(model, "the embedding space of W_U", "ln_final_gain")
        return weight(model, "W_U")
    if table == "W_E":
        return weight(model, "W_E").T
    raise OtimesError(f"table must be 'W_U' or 'W_E', got {table!r}")


def right_inverse(model: ModelSource, inverse: str = "pseudo", table: str = "W_U") -> Factored:
    r"""Return E' [d_vocab, d_model], factored; $E E' = I$ except for "transpose".

    "pseudo": $E^T (E E^T)^{-1}$, the one of smallest norm; "basis": zero except at d_model tokens,
    chosen by QR with pivoting; "transpose": $E^T$. Proved by: pseudo_inverse_is_inverse.

    >>> from otimes.numeric.load import load_model
    >>> right_inverse(load_model("zero_layer")).shape
    (1024, 128)

    Raises: RuleError if the rows of E are linearly dependent, so that there is no right inverse.
    """
    model = load_model(model)
    if inverse not in INVERSES:
        raise OtimesError(f"inverse must be one of {', '.join(INVERSES)}, got {inverse!r}")
    E = vocabulary(model, table)
    names = token_labels(model)
    d, n_tokens = E.shape
    if inverse == "transpose":
        return Factored(E.T, np.eye(d), names)
    R = _full_rank(triangle(_column_blocks([E])), model, table, n_tokens)
    if inverse == "pseudo":
        small = np.linalg.inv(R)
        return Factored(E.T, small @ small.T, names)
    _, chosen = qr(E, mode="r", pivoting=True)
    chosen = chosen[:d]
    left = np.zeros((n_tokens, d))
    left[chosen] = np.eye(d)
    return Factored(left, np.linalg.inv(E[:, chosen]), names)


def inverse_defects(model: ModelSource, table: str = "W_U") -> Named:
    r"""Return the distance of each E' from a right inverse, $‖E E' - I‖_F / √d$ [inverse].

    The last entry is the transpose times the best scalar factor, which measures the spread of the
    singular values of E. A right inverse has 0, and E' = 0 has 1.

    >>> from otimes.numeric.load import load_model
    >>> inverse_defects(load_model("zero_layer")).values[0] < 1e-10
    np.True_
    """
    model = load_model(model)
    E, d = vocabulary(model, table), model.d_model
    defects = []
    for inverse in INVERSES:
        found = right_inverse(model, inverse, table)
        product = (E @ found.left) @ found.right
        defects.append(np.linalg.norm(product - np.eye(d)) / np.sqrt(d))
    best = np.trace(product) / np.linalg.norm(product) ** 2
    defects.append(np.linalg.norm(best * product - np.eye(d)) / np.sqrt(d))
    labels = [*INVERSES, "transpose, best factor"]
    return Named("‖E E' − I‖ / √d", np.array(defects), ("inverse",), {"inverse": labels})


def projected(
    model: ModelSource,
    name: str,
    layer: int,
    head: int | None = None,
    *,
    inverse: str = "pseudo",
    table: str = "W_U",
    distance: int | None = None,
) -> Factored:
    r"""Return a weight in embedding space, factored: E' W for a reading weight, W E for a writing.

    `name`: W_Q, W_K, W_V, W_O, W_OV, W_QK with a head; W_in, W_gate, W_out without. `.top(k)`
    returns the largest entries with their tokens.
    Proved by: embedding_space_reads, embedding_space_OV, embedding_space_QK.  Source: Dar et al.

    >>> from otimes.numeric.load import load_model
    >>> projected(load_model("one_layer"), "W_OV", 0, 3).shape
    (1024, 1024)

    Raises: OtimesError for an unknown weight, layer or head.
    """
    model = load_model(model)
    if name not in (*READS, *WRITES, "W_OV", "W_QK"):
        known = ", ".join((*READS, *WRITES, "W_OV", "W_QK"))
        raise OtimesError(f"unknown weight {name!r}; the weights are {known}")
    if (name in OF_HEADS) != (head is not None):
        owner = "of a head: give head=" if head is None else "of a layer, not of a head"
        raise OtimesError(f"{name} is a weight {owner}")
    if head is not None:
        check_head(model, layer, head)
    elif not 0 <= layer < model.n_layers or not model.config.d_mlp:
        raise OtimesError(f"there is no MLP {layer} in {model.name}")
    E, names = vocabulary(model, table), token_labels(model)
    if name in WRITES:
        W = weight(model, name, layer) if head is None else weight(model, name, layer)[head]
        return Factored(W, E, (), names)
    back = right_inverse(model, inverse, table)
    if name == "W_OV":
        read = back @ ov_circuit(model, layer, head or 0)
        return Factored(read.left, read.right @ E, names, names)
    if name == "W_QK":
        check_folded(model, "W_QK in embedding space", "ln1_gain", also=("qk_norm",))
        return (back @ qk_circuit(model, layer, head or 0, distance=distance)) @ back.T
    check_folded(model, f"what {name} reads", "ln1_gain" if head is not None else "ln2_gain")
    W = weight(model, name, layer) if head is None else weight(model, name, layer)[head]
    # E.T [d_vocab, d_model] stays factored; only the d_model side is multiplied.
    return back @ W


def correlations(
    A: Float[np.ndarray, "rows_A d_A"],
    E_A: Float[np.ndarray, "d_A d_vocab"],
    B: Float[np.ndarray, "rows_B d_B"],
    E_B: Float[np.ndarray, "d_B d_vocab"],
) -> Float[np.ndarray, "rows_A rows_B"]:
    r"""Return the Pearson correlations over the vocabulary of the rows of $A E_A$ and $B E_B$.

    Only d × d matrices are needed: with $C_{AB} = E_A E_B^T - V \bar e_A \bar e_B^T$, V the size of
    the vocabulary, the covariance of rows a and b is $a C_{AB} b^T$ (up to a common factor). The
    correlation with a row that is constant over the vocabulary is 0.
    Proved by: gram_of_projected.  Source: Dar et al. 2023, §4.3.

    >>> rows, E = np.array([[1.0, 0], [-1, 0]]), np.array([[0.0, 1, 2], [1, 1, 1]])
    >>> correlations(rows, E, rows, E).round(12).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    if E_A.shape[1] != E_B.shape[1]:
        raise OtimesError(
            f"vocabularies of {E_A.shape[1]} and {E_B.shape[1]} tokens cannot be compared: both"
            " models must have the same tokenizer"
        )
    covariance = A @ _covariance(E_A, E_B) @ B.T
    lengths = [
        np.sqrt(np.einsum("nd,nd->n", rows @ _covariance(E, E), rows).clip(min=0.0))
        for rows, E in ((A, E_A), (B, E_B))
    ]
    size = lengths[0][:, None] * lengths[1]
    return np.divide(covariance, size, out=np.zeros_like(covariance), where=size > 0)


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """A pairing of the layers of two models, and the similarities of all pairs."""

    pairs: tuple[tuple[int, int], ...]
    similarity: Named


def align_layers(
    A: ModelSource, B: ModelSource, names: Sequence[str] = ("W_OV",), table: str = "W_U"
) -> Alignment:
    """Return the one-to-one pairing of the layers of two models with the largest total similarity.

    The similarity of two layers is the mean absolute correlation over the vocabulary of the rows of
    their weights, each row with its best match, averaged over both directions and over `names`. It
    does not depend on the order of heads or neurons. `names` are W_in, W_gate, W_out; W_Q, W_K,
    W_V, W_O, with the rows of all heads; or W_OV, with the scaled right singular vectors of each
    head, which do not depend on the basis of its values. The pairing is found by
    `scipy.optimize.linear_sum_assignment`. Source: Dar et al. 2023, §4.3; the matching of rows with
    their best partners is our choice.

    >>> from otimes.numeric.load import load_model
    >>> model = load_model("two_layer")
    >>> align_layers(model, model).pairs
    ((0, 0), (1, 1))
    """
    B = load_model(B)
    A = load_model(A)
    E_A, E_B = vocabulary(A, table), vocabulary(B, table)
    total = np.zeros((A.n_layers, B.n_layers))
    for name in names:
        rows_A = [_rows(A, name, layer, E_A) for layer in range(A.n_layers)]
        rows_B = [_rows(B, name, layer, E_B) for layer in range(B.n_layers)]
        for i, a in tracked(list(enumerate(rows_A)), f"comparing {name}"):
            for j, b in enumerate(rows_B):
                found = np.abs(correlations(a, E_A, b, E_B))
                total[i, j] += (found.max(axis=1).mean() + found.max(axis=0).mean()) / 2
    total /= max(len(names), 1)
    first, second = linear_sum_assignment(-total)
    similarity = Named("layer similarity", total, ("layer of the first", "layer of the second"))
    return Alignment(tuple(zip(first.tolist(), second.tolist(), strict=True)), similarity)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stitching(Brief):
    r"""A map K [d_A, d_B] from one residual stream to another, $x_B ≈ x_A K$, and its residual.

    `residual` is $‖K E_B - E_A‖_F / ‖E_A‖_F$: 0 if K reproduces the first model's logits exactly.
    """

    K: Float[np.ndarray, "d_A d_B"] = field(repr=False)
    residual: float


def stitching_map(A: ModelSource, B: ModelSource, table: str = "W_U") -> Stitching:
    r"""Return $K = E_A E_B'$ (pseudo-inverse), which maps the residual stream of A to that of B.

    It is the least-squares solution of $K E_B = E_A$, from the R factor of $[E_B^T E_A^T]$, which
    is computed over blocks of tokens; the lower corner of R gives the residual. K is the identity
    for B = A, and the rotation if B is A with a rotated residual stream.
    Proved by: stitching_to_itself.  Source: Dar et al. 2023, §4.4.

    >>> from otimes.numeric.load import load_model
    >>> stitching_map(load_model("one_layer"), load_model("two_layer")).K.shape
    (128, 128)

    Raises: OtimesError if the vocabularies differ; RuleError if E_B has no right inverse.
    """
    B = load_model(B)
    A = load_model(A)
    E_A, E_B = vocabulary(A, table), vocabulary(B, table)
    if E_A.shape[1] != E_B.shape[1]:
        raise OtimesError(
            f"{A.name} has {E_A.shape[1]} tokens and {B.name} has {E_B.shape[1]}: stitching needs"
            " the same vocabulary"
        )
    d = B.d_model
    R = triangle(_column_blocks([E_B, E_A]))
    inner = _full_rank(R[:d, :d], B, table, E_B.shape[1])
    K = np.linalg.solve(inner, R[:d, d:]).T
    return Stitching(K, float(np.linalg.norm(R[d:, d:]) / np.linalg.norm(E_A)))


def _rows(model: Model, name: str, layer: int, E: np.ndarray) -> np.ndarray:
    """Return rows A [rows, d_model] such that $A E$ is the weight in embedding space."""
    if name == "W_OV":
        heads = [ov_circuit(model, layer, head).svd() for head in range(model.n_heads)]
        return np.concatenate([(each.V * each.S).T for each in heads])
    if name not in (*READS, *WRITES):
        raise OtimesError(
            f"names must be out of {', '.join((*READS, *WRITES, 'W_OV'))}, got {name!r}"
        )
    W = weight(model, name, layer)
    if name in WRITES:
        return W.reshape(-1, model.d_model)
    columns = np.swapaxes(W, -2, -1).reshape(-1, model.d_model)
    # (E' W)ᵀ = Wᵀ (E Eᵀ)⁻¹ E
    return np.linalg.solve(E @ E.T, columns.T).T


def _covariance(E_A: np.ndarray, E_B: np.ndarray) -> np.ndarray:
    mean_A, mean_B = E_A.mean(axis=1), E_B.mean(axis=1)
    total = np.zeros((len(E_A), len(E_B)))
    for some in blocks(E_A.shape[1], len(E_A) + len(E_B), float, BLOCK_BYTES):
        # Centred before the product, to avoid cancellation.
        total += (E_A[:, some].T - mean_A).T @ (E_B[:, some].T - mean_B)
    return total


def _column_blocks(tables: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield blocks of rows of the transposed tables, side by side."""
    width = sum(map(len, tables))
    n_tokens = tables[0].shape[1]
    for some in blocks(n_tokens, width, float, BLOCK_BYTES):
        yield np.hstack([table[:, some].T for table in tables])


def _full_rank(R: np.ndarray, model: Model, table: str, n_tokens: int) -> np.ndarray:
    """Return R. Raises: RuleError if it is singular, so that E has no right inverse."""
    d = R.shape[1]
    S = np.linalg.svd(R, compute_uv=False)
    if len(S) < d or not S[-1] > S[0] * max(n_tokens, d) * np.finfo(float).eps:
        rank = int((S[0] * max(n_tokens, d) * np.finfo(float).eps < S).sum()) if len(S) else 0
        raise RuleError(
            f"{table} of {model.name} has rank {rank}, less than d_model={d}: it has no right"
            " inverse, and its embedding space loses part of the residual stream"
        )
    return R
