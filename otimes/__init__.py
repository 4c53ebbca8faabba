"""The front door: everything a user needs, by one import, and nothing loaded before it is used.

    >>> import otimes as ot
    >>> from sympy import KroneckerProduct as kron, MatrixSymbol, symbols
    >>> n, d = symbols("n d", positive=True, integer=True)
    >>> A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
    >>> V, W = MatrixSymbol("V", d, d), MatrixSymbol("W", d, d)
    >>> ot.decide(kron(A, V) * kron(B, W), kron(A * B, V * W)).status
    'proved'

`algebra`, `numeric` and `proofs` are packages of their own beside this one, with names that other
distributions use too. So each carries a mark, and the facade refuses, in one sentence, to hand out
anything of a package of that name that is not ours.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from algebra.axioms import AXIOMS as AXIOMS
    from algebra.decide import Verdict as Verdict
    from algebra.decide import decide as decide
    from algebra.decide import prove as prove
    from algebra.errors import LanguageError as LanguageError
    from algebra.errors import OtimesError as OtimesError
    from algebra.errors import Refuted as Refuted
    from algebra.errors import ShapeError as ShapeError
    from algebra.errors import Undecided as Undecided
    from algebra.evaluate import evaluate as evaluate
    from algebra.facts import Fact as Fact
    from algebra.facts import attention_pattern as attention_pattern
    from algebra.facts import facts as facts
    from algebra.language import ConcatHeads as ConcatHeads
    from algebra.language import Family as Family
    from algebra.language import HeadSum as HeadSum
    from algebra.language import LayerProduct as LayerProduct
    from algebra.language import OneHot as OneHot
    from algebra.language import OrderSum as OrderSum
    from algebra.language import StackHeads as StackHeads
    from algebra.language import vec_cols as vec_cols
    from algebra.language import vec_rows as vec_rows
    from algebra.nonlinear import Activation as Activation
    from algebra.nonlinear import CausalMask as CausalMask
    from algebra.nonlinear import LayerNorm as LayerNorm
    from algebra.nonlinear import RMSNorm as RMSNorm
    from algebra.nonlinear import RowSoftmax as RowSoftmax
    from algebra.normal_form import normal_form as normal_form
    from algebra.paths import expand_paths as expand_paths
    from numeric.attribution.direct import direct_logit_attribution as direct_logit_attribution
    from numeric.attribution.gradients import gradient_norms as gradient_norms
    from numeric.attribution.gradients import gradient_times_input as gradient_times_input
    from numeric.attribution.gradients import input_gradient as input_gradient
    from numeric.attribution.gradients import integrated_gradients as integrated_gradients
    from numeric.attribution.gradients import smooth_grad as smooth_grad
    from numeric.attribution.mixing import attention_rollout as attention_rollout
    from numeric.attribution.mixing import context_mixing as context_mixing
    from numeric.attribution.mixing import output_value_norms as output_value_norms
    from numeric.attribution.mixing import value_norms as value_norms
    from numeric.attribution.occlusion import occlusion as occlusion
    from numeric.attribution.occlusion import perturbation as perturbation
    from numeric.attribution.relevance import relevance as relevance
    from numeric.audit.analyses import audit_analysis as audit_analysis
    from numeric.audit.front import audit as audit
    from numeric.circuits.behaviour import head_behaviour as head_behaviour
    from numeric.circuits.behaviour import head_patterns as head_patterns
    from numeric.circuits.composition import composition_scores as composition_scores
    from numeric.circuits.copying import copying_scores as copying_scores
    from numeric.circuits.copying import ov_eigenvalues as ov_eigenvalues
    from numeric.circuits.embedding_space import align_layers as align_layers
    from numeric.circuits.embedding_space import projected as projected
    from numeric.circuits.embedding_space import stitching_map as stitching_map
    from numeric.circuits.heads import full_ov as full_ov
    from numeric.circuits.heads import full_qk as full_qk
    from numeric.circuits.heads import ov_circuit as ov_circuit
    from numeric.circuits.heads import qk_circuit as qk_circuit
    from numeric.circuits.lens import logit_lens as logit_lens
    from numeric.circuits.lens import spectral_bands as spectral_bands
    from numeric.circuits.translators import fit_translator as fit_translator
    from numeric.circuits.trigrams import skip_trigrams as skip_trigrams
    from numeric.circuits.virtual import virtual_weights as virtual_weights
    from numeric.induction_by_hand import induction_by_hand as induction_by_hand
    from numeric.model import load_model as load_model
    from numeric.paths.ensemble import paths as paths
    from numeric.plot import plot as plot
    from numeric.random_weights import random_model as random_model
    from proofs.catalogue import catalogue as catalogue
    from proofs.verification import verify as verify

__version__ = "0.1.0"
__otimes__ = "otimes"

# Where each public name lives: the whole facade, in reading order.
_HOME = {
    # ask
    "decide": "algebra.decide",
    "prove": "algebra.decide",
    "Verdict": "algebra.decide",
    "normal_form": "algebra.normal_form",
    "expand_paths": "algebra.paths",
    "evaluate": "algebra.evaluate",
    "facts": "algebra.facts",
    "Fact": "algebra.facts",
    "attention_pattern": "algebra.facts",
    "AXIOMS": "algebra.axioms",
    # say
    "Family": "algebra.language",
    "HeadSum": "algebra.language",
    "ConcatHeads": "algebra.language",
    "StackHeads": "algebra.language",
    "vec_rows": "algebra.language",
    "vec_cols": "algebra.language",
    "OneHot": "algebra.language",
    "LayerProduct": "algebra.language",
    "OrderSum": "algebra.language",
    "RowSoftmax": "algebra.nonlinear",
    "CausalMask": "algebra.nonlinear",
    "Activation": "algebra.nonlinear",
    "LayerNorm": "algebra.nonlinear",
    "RMSNorm": "algebra.nonlinear",
    # know
    "catalogue": "proofs.catalogue",
    "verify": "proofs.verification",
    "load_model": "numeric.model",
    "random_model": "numeric.random_weights",
    "induction_by_hand": "numeric.induction_by_hand",
    "paths": "numeric.paths.ensemble",
    # read weights
    "head_behaviour": "numeric.circuits.behaviour",
    "head_patterns": "numeric.circuits.behaviour",
    "composition_scores": "numeric.circuits.composition",
    "copying_scores": "numeric.circuits.copying",
    "ov_eigenvalues": "numeric.circuits.copying",
    "ov_circuit": "numeric.circuits.heads",
    "qk_circuit": "numeric.circuits.heads",
    "full_ov": "numeric.circuits.heads",
    "full_qk": "numeric.circuits.heads",
    "virtual_weights": "numeric.circuits.virtual",
    "skip_trigrams": "numeric.circuits.trigrams",
    "logit_lens": "numeric.circuits.lens",
    "spectral_bands": "numeric.circuits.lens",
    "fit_translator": "numeric.circuits.translators",
    "projected": "numeric.circuits.embedding_space",
    "align_layers": "numeric.circuits.embedding_space",
    "stitching_map": "numeric.circuits.embedding_space",
    # attribute
    "direct_logit_attribution": "numeric.attribution.direct",
    "input_gradient": "numeric.attribution.gradients",
    "gradient_norms": "numeric.attribution.gradients",
    "gradient_times_input": "numeric.attribution.gradients",
    "integrated_gradients": "numeric.attribution.gradients",
    "smooth_grad": "numeric.attribution.gradients",
    "relevance": "numeric.attribution.relevance",
    "occlusion": "numeric.attribution.occlusion",
    "perturbation": "numeric.attribution.occlusion",
    "value_norms": "numeric.attribution.mixing",
    "output_value_norms": "numeric.attribution.mixing",
    "context_mixing": "numeric.attribution.mixing",
    "attention_rollout": "numeric.attribution.mixing",
    # cross-check
    "audit": "numeric.audit.front",
    "audit_analysis": "numeric.audit.analyses",
    # show
    "plot": "numeric.plot",
    # be told no
    "OtimesError": "algebra.errors",
    "ShapeError": "algebra.errors",
    "LanguageError": "algebra.errors",
    "Refuted": "algebra.errors",
    "Undecided": "algebra.errors",
}

__all__ = [
    "AXIOMS",
    "Activation",
    "CausalMask",
    "ConcatHeads",
    "Fact",
    "Family",
    "HeadSum",
    "LanguageError",
    "LayerNorm",
    "LayerProduct",
    "OneHot",
    "OrderSum",
    "OtimesError",
    "RMSNorm",
    "Refuted",
    "RowSoftmax",
    "ShapeError",
    "StackHeads",
    "Undecided",
    "Verdict",
    "align_layers",
    "attention_pattern",
    "attention_rollout",
    "audit",
    "audit_analysis",
    "catalogue",
    "composition_scores",
    "context_mixing",
    "copying_scores",
    "decide",
    "direct_logit_attribution",
    "evaluate",
    "expand_paths",
    "facts",
    "fit_translator",
    "full_ov",
    "full_qk",
    "gradient_norms",
    "gradient_times_input",
    "head_behaviour",
    "head_patterns",
    "induction_by_hand",
    "input_gradient",
    "integrated_gradients",
    "load_model",
    "logit_lens",
    "normal_form",
    "occlusion",
    "output_value_norms",
    "ov_circuit",
    "ov_eigenvalues",
    "paths",
    "perturbation",
    "plot",
    "projected",
    "prove",
    "qk_circuit",
    "random_model",
    "relevance",
    "skip_trigrams",
    "smooth_grad",
    "spectral_bands",
    "stitching_map",
    "value_norms",
    "vec_cols",
    "vec_rows",
    "verify",
    "virtual_weights",
]


class ForeignRoomError(ImportError):
    """Python found somebody else's package under the name of one of ours."""


def load(module: str) -> Any:
    """Return our module of that dotted name, having made sure that its room is ours.

    Raises: ForeignRoomError if the first package on Python's path with the room's name is another.
    """
    room = module.partition(".")[0]
    package = import_module(room)
    if getattr(package, "__otimes__", None) != room:
        found = package.__file__ or ", ".join(package.__path__)
        raise ForeignRoomError(
            f"otimes needs its own package {room!r}, but Python found another one, {found}: "
            "install otimes from its repository into an environment of its own, "
            "and start Python in a folder that has no such package"
        )
    return import_module(module)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'otimes' has no attribute {name!r}")
    value = getattr(load(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
