"""Attribution: how much each component of a model, or each token, contributes to a logit.

- `target`: the logit, or logit difference, that is attributed, and its position;
- `direct`: direct logit attribution to components, heads, source positions and neurons;
- `reverse`: the gradient with respect to every activation; with patterns, scales and gates frozen,
  relevance;
- `gradients`: gradient × input, gradient norms, integrated gradients, SmoothGrad;
- `relevance`: layer-wise relevance propagation;
- `occlusion`: the change of a logit when a token is replaced, or perturbed by noise;
- `mixing`: how much each position contributes to each other in a layer: weighted norms, distances,
  attention rollout.

Each function explains one prompt. With a foil it attributes the logit difference between target
and foil, which makes the explanation contrastive.
"""
