"""The glossary: the terms of the field, each in one or two sentences, with entries about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import prose
import theorem_pages
from otimes.proofs.evidence import Report


@dataclass(frozen=True, slots=True)
class Term:
    """A term, what it means, the entries to read, and other names of it."""

    name: str
    meaning: str
    entries: Sequence[str]
    also: str = ""

    @property
    def anchor(self) -> str:
        """The term in an address."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


TERMS = tuple(
    Term(*row)
    for row in (
        (
            "Ablation",
            (
                "Replacing an activation by something that carries no information about the"
                " prompt, to see what the rest of the model did with it. Zero, the mean,"
                " noise, or the"
                " value on another prompt are used."
            ),
            ("mean_ablation_error", "zero_ablation_is_minus_direct_logit"),
            "knock-out",
        ),
        (
            "Activation patching",
            (
                "Running a model on one prompt with an activation from its run on"
                " another. The change of the output says how much of the difference that activation"
                " carries."
            ),
            ("patched_activation", "activation_patching_method"),
            "causal tracing",
        ),
        (
            "ALiBi",
            (
                "Attention with a penalty on each score that grows with the distance between"
                " query and key, in place of position vectors."
            ),
            ("alibi_distances_are_key_slopes",),
        ),
        (
            "Attention head",
            (
                "A part of a layer that moves information between positions: it decides"
                " where to look by its pattern, and what to move by its OV circuit. As one"
                " matrix it is"
                " $A \\otimes W_O W_V$."
            ),
            ("head_is_kron", "head_in_three_steps"),
            "head",
        ),
        (
            "Attention pattern",
            (
                "The matrix of weights with which a head averages the values of"
                " earlier positions: a row for each destination, a column for each source,"
                " and each row"
                " sums to one."
            ),
            ("pattern_is_stochastic", "attention_moves_values"),
            "weights, A",
        ),
        (
            "Attention rollout",
            (
                "The product of the patterns of all layers, each mixed with the"
                " identity for the skip connection. It is what the model does only if every"
                " OV circuit"
                " is the identity."
            ),
            ("rollout_is_path_sum", "rollout_when_exact"),
        ),
        (
            "Attention score",
            (
                "The dot product of a query and a key, divided by the root of the head"
                " dimension, before the softmax."
            ),
            ("scores_through_W_QK", "score_is_bilinear"),
        ),
        (
            "Attribution",
            (
                "An account of an output as a sum of parts, one for each input or"
                " component. Different methods make different parts, and agree only where"
                " the model is"
                " linear."
            ),
            ("direct_logits_add_up", "gradient_times_input_score"),
        ),
        (
            "Attribution patching",
            (
                "An estimate of what activation patching would give for every"
                " activation at once, from one gradient. Its error is of second order."
            ),
            ("attribution_patching_error", "edge_attribution_is_exact_when_linear"),
            "AtP, EAP",
        ),
        (
            "Bias",
            (
                "A vector that a layer adds whatever it reads. Value and output biases are the"
                " same constant in the stream, and a key bias changes nothing."
            ),
            ("key_bias_is_irrelevant", "value_bias_passes_through"),
        ),
        (
            "Bigram table",
            (
                "The matrix of the logits of each next token after each token. It is all"
                " that a model without layers can be, and the direct path of every model."
            ),
            ("zero_layer_logits", "softmax_of_log_counts"),
            "direct path",
        ),
        (
            "Causal mask",
            (
                "The rule that a position sees itself and earlier ones, and no later one."
                " It makes each pattern lower triangular."
            ),
            ("pattern_is_causal", "causal_head_reads_up_to"),
        ),
        (
            "Centring",
            (
                "Subtracting from a vector the mean of its entries, which is a projection."
                " LayerNorm begins with it."
            ),
            ("mean_subtraction_is_a_product", "centring_rank"),
            "subtracting the mean",
        ),
        (
            "Certificate",
            (
                "The data of a proof, small enough that a short separate program can check"
                " it without trusting the prover."
            ),
            ("kron_mul_kron",),
        ),
        (
            "Circuit",
            (
                "A part of a model that does a task by itself: a subgraph of heads, MLPs and"
                " the edges between them."
            ),
            ("reading_of_a_subgraph", "whole_graph_is_the_model"),
        ),
        (
            "Column convention",
            (
                "Weights act on the left of column vectors, so that a head on the"
                " stacked stream is $A \\otimes W$. Transposing everything gives the row"
                " convention."
            ),
            ("row_to_column", "head_bridge"),
        ),
        (
            "Composition",
            (
                "A head reading what an earlier head wrote: by its queries (Q), its keys"
                " (K) or its values (V)."
            ),
            ("composition_score", "k_composition_term"),
            "Q-, K- and V-composition",
        ),
        (
            "Composition score",
            (
                "The Frobenius norm of a product of two circuits over the product of"
                " their norms. By chance it is near $1/\\sqrt d$."
            ),
            ("composition_score", "composition_by_chance"),
        ),
        (
            "Copying",
            (
                "What a head does if attending to a token raises the logit of that same token:"
                " the diagonal of its full OV circuit is positive."
            ),
            ("own_logit", "positive_eigenvalues_without_copying"),
        ),
        (
            "Copy suppression",
            "The opposite of copying: attending to a token lowers its own logit.",
            ("copy_suppression_seen", "own_logit"),
        ),
        (
            "Counterexample",
            ("Numbers for which the two sides of an equation differ. One is enough to refute it."),
            ("ov_order_matters", "layer_norm_is_not_linear"),
        ),
        (
            "Direct logit attribution",
            (
                "The part of a logit that a component contributes by writing"
                " to the last residual stream, without what later layers make of it."
            ),
            ("direct_logit_of_component", "effect_is_direct_and_the_rest"),
            "DLA",
        ),
        (
            "Direct path",
            (
                "The term of the logits in which no head takes part: the embedding straight"
                " through the unembedding."
            ),
            ("one_layer_expansion", "tied_direct_path_is_symmetric"),
        ),
        (
            "Einsum",
            (
                "A product of arrays written by the letters of their indices; repeated letters"
                " are summed over. Each diagram of a normal form is one."
            ),
            ("kron_entry",),
        ),
        (
            "Embedding",
            "The table with a vector for each token, the start of the residual stream.",
            ("token_embedding", "one_hot_selects_row"),
            "W_E",
        ),
        (
            "Feature",
            (
                "A direction in activations that stands for something, such as a word or a"
                " topic. There may be more features than dimensions."
            ),
            ("reading_a_feature", "superposition"),
        ),
        (
            "Folding",
            (
                "Moving a gain, a bias or a projection into the neighbouring weights, so that"
                " the model is simpler and computes the same."
            ),
            ("norm_gain_and_bias_fold", "centring_folds_into_writers"),
            "absorbing",
        ),
        (
            "Frozen patterns",
            (
                "Treating the attention patterns as given numbers. The rest of an"
                " attention-only model is then linear."
            ),
            ("frozen_attention_is_linear", "live_patterns_are_not_linear"),
        ),
        (
            "Full circuit",
            (
                "A circuit from token to token, with embedding and unembedding included:"
                " $W_U W_O W_V W_E$ for OV and $W_E^{\\mathsf T} W_Q^{\\mathsf T} W_K W_E$ for QK."
            ),
            ("full_ov_circuit", "full_qk_gives_scores"),
        ),
        (
            "Gated MLP",
            (
                "An MLP in which one linear map of the input is multiplied by an activation"
                " of another: SwiGLU and its relatives."
            ),
            ("gated_mlp_is_matrix", "swiglu_is_bilinear_with_frozen_gates"),
            "GLU, SwiGLU",
        ),
        (
            "Gauge",
            (
                "A change of the weights that changes no output: any basis may be used between"
                " $W_V$ and $W_O$, or between $W_Q$ and $W_K$."
            ),
            ("ov_gauge", "qk_gauge"),
            "symmetry",
        ),
        (
            "Gradient × input",
            (
                "The entries of a gradient times those of the input, as shares of the"
                " output. They add up to it only for linear functions."
            ),
            ("gradient_times_input_score", "gradient_times_input_is_complete_when_linear"),
        ),
        (
            "Grouped-query attention",
            "Several heads share one matrix of keys and one of values.",
            ("grouped_keys_are_repeated", "grouped_heads_read_few_directions"),
            "GQA, MQA",
        ),
        (
            "Hook point",
            ("A named place in the forward pass where an activation can be read or replaced."),
            ("intervene_method",),
        ),
        (
            "In-context learning",
            (
                "Predicting later tokens of a prompt better than early ones,"
                " because of what the prompt has shown."
            ),
            ("in_context_learning",),
        ),
        (
            "Induction head",
            (
                "A head that finds an earlier copy of the present token and predicts"
                " what came after it. It needs an earlier head that marks each token with"
                " the one before."
            ),
            ("induction_predicts_successor", "two_layers_learn_induction"),
        ),
        (
            "Integrated gradients",
            (
                "The mean of the gradients on the way from a baseline to the input,"
                " times the difference. The parts add up to the change of the output."
            ),
            ("integrated_gradients_are_complete",),
        ),
        (
            "Interference",
            (
                "What reading one feature picks up of all the others, because their"
                " directions are not orthogonal."
            ),
            ("interference_variance", "sparsity_lowers_interference"),
        ),
        (
            "Kronecker product",
            (
                "$A \\otimes B$ is the table of blocks with a copy of $B$ for each"
                " entry of $A$. On a stacked stream $A$ acts on positions and $B$ on features."
            ),
            ("kron_blocks", "kron_mul_kron"),
            "tensor product, ⊗",
        ),
        (
            "KV cache",
            (
                "The keys and values of earlier positions, kept while a text is generated: a"
                " new position needs only its own row."
            ),
            ("kv_cache_is_last_row", "prefix_is_computed_alone"),
        ),
        (
            "LayerNorm",
            (
                "Subtracts the mean of a vector, divides by its standard deviation, and"
                " applies a gain and a bias. It sees neither shift nor scale."
            ),
            ("layer_norm_with_gain_and_bias", "layer_norm_ignores_shift_and_scale"),
            "LN",
        ),
        (
            "LEACE",
            (
                "The change of activations, smallest on average, after which no linear predictor"
                " finds a given concept."
            ),
            ("leace_erases", "leace_moves_least"),
        ),
        (
            "Logit",
            (
                "The number that the model gives each token of the vocabulary; softmax of the"
                " logits gives the probabilities."
            ),
            ("logits", "next_token_distribution"),
        ),
        (
            "Logit difference",
            ("One logit less another: the logarithm of the ratio of the two probabilities."),
            ("logit_difference_is_log_ratio",),
        ),
        (
            "Logit lens",
            "The unembedding applied to the residual stream of an earlier layer.",
            ("lens_is_early_exit", "logit_lens_is_prefix_sum"),
        ),
        (
            "LoRA",
            "A change of a weight matrix by a product of two thin matrices, so of low rank.",
            ("lora_merges", "lora_rank_at_most_2r"),
        ),
        (
            "Mixture of experts",
            ("An MLP made of many, of which a router chooses a few for each token."),
            ("experts_are_gated_neurons", "router_softmax_of_all_renormalised"),
            "MoE",
        ),
        (
            "MLP",
            (
                "The feed-forward part of a layer: each position by itself through a matrix, an"
                " activation and a second matrix."
            ),
            ("feed_forward_is_sum_over_neurons", "mlp_is_positionwise"),
            "feed-forward layer",
        ),
        (
            "Mutant",
            (
                "A true equation with one damage, such as a dropped transpose. A good check"
                " refutes it."
            ),
            ("kron_transpose",),
        ),
        (
            "Neuron",
            (
                "One hidden unit of an MLP: it reads with a column of one matrix and writes a"
                " row of the other."
            ),
            ("neuron_reads_its_column", "key_value_memory"),
        ),
        (
            "Normal form",
            (
                "A sum of tensor diagrams that is the same for equal expressions. Comparing"
                " two of them decides an equation for all sizes."
            ),
            ("one_head_in_many_forms",),
        ),
        (
            "OV circuit",
            (
                "$W_{OV}$, the product of value and output weights: what a head writes for"
                " what it attends to."
            ),
            ("ov_circuit", "ov_rank_at_most_d_head"),
            "W_OV",
        ),
        (
            "Path",
            (
                "A way through the model that takes at each layer either one head or the skip"
                " connection. The logits are the sum over all paths."
            ),
            ("two_layer_paths", "paths_count"),
        ),
        (
            "Path patching",
            "Replacing what one component sends to another, and to no other.",
            ("path_patching_is_a_difference_of_paths", "edge_patching_method"),
        ),
        (
            "Previous-token head",
            (
                "A head whose pattern puts its weight one position back, the first"
                " half of an induction circuit."
            ),
            ("induction_model_stream", "trained_induction_is_k_composition"),
            "shift",
        ),
        (
            "Privileged basis",
            (
                "A basis that the computation itself singles out, as an activation"
                " does for neurons. The residual stream has none, but for norms and training."
            ),
            ("mlp_has_no_stream_basis", "stream_has_no_basis"),
        ),
        (
            "Probe",
            (
                "A simple predictor, mostly linear, trained to read a property from activations."
                " That it succeeds does not say that the model uses the property."
            ),
            ("linear_probe", "unread_direction_is_decodable"),
        ),
        (
            "QK circuit",
            (
                "$W_{QK}$, the product of query and key weights: which pairs of positions"
                " score high."
            ),
            ("scores_through_W_QK", "qk_rank_at_most_d_head"),
            "W_QK",
        ),
        (
            "Rank",
            (
                "The number of independent directions of a matrix. A head reads and writes at most"
                " as many as its head dimension."
            ),
            ("head_writes_few_directions", "head_output_rank"),
        ),
        (
            "Relevance",
            (
                "Shares of an output that are passed back layer by layer, so that their sum"
                " stays the same."
            ),
            ("relevance_is_conserved", "relevance_lost_to_bias_and_epsilon"),
            "LRP",
        ),
        (
            "Residual stream",
            (
                "The sum of the embedding and all that layers have written so far, from"
                " which each layer reads."
            ),
            ("stream_is_sum_of_writes", "residual_update"),
        ),
        (
            "RMSNorm",
            (
                "Divides a vector by the root of the mean of its squares, and applies a gain;"
                " LayerNorm without the mean."
            ),
            ("layer_norm_is_rms_norm_of_centred", "rms_norm_rotation"),
        ),
        (
            "RoPE",
            (
                "Rotary positions: queries and keys are turned by angles that grow with the"
                " position, so that scores depend on distances."
            ),
            ("rotary_scores_by_distance", "rotary_W_QK_depends_on_distance"),
            "rotary embedding",
        ),
        (
            "Rounding bound",
            (
                "A bound on how far floating-point arithmetic can be from the exact"
                " result, computed for each number. Two results are equal if they differ by"
                " no more."
            ),
            ("quantisation_error",),
        ),
        (
            "Row convention",
            ("A position is a row of the stream and weights act on the right, as in most code."),
            ("head_is_kron_row", "row_to_column_scores"),
        ),
        (
            "Self-repair",
            (
                "Later layers make up for an ablated component in part, so that the effect"
                " is smaller than its direct contribution."
            ),
            ("compensation", "compensation_is_what_later_layers_add"),
            "hydra effect",
        ),
        (
            "Shapley value",
            (
                "The mean of what a component adds, over all orders in which components"
                " are switched on."
            ),
            ("shapley_two_layers", "shapley_every_depth"),
        ),
        (
            "Skip-trigram",
            (
                "A pattern “a … b → c”: the token b, with a somewhere before it, raises the"
                " logit of c. One layer of attention is a sum of these."
            ),
            ("skip_trigram_effect", "skip_trigrams_rank_one"),
        ),
        (
            "Softmax",
            (
                "The exponentials of a row of numbers over their sum. A constant added to the"
                " row changes nothing."
            ),
            ("softmax_of_rows", "softmax_ignores_row_constants"),
        ),
        (
            "Sparse autoencoder",
            ("A pair of maps that writes activations as a sum of few features out of many."),
            ("sparse_autoencoder", "reconstruction_is_sum_over_features"),
            "SAE",
        ),
        (
            "Steering",
            "Adding a direction to the residual stream to change what a model says.",
            ("steering_shifts_logits",),
        ),
        (
            "Superposition",
            ("More features than dimensions in one space, at the price of interference."),
            ("superposition", "welch_bound"),
        ),
        (
            "Tied weights",
            "The unembedding is the transposed embedding.",
            ("tied_unembedding_is_transpose", "tied_direct_path_is_symmetric"),
        ),
        (
            "Unembedding",
            "The matrix from the last residual stream to the logits.",
            ("logits", "unembed_is_probe"),
            "W_U",
        ),
        (
            "vec",
            (
                "Stacking a matrix into a vector, row by row or column by column. The two differ,"
                " and decide which factor of ⊗ comes first."
            ),
            ("vec_rows_mul", "vec_cols_is_vec_rows_of_transpose"),
            "vec_rows, vec_cols",
        ),
        (
            "Virtual head",
            ("Two heads in a row as one: the product of their patterns, and of their OV circuits."),
            ("heads_compose", "virtual_ov_rank"),
            "virtual attention head",
        ),
        (
            "Virtual weights",
            (
                "The product of what one component writes with and what a later one"
                " reads with: how strongly they are connected through the stream."
            ),
            ("virtual_weights", "no_overlap_no_communication"),
        ),
    )
)


def text(report: Report) -> str:
    """Return the terms as a list of definitions with anchors, as Markdown; entries are linked."""
    listed = theorem_pages.entries(theorem_pages.numbered(report))
    titles = {entry.theorem.name: prose.heading(entry.theorem.title) for entry in listed}
    return "\n\n".join(_term(term, titles) for term in sorted(TERMS, key=_order))


def _order(term: Term) -> str:
    return term.name.lower()


def _term(term: Term, titles: dict[str, str]) -> str:
    links = [f"[{titles[name]}](theorems/{name}.md)" for name in term.entries if name in titles]
    also = f" (also: {term.also})" if term.also else ""
    see = f" See {'; '.join(links)}." if links else ""
    return f'<span id="{term.anchor}"></span>**{term.name}**{also}\n:   {term.meaning}{see}'
