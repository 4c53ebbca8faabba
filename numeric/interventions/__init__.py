"""Interventions: forward passes in which some activations are replaced, and what follows from them.

- `hooks`: which part of which activation, and the value that replaces it;
- `passes`: the forward pass with replacements, `intervene`;
- `patching`: activation patching in both directions, with the normalised score;
- `graph`: the model as a causal graph: heads, MLPs and what each reads from the residual stream;
- `subgraph`: the pass in which some edges carry the activations of another prompt;
- `edges`: exact patching of single edges and of paths;
- `circuits`: circuits as sets of edges, faithfulness and completeness, ACDC;
- `estimates`: the first-order estimates: attribution patching (AtP, AtP*), EAP, EAP-IG;
- `flow`: information flow routes;
- `frozen`: whether what an intervention should hold fixed is fixed.
"""
