"""Programs compiled to the weights of a transformer, in the manner of RASP and Tracr.

- `language`: tokens, indices, maps, selectors, means and counts;
- `compiler`: such a program as a `Model` whose attention and MLPs compute it;
- `library`: length, histogram, reverse, sort, and the fraction of a token so far.

Source: Weiss, Goldberg and Yahav 2021, “Thinking Like Transformers”; Lindner et al. 2023, “Tracr:
Compiled Transformers as a Laboratory for Interpretability”.
"""
