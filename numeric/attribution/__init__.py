"""Which part of a model, and which token, a prediction is due to.

- `target`: whose logit, at which position, instead of which other;
- `direct`: direct logit attribution to components, heads, sources of heads, neurons; it closes;
- `reverse`: the gradient at every place of a pass; with patterns, scales and gates held, relevance;
- `gradients`: gradient × input, gradient norms, integrated gradients, SmoothGrad;
- `relevance`: layer-wise relevance propagation;
- `occlusion`: what a logit loses when a token is taken away, or blurred;
- `mixing`: how much of each position a layer puts into each other: weighted norms, distances,
  rollout.

Everything is about one prompt. A difference of two logits, of a target and a foil, makes any of
them contrastive.
"""
