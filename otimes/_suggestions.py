"""Names that people type from other libraries or by guess, and the names that are meant."""

from collections.abc import Iterable
from difflib import get_close_matches

SYNONYMS = {
    # NumPy, SymPy, PyTorch
    "vec": ("vec_rows", "vec_cols"),
    "ravel": ("vec_rows", "vec_cols"),
    "flatten": ("vec_rows", "vec_cols"),
    "softmax": ("RowSoftmax",),
    "Softmax": ("RowSoftmax",),
    "layer_norm": ("LayerNorm",),
    "layernorm": ("LayerNorm",),
    "rms_norm": ("RMSNorm",),
    "tril": ("CausalMask",),
    "causal_mask": ("CausalMask",),
    "relu": ("Activation",),
    "gelu": ("Activation",),
    "one_hot": ("OneHot",),
    "concatenate": ("ConcatHeads",),
    "hstack": ("ConcatHeads",),
    "vstack": ("StackHeads",),
    "Sum": ("HeadSum",),
    "Product": ("LayerProduct",),
    "equals": ("decide",),
    "simplify": ("normal_form",),
    "einsum": ("normal_form",),
    # TransformerLens and the papers
    "HookedTransformer": ("load_model",),
    "from_pretrained": ("load_model",),
    "load": ("load_model",),
    "run_with_cache": ("load_model",),
    "forward": ("load_model",),
    "all_composition_scores": ("composition_scores",),
    "OV": ("ov_circuit", "full_ov"),
    "QK": ("qk_circuit", "full_qk"),
    "W_OV": ("ov_circuit",),
    "W_QK": ("qk_circuit",),
    "eigenvalues": ("ov_eigenvalues",),
    "logit_attrs": ("direct_logit_attribution",),
    "logit_attribution": ("direct_logit_attribution",),
    "dla": ("direct_logit_attribution",),
    "logit_diff": ("direct_logit_attribution",),
    "logit_difference": ("direct_logit_attribution",),
    "accumulated_resid": ("logit_lens",),
    "decompose_resid": ("direct_logit_attribution",),
    "stack_head_results": ("direct_logit_attribution",),
    "attention_patterns": ("head_patterns",),
    "patterns": ("head_patterns",),
    "induction_heads": ("head_behaviour",),
    "detect_heads": ("head_behaviour",),
    "head_behavior": ("head_behaviour",),
    "saliency": ("gradient_norms",),
    "ablation": ("occlusion",),
    "path_expansion": ("paths", "expand_paths"),
    "virtual_heads": ("paths", "virtual_weights"),
    "rollout": ("attention_rollout",),
    "lrp": ("relevance",),
    "fold_ln": ("fold_layer_norm",),
    "fold_layernorm": ("fold_layer_norm",),
    "fold_norms": ("fold_layer_norm",),
    "search": ("catalogue",),
    "show": ("catalogue",),
    "list_theorems": ("catalogue",),
    "theorems": ("catalogue", "load_theorems"),
    "check": ("decide", "check_document"),
    "proof": ("prove",),
    "verify_equation": ("decide",),
}
"""Names of NumPy, SymPy, PyTorch, TransformerLens and the papers, and ours."""


def unknown(name: str, public: Iterable[str]) -> str:
    """Return the message for a name that otimes does not have, with what may be meant.

    >>> unknown("vec", ["vec_rows", "vec_cols", "prove"])
    'otimes has no name vec: did you mean vec_rows or vec_cols?'
    >>> unknown("prov", ["vec_rows", "prove"]), unknown("xyz", ["prove"])
    ('otimes has no name prov: did you mean prove?', 'otimes has no name xyz')
    """
    known = list(public)
    meant = [each for each in SYNONYMS.get(name, ()) if each in known]
    if not meant:
        lower = {each.lower(): each for each in [*known, *SYNONYMS]}
        close = [lower[each] for each in get_close_matches(name.lower(), lower, n=3, cutoff=0.75)]
        targets = (target for each in close for target in SYNONYMS.get(each, (each,)))
        meant = [each for each in dict.fromkeys(targets) if each in known][:3]
    says = f"otimes has no name {name}"
    return f"{says}: did you mean {' or '.join(meant)}?" if meant else says
