"""The twin: the same transformer as a torch module, for training and as a second opinion.

It has the weights of `numeric.model.Model` under the same names and shapes, takes a batch of
prompts, and records the same places, each with a batch axis in front.  Nothing of the reference
pass is used here, so that the two can be compared (`tests/numeric/test_twin.py`).
"""

import math

import torch
from torch import Tensor, nn

from numeric.model import Config, Model


class Twin(nn.Module):
    """An attention-only transformer without biases or norms.

    Weights: `W_E` [d_vocab, d_model], `W_U` [d_model, d_vocab], `W_Q`, `W_K`, `W_V`
    [layer, head, d_model, d_head], `W_O` [layer, head, d_head, d_model] and, with shortformer
    positions, `W_pos` [n_ctx, d_model], which only the queries and keys read.
    """

    def __init__(self, config: Config, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.config = config
        for name in config.tensor_shapes():
            self.register_parameter(name, nn.Parameter(weights[name]))

    @classmethod
    def of_model(cls, model: Model, dtype: torch.dtype = torch.float64) -> "Twin":
        """Return the twin of a reference model, with copies of its weights."""
        return cls(
            model.config,
            {
                name: torch.tensor(getattr(model, name), dtype=dtype)
                for name in model.config.tensor_shapes()
            },
        )

    def weights(self) -> dict[str, Tensor]:
        """Return the weights by name, without their gradients."""
        return {name: parameter.detach() for name, parameter in self.named_parameters()}

    def forward(self, tokens: Tensor, record: dict[str, Tensor] | None = None) -> Tensor:
        """Return the logits [batch, pos, d_vocab]; put every place into `record` when given."""
        places: dict[str, Tensor] = {} if record is None else record
        config = self.config
        batch, n_pos = tokens.shape
        residual = self.W_E[tokens]
        places["embed"] = residual
        visible = torch.ones(n_pos, n_pos, dtype=torch.bool, device=tokens.device).tril()

        def heads(rows: Tensor, weight: Tensor) -> Tensor:
            """Map [batch, pos, d_model] to [batch, head, pos, d_head] in one matrix product."""
            wide = weight.transpose(0, 1).reshape(config.d_model, -1)
            return (rows @ wide).view(batch, n_pos, config.n_heads, -1).transpose(1, 2)

        for layer in range(config.n_layers):
            qk_in = residual
            if config.positions == "shortformer":
                qk_in = residual + self.W_pos[:n_pos]
            query = heads(qk_in, self.W_Q[layer])
            key = heads(qk_in, self.W_K[layer])
            value = heads(residual, self.W_V[layer])
            scores = query @ key.transpose(-1, -2) / math.sqrt(config.d_head)
            pattern = scores.masked_fill(~visible, -math.inf).softmax(-1)
            z = pattern @ value
            # Training needs the sum over the heads only: heads side by side times stacked W_O.
            side_by_side = z.transpose(1, 2).reshape(batch, n_pos, -1)
            attn_out = side_by_side @ self.W_O[layer].reshape(-1, config.d_model)
            if record is not None:
                record[f"resid_pre.{layer}"] = residual
                record[f"qk_in.{layer}"] = qk_in
                record[f"q.{layer}"] = query
                record[f"k.{layer}"] = key
                record[f"v.{layer}"] = value
                record[f"scores.{layer}"] = scores
                record[f"pattern.{layer}"] = pattern
                record[f"z.{layer}"] = z
                record[f"head_out.{layer}"] = z @ self.W_O[layer]
                record[f"attn_out.{layer}"] = attn_out
            residual = residual + attn_out
            if record is not None:
                record[f"resid_mid.{layer}"] = residual
                record[f"resid_post.{layer}"] = residual
        logits = residual @ self.W_U
        places["logits"] = logits
        return logits
