"""Circuits: products of weights, kept factored, and analyses of them.

- `weights`: weights in the requested precision; names of heads;
- `factored`: a low-rank matrix kept as a product: norm, eigenvalues, singular values, top entries;
- `heads`: the OV and QK circuits of a head, in the residual stream and on the vocabulary;
- `copying`: eigenvalues of OV circuits, copying scores;
- `composition`: composition scores of all pairs of heads, relative to random weights;
- `virtual`: virtual weights between the output of one component and the input of another;
- `trigrams`: skip-trigrams of a head, and the bugs that its low rank forces;
- `behaviour`: previous-token, duplicate-token and prefix-matching scores of heads;
- `lens`: the logit lens, and spectral bands of the unembedding;
- `embedding_space`: weights expressed over the vocabulary, alignment of layers, stitching;
- `translators`: affine maps fitted between activations, as in the tuned lens;
- `result`: arrays with named axes, printed as tables.

No d_vocab × d_vocab matrix is ever materialised, and no d_model × d_model matrix per head.
"""
