"""What the text around an equation says of it: a condition, a denial, that it defines or is shown.

An equation that is false for free symbols is no mistake where its sentence goes on with a
condition, `… = 0$ for $i > r$`, where it says what a word such as “symmetric” means, or where a
definition is revised.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from otimes.algebra.notation.tree import (
    Apply,
    Group,
    Name,
    Node,
    Norm,
    Power,
    Product,
    Sum,
    bare,
    latex,
    walk,
)
from otimes.algebra.notation.vocabulary import FUNCTIONS
from otimes.proofs.documents.containers.source import Document, Formula
from otimes.proofs.documents.verdicts.false_claims import assumed

CONDITION_AFTER = re.compile(
    r"(?:\$\$?|\\\)|\\\]|`)?[\s,]*\(?(?:"
    r"(?:whenever|when|if|unless|provided|as long as|only (?:if|when))\b"
    r"|for\s+(?:all\s+|any\s+|every\s+|each\s+)?(?:\$|\\\()[^$\n]{0,30}?"
    r"(?:[<>≠≤≥=]|\\(?:ne|neq|le|leq|ge|geq|in(?!\s*\\(?:mathbb|R\b|RR\b))|lt|gt)\b))"
)
GOAL = re.compile(
    r"\b(?:show|prove|verify|check|claim|conjecture|proof|goal|asserts?)(?: is)?(?: that)?:?\s*$",
    re.IGNORECASE,
)
REVISED = re.compile(
    r"\b(?:re-?scal\w+|scal(?:e[ds]?|ing)|divid\w+|normali[sz]\w+|instead|modif\w+|replac\w+|"
    r"generali[sz]\w+|extend\w*|redefin\w+|updat\w+|regulari[sz]\w+|augment\w*|drop\w*)\b",
    re.IGNORECASE,
)
ANOTHER = re.compile(
    r"\b(?:another|second|third|next|alternativ\w*|other\w*|new|different\w*|variants?|exchang\w*|"
    r"swap\w*|revers\w*|contrast|conversely|similarly|cases?|versions?|heads?|layers?|models?)\b",
    re.IGNORECASE,
)
# Words of a sentence about another case than that of a definition: “A head without mixing returns”.
OTHERWISE = re.compile(
    r"\b(?:without|instead|alternativ\w*|variants?|versions?|authors?|papers?|elsewhere|others?|"
    r"cases?|special\w*|simpl\w+|ignor\w+|neglect\w+|drop\w*|omit\w*|remov\w+|ablat\w+|"
    r"add(?:s|ed|ing|itional)?|often|sometimes|usually|commonly|identity|trivial|linear\w*|"
    r"only|alone|bias\w*|residual connection|skip|code|convention|layout|practice|implement\w*|"
    r"would|could|were|had|after|parallel|another|different\w*|new|second|next|"
    r"approximat\w+|limit|extreme|toy|now|if|when|whenever|unless)\b"
    r"|^\W*an?\s|^\W*(?:for|in|at|on|under)\s+(?:an?|the|this|that|one|two|our|some)\b"
    r"|^\W*with\s+[a-z]"
    r"|\b(?:for|at)\s+(?:\$|\\\()[^$]{0,40}=",
    re.IGNORECASE,
)
SUPPOSED = re.compile(
    r"\b(?:suppose\w*|assum\w+|imagin\w+|consider\w*|take|say that|pretend|restrict\w*)\b",
    re.IGNORECASE,
)
LAYOUT = re.compile(
    r"\b(?:transpos\w*|layouts?|conventions?|columns?|rows?|row-\w+|column-\w+|stor(?:e[sd]?|ing)|"
    r"stack\w*|authors?|papers?|literature|textbooks?|code|implement\w*|pytorch|numpy|jax|order|"
    r"previous\w*|earlier|elsewhere|here|now|notation|forms?|written|if|when)\b",
    re.IGNORECASE,
)
FOLLOWS = re.compile(
    r"\b(?:we|to|you|one)\s+(?:then\s+|now\s+)?(?:get|gets|obtain)\b|\b(?:gives?|yields?|"
    r"implies|leads? to|solution|solv\w+|optimum|optimal|minimi[sz]\w+|maximi[sz]\w+)\b"
    r"|\b(?:set\w*|let)\b.{0,40}\b(?:zero|0)\b",
    re.IGNORECASE,
)
MEANING = re.compile(
    r"\b(?:symmetric|skew\w*|antisymmetric|hermitian|self-adjoint|orthogonal|orthonormal|unitary|"
    r"normal|idempotent|projections?|projectors?|involut\w+|nilpotent|singular|invertible)\b",
    re.IGNORECASE,
)
KIND = re.compile(r"\b(?:matrix|matrices|operators?|maps?)\b", re.IGNORECASE)
# An entry of a glossary: “**symmetric** $A = A^T$; **orthogonal**: $Q^T Q = I$”.
ENTRY = re.compile(rf"(?:^|[;.])\W*{MEANING.pattern}\W*$", re.IGNORECASE)
DEFINING = re.compile(
    r"\b(?:define[ds]?|denote[ds]?|denoting|(?<!can )(?<!may )(?<!could )write|writing|set|where|"
    r"here|let|call)\b"
    r"(?:(?!\bso\b|\bhence\b|\bthus\b)[^.$\\`]){0,25}$",
    re.IGNORECASE,
)
# “The norms do not change, and …” denies no equation.
NEGATED = re.compile(
    r"\b(?:not|never|isn't|aren't|doesn't)\b"
    r"(?!\s+(?:chang|alter|affect|matter|depend|vary|only|just|even)\w*)",
    re.IGNORECASE,
)
# “A query that has not been changed scores …” denies no equation.
ASIDE = re.compile(
    r"\b(?:that|which|who|whose\s+\w+)\s+(?:has|have|had|is|are|was|were|do|does|did|can|could|"
    r"need|may|must|will)\s+not\s+(?:been\s+|be\s+|yet\s+)?(?!(?:mean|imply|say|hold|give|equal\w*|"
    r"follow|true|have|be|to|the|a|an|valid|correct\w*|right|allowed|possible|exact\w*|satisf\w+|"
    r"permitted|legitimate|sound|sure|clear|use[sd]?)\b)\w+",
    re.IGNORECASE,
)
GOES_ON = re.compile(
    r"\b(?!(?:is|are|was|were|reads?|says?|would|be|namely|that|the)\b)[a-z]+", re.IGNORECASE
)
WRONGLY = re.compile(
    r"\b(?:false|wrong|incorrect|mistakes?|fails?|instead of|not true|erroneous\w*)\b",
    re.IGNORECASE,
)
# Conditions under which the sides are defined, and nothing more.
DEFINED = re.compile(
    r"\b(?:if|when|whenever|provided|as long as|assuming)(?: that)?\s+(?:all |both |the |these |"
    r"such |its )*(?:inverses?|products?|expressions?|sides?|shapes?|sizes?|dimensions?)\s+"
    r"(?:exists?|is defined|are defined|makes? sense|conforms?|match|agree|fit|are compatible)\b|"
    r"\b(?:if|when|whenever|provided|as long as|assuming)\b[^.;:]{0,80}?\b(?:is|are)\s+"
    r"(?:both |all )?(?:invertible|non-?singular)\b",
    re.IGNORECASE,
)
# “For positive definite matrices,” begins a case.
OF_A_KIND = re.compile(
    r"\b[Ff]or\s+(?:[\w-]+\s+){0,2}?(?:symmetric|PSD|SPD|PD|(?:semi-?)?definite|orthogonal|unitary|"
    r"normal|diagonal|triangular|invertible|square|hermitian|commuting|idempotent|stochastic)\s+"
    r"(?:[\w-]+\s+){0,2}?(?:matrix|matrices|operators?|maps?)\b"
)
# Words that assume something of symbols that they do not name.
BASIS = re.compile(
    r"\b(?:orthonormal|orthogonal|eigen)\s*-?\s*(?:basis|bases|sets?|systems?|frame)\b",
    re.IGNORECASE,
)
# “The system $A x = b$” says what is to be solved, and not what b is.
SYSTEM = re.compile(
    r"\b(?:(?:systems?|(?:normal|matrix|homogeneous|linear|vector)\s+equations?|"
    r"(?:eigen-?(?:value\s+)?|least[- ]squares\s+)problems?)(?:\s+of\s+(?:\w+\s+)?equations)?"
    r"(?:\s+(?:is|are|of the form|form|reads?))*"
    r"|solv(?:e|es|ed|ing)(?:\s+[\w-]+){0,4}|solutions?\s+(?:of|to)(?:\s+[\w-]+){0,3})[\s*:$_]*\Z",
    re.IGNORECASE,
)
BOTH_SIDES = re.compile(r"\b(?:both|each|the two) sides?\b", re.IGNORECASE)
NOT_DEFINED = re.compile(
    r"\b(?:not|never|isn't)\s+(?:even\s+)?(?:be\s+|well-?\s*)?(?:defined|possible|conform\w*|compatible|computed|"
    r"added|multiplied|allowed|valid)\b|\b(?:undefined|cannot|impossible)\b|\bmakes? no sense\b|"
    r"\bnot make sense\b",
    re.IGNORECASE,
)
ASKED = re.compile(
    r"\b(?:which|what|whether|why)\b.{0,80}\b(?:(?:un)?defined|possible|valid|computed)\b",
    re.IGNORECASE | re.DOTALL,
)
AFTER = 120  # characters after a formula in which a text may say that it is not defined
CONDITIONAL = re.compile(
    r"\b(?:if|when|whenever|unless|assuming|suppose|provided|under the|as long as)\b", re.IGNORECASE
)
# “For a stream of rank one $X = u v^T$”: a case of what is declared, and no definition.
CASE = re.compile(
    r"\b(?:for|if|when|whenever|at)\s+(?!(?:all|any|each|every)\b)(?:[\w-]+\s+){0,5}$",
    re.IGNORECASE,
)
# “In particular, a context that repeats one token, $X = 1 y^T$, is sent to”: so is this.
INSTANCE = re.compile(
    r"^\W*(?:(?:and|but|so|now)\s+)?(?:in particular|for (?:example|instance)|e\.g\.|"
    r"as an? (?:extreme |simple |first |special )?(?:example|case)|special case|suppose|imagine)\b"
    r"|\b(?:in particular|for (?:example|instance)|e\.g\.|special case|say)[\s,:]*$"
    r"|\b(?:an?)\s+[\w-]+\s+(?:that|which|whose|of|with)\b[^.;:$]*,\s*$",
    re.IGNORECASE,
)
IF = re.compile(r"\b(?:if|when|whenever)\s+(?:[\w-]+\s+){0,2}$", re.IGNORECASE)
WANTED = re.compile(
    r"\b(?:we|you|one|they)\s+(?:\w+\s+)?(?:want|wants|need|needs|wish|require|requires|seek|"
    r"demand|would like|ask)\b[^.;:]*\Z",
    re.IGNORECASE,
)
# “One usually starts with $B = 0$” tells of one moment, and “let $B = 0$” of all that follows.
MOMENT = re.compile(
    r"\b(?:start\w*|initial\w*|begin\w*|first step|at first|optim\w+|minim\w+|converge\w*|"
    r"equilibrium|stationary)\b",
    re.IGNORECASE,
)
ASSIGNED = re.compile(
    r"\b(?:let|set|setting|take|taking|put|putting|choos\w+|defin\w+|where|with|fix|suppos\w+|"
    r"assum\w+|given|writ\w+|denot\w+|call\w*|here)\b[^.;]*\Z",
    re.IGNORECASE,
)
# “Suppose that”, “a matrix of rank two is”: a value of its own, unless a conclusion follows.
CONCLUDES = re.compile(
    r"\b(?:then|so|hence|thus|therefore|get|gets|obtain\w*|gives?|yields?|becomes?|find|have|has)\b",
    re.IGNORECASE,
)
GIVEN = re.compile(
    r"\b(?:let|set|take|put|choose|pick|fix|suppos\w+|assum\w+|consider\w*|say|imagine|instead|"
    r"example|instance|e\.g|were|would|could|might|if|unless|replac\w+|chang\w+|try|now)\b"
    r"|^\W*an?\s",
    re.IGNORECASE,
)
# Words in a formula, before a letter that they name something by: `\text{input to layer } l`.
NAMED_IN_WORDS = re.compile(
    r"\\(?:text|textrm|textit|textbf|mbox|mathrm)\s*\{[^{}]*\b(?!(?:so|thus|hence|then|where|and|with|"
    r"if|for|since|or|let|also|therefore|because|but|that|is|are|gives|means|implies|yields|have|"
    r"get|when|now|by|as|recall|note|finally|first|next|while|using|from)\b)"
    r"[A-Za-z]+\s*\}[\s~]*$"
)
# A unit, or a number in words, after a formula: `24 \times 10^9 = 24$ GB`.
UNIT = re.compile(
    r"(?:\$\$?|\\\)|\\\]|`)?[\s~]*(?:[kKMGTP]i?(?:B|b|bit|bytes?|FLOPs?|params)?\b|bytes?\b|"
    r"FLOPs?\b|GHz\b|[mµn]?s\b|thousand\b|million\b|billion\b|trillion\b|%)"
)


def has_condition_after(document: Document, formula: Formula) -> bool:
    """Return whether a sentence goes on, after a formula, with the condition under which it holds.

    >>> from otimes.proofs.documents.containers.markdown import read_markdown
    >>> document = read_markdown("", "Then $A v = 0$ for $i > r$, and $A v = 0$ for all $v$.")
    >>> [has_condition_after(document, each) for each in document.formulas[::2]]
    [True, False]
    """
    return CONDITION_AFTER.match(document.text, formula.end) is not None


def is_goal(words: str) -> bool:
    """Return whether the words before an equation announce that it is to be shown.

    >>> is_goal("We show that "), is_goal("This shows the attention pattern ")
    (True, False)
    """
    return GOAL.search(words) is not None


def is_revised(words: str) -> bool:
    """Return whether words say that something is defined in another way from here on."""
    return REVISED.search(words) is not None


def is_of_another(words: str) -> bool:
    """Return whether the words before a definition may be about another thing than before.

    >>> is_of_another("For a second head we write "), is_of_another("and we write ")
    (True, False)
    """
    return ANOTHER.search(words) is not None


def is_of_another_case(sentence: str, since: str) -> bool:
    """Return whether a sentence may be about another case than that in which a symbol is defined.

    `since` are the words before it, from that definition on.

    >>> is_of_another_case("Without mixing, it returns ", ""), is_of_another_case("It reads ", "")
    (True, False)
    """
    return bool(OTHERWISE.search(sentence) or SUPPOSED.search(since))


def is_given_anew(words: str) -> bool:
    """Return whether the words before a value say that something has it, and do not conclude it.

    >>> is_given_anew("Now let "), is_given_anew("Let , so that "), is_given_anew("We get ")
    (True, False, False)
    """
    since = [match.end() for match in CONCLUDES.finditer(words)]
    return is_of_another(words) or bool(GIVEN.search(words[since[-1] if since else 0 :]))


def is_in_another_layout(sentence: str) -> bool:
    """Return whether a sentence may define something anew: for others, or with rows for columns.

    >>> is_in_another_layout("Some authors store the transpose"), is_in_another_layout("So it is")
    (True, False)
    """
    return bool(LAYOUT.search(sentence) or is_revised(sentence) or is_of_another(sentence))


def follows_from_more(words: str) -> bool:
    """Return whether words say that an equation follows from what was said before."""
    return FOLLOWS.search(words) is not None


def says_what_a_word_means(words: str, lhs: Node, rhs: Node) -> bool:
    """Return whether an equation about one symbol says what a word such as “symmetric” means."""
    says = (MEANING.search(words) and KIND.search(words)) or ENTRY.search(words)
    return bool(says and assumed(lhs, rhs))


def is_of_differentials(lhs: Node, rhs: Node) -> bool:
    r"""Return whether all terms have a `d` before a matrix: `d(XY) = (dX) Y + X dY`.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (rule,) = parse_formula("d(X Y) = (d X) Y + X d Y")
    >>> is_of_differentials(*rule.terms)
    True
    """
    parts = [e for side in (lhs, rhs) for e in walk(side)]
    matrices = any(_is_differential(e, _is_variable) for e in parts)
    return matrices and has_differentials(lhs, rhs)


def has_differentials(lhs: Node, rhs: Node) -> bool:
    """Return whether all terms have a `d` before a symbol, which may be a number: `dh = U dx`."""
    terms = [*_terms(lhs), *_terms(rhs)]
    return bool(terms) and all(any(map(_is_differential, walk(term))) for term in terms)


def _terms(node: Node) -> list[Node]:
    inner = bare(node)
    terms = list(inner.terms) if isinstance(inner, Sum) else [inner]
    return [term for term in terms if latex(bare(term)) not in ("0", r"\mathbf{0}")]


def _is_differential(node: Node, of: Callable[[Node], bool] | None = None) -> bool:
    """Return whether a product has a `d` before a symbol or a bracket, or before one of a kind."""
    if not isinstance(node, Product):
        return False
    return any(
        isinstance(a, Name)
        and latex(a) in ("d", r"\mathrm{d}")
        and ((of or _is_letter)(b) or _is_variable(b))
        for a, b in zip(node.factors, node.factors[1:], strict=False)
    )


def _is_letter(node: Node) -> bool:
    return isinstance(bare(node), Name)


def _is_variable(node: Node) -> bool:
    base = node.base if isinstance(node, Power) else node
    if isinstance(base, Group | Norm):
        return True
    if isinstance(base, Apply):
        return base.function.base in FUNCTIONS
    return isinstance(base, Name) and (base.base[:1].isupper() or bool(base.style))


def announces_definition(words: str) -> bool:
    """Return whether the words before an equation say that it defines its left side.

    >>> announces_definition("We write "), announces_definition("so that we can write ")
    (True, False)
    """
    return DEFINING.search(words) is not None


def without_existence(words: str) -> str:
    """Return words without the conditions that the sides of an equation exist, which is implied."""
    return DEFINED.sub("", words)


def opens_case(words: str, is_declared: bool) -> bool:
    """Return whether an equation after these words is a case, for a paragraph, and no definition.

    What is declared before may have a value in a case; after “if” anything may.

    >>> opens_case("For a stream of rank one ", True), opens_case("For the stream, let ", True)
    (True, False)
    >>> opens_case("In particular, a context that repeats one token, ", True)
    True
    """
    if is_declared and INSTANCE.search(words):
        return True
    return bool(CASE.search(words) and (is_declared or IF.search(words)))


def is_wanted(words: str) -> bool:
    """Return whether words say that an equation is to be met by a choice that comes later.

    >>> is_wanted("We want "), is_wanted("Then we have ")
    (True, False)
    """
    return WANTED.search(words) is not None


def is_of_a_moment(words: str) -> bool:
    """Return whether a value after these words is that of one sentence.

    >>> is_of_a_moment("One usually starts with "), is_of_a_moment("Let the bias be ")
    (True, False)
    """
    return bool(MOMENT.search(words) or not ASSIGNED.search(words))


def is_named_in_words(begins: str) -> bool:
    """Return whether a formula has words before a symbol that name what this is."""
    return NAMED_IN_WORDS.search(begins) is not None


def has_unit_after(document: Document, formula: Formula) -> bool:
    """Return whether a unit, or a number in words, follows a formula."""
    return UNIT.match(document.text, formula.end) is not None


def is_conditional(words: str) -> bool:
    """Return whether the words before an equation are a condition under which it holds.

    >>> is_conditional("If A is symmetric: "), is_conditional("Scores stay when weights change: ")
    (True, False)
    """
    begins = CONDITIONAL.match(words.lstrip()) or OF_A_KIND.match(words.lstrip())
    return bool(begins or CONDITIONAL.search(re.split(r"[:;]", words)[-1]))


def is_system(words: str) -> bool:
    """Return whether the words before an equation say that it is to be solved.

    >>> is_system("When a system "), is_system("the **normal equations**: "), is_system("We have ")
    (True, True, False)
    """
    return SYSTEM.search(words) is not None


def is_called_undefined(document: Document, formula: Formula) -> bool:
    """Return whether a text says, or asks, that a term is not defined.

    >>> from otimes.proofs.documents.containers.markdown import read_markdown
    >>> document = read_markdown("", "The sum $A + B$ is not defined, and $A B$ is.")
    >>> [is_called_undefined(document, each) for each in document.formulas]
    [True, False]
    """
    after = document.prose[formula.end : formula.end + AFTER]
    after = re.split(r"[.;,](?=\s)|\n\s*[#\-*]", after.strip("$ \n"))[0]
    asked = ASKED.search(f"{document.sentence_before(formula)} … {after}")
    return asked is not None or NOT_DEFINED.search(after) is not None


def doubted_by(words: str) -> bool:
    """Return whether words before an equation deny it, or are a condition for it."""
    return is_denied(words) or is_conditional(words)


def is_denied(words: str) -> bool:
    """Return whether the words before an equation say that it does not hold.

    >>> is_denied("It is not true that "), is_denied("They are not unique: for all R, ")
    (True, False)
    >>> is_denied("A query that has not been changed scores the key with ")
    False
    """
    words = _without_asides(words)
    return bool(WRONGLY.search(words) or NEGATED.search(re.split(r"[:;]", words)[-1]))


def _without_asides(words: str) -> str:
    """Return words without negations in relative clauses after which the sentence goes on.

    It does not where the clause is about the equation: “an error that is not rare is”.
    """

    def kept(clause: re.Match[str]) -> str:
        return "" if GOES_ON.search(words[clause.end() :]) else clause[0]

    return ASIDE.sub(kept, words)
