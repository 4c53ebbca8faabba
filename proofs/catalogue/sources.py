"""The papers that several files of the catalogue cite, named once.

A section is named by its heading, which does not change between versions as numbers do:
`f"{FRAMEWORK}, “Virtual attention heads”"`.
"""

from __future__ import annotations

FRAMEWORK = "Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”"
PRIMER = (
    "Ferrando et al. 2024, “A Primer on the Inner Workings of Transformer-based Language Models”"
)
VASWANI = "Vaswani et al. 2017, “Attention Is All You Need”"
OLSSON = "Olsson et al. 2022, “In-context Learning and Induction Heads”"
DAR = "Dar, Geva, Gupta and Berant 2023, “Analyzing Transformers in Embedding Space”"
GEVA = "Geva et al. 2021, “Transformer Feed-Forward Layers Are Key-Value Memories”"
ROFORMER = (
    "Su et al. 2021, “RoFormer: Enhanced Transformer with Rotary Position Embedding”, "
    "arXiv:2104.09864"
)
TRANSFORMER_LENS = "Nanda and Bloom 2022, TransformerLens, on the processing of weights"
VEIT = (
    "Veit, Wilber and Belongie 2016, “Residual Networks Behave Like Ensembles of Relatively "
    "Shallow Networks”"
)
PRESS_WOLF = "Press and Wolf 2017, “Using the Output Embedding to Improve Language Models”"
ROLE_OF_BIAS = (
    "Namazifar, Hazarika and Hakkani-Tür 2023, “Role of Bias Terms in Dot-Product Attention”, "
    "arXiv:2302.08626"
)
