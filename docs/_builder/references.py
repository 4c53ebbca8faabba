"""The papers that the catalogue cites, with addresses and BibTeX.

A source names a paper by authors, year and title; a paper is recognised by the start of its title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

ARXIV, DOI, WEB = "arXiv", "DOI", "web"


@dataclass(frozen=True, slots=True)
class Paper:
    """A cited paper; `also` is what sources have where they do not begin its title."""

    author: str
    year: int
    title: str
    kind: str
    id: str
    also: str = ""

    @property
    def url(self) -> str:
        """Its address."""
        if self.kind == ARXIV:
            return f"https://arxiv.org/abs/{self.id}"
        return f"https://doi.org/{self.id}" if self.kind == DOI else self.id

    @property
    def label(self) -> str:
        """What the link to it says."""
        return "on the web" if self.kind == WEB else f"{self.kind}:{self.id}"

    def cited_in(self, source: str) -> bool:
        """Return whether a source names the paper."""
        surname = self.author.split(",")[0].split(" and ")[0]
        return surname in source and (
            self.title.split(":")[0].lower() in source.lower()
            or bool(self.also and self.also.lower() in source.lower())
        )

    def bibtex(self) -> str:
        """Return its BibTeX entry."""
        surname = re.sub(r"\W", "", self.author.split(",")[0]).lower()
        word = next(w for w in re.findall(r"\w+", self.title.lower()) if len(w) > 3)
        fields = {"title": f"{{{self.title}}}", "author": self.author, "year": str(self.year)}
        if self.kind == ARXIV:
            fields |= {"eprint": self.id, "archivePrefix": "arXiv"}
        fields |= {"doi": self.id} if self.kind == DOI else {"url": self.url}
        lines = [f"  {name} = {{{value}}}" for name, value in fields.items()]
        return f"@misc{{{surname}{self.year}{word},\n" + ",\n".join(lines) + "\n}"


_CIRCUITS = "https://transformer-circuits.pub"

PAPERS = tuple(
    Paper(*row)
    for row in (
        (
            "Elhage, Nelson and others",
            2021,
            "A Mathematical Framework for Transformer Circuits",
            WEB,
            f"{_CIRCUITS}/2021/framework/index.html",
        ),
        (
            "Ferrando, Javier and others",
            2024,
            "A Primer on the Inner Workings of Transformer-based Language Models",
            ARXIV,
            "2405.00208",
        ),
        ("Vaswani, Ashish and others", 2017, "Attention Is All You Need", ARXIV, "1706.03762"),
        (
            "Olsson, Catherine and others",
            2022,
            "In-context Learning and Induction Heads",
            ARXIV,
            "2209.11895",
        ),
        (
            "Dar, Guy and Geva, Mor and Gupta, Ankit and Berant, Jonathan",
            2023,
            "Analyzing Transformers in Embedding Space",
            ARXIV,
            "2209.02535",
        ),
        (
            "Geva, Mor and others",
            2021,
            "Transformer Feed-Forward Layers Are Key-Value Memories",
            ARXIV,
            "2012.14913",
        ),
        (
            "Geva, Mor and others",
            2022,
            (
                "Transformer Feed-Forward Layers Build Predictions by Promoting Concepts in the"
                " Vocabulary Space"
            ),
            ARXIV,
            "2203.14680",
            "Transformer Feed-Forward Layers Build Predictions by Promoting Concepts",
        ),
        (
            "Su, Jianlin and others",
            2021,
            "RoFormer: Enhanced Transformer with Rotary Position Embedding",
            ARXIV,
            "2104.09864",
        ),
        (
            "Nanda, Neel and Bloom, Joseph",
            2022,
            "TransformerLens",
            WEB,
            "https://github.com/TransformerLensOrg/TransformerLens",
        ),
        (
            "Veit, Andreas and Wilber, Michael and Belongie, Serge",
            2016,
            "Residual Networks Behave Like Ensembles of Relatively Shallow Networks",
            ARXIV,
            "1605.06431",
        ),
        (
            "Press, Ofir and Wolf, Lior",
            2017,
            "Using the Output Embedding to Improve Language Models",
            ARXIV,
            "1608.05859",
        ),
        (
            "Namazifar, Mahdi and Hazarika, Devamanyu and Hakkani-Tür, Dilek",
            2023,
            "Role of Bias Terms in Dot-Product Attention",
            ARXIV,
            "2302.08626",
        ),
        (
            "Abnar, Samira and Zuidema, Willem",
            2020,
            "Quantifying Attention Flow in Transformers",
            ARXIV,
            "2005.00928",
        ),
        (
            "Ainslie, Joshua and others",
            2023,
            "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints",
            ARXIV,
            "2305.13245",
        ),
        (
            "Ali, Ameen and others",
            2022,
            "XAI for Transformers: Better Explanations through Conservative Propagation",
            ARXIV,
            "2202.07304",
        ),
        (
            "Ashkboos, Saleh and others",
            2024,
            "SliceGPT: Compress Large Language Models by Deleting Rows and Columns",
            ARXIV,
            "2401.15024",
        ),
        (
            "Ashkboos, Saleh and others",
            2024,
            "QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs",
            ARXIV,
            "2404.00456",
        ),
        (
            "Ba, Jimmy Lei and Kiros, Jamie Ryan and Hinton, Geoffrey E.",
            2016,
            "Layer Normalization",
            ARXIV,
            "1607.06450",
        ),
        (
            "Bach, Sebastian and others",
            2015,
            (
                "On Pixel-Wise Explanations for Non-Linear Classifier Decisions by"
                " Layer-Wise Relevance"
                " Propagation"
            ),
            DOI,
            "10.1371/journal.pone.0130140",
            "On Pixel-Wise Explanations",
        ),
        (
            "Bahdanau, Dzmitry and Cho, Kyunghyun and Bengio, Yoshua",
            2015,
            "Neural Machine Translation by Jointly Learning to Align and Translate",
            ARXIV,
            "1409.0473",
        ),
        ("Bai, Jinze and others", 2023, "Qwen Technical Report", ARXIV, "2309.16609"),
        (
            "Balduzzi, David and others",
            2017,
            (
                "The Shattered Gradients Problem: If resnets are the answer, then what is the"
                " question?"
            ),
            ARXIV,
            "1702.08591",
        ),
        (
            "Belinkov, Yonatan",
            2022,
            "Probing Classifiers: Promises, Shortcomings, and Advances",
            ARXIV,
            "2102.12452",
        ),
        (
            "Belrose, Nora and others",
            2023,
            "LEACE: Perfect linear concept erasure in closed form",
            ARXIV,
            "2306.03819",
        ),
        (
            "Belrose, Nora and others",
            2023,
            "Eliciting Latent Predictions from Transformers with the Tuned Lens",
            ARXIV,
            "2303.08112",
            "Eliciting Latent Predictions",
        ),
        (
            "Bhojanapalli, Srinadh and others",
            2020,
            "Low-Rank Bottleneck in Multi-head Attention Models",
            ARXIV,
            "2002.07028",
        ),
        (
            "Björck, Åke and Golub, Gene H.",
            1973,
            "Numerical methods for computing angles between linear subspaces",
            DOI,
            "10.1090/S0025-5718-1973-0348991-3",
            "Björck and Golub 1973",
        ),
        (
            "Black, Sid and others",
            2022,
            ("GPT-NeoX-20B: An Open-Source Autoregressive Language Model"),
            ARXIV,
            "2204.06745",
        ),
        (
            "Blanchard, Pierre and Higham, Desmond J. and Higham, Nicholas J.",
            2021,
            "Accurately computing the log-sum-exp and softmax functions",
            DOI,
            "10.1093/imanum/draa038",
        ),
        (
            "Bricken, Trenton and others",
            2023,
            "Towards Monosemanticity: Decomposing Language Models With Dictionary Learning",
            WEB,
            f"{_CIRCUITS}/2023/monosemantic-features/index.html",
        ),
        (
            "Brody, Shaked and Alon, Uri and Yahav, Eran",
            2023,
            "On the Expressivity Role of LayerNorm in Transformers' Attention",
            ARXIV,
            "2305.02582",
            "On the expressivity role of LayerNorm",
        ),
        (
            "Cancedda, Nicola",
            2024,
            "Spectral Filters, Dark Signals, and Attention Sinks",
            ARXIV,
            "2402.09221",
        ),
        (
            "Conmy, Arthur and others",
            2023,
            "Towards Automated Circuit Discovery for Mechanistic Interpretability",
            ARXIV,
            "2304.14997",
        ),
        (
            "Cordonnier, Jean-Baptiste and Loukas, Andreas and Jaggi, Martin",
            2020,
            "On the Relationship between Self-Attention and Convolutional Layers",
            ARXIV,
            "1911.03584",
        ),
        (
            "Dao, Tri and Gu, Albert",
            2024,
            (
                "Transformers are SSMs: Generalized Models and Efficient Algorithms Through"
                " Structured"
                " State Space Duality"
            ),
            ARXIV,
            "2405.21060",
        ),
        (
            "Dao, Tri and others",
            2022,
            "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness",
            ARXIV,
            "2205.14135",
        ),
        (
            "Dauphin, Yann N. and others",
            2017,
            "Language Modeling with Gated Convolutional Networks",
            ARXIV,
            "1612.08083",
        ),
        (
            "DeepSeek-AI",
            2024,
            ("DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model"),
            ARXIV,
            "2405.04434",
        ),
        (
            "Dong, Yihe and Cordonnier, Jean-Baptiste and Loukas, Andreas",
            2021,
            (
                "Attention is Not All You Need: Pure Attention Loses Rank Doubly Exponentially with"
                " Depth"
            ),
            ARXIV,
            "2103.03404",
        ),
        (
            "Eckart, Carl and Young, Gale",
            1936,
            "The approximation of one matrix by another of lower rank",
            DOI,
            "10.1007/BF02288367",
            "Eckart and Young 1936",
        ),
        ("Elhage, Nelson and others", 2022, "Toy Models of Superposition", ARXIV, "2209.10652"),
        (
            "Dunefsky, Jacob and Chlenski, Philippe and Nanda, Neel",
            2024,
            "Transcoders Find Interpretable LLM Feature Circuits",
            ARXIV,
            "2406.11944",
        ),
        (
            "Elhage, Nelson and Lasenby, Robert and Olah, Christopher",
            2023,
            "Privileged Bases in the Transformer Residual Stream",
            WEB,
            f"{_CIRCUITS}/2023/privileged-basis/index.html",
        ),
        (
            "Ferrando, Javier and Voita, Elena",
            2024,
            "Information Flow Routes: Automatically Interpreting Language Models at Scale",
            ARXIV,
            "2403.00824",
        ),
        (
            "Ferrando, Javier and others",
            2022,
            "Measuring the Mixing of Contextual Information in the Transformer",
            ARXIV,
            "2203.04212",
            "Measuring the Mixing of Contextual Information",
        ),
        (
            "Fiat, Jonathan and Malach, Eran and Shalev-Shwartz, Shai",
            2019,
            "Decoupling Gating from Linearity",
            ARXIV,
            "1906.05032",
        ),
        (
            "Gao, Leo and others",
            2024,
            "Scaling and evaluating sparse autoencoders",
            ARXIV,
            "2406.04093",
        ),
        (
            "Goldowsky-Dill, Nicholas and others",
            2023,
            "Localizing Model Behavior with Path Patching",
            ARXIV,
            "2304.05969",
        ),
        (
            "Gould, Rhys and others",
            2023,
            "Successor Heads: Recurring, Interpretable Attention Heads In The Wild",
            ARXIV,
            "2312.09230",
        ),
        (
            "Hanna, Michael and Pezzelle, Sandro and Belinkov, Yonatan",
            2024,
            (
                "Have Faith in Faithfulness: Going Beyond Circuit Overlap When Finding Model"
                " Mechanisms"
            ),
            ARXIV,
            "2403.17806",
        ),
        (
            "Haviv, Adi and others",
            2022,
            (
                "Transformer Language Models without Positional Encodings Still Learn Positional"
                " Information"
            ),
            ARXIV,
            "2203.16634",
        ),
        (
            "Heimersheim, Stefan and Nanda, Neel",
            2024,
            "How to use and interpret activation patching",
            ARXIV,
            "2404.15255",
        ),
        (
            "Hewitt, John and Liang, Percy",
            2019,
            "Designing and Interpreting Probes with Control Tasks",
            ARXIV,
            "1909.03368",
        ),
        (
            "Hu, Edward J. and others",
            2022,
            "LoRA: Low-Rank Adaptation of Large Language Models",
            ARXIV,
            "2106.09685",
        ),
        ("Jiang, Albert Q. and others", 2024, "Mixtral of Experts", ARXIV, "2401.04088"),
        (
            "Katharopoulos, Angelos and others",
            2020,
            "Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention",
            ARXIV,
            "2006.16236",
        ),
        (
            "Katz, Shahar and others",
            2024,
            "Backward Lens: Projecting Language Model Gradients into the Vocabulary Space",
            ARXIV,
            "2402.12865",
        ),
        (
            "Kim, Hyunjik and Papamakarios, George and Mnih, Andriy",
            2021,
            "The Lipschitz Constant of Self-Attention",
            ARXIV,
            "2006.04710",
        ),
        (
            "Kobayashi, Goro and others",
            2020,
            "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms",
            ARXIV,
            "2004.10102",
        ),
        (
            "Kramár, János and others",
            2024,
            "AtP*: An efficient and scalable method for localizing LLM behaviour to components",
            ARXIV,
            "2403.00745",
        ),
        (
            "Lee, Juho and others",
            2019,
            (
                "Set Transformer: A Framework for Attention-based Permutation-Invariant Neural"
                " Networks"
            ),
            ARXIV,
            "1810.00825",
        ),
        (
            "Lin, Zhouhan and others",
            2017,
            "A Structured Self-attentive Sentence Embedding",
            ARXIV,
            "1703.03130",
        ),
        (
            "Lindsey, Jack and others",
            2024,
            "Sparse Crosscoders for Cross-Layer Features and Model Diffing",
            WEB,
            f"{_CIRCUITS}/2024/crosscoders/index.html",
        ),
        (
            "Martens, James and Grosse, Roger",
            2015,
            "Optimizing Neural Networks with Kronecker-factored Approximate Curvature",
            ARXIV,
            "1503.05671",
        ),
        (
            "Martins, André F. T. and Astudillo, Ramón F.",
            2016,
            "From Softmax to Sparsemax: A Sparse Model of Attention and Multi-Label Classification",
            ARXIV,
            "1602.02068",
        ),
        (
            "McDougall, Callum and others",
            2023,
            "Copy Suppression: Comprehensively Understanding an Attention Head",
            ARXIV,
            "2310.04625",
        ),
        (
            "McGrath, Thomas and others",
            2023,
            "The Hydra Effect: Emergent Self-repair in Language Model Computations",
            ARXIV,
            "2307.15771",
        ),
        (
            "Meng, Kevin and others",
            2022,
            "Locating and Editing Factual Associations in GPT",
            ARXIV,
            "2202.05262",
        ),
        (
            "Michel, Paul and Levy, Omer and Neubig, Graham",
            2019,
            "Are Sixteen Heads Really Better than One?",
            ARXIV,
            "1905.10650",
        ),
        (
            "Milakov, Maxim and Gimelshein, Natalia",
            2018,
            "Online normalizer calculation for softmax",
            ARXIV,
            "1805.02867",
        ),
        (
            "nostalgebraist",
            2020,
            "interpreting GPT: the logit lens",
            WEB,
            "https://www.lesswrong.com/posts/AcKRB8wDpdaN6v6ru/interpreting-gpt-the-logit-lens",
            "the logit lens",
        ),
        ("OLMo, Team", 2024, "2 OLMo 2 Furious", ARXIV, "2501.00656"),
        (
            "Pearce, Michael T. and others",
            2024,
            "Bilinear MLPs enable weight-based mechanistic interpretability",
            ARXIV,
            "2410.08417",
        ),
        (
            "Pope, Reiner and others",
            2022,
            "Efficiently Scaling Transformer Inference",
            ARXIV,
            "2211.05102",
        ),
        (
            "Press, Ofir and Smith, Noah A. and Lewis, Mike",
            2021,
            "Shortformer: Better Language Modeling using Shorter Inputs",
            ARXIV,
            "2012.15832",
        ),
        (
            "Press, Ofir and Smith, Noah A. and Lewis, Mike",
            2022,
            (
                "Train Short, Test Long: Attention with Linear Biases Enables Input Length"
                " Extrapolation"
            ),
            ARXIV,
            "2108.12409",
        ),
        (
            "Rajamanoharan, Senthooran and others",
            2024,
            "Improving Dictionary Learning with Gated Sparse Autoencoders",
            ARXIV,
            "2404.16014",
        ),
        (
            "Rajamanoharan, Senthooran and others",
            2024,
            "Jumping Ahead: Improving Reconstruction Fidelity with JumpReLU Sparse Autoencoders",
            ARXIV,
            "2407.14435",
        ),
        (
            "Ramsauer, Hubert and others",
            2020,
            "Hopfield Networks is All You Need",
            ARXIV,
            "2008.02217",
        ),
        (
            "Ravfogel, Shauli and others",
            2020,
            "Null It Out: Guarding Protected Attributes by Iterative Nullspace Projection",
            ARXIV,
            "2004.07667",
        ),
        (
            "Rushing, Cody and Nanda, Neel",
            2024,
            "Explorations of Self-Repair in Language Models",
            ARXIV,
            "2402.15390",
            "Rushing and Nanda 2024",
        ),
        (
            "Sakarvadia, Mansi and others",
            2023,
            (
                "Attention Lens: A Tool for Mechanistically Interpreting the Attention Head"
                " Information"
                " Retrieval Mechanism"
            ),
            ARXIV,
            "2310.16270",
        ),
        (
            "Sennrich, Rico and Haddow, Barry and Birch, Alexandra",
            2016,
            "Neural Machine Translation of Rare Words with Subword Units",
            ARXIV,
            "1508.07909",
            "Sennrich, Haddow and Birch 2016",
        ),
        (
            "Shazeer, Noam",
            2019,
            "Fast Transformer Decoding: One Write-Head is All You Need",
            ARXIV,
            "1911.02150",
        ),
        ("Shazeer, Noam", 2020, "GLU Variants Improve Transformer", ARXIV, "2002.05202"),
        (
            "Shazeer, Noam and others",
            2017,
            ("Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer"),
            ARXIV,
            "1701.06538",
        ),
        (
            "Shrikumar, Avanti and others",
            2017,
            "Learning Important Features Through Propagating Activation Differences",
            ARXIV,
            "1704.02685",
            "Shrikumar et al. 2017",
        ),
        (
            "Simonyan, Karen and Vedaldi, Andrea and Zisserman, Andrew",
            2014,
            (
                "Deep Inside Convolutional Networks: Visualising Image Classification Models"
                " and Saliency"
                " Maps"
            ),
            ARXIV,
            "1312.6034",
            "Simonyan, Vedaldi and Zisserman 2014",
        ),
        (
            "Smilkov, Daniel and others",
            2017,
            "SmoothGrad: removing noise by adding noise",
            ARXIV,
            "1706.03825",
        ),
        (
            "Sundararajan, Mukund and Taly, Ankur and Yan, Qiqi",
            2017,
            "Axiomatic Attribution for Deep Networks",
            ARXIV,
            "1703.01365",
        ),
        (
            "Syed, Aaquib and Rager, Can and Conmy, Arthur",
            2023,
            "Attribution Patching Outperforms Automated Circuit Discovery",
            ARXIV,
            "2310.10348",
        ),
        (
            "Turner, Alexander Matt and others",
            2023,
            "Activation Addition: Steering Language Models Without Optimization",
            ARXIV,
            "2308.10248",
        ),
        (
            "Van Loan, Charles F.",
            2000,
            "The ubiquitous Kronecker product",
            DOI,
            "10.1016/S0377-0427(00)00393-9",
        ),
        (
            "von Oswald, Johannes and others",
            2023,
            "Transformers Learn In-Context by Gradient Descent",
            ARXIV,
            "2212.07677",
        ),
        (
            "Wang, Kevin and others",
            2023,
            (
                "Interpretability in the Wild: a Circuit for Indirect"
                " Object Identification in GPT-2 small"
            ),
            ARXIV,
            "2211.00593",
        ),
        (
            "Wortsman, Mitchell and others",
            2022,
            (
                "Model soups: averaging weights of multiple"
                " fine-tuned models improves accuracy without increasing inference time"
            ),
            ARXIV,
            "2203.05482",
        ),
        (
            "Xiao, Guangxuan and others",
            2024,
            "Efficient Streaming Language Models with Attention Sinks",
            ARXIV,
            "2309.17453",
        ),
        (
            "Xu, Jingjing and others",
            2019,
            "Understanding and Improving Layer Normalization",
            ARXIV,
            "1911.07013",
        ),
        (
            "Yang, Zhilin and others",
            2018,
            "Breaking the Softmax Bottleneck: A High-Rank RNN Language Model",
            ARXIV,
            "1711.03953",
        ),
        (
            "Yin, Kayo and Neubig, Graham",
            2022,
            "Interpreting Language Models with Contrastive Explanations",
            ARXIV,
            "2202.10419",
            "Yin and Neubig 2022",
        ),
        (
            "Zeiler, Matthew D. and Fergus, Rob",
            2014,
            "Visualizing and Understanding Convolutional Networks",
            ARXIV,
            "1311.2901",
        ),
        (
            "Zhang, Biao and Sennrich, Rico",
            2019,
            "Root Mean Square Layer Normalization",
            ARXIV,
            "1910.07467",
        ),
        (
            "Zhang, Fred and Nanda, Neel",
            2024,
            "Towards Best Practices of Activation Patching in Language Models: Metrics and Methods",
            ARXIV,
            "2309.16042",
            "Towards Best Practices of Activation Patching",
        ),
    )
)


def cited(source: str) -> Iterator[Paper]:
    """Yield the papers that a source names."""
    return (paper for paper in PAPERS if paper.cited_in(source))


def text(source: str) -> str:
    """Return the source as Markdown: as it is declared, the links, and the BibTeX, folded."""
    parts, papers = [source], list(cited(source))
    if papers:
        links = [f"[{_short(paper)}, {paper.label}]({paper.url})" for paper in papers]
        parts.append("; ".join(links) + ".")
        entries = escape("\n\n".join(paper.bibtex() for paper in papers)).replace("$", "&#36;")
        parts.append(
            f'<details><summary>BibTeX</summary>\n<pre tabindex="0">{entries}</pre>\n</details>'
        )
    return "\n\n".join(parts)


def _short(paper: Paper) -> str:
    return paper.title.split(":")[0].replace("*", r"\*")
