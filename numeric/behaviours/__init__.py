"""Behaviours of heads and neurons: what they attend to, what they detect and what they write.

- `attention`: attention on chosen pairs of positions: positional, joiner and syntactic heads;
- `ablation`: the change of the loss when heads and MLPs are taken away;
- `syntax`: the words of a text, and the syntactic relations of Python source;
- `weights_of_neurons`: what neurons write and read, from the weights alone;
- `activations`: what neurons respond to: tokens, positions, classes, neurons of another model;
- `entropy`: neurons that change the scale of the final norm.

Previous-token, duplicate-token and prefix-matching scores are in `otimes.numeric.circuits`, and so
are copying scores and the eigenvalues of OV circuits.
"""
