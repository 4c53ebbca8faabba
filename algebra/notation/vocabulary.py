"""The words of formulas: which commands are letters, relations, spacing, functions, labels."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the words of a text that white space separates."""
    return frozenset(text.split())


# -- what means nothing to us ----------------------------------------------------------------------

SPACING = words(
    r"""
    \, \; \: \! \> \quad \qquad \thinspace \medspace \thickspace \enspace \hfill \left \right
    \middle
    \big \Big \bigg \Bigg \bigl \bigr \Bigl \Bigr \biggl \biggr \Biggl \Biggr \bigm \Bigm
    \displaystyle \space
    \qedhere
    \textstyle \scriptstyle \limits \nolimits \nonumber \notag \relax \strut \allowbreak \nobreak
    \tiny \scriptsize \footnotesize \small \normalsize \large \Large \LARGE \huge \Huge
    \displaylimits \mathstrut \mathrel \mathbin \mathord \mathopen \mathclose \mathpunct \mathinner
    """
) | {"\\ "}
# Commands whose braced argument says nothing either: space, names of equations, colours.
WITHOUT_MEANING = words(
    r"\hspace \hspace* \vspace \vspace* \label \color \phantom \hphantom \vphantom \mspace"
)
SEPARATORS = words(r"\quad \qquad")
TEXTS = words(
    r"""
    \text \mathrm \operatorname \operatorname* \textrm \textit \textbf \mathit \mathsf \textsf
    \texttt
    \mathtt \mbox
    """
)

# -- operations ------------------------------------------------------------------------------------

RELATIONS = words(
    r"""
    = := == < > \approx \triangleq \equiv \le \ge \in \to \leftarrow \ne \sim \propto \simeq \cong
    \ll \gg \subset \subseteq \notin \mapsto \supset \supseteq \ni \succ \prec \succeq \preceq
    \lesssim \gtrsim \asymp \parallel \doteq \vdash \models \nsubseteq \longrightarrow
    \xrightarrow \rightharpoonup \rightsquigarrow \Vdash
    """
)
ARROWS = words(r"\Rightarrow \implies \Leftrightarrow \iff \Longrightarrow \Leftarrow \impliedby")
TENSORS = words(
    r"""
    \otimes \odot \circ \oslash \oplus \ominus \cup \cap \setminus \wedge \vee \land \lor \star
    \bullet \bmod \boxplus \uplus \sqcup \ltimes \bigstar
    """
)
DECIDED = words(r"\otimes \odot \circ \oslash")  # of these, those that are in the language
ADDING = words(r"+ - \pm \mp")
PRODUCTS = words(r"\cdot \times / *")
BIG = words(r"\sum \prod")
# Signs of analysis and of sets, which are read as symbols, and not decided.
BEYOND_ALGEBRA = words(
    r"""
    \int \iint \iiint \oint \lim \liminf \limsup \bigcup \bigcap \bigoplus \bigotimes \bigwedge
    \bigvee \coprod \forall \exists \nexists \emptyset \varnothing \aleph \hbar \Re \Im \angle
    \square \neg \lnot \inf \Pr \argmax \argmin \degree \checkmark \blacksquare \triangle \hom
    \gcd \Box \dashrightarrow \complement
    """
)
PREFIXED = words(r"\nabla \partial")
RANGES = words(r"\le \ge < > \ne")
TRANSPOSES = words(r"T \top")
CONJUGATES = words(r"\dagger +")
DOTS = words(r"\cdots \dots \vdots \ddots \leftarrow \rightarrow \to \top \perp \bot |")

SIGNS = words(r"\% \$ \# ! #")  # units and the like, which are read as symbols, and not decided

# -- letters and their decorations -----------------------------------------------------------------

GREEK = words(
    r"""
    \alpha \beta \gamma \delta \epsilon \zeta \eta \theta \kappa \lambda \mu \nu \xi \pi \rho \sigma
    \tau \phi \chi \psi \omega \Gamma \Delta \Theta \Lambda \Xi \Pi \Sigma \Phi \Psi \Omega
    \ell \infty
    \vartheta \varepsilon \varphi \varrho \varsigma \imath \jmath
    """
)
STYLES = {
    r"\mathbf": "bf",
    r"\boldsymbol": "bf",
    r"\bm": "bf",
    r"\pmb": "bf",
    r"\bold": "bf",
    r"\symbf": "bf",
    r"\mathcal": "cal",
    r"\mathbb": "bb",
    r"\mathscr": "cal",
    r"\mathfrak": "frak",
    r"\mathsf": "sf",  # of one letter
}
ACCENTS = words(
    r"""
    \hat \tilde \bar \vec \overline \widehat \widetilde \dot \ddot \underline \check
    """
)
LABELS = words(
    """
    in out mid pre post ffn mlp attn head model max min res emb pos enc dec rot dir abs rel up gate
    down final ff key query val src dst ref tok voc new old eff full
    """
)

# -- environments ----------------------------------------------------------------------------------

MATRICES = words(
    """
    matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix psmallmatrix bsmallmatrix array
    matrix* pmatrix* bmatrix* Bmatrix* vmatrix* Vmatrix*
    """
)
CASES = words("cases dcases rcases cases*")
LINES = words(
    """
    align align* aligned gather gather* gathered split multline multline* equation equation*
    eqnarray eqnarray* alignat alignat*
    """
)

# -- names of several letters ----------------------------------------------------------------------

NAMED = {
    r"\exp": "exp", r"\log": "log", r"\ln": "log", r"\max": "max", r"\min": "min", r"\det": "det",
    r"\arg": "arg", r"\tanh": "tanh", r"\dim": "dim", r"\ker": "ker", r"\Tr": "tr", r"\tr": "tr",
    r"\sup": "sup", r"\sin": "sin", r"\cos": "cos", r"\arccos": "arccos",
    r"\arcsin": "arcsin", r"\arctan": "arctan", r"\sinh": "sinh", r"\cosh": "cosh", r"\tan": "tan",
    r"\sec": "sec", r"\cot": "cot", r"\lg": "log",
}  # fmt: skip
PREFIXES = words("tr Tr rank det diag")  # may stand before a symbol without brackets
SOFTMAX = words("softmax Softmax")
ROWWISE = words("FFN MLP SAE LN RMSNorm LayerNorm layernorm attn")
ELEMENTWISE = {
    "ReLU": "relu", "relu": "relu", "GELU": "gelu", "GeLU": "gelu", "gelu": "gelu", "SiLU": "silu",
    "silu": "silu", "tanh": "tanh", "sigmoid": "sigmoid", "exp": "exp", "log": "log",
    "sin": "sin", "cos": "cos", "erf": "erf", "softplus": "softplus",
}  # fmt: skip
BEYOND = words(
    """
    arccos arcsin arctan sinh cosh tan sec cot binom
    rank det max min argmax argmin mask Mask concat Concat span sign dim ker sup var
    Var Cov mean arg Embed Unembed inv pinv transpose norm svd eig
    """
)
FUNCTIONS = (
    ROWWISE
    | BEYOND
    | set(ELEMENTWISE)
    | words(
        r"f g softmax Softmax Attn RMS tr Tr trace Trace diag Diag vec vecr vecc \sigma \phi \mu "
        r"\psi"
    )
    | words("logsoftmax LogSoftmax logsumexp LogSumExp LSE crossentropy CrossEntropy rotation")
)
WORDS = {each for each in FUNCTIONS if len(each) > 1 and each[0] != "\\"} | words("Id DLA")
CONDITIONS = words("where with if for when whenever provided")
JOINING = CONDITIONS | words(
    "where and with if for so then thus hence or i.e. but otherwise else since because"
)
# What a subscript of ℝ says of the numbers in it.
SIGNS_OF_NUMBERS = {">0": "positive", "++": "positive", "+": "nonnegative", r"\ge0": "nonnegative"}
