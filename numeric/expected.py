"""What is meant by names that other libraries give to the parts of a model."""

from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError

MEANT = {
    "cfg": "model.config",
    "W_OV": "otimes.ov_circuit(model, layer, head)",
    "W_QK": "otimes.qk_circuit(model, layer, head)",
    "OV": "otimes.ov_circuit(model, layer, head)",
    "QK": "otimes.qk_circuit(model, layer, head)",
    "run_with_cache": "model.forward(tokens), which returns all activations by name",
    "run_with_hooks": "otimes.intervene(model, tokens, {hook_point: replacement})",
    "fold_layer_norm": "model.fold_norms()",
    "fold_ln": "model.fold_norms()",
    "state_dict": "model.weights",
    "parameters": "model.weights",
    "n_params": "sum(weight.size for weight in model.weights.values())",
    "blocks": "model.weights, or a weight by its name: model.W_Q[layer, head]",
    "layers": "model.weights, or a weight by its name: model.W_Q[layer, head]",
    "h": "model.weights, or a weight by its name: model.W_Q[layer, head]",
    "tokenizer": "otimes.numeric.tokenizer.load_tokenizer(), of the bundled models",
    "to_tokens": "otimes.numeric.tokenizer.load_tokenizer().encode(text), of the bundled models",
}
"""Names of attributes in PyTorch, Hugging Face and TransformerLens, and what is meant here."""


SHOWN = 6
"""The number of activations that are printed."""


def no_attribute(name: str) -> AttributeError:
    """Return the error for an attribute that a model does not have.

    >>> print(no_attribute("cfg"))
    a model of otimes has no attribute cfg: use model.config
    """
    meant = f": use {MEANT[name]}" if name in MEANT else ""
    return AttributeError(f"a model of otimes has no attribute {name}{meant}", name=name)


class NoActivation(OtimesError, KeyError):
    """An activation was asked for that a forward pass did not record."""

    __str__ = Exception.__str__


class Activations(dict[str, np.ndarray]):
    """The activations of a forward pass, by name of the hook point.

    >>> Activations({"embed": np.ones((4, 8)), "logits": np.ones((4, 50))})
    <2 activations: embed float64[4, 8], logits float64[4, 50]>
    """

    def __repr__(self) -> str:
        shown = [f"{name} {each.dtype}{list(each.shape)}" for name, each in self.items()]
        middle = [] if len(shown) <= SHOWN else ["…"]
        kept = shown[: SHOWN - 1] + middle + shown[-1:] if middle else shown
        return f"<{len(self)} activations: {', '.join(kept)}>"

    def __missing__(self, name: Any) -> np.ndarray:
        """Raise NoActivation, which says what was recorded."""
        kind = str(name).rpartition(".")[0] or str(name)
        alike = [each for each in self if each == kind or each.rpartition(".")[0] == kind]
        has = alike or list(dict.fromkeys(each.partition(".")[0] for each in self))
        layers = "" if alike else ", with the number of a layer, as in pattern.0"
        listed = ", ".join(has)
        raise NoActivation(f"no activation {name!r} is recorded: there are {listed}{layers}")
