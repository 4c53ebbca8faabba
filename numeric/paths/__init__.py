"""The path expansion of one forward pass: the contribution of each path through heads to a logit.

- `orders`: the sum of all paths of each order, in one pass; the replay ablation; a single path;
- `pairs`: the contributions of single heads, virtual heads and triples to a logit;
- `top_paths`: the largest paths, with a bound on all others;
- `shapley`: exact Shapley values of heads;
- `scores`: attention scores split by composition;
- `loss`: the loss by term, in nats; `induction`: the induction mechanism, in numbers;
- `closure`: a check that all paths sum to the forward pass;
- `directions`: linear functionals on the residual stream, pulled back from a logit;
- `ensemble`: the class `Paths`; `summary`, `views`: one logit as a record, and as HTML.
"""
