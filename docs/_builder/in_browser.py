"""The part of a theorem's page where its reader runs the checker and the judge.

The certificate is replayed by the checker, as it is or changed, and the claim can be edited in the
notation of `otimes prove`. assets/judge/judge.js brings the two blocks to life.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.latex import latex
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.verdict import decide
from otimes.algebra.written import Written, reads_back, written
from otimes.proofs import replay
from otimes.proofs.claims import NonIdentity, Statement, equations
from otimes.proofs.theorem import Theorem
from packed import packed

ANSWER = '<div class="judge-answer" role="status" aria-live="polite"></div>'

ACROSS, MOST_LINES = 64, 8
"""Characters of an equation that fit on a line of its field, and the lines of a field at most."""

INTRODUCTION = (
    "These run in your browser: the first question loads about 30 MB, later answers take less than"
    " a second. Nothing is sent anywhere."
)


def text(theorem: Theorem) -> str:
    """Return the section of a theorem's page, as Markdown; empty if there is nothing to run."""
    parts = list(filter(None, [certificate(theorem), claim(theorem)]))
    return "\n\n".join(["## Check it here", INTRODUCTION, *parts]) if parts else ""


# -- the certificate -------------------------------------------------------------------------------


def certificate(theorem: Theorem) -> str:
    """Return the block in which the certificate of an equation is replayed; empty without one."""
    stated = theorem.claim()
    if not isinstance(stated, Statement) or stated.lhs == stated.rhs:
        return ""
    made = decide(stated.lhs, stated.rhs, equations(stated.given)).certificate
    if made is None:
        return ""
    shown = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
    button = ""
    if (found := damaged(json.loads(shown))) is not None:
        what, wrong = found
        side = next(side for side in ("lhs", "rhs") if wrong[side] != made[side])
        tree = json.dumps(wrong[side], ensure_ascii=False, separators=(",", ":"))
        button = (
            f'<button type="button" class="ask damage" data-side="{side}"'
            f' data-tree="{escape(tree)}">Check it with {what}</button>'
        )
    return (
        '<div class="judge" data-kind="certificate" data-search-exclude>'
        '<p class="judge-title">The proof</p>'
        '<p><button type="button" class="ask check">Check this proof here</button>'
        f"{button}</p>{ANSWER}"
        f"<details><summary>The certificate ({len(shown) / 1000:.1f} kB): change it as you like"
        "</summary>"
        f'<textarea aria-label="certificate" spellcheck="false" rows="8"'
        f' data-packed="{packed(shown)}"></textarea>'
        '<p><button type="button" class="ask edited">Check what is written here</button></p>'
        "</details></div>"
    )


def damaged(made: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Return a certificate with its claim made false, and how; one that the checker rejects."""
    for what, change in DAMAGES:
        for side, name in (("rhs", "right"), ("lhs", "left")):
            wrong = copy.deepcopy(made)
            wrong[side] = change(wrong[side])
            if wrong[side] is not None and _rejected(wrong):
                return what.format(f"the {name} side"), wrong
    return None


def _rejected(wrong: dict[str, Any]) -> bool:
    """Return whether the checker rejects a claim, and not only its form or its sizes."""
    try:
        replay.check(wrong)
    except replay.Rejected as why:
        return not re.search("not in the form|sizes do not fit", str(why))
    return False


def _swapped(tree: Any) -> Any:
    """Return a tree with two factors of its first product exchanged, or None."""
    for node in _nodes(tree):
        if node[0] in ("KroneckerProduct", "MatMul") and len(node) > 2 and node[1] != node[2]:
            node[1], node[2] = node[2], node[1]
            return tree
    return None


def _doubled(tree: Any) -> Any:
    return ["MatAdd", tree, copy.deepcopy(tree)]


def _doubled_number(tree: Any) -> Any:
    return ["Add", tree, copy.deepcopy(tree)]


def _nodes(tree: Any) -> Iterator[list[Any]]:
    if isinstance(tree, list) and tree and isinstance(tree[0], str):
        yield tree
        for child in tree[1:]:
            yield from _nodes(child)


DAMAGES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("two factors of {} exchanged", _swapped),
    ("{} doubled", _doubled),
    ("{} doubled", _doubled_number),
)


# -- the claim -------------------------------------------------------------------------------------


def claim(theorem: Theorem) -> str:
    """Return the block in which the claim is edited and decided; empty where it cannot be typed."""
    found = typed(theorem)
    if found is None:
        return ""
    equation, shapes, given = found
    rows = len(given)
    lines = min(max(2, -(-len(equation) // ACROSS)), MOST_LINES)
    hypotheses = (
        f'<label>where, one equation a line<textarea name="given" spellcheck="false" rows="{rows}">'
        f"{escape(chr(10).join(given))}</textarea></label>"
        if given
        else ""
    )
    return (
        '<div class="judge" data-kind="claim" data-search-exclude>'
        '<p class="judge-title">Change the claim</p>'
        '<form><label>the equation<textarea name="equation" spellcheck="false"'
        f' rows="{lines}">'
        f"{escape(equation)}</textarea></label>"
        '<label>shapes: rows and columns<textarea name="shapes" spellcheck="false" rows="1">'
        f"{escape(shapes)}</textarea></label>{hypotheses}"
        '<p><button class="ask">Prove or refute</button>'
        '<button type="button" class="reset">Undo my changes</button></p></form>'
        f"{ANSWER}</div>"
    )


def typed(theorem: Theorem) -> tuple[str, str, list[str]] | None:
    """Return a claim in the notation of `otimes prove`: equation, shapes and hypotheses.

    None where the notation cannot say the same.
    """
    stated = theorem.claim()
    if not isinstance(stated, Statement | NonIdentity):
        return None
    pairs = list(equations(stated.given))
    for printer in (unicode_text, _plain_tex, latex):
        try:
            text = written(stated.lhs, stated.rhs, pairs, printer)
            same = reads_back(text, stated.lhs, stated.rhs, pairs)
        except (OtimesError, ValueError):
            continue
        if same and _is_decided(stated, text):
            return text.equation, text.shapes, text.given
    return None


def _plain_tex(expression: Any) -> str:
    """Return TeX without the marks that only space it and size its brackets."""
    tex = re.sub(r"\\(?:left|right)(?=[()\[\]])|\\[!,]", "", str(latex(expression)))
    return re.sub(r"_\{(\w)\}", r"_\1", re.sub(r" +", " ", tex))


def _is_decided(stated: Any, text: Written) -> bool:
    """Return whether the text of a claim is decided as the claim is."""
    status = decide(text.equation, given=text.given, shapes=text.shapes).status
    return status == ("proved" if isinstance(stated, Statement) else "refuted")
