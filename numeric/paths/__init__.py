"""The ensemble of paths of one forward pass: what goes to a logit through which heads.

- `orders`: all paths of each order in one graded pass; the replay ablation; one path;
- `pairs`: single heads, virtual heads, triples on one logit;
- `best`: the largest paths, with a bound on all others;
- `shapley`: exact Shapley values of heads;
- `scores`: attention scores split by composition;
- `loss`: what terms are worth in nats; `induction`: the story of induction heads, by numbers;
- `closure`: whether the parts make up the whole;
- `directions`: what reads what heads wrote, behind attention and behind MLPs;
- `ensemble`: the face of it all; `views`: for eyes.
"""
