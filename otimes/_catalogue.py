"""The implementation of `otimes list` and `otimes search`: the catalogue as data, from the cache.

Importing the catalogue and printing its statements takes seconds; what is kept of it takes none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from otimes.proofs.cache import Cache
    from otimes.proofs.theorem import Theorem

SYNONYMS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("rope", "rotary"), ("rotation", "rotate")),
    (("fold", "absorb", "merge", "fuse"), ()),
    (("shift", "translate", "translation"), ("constant", "offset")),
    (("layernorm", "layer norm", "ln"), ()),
    (("rmsnorm", "rms norm", "rms"), ()),
    (("norm", "normalise", "normalize", "normalisation", "normalization"), ()),
    (("center", "centre"), ("mean", "subtract")),
    (("pattern", "attention weight"), ("probability",)),
    (("mlp", "feed forward", "ffn"), ("neuron",)),
    (("mixed product", "kron mul kron"), ()),
    (("kronecker", "kron", "tensor product"), ()),
    (("vectorise", "vectorize", "vec", "flatten"), ()),
    (("embedding", "embed"), ()),
    (("unembedding", "unembed"), ("readout",)),
    (("ov", "ov circuit"), ()),
    (("qk", "qk circuit"), ()),
    (("gqa", "grouped query", "grouped", "group"), ()),
    (("mla", "latent"), ()),
    (("moe", "expert", "router"), ()),
    (("kv cache", "cache"), ()),
    (("gauge",), ("basis", "symmetry", "invariant", "invariance")),
    (("logit difference", "logit margin"), ()),
    (("shapley", "share"), ()),
    (("eigenvalue", "spectrum"), ()),
    (("svd", "singular"), ()),
    (("sae", "autoencoder"), ("feature", "dictionary")),
    (("patch", "intervene", "intervention"), ("ablate", "ablation")),
    (("inverse", "pseudo inverse"), ()),
    (("trace", "tr"), ()),
    (("transpose", "transposed"), ()),
)
"""Words of the field that mean the same, and words that are related to them."""

ENDINGS = ("eness", "ness", "ations", "ation", "ings", "ing", "ies", "es", "ed", "s", "e", "y")
NAME, REST = 10, 2
"""The weights of a word in the name or title, and elsewhere; a related word has half of them."""


class Term(NamedTuple):
    """A word of a query with its synonyms, and the words that are related to it, as stems."""

    same: tuple[str, ...]
    related: tuple[str, ...] = ()


def index(cache: Cache) -> list[dict[str, Any]]:
    """Return the entries of the catalogue as data, in reading order."""
    key = cache.key("index")
    kept = cache.load(key)
    if kept is None:
        kept = {"theorems": [*_entries()]}
        cache.store(key, kept)
    found: list[dict[str, Any]] = kept["theorems"]
    return found


def _entries() -> Iterator[dict[str, Any]]:
    from otimes.proofs.catalogue import CHAPTERS, catalogue

    for theorem in catalogue():
        yield {**entry(theorem), "chapter_title": CHAPTERS[theorem.chapter][0]}


def entry(theorem: Theorem) -> dict[str, Any]:
    """Return a theorem as data."""
    from otimes.algebra.errors import OtimesError

    try:
        kind, text, tex = theorem.claim().kind, theorem.text(), theorem.latex()
    except OtimesError as error:
        kind, text, tex = "error", str(error), ""
    return {
        "name": theorem.name,
        "title": theorem.title,
        "kind": kind,
        "chapter": theorem.chapter,
        "convention": theorem.convention,
        "source": theorem.source,
        "text": text,
        "latex": tex,
        "prose": theorem.prose,
        "module": theorem.state.__module__,
    }


def matches(keyword: str, entry: Mapping[str, Any]) -> bool:
    """Return whether an expression of words matches the name or the title; see `selection`."""
    from otimes.proofs.keywords import matches

    return matches(keyword, f"{entry['name']} {entry['title']}")


def search(entries: Iterable[dict[str, Any]], words: Iterable[str]) -> list[dict[str, Any]]:
    """Return the entries that the words are about, the best first.

    An entry must contain each word, or a synonym of it, in some form; if none contains all, those
    with most of them are returned. Words in the name or title count more, and rare words more; of
    two that are as good, the one whose name begins with one of them comes first.
    """
    asked = _terms(" ".join(words))
    every = list(entries)
    if not asked or not every:
        return []
    headings = [_text(f"{entry['name']} {entry['title']}") for entry in every]
    rest = [_text(f"{entry['text']} {entry['prose']} {entry['source']}") for entry in every]
    points = [
        [_points(term, *texts) for texts in zip(headings, rest, strict=True)] for term in asked
    ]
    rarity = [log(1 + len(every) / (1 + sum(each > REST for each in row))) for row in points]
    scored = []
    for place, each in enumerate(zip(*points, strict=True)):
        score = sum(weight * value for weight, value in zip(rarity, each, strict=True))
        name = _text(every[place]["name"])
        begins = any(name.startswith(f" {form} ") for term in asked for form in term.same)
        scored.append((sum(value > 0 for value in each), score, begins, -place))
    most = max(matched for matched, *_ in scored)
    best = sorted((each for each in scored if each[0] == most and most), reverse=True)
    return [every[-place] for *_, place in best]


def _points(term: Term, heading: str, rest: str) -> int:
    """Return how well a text matches a term; a short stem matches whole words only."""

    def weight(text: str) -> int:
        within = [any(_begun(form) in text for form in forms) for forms in term]
        return 2 if within[0] else int(within[1])

    return (NAME * weight(heading) or REST * weight(rest)) // 2


def _begun(stem: str) -> str:
    return f" {stem} " if len(stem) < 4 else f" {stem}"


def _terms(query: str) -> list[Term]:
    """Return the terms of a query.

    >>> _terms("RoPE")
    [Term(same=('rop', 'rotar'), related=('rot', 'rotat'))]
    """
    text = _text(query)
    found: list[Term] = []
    for group in SYNONYMS:
        same, related = [
            list(dict.fromkeys(_text(each).strip() for each in words)) for words in group
        ]
        for stem in sorted([*same, *related], key=len, reverse=True):
            if f" {stem} " in text:
                near = same if stem in same else [stem]
                far = [one for one in (*same, *related) if one not in near]
                found.append(Term(tuple(near), tuple(far)))
                text = text.replace(f" {stem} ", " ")
    others = [word for word in text.split() if word not in ("of", "the", "a", "is", "in")]
    return found + [Term((word,)) for word in others]


@lru_cache(maxsize=4096)
def _text(text: str) -> str:
    """Return the stems of the words of a text, with spaces around each."""
    words = re.findall(r"[^\W_]+", text.lower())
    return f" {' '.join(map(_stem, words))} "


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def lines(entries: Iterable[dict[str, Any]], width: int, chapters: bool = False) -> Iterator[str]:
    """Yield the entries as lines: name and title, and below it the statement where it fits."""
    chapter = None
    for entry in entries:
        if chapters and entry["chapter"] != chapter:
            chapter = entry["chapter"]
            yield f"\n{chapter} {entry['chapter_title']}"
        yield f"  {entry['name']}: {entry['title']}"
        statement = " ".join(entry["text"].split())
        if statement and not chapters:
            yield "      " + (
                statement if len(statement) <= width - 6 else f"{statement[: width - 7]}…"
            )
