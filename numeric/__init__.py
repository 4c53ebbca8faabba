"""Transformers in NumPy: models, the reference forward pass, and analyses of both.

- `config`, `model`, `random_weights`, `importers`: configurations and weights, bundled, random,
  trained here, or imported from other libraries;
- `forward`, `functions`, `layer`: the reference forward pass in float64, all activations recorded;
- `processing`: weights transformed without changing the function (folded norms, centred weights);
- `tokenizer`, `prompt`: byte-level byte-pair encoding and the bundled sample text;
- `metrics`, `model_card`, `plot`: losses, scores of heads, heat maps;
- `frozen`, `paths`: a forward pass with frozen attention patterns, and its sum over paths;
- `circuits`, `attribution`: QK and OV circuits, logit lens, gradients, direct logit attribution;
- `rounding`: derived bounds on rounding errors;
- `audit`: compares another implementation with the reference forward pass;
- `strategies`: Hypothesis strategies for expressions, equations and weights;
- `torch_model`, `corpus`, `training`: the same model in torch, and its training (extra `train`).
"""
