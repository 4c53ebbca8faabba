"""What is read off the weights of a model alone: circuits, kept as the products that they are.

- `weights`: the weights that act, in the precision asked for; how heads are named;
- `factored`: a low-rank matrix kept as a product: norm, eigenvalues, singular values, top entries;
- `heads`: the OV and QK circuits of a head, on the stream and on the vocabulary;
- `copying`: eigenvalues of OV circuits, copying scores;
- `composition`: how much heads read of what earlier heads write, against chance;
- `virtual`: virtual weights between any writer and any reader;
- `trigrams`: skip-trigrams of a head with their tokens, and the bugs that they force;
- `behaviour`: what heads attend to: the token before, the same token, the token after it;
- `lens`: the logit lens, and the bands of its spectrum;
- `embedding_space`: weights as tables over the vocabulary, alignment of layers, stitching;
- `result`: numbers with named axes, for eyes.

No table of vocabulary by vocabulary is ever made, and no d_model × d_model matrix a head.
"""
