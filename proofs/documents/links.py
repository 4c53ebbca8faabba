"""The links of the chains of a document, one after the other, each with its verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.parser import printed_back
from otimes.algebra.notation.symbols import (
    Declared,
    Symbols,
    default,
    full_key,
    key_of,
    size_of,
    text_of,
)
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Apply,
    Indexed,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Root,
    Space,
    Statement,
    Sum,
    bare,
    latex,
    walk,
)
from otimes.algebra.notation.typed import FormulaShapeError
from otimes.algebra.notation.vocabulary import CONDITIONS, FUNCTIONS, ROWWISE, words
from otimes.proofs.documents.consistency import (
    dotted_vectors,
    lost_index,
    other_layer,
    same_layer_pairs,
)
from otimes.proofs.documents.context import (
    Context,
    Hypothesis,
    declared_as,
    is_constant,
)
from otimes.proofs.documents.conventions import order_of
from otimes.proofs.documents.items import ASSUMING, Item, is_capital, plain_words
from otimes.proofs.documents.judge import Found, Judge
from otimes.proofs.documents.report import Equation
from otimes.proofs.documents.source import Document

EQUALS = frozenset(("=", r"\equiv"))
DEFINES = frozenset((":=", r"\triangleq", r"\leftarrow", r"\mapsto"))
DEFINING = re.compile(
    r"\b(?:define[ds]?|denote[ds]?|denoting|write|writing|set|where|here|let|call)\b"
    r"(?:(?!\bso\b|\bhence\b|\bthus\b)[^.$\\`]){0,25}$",
    re.IGNORECASE,
)
NEGATED = re.compile(r"\b(?:not|never|isn't|aren't|doesn't)\b", re.IGNORECASE)
WRONGLY = re.compile(
    r"\b(?:false|wrong|incorrect|mistakes?|fails?|instead of|not true|erroneous\w*)\b",
    re.IGNORECASE,
)
CONDITIONAL = re.compile(
    r"\b(?:if|when|whenever|unless|assuming|suppose|provided|under the|as long as)\b", re.IGNORECASE
)
STATES = re.compile(r"=|≈|∈|←|\\(?:approx|in|leftarrow|triangleq|equiv|le|leq|ge|geq)\b")
SOON = 3  # lines after a factorization, on which it is said what its factors are
VOCABULARY = frozenset(("V", "𝒱", "v", "d_vocab", "n_vocab"))
# Functions that mean something: an equation with one on its left side claims, and defines nothing.
MEANT = FUNCTIONS - ROWWISE - words(r"f g \sigma \phi \mu \psi Attn attn")


class LinkChecker:
    """Judges formulas in order; `blamed` are the declarations that proofs contradict."""

    def __init__(self, document: Document, context: Context, items: list[Item]) -> None:
        self.document = document
        self.context = context
        self.items = items
        self.judge = Judge(context)
        self.blamed: dict[tuple[str, int], list[str]] = {}
        self.seen: set[str] = set()
        self.introduced: dict[str, int] = {}  # by equations such as W = U Σ Vᵀ, with their lines
        self.learned: set[str] = set()  # symbols whose shapes definitions have shown
        self.layers = same_layer_pairs(items)

    def equations(self) -> list[Equation]:
        """Return the equations of the formulas, with their verdicts."""
        found: list[Equation] = []
        for item in self.items:
            found += self.of_item(item)
            for statement in item.statements:
                if statement.relations:
                    self.seen |= {latex(e) for e in walk(statement) if isinstance(e, Name)}
        return found

    def of_item(self, item: Item) -> Iterator[Equation]:
        """Yield the equations of one formula."""
        if item.error is not None:
            if self._states(item):
                yield self._unread(item, item.error)
            return
        states = any(statement.relations for statement in item.statements)
        if states and not printed_back(
            item.statements, self.context.base.functions, self.context.base.values
        ):
            yield self._unread(item, NotationError("printed back it is another formula"))
            return
        for statement in item.statements:
            if not statement.relations:
                yield from self.expression(item, statement)
                continue
            for k in range(len(statement.relations)):
                try:
                    found = self.link(item, statement, k)
                except RecursionError:
                    found = Found("unread", "it is nested too deeply")
                if found is not None:
                    yield self._equation(item, statement, k, found)

    def _states(self, item: Item) -> bool:
        """Return whether a formula that was not read may state something."""
        tex = item.formula.tex
        if re.fullmatch(r"\s*\\[A-Za-z]+\s*", tex):  # a sign by itself
            return False
        unbalanced = any(tex.count(a) != tex.count(b) for a, b in ("()", "{}"))
        return bool(STATES.search(tex)) or item.formula.display or unbalanced

    def _unread(self, item: Item, error: NotationError) -> Equation:
        line, column = self.document.position(item.formula.offset(error.span[0]))
        return self._made(item, line, column, item.formula.tex, Found("unread", str(error)))

    def _equation(self, item: Item, statement: Statement, k: int, found: Found) -> Equation:
        left, right = statement.terms[k], statement.terms[k + 1]
        start = left.span[0] if k == 0 else right.span[0]
        start = min(statement.span[0], start) if k == 0 else start
        tex = item.formula.tex[(statement.span[0] if k == 0 else left.span[0]) : right.span[1]]
        line, column = self.document.position(item.formula.offset(start))
        for key in found.blamed:
            self.blamed.setdefault(key, []).append(f"{_short(tex)} on line {line}")
        return self._made(item, line, column, tex, found, (start, right.span[1]))

    def _made(
        self,
        item: Item,
        line: int,
        column: int,
        tex: str,
        found: Found,
        span: tuple[int, int] | None = None,
    ) -> Equation:
        start, end = span or (0, len(item.formula.tex))
        return Equation(
            self.document.name,
            line,
            column,
            " ".join(tex.replace("&", " ").split()),
            found.verdict,
            self.document.named_lines(found.why),
            found.counterexample,
            found.suggestion,
            found.reading,
            found.hypotheses,
            cell=self.document.cell(item.formula.start),
            span=(item.formula.offset(start), item.formula.offset(max(end - 1, start)) + 1),
        )

    def expression(self, item: Item, statement: Statement) -> Iterator[Equation]:
        """Report a formula that states nothing only where its shapes do not conform."""
        term = statement.terms[0]
        if not isinstance(bare(term), Product | Sum) or any(
            mark == r"\times" for mark in getattr(bare(term), "marks", ())
        ):
            return
        symbols = self.context.symbols_at(item.line)
        for (key, line), known in self._contradicted().items():
            if line <= item.line:
                symbols.known[key] = known
        for circuit in ("W_OV", "W_QK"):  # square by what they are, as wide as the stream
            if circuit not in symbols.known and "d" in symbols.sizes():
                symbols.known[circuit] = Declared("matrix", ("d",), ("d",))
        found = self.judge.shapes([term], item.line, item.formula.tex, symbols)
        if found is None:
            doubt = dotted_vectors(term, symbols)
            found = Found("needs-hypothesis", doubt) if doubt else None
        if found is not None:
            line, column = self.document.position(item.formula.offset(statement.span[0]))
            tex = item.formula.tex[slice(*statement.span)]
            yield self._made(item, line, column, tex, found, statement.span)

    def _contradicted(self) -> dict[tuple[str, int], Declared]:
        """Return the declarations that equations contradict; a bare product has to fit them."""
        return {
            (key, known.line): known
            for key, known in self.context.declared
            if (key, known.line) in self.context.wrong
        }

    def link(self, item: Item, statement: Statement, k: int) -> Found | None:
        """Return the verdict on a link of a chain, or None where it states nothing to judge."""
        relation, left, right = statement.relations[k], statement.terms[k], statement.terms[k + 1]
        source = item.formula.tex
        if relation in (r"\in", r"\notin"):
            return self._membership(item, statement, k) if isinstance(right, Space) else None
        if relation in DEFINES:
            return self._definition(item, left, right, always=True)
        if relation in EQUALS:
            return self._equality(item, statement, k)
        nearly = relation in (r"\approx", r"\simeq")
        if relation == ":" or (k and statement.relations[k - 1] == ":"):
            return Found("definition", "it says between which sets a function maps")
        if _is_range(left) and _is_range(right) and not nearly:
            return None
        shape = self.judge.shapes([left, right], item.line, source)
        if shape is not None and nearly:
            return shape
        found = self._other(item, relation, left, right) if shape is None else None
        if found is not None:
            return found
        what = "an approximation" if nearly else f"a statement with {relation}"
        return Found("undecided", f"it is {what}, and equations are decided")

    def _other(self, item: Item, relation: str, left: Node, right: Node) -> Found | None:
        """Return the verdict on a statement that is no equation, None where it is open."""
        from otimes.proofs.documents.inequalities import approximate, compared, different

        source = item.formula.tex
        if relation in (r"\approx", r"\simeq"):
            return approximate(self.judge, left, right, item.line, source)
        if relation != r"\ne":
            found = compared(self.judge, left, right, relation, item.line)
        else:
            found = different(self.judge, left, right, item.line, source)
        words = plain_words(self.document.sentence_before(item.formula))
        doubted = is_denied(words) or CONDITIONAL.search(words)
        if found is not None and found.verdict == "refuted" and doubted:
            return replace(found, verdict="undecided")
        return found

    def _membership(self, item: Item, statement: Statement, k: int) -> Found:
        term, space = bare(statement.terms[k]), statement.terms[k + 1]
        if isinstance(term, Name) and k == 0:
            return Found("definition", "it declares a shape")
        sizes = [size_of(size) for size in getattr(space, "sizes", ())]
        declared = declared_as(sizes, item.line)
        if declared is None:
            return Found("undecided", "the sizes of the space are not read")
        symbols = self.context.symbols_at(item.line)
        symbols.known["⟨member⟩"] = replace(declared, line=item.line)
        member = Name("⟨member⟩", span=space.span)
        try:
            read = elaborate([statement.terms[k], member], symbols, item.formula.tex)
        except FormulaShapeError as error:
            if any(isinstance(atom, int) and atom > 1 for size in sizes for atom in size or ()):
                return Found("undecided", f"{error}; the numbers may be an example")
            return Found("shape", str(error).replace("⟨member⟩", "the space"), span=error.span)
        except OtimesError as error:
            return Found("undecided", str(error))
        for key, kind in read.undeclared.items():  # a shape that the space leaves no choice of
            shape = read.shapes.get(key)
            if shape is None or not {a for size in shape for a in size} <= {*symbols.sizes(), 1}:
                continue
            if kind == "matrix" and key not in symbols.known:
                self.context.declared.append((key, Declared("matrix", *shape, item.line)))
        return Found("definition", "the shape is as it is said")

    def _definition(self, item: Item, left: Node, right: Node, always: bool = False) -> Found:
        shape = self.judge.shapes([left, right], item.line, item.formula.tex)
        if shape is not None and self.judge.shapes(
            [left, right], item.line, item.formula.tex, self.context.base.copy()
        ):
            return shape
        if always:
            self.context.definitions.pop(latex(bare(left)), None)
        self.context.define(bare(left), right, item.line)
        if shape is not None:
            if self._is_other(left, right, item):
                return replace(shape, verdict="undecided")
            return shape
        self.introduced |= dict.fromkeys(self._introduced(left, right), item.line)
        self._learn(left, right, item)
        contracted = self._contracts_vocabulary(right, item.line)
        if contracted:
            return Found("shape", contracted)
        doubt = self._doubt(left, right, item.line)
        if doubt:
            return Found("needs-hypothesis", doubt)
        symbols = self.context.symbols_at(item.line)
        named = {s.text for e in _names_by_index(right, symbols) for s in e.sub}
        loose = [i for i in loose_indices(left, right) if i not in symbols.sizes() | named]
        if loose:
            why = f"the index {', '.join(loose)} is on the right side only: what is it?"
            return Found("needs-hypothesis", why)
        return Found("definition", "")

    def _doubt(self, left: Node, right: Node, line: int) -> str:
        """Return what a definition says otherwise than the rest of the text, or nothing."""
        lost = lost_index(left, right)
        if lost:
            return f"the index {lost} is on the left side only: what is it?"
        symbols = self.context.symbols_at(line)
        return other_layer(right, self.layers, line) or dotted_vectors(right, symbols)

    def _learn(self, left: Node, right: Node, item: Item) -> None:
        """Note the shape of a symbol if the formula that defines it determines it, or its kind."""
        name = bare(left)
        symbols = self.context.symbols_at(item.line)
        if isinstance(name, Name) and not name.sub and not name.sup:
            self._learn_number(name, left, right, item)
        if not isinstance(name, Name) or not (is_matrix_like(name) or _is_small(name)):
            return
        known = symbols.lookup(name)[1]
        if known is not None and (known.rows or known.cols or known.line):
            return
        if known is None and not is_matrix_like(name) and not _is_vector(name):
            symbols.known[symbols.lookup(name)[0]] = Declared("vector")
        try:
            read = elaborate([left, right], symbols, item.formula.tex)
        except OtimesError:
            return
        key = symbols.lookup(name)[0]
        own = text_of(name) if all(slot.kind == "index" for slot in name.sup) else key
        shape = read.shapes.get(key) or read.shapes.get(own)
        kinds = {kind for other, kind in read.undeclared.items() if other not in (key, own)}
        if shape is None or kinds - {"matrix"}:
            return
        if is_capital(name):
            self.context.kinds.setdefault(key_of(name), Declared("matrix"))
        others = read.undeclared.keys() - {key, own}
        solved = all(str(atom) in symbols.sizes() for size in shape for atom in size)
        if solved and not others and all(len(size) <= 1 for size in shape):
            self.context.declared.append((key, Declared("matrix", *shape, item.line)))
            self.context.sentences.add((key, item.line))
            self.learned.add(latex(name))

    def _learn_number(self, name: Name, left: Node, right: Node, item: Item) -> None:
        """Note that a symbol is a number if the formula that defines it is one."""
        symbols = self.context.symbols_at(item.line)
        greek = name.base[0] == "\\"
        if symbols.lookup(name)[1] is not None or is_matrix_like(name):
            return
        if len(name.base) != 1 and not greek:
            return
        try:
            read = elaborate([right], symbols, item.formula.tex)
        except OtimesError:
            return
        certain = not read.undeclared or isinstance(bare(right), Root | Norm)
        if not getattr(read.terms[0], "is_Matrix", True) and certain:
            known = Declared("scalar", line=item.line, full=full_key(name))
            self.context.declared.append((symbols.lookup(name)[0], known))

    def _contracts_vocabulary(self, term: Node, line: int) -> str:
        """Return why a product of embedding and unembedding sums over the vocabulary."""
        symbols = self.context.symbols_at(line)
        for e in walk(term):
            if not isinstance(e, Product):
                continue
            for a, b in pairwise(map(bare, e.factors)):
                if not (isinstance(a, Name) and isinstance(b, Name) and order_of(a, b)):
                    continue
                left, right = symbols.lookup(a)[1], symbols.lookup(b)[1]
                if left is None or right is None or left.cols != right.rows:
                    continue
                if left.rows != left.cols and VOCABULARY & {str(atom) for atom in left.cols}:
                    lines = ", ".join(map(str, sorted({left.line, right.line})))
                    return (
                        f"with the shapes of line {lines}, {latex(e)} sums over the vocabulary: "
                        "there weights act on the other side"
                    )
        return ""

    def _equality(self, item: Item, statement: Statement, k: int) -> Found:
        left, right = statement.terms[k], statement.terms[k + 1]
        source = item.formula.tex
        words = plain_words(self.document.sentence_before(item.formula))
        first = k == 0 and statement is item.statements[0]
        if k == 0 and isinstance(bare(left), Name) and _is_value(right):
            return Found("definition", "it is a value")
        sizes = self.context.symbols_at(item.line).sizes()
        if _size_name(left) in sizes or _size_name(right) in sizes:
            if (
                k == 0
                and isinstance(bare(left), Name)
                and latex(bare(left)) not in (self.context.definitions)
            ):
                self.context.define(bare(left), right, item.line)
                self.context.sizes.add(latex(bare(left)))
            return Found("definition", "it relates sizes")
        if k == 0 and self._defines(left, right, bool(first and DEFINING.search(words))):
            return self._definition(item, left, right)
        if (
            k == 0
            and isinstance(bare(right), Name)
            and self._is_new(right)
            and not (_occurs(bare(right), left))
        ):
            return self._definition(item, right, left)
        if first and ASSUMING.search(words) and not isinstance(bare(left), Name | Apply):
            shape = self.judge.shapes([left, right], item.line, source)
            return shape or Found("definition", "it is assumed")
        found = self.judge.claim(left, right, item.line, source)
        if k == 0 and found.verdict in ("undecided", "needs-hypothesis"):
            new = self._introduced(left, right)
            if new:
                self.introduced |= dict.fromkeys(new, item.line)
                given = Hypothesis(left, right, f"line {item.line}", declared=True)
                self.context.hypotheses.append(given)
                return Found("definition", f"it introduces {', '.join(new)}")
        if k == 0 and self._describes(left, right, item.line):
            given = Hypothesis(left, right, f"line {item.line}", declared=True)
            self.context.hypotheses.append(given)
            return Found("definition", "it says what a symbol is that was just introduced")
        known = self.context.definitions.get(latex(bare(left))) if k == 0 else None
        elsewhere = known is not None and not self.context.in_scope(known[0].line, item.line)
        if elsewhere and found.verdict != "proved":
            self.context.definitions.pop(latex(bare(left)))
            return self._definition(item, left, right)
        conditional = any(each.after for each in item.statements)
        if conditional and statement.after in CONDITIONS and found.verdict != "proved":
            return Found("definition", "it is a condition")
        if found.verdict == "refuted" and (conditional or CONDITIONAL.search(words)):
            return replace(found, verdict="undecided", why="it is false without the condition")
        if found.verdict == "refuted" and is_denied(words):
            return replace(
                found, verdict="undecided", why="it is false, and the sentence denies something"
            )
        if found.verdict == "shape" and k == 0 and self._is_other(left, right, item):
            return replace(found, verdict="undecided", why=f"{found.why}; it is defined otherwise")
        if found.verdict == "refuted" and k == 0 and self._redefines(left, right):
            return replace(found, verdict="undecided", why="it says otherwise than the definition")
        return found

    def _introduced(self, left: Node, right: Node) -> list[str]:
        r"""Return the symbols that an equation introduces, as `W = U \Sigma V^\top` does.

        The left side is one symbol, and no symbol of the right side was in an equation before.
        """
        name = bare(left)
        if isinstance(name, Power) and name.exponent == "T":
            name = bare(name.base)
        names = {e for e in walk(right) if isinstance(e, Name) and not is_constant(e)}
        new = sorted(latex(e) for e in names)
        fresh = all(is_matrix_like(e) and self._is_new(e) for e in names)
        return new if isinstance(name, Name) and len(new) > 1 and fresh else []

    def _describes(self, left: Node, right: Node, line: int) -> bool:
        """Return whether an equation with a constant is about symbols introduced just before it."""
        names = {latex(e) for e in walk(left) if isinstance(e, Name) and not is_constant(e)}
        near = {text for text, at in self.introduced.items() if 0 <= line - at <= SOON}
        return is_constant(right) and bool(names) and names <= near

    def _defines(self, left: Node, right: Node, announced: bool) -> bool:
        """Return whether an equation defines its left side: a symbol or a function, not met yet."""
        term = bare(left)
        if not isinstance(term, Name | Apply) or is_constant(term):
            return False
        if self.context.is_circular(term, right):
            return False
        if isinstance(term, Apply) and term.function.base in MEANT:
            return False
        if isinstance(term, Name) and any(s.kind == "number" and s.text != "1" for s in term.sup):
            symbols = self.context.symbols_at(1 << 30)
            if not (symbols.is_labelled(term) or key_of(term) in self.context.labelled):
                whole = replace(term, sup=())
                return self._is_new(whole) and symbols.lookup(whole)[1] is None
        if isinstance(term, Name) and len(term.base) > 2 and not term.sub and not term.sup:
            return latex(term) not in self.context.definitions
        known = self.context.definitions.get(latex(term))
        if known is not None and announced:
            self.context.definitions.pop(latex(term))
            known = None
        return known is None

    def _is_other(self, left: Node, right: Node, item: Item) -> bool:
        """Return whether a symbol is given a shape other than that which its definition showed."""
        learned = isinstance(bare(left), Name) and latex(bare(left)) in self.learned
        return learned and self.judge.shapes([right], item.line, item.formula.tex) is None

    def _is_new(self, node: Node) -> bool:
        text = latex(bare(node))
        return (
            text not in self.context.definitions and text not in self.seen and not is_constant(node)
        )

    def _redefines(self, left: Node, right: Node) -> bool:
        """Return whether an equation gives a symbol a meaning with other symbols than before."""
        known = self.context.definitions.get(latex(bare(left)))
        if not known:
            return False
        sides = (self.context.unfolded(side, {}) for side in (known[0].rhs, right))
        before, now = ({key_of(e) for e in walk(side) if isinstance(e, Name)} for side in sides)
        return len(before ^ now) > 1


def is_matrix_like(name: Name) -> bool:
    """Return whether a symbol is a capital, a Greek one included."""
    letter = name.base.lstrip("\\")
    return bool(letter) and letter[0].isupper() and (len(name.base) == 1 or name.base[0] == "\\")


def _occurs(term: Node, inside: Node) -> bool:
    text = latex(term)
    return any(latex(e) == text for e in walk(inside) if type(e) is type(term))


def _size_name(node: Node) -> str:
    name = bare(node)
    return text_of(name) if isinstance(name, Name) and not is_constant(name) else ""


def _is_value(node: Node) -> bool:
    """Return whether a term is made of numbers only: a value that a symbol is given."""
    names = (Name, Apply, Indexed)
    return not any(isinstance(e, names) for e in walk(node)) and not is_constant(node)


def _is_range(node: Node) -> bool:
    return isinstance(bare(node), Name | Number)


def _short(tex: str) -> str:
    text = " ".join(tex.split())
    return text if len(text) <= 50 else text[:49] + "…"


def _is_small(name: Name) -> bool:
    """Return whether a symbol is a small letter without indices."""
    return len(name.base) == 1 and name.base.islower() and not name.sub and not name.sup


def _is_vector(name: Name) -> bool:
    """Return whether a symbol without indices is a vector by the habits of the field."""
    known = default(name)
    return not name.sub and not name.sup and known is not None and known.kind == "vector"


def is_denied(words: str) -> bool:
    """Return whether the words before an equation say that it does not hold.

    >>> is_denied("It is not true that "), is_denied("They are not unique: for all R, ")
    (True, False)
    """
    return bool(WRONGLY.search(words) or NEGATED.search(re.split(r"[:;]", words)[-1]))


def _names_by_index(node: Node, symbols: Symbols) -> Iterator[Name]:
    """Yield the symbols that are declared with their indices, which are then names."""
    for e in walk(node):
        known = symbols.lookup(e)[1] if isinstance(e, Name) else None
        if isinstance(e, Name) and known is not None and known.full == full_key(e):
            yield e


def loose_indices(left: Node, right: Node) -> list[str]:
    """Return the small indices below symbols of a definition that its left side does not have.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (equation,) = parse_formula("c = a_{j} x_{u}")
    >>> loose_indices(*equation.terms)
    ['j', 'u']
    """
    if not isinstance(bare(left), Name):
        return []
    mine = set(re.findall(r"[a-z]", re.sub(r"\\[A-Za-z]+", "", latex(left))))
    bound = {index for e in walk(right) if isinstance(e, Indexed) for index in e.indices}
    found = []
    for e in walk(right):
        if isinstance(e, Name) and e.base != "d":
            for slot in e.sub:
                if slot.kind == "index":
                    letter = slot.text
                elif slot.kind == "label" and "_" in slot.text and "d_" not in slot.text:
                    letter = slot.text.rpartition("_")[2].strip("{}")
                else:
                    continue
                if len(letter) == 1 and letter.islower() and letter not in mine | bound:
                    found.append(letter)
    return sorted(set(found))
