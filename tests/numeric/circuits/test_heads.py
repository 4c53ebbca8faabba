"""The circuits of heads and virtual weights, against loops over the stored weights."""

from dataclasses import replace

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, RuleError
from otimes.numeric.circuits.heads import full_ov, full_qk, ov_circuit, qk_circuit
from otimes.numeric.circuits.virtual import virtual_weights
from otimes.numeric.circuits.weights import embed_after_unembed, weight
from tests.numeric.circuits.plainly import (
    MODELS,
    across,
    folded,
    head_weight,
    heads,
    mul,
    near,
    ov,
    qk,
    table,
)  # fmt: skip
from tests.numeric.random_models import KINDS, TINY, TINY_TOKENS, random_model

every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@every_model
def test_circuits_are_products_of_the_stored_weights(model) -> None:
    rotary = model.positions == "rotary"
    E, U = table(model, "W_E"), table(model, "W_U")
    for layer, head in heads(model):
        assert near(ov_circuit(model, layer, head).dense(), ov(model, layer, head))
        full = mul(E, ov(model, layer, head), U)
        assert near(full_ov(model, layer, head).dense(), full)
        for distance in (0, 1, 5) if rotary else (None,):
            bare = qk(model, layer, head, distance)
            found = qk_circuit(model, layer, head, distance=distance)
            assert near(found.dense(), bare)
            scores = np.array(mul(E, bare, across(E))) / model.d_head**0.5
            assert near(full_qk(model, layer, head, distance=distance).dense(), scores)


def test_scores_of_a_rotary_model_are_those_of_the_circuit_at_the_distance() -> None:
    """Against the reference pass, which turns queries and keys by their positions."""
    for kind in ("llama", "gptj"):
        config = replace(KINDS[kind], biases=(), norm="none", final_norm=False)
        model = random_model(config, seed=4)
        places = model.forward(TINY_TOKENS)
        rows = places["resid_pre.1"]
        for head in range(model.n_heads):
            for i in range(len(rows)):
                for j in range(i + 1):
                    circuit = qk_circuit(model, 1, head, distance=i - j).dense()
                    score = rows[i] @ circuit @ rows[j] / model.d_head**0.5
                    assert abs(score - places["scores.1"][head, i, j]) < 1e-12 * max(1, abs(score))


@pytest.mark.parametrize("kind", ["attention only", "llama", "gpt2", "tied"])
@pytest.mark.parametrize("stored", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unembed_after_embed_by_blocks(kind: str, stored: type, dtype: type) -> None:
    model = MODELS[kind]
    model = model.changed({n: w.astype(stored) for n, w in model.weights.items()})
    expected = mul(table(model, "W_U"), table(model, "W_E"))
    for block_bytes in (1, 300, 10**6):
        found = embed_after_unembed(model, dtype, block_bytes)
        assert found.dtype == dtype
        assert near(found, expected, 1e-13 if dtype == np.float64 else 1e-5)


def test_weights_of_the_asked_precision_are_not_copied() -> None:
    model = MODELS["attention only"]
    assert np.shares_memory(weight(model, "W_Q", 0), model.weights["W_Q"])
    assert weight(model, "W_Q", 0, np.float32).dtype == np.float32
    for name, each in MODELS.items():
        assert near(weight(each, "W_U", 2), table(each, "W_U")[2], 0), name


def test_what_a_reader_finds_of_each_writer() -> None:
    """Summed over writers, virtual weights make the queries, keys, values and logits of a pass."""
    model = MODELS["attention only"]
    places = model.forward(TINY_TOKENS)
    E, P = np.eye(model.d_vocab)[TINY_TOKENS], np.eye(model.n_ctx)[: len(TINY_TOKENS)]
    writers = {"embed": E} | {
        f"head {layer}.{head}": places[f"z.{layer}"][head] for layer, head in heads(model)
    }

    def read(reader: str, layer: int) -> np.ndarray:
        earlier = {w: z for w, z in writers.items() if w == "embed" or int(w[5]) < layer}
        return sum(z @ virtual_weights(model, w, reader).dense() for w, z in earlier.items())

    for layer, head in heads(model):
        assert near(read(f"head {layer}.{head} V", layer), places[f"v.{layer}"][head])
        for side in "QK":
            reader = f"head {layer}.{head} {side}"
            positions = P @ virtual_weights(model, "positions", reader).dense()
            assert near(read(reader, layer) + positions, places[f"{side.lower()}.{layer}"][head])
    assert near(read("unembed", model.n_layers), places["logits"])


def test_virtual_weights_of_an_mlp() -> None:
    model = MODELS["llama"]
    W_O, W_in = head_weight(model, "W_O", 0, 3), model.weights["W_in"][0].astype(float).tolist()
    assert near(virtual_weights(model, "head 0.3", "mlp 0").dense(), mul(W_O, W_in))
    W_out, W_gate = (model.weights[name] for name in ("W_out", "W_gate"))
    last = virtual_weights(model, "mlp 1", "unembed").dense()
    assert near(last, mul(W_out[1].astype(float).tolist(), table(model, "W_U")))
    found = virtual_weights(model, "mlp 0", "gate 1").dense()
    assert near(found, mul(W_out[0].astype(float).tolist(), W_gate[1].astype(float).tolist()))


@pytest.mark.parametrize(
    ("kind", "writer", "reader", "said"),
    [
        ("attention only", "head 1.0", "head 1.1 Q", "is not before 'head 1.1 Q' in random"),
        ("attention only", "head 2.0", "head 1.1 Q", "'head 2.0' is not before"),
        ("attention only", "head 0.3", "unembed", "head 0.3 is out of range: random has 3 layers"),
        ("attention only", "mlp 0", "unembed", "random has no MLP"),
        ("attention only", "head 0.1 Q", "unembed", "no writer 'head 0.1 Q'; writers are"),
        ("attention only", "embed", "logits", "no reader 'logits'; readers are, for example,"),
        ("attention only", "embed", "head x Q", "as in 'head 0.3', got 'x'"),
        ("attention only", "positions", "unembed", "positions, which only queries and keys read:"),
        ("without positions", "positions", "unembed", "no writer 'positions'"),
        ("gpt2", "mlp 0", "mlp 0", "'mlp 0' is not before 'mlp 0' in random"),
        ("gpt2", "mlp 7", "unembed", "MLP 7 is out of range: random has 3 layers from 0"),
        ("gpt2", "embed", "gate 0", "no reader 'gate 0'"),
    ],
)  # fmt: skip
def test_writers_and_readers_that_do_not_meet(kind, writer, reader, said) -> None:
    with pytest.raises(OtimesError, match=said):
        virtual_weights(MODELS[kind], writer, reader)


def test_a_parallel_mlp_reads_before_its_attention_writes() -> None:
    model = folded(random_model(KINDS["neox"]))
    with pytest.raises(OtimesError, match=r"'head 0\.0' is not before 'mlp 0' in random"):
        virtual_weights(model, "head 0.0", "mlp 0")
    assert virtual_weights(model, "head 0.0", "mlp 1").shape == (6, 13)


def test_wrong_use_is_said_in_a_sentence() -> None:
    plain, llama = MODELS["attention only"], MODELS["llama"]
    for circuit in (ov_circuit, qk_circuit, full_ov, full_qk):
        for layer, head in ((3, 0), (0, 3), (-1, 0)):
            with pytest.raises(
                OtimesError, match=f"head {layer}.{head} is out of range: random has 3"
            ):
                circuit(plain, layer, head)
        with pytest.raises(RuleError, match="gain of random is not 1; fold the norms"):
            circuit(random_model(KINDS["gpt2"]), 0, 0)
        with pytest.raises(
            OtimesError, match=r"dtype must be numpy\.float32 or numpy\.float64, got <class 'int'>"
        ):
            circuit(plain, 0, 0, int)
    with pytest.raises(OtimesError, match="depend on the distance between query and key"):
        qk_circuit(llama, 0, 0)
    with pytest.raises(OtimesError, match=r"a key is 0 to n_ctx - 1 = 6 positions before"):
        qk_circuit(llama, 0, 0, distance=7)
    with pytest.raises(
        OtimesError, match="distance=1 for random, whose positions are 'shortformer': a QK circuit"
    ):
        qk_circuit(plain, 0, 0, distance=1)
    with pytest.raises(OtimesError, match="2 token strings for random, which has 11 tokens"):
        full_ov(plain, 0, 0, tokens=["a", "b"])
    assert random_model(TINY).config.norm == "none"
