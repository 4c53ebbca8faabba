"""Behaviours that are reported of trained transformers, as measures of any model.

- `attention`: attention on chosen pairs of positions: positional, joiner and syntactic heads;
- `ablation`: the change of the loss when heads or MLPs are ablated;
- `syntax`: the words of a text, and the syntactic relations of Python source;
- `weights_of_neurons`: what neurons write and read, from the weights alone;
- `activations`: what neurons respond to: tokens, positions, classes, neurons of another model;
- `entropy`: neurons that change the scale of the final norm;
- `streams`: norms of the residual stream, anisotropy, rogue dimensions, attention sinks;
- `precision`: rounding activations to few bits, and weights of a smaller rank;
- `training`: fine-tuning by a few gradient steps, and how much of a circuit is left;
- `modular_addition`: networks that add modulo p, trained and written by hand;
- `knowledge`: context against memory, recall, and signals of correctness.

Previous-token, duplicate-token and prefix-matching scores are in `otimes.numeric.circuits`, and so
are copying scores and the eigenvalues of OV circuits.
"""
