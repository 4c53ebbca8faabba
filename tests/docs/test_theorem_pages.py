"""The pages of theorems: everything on them comes from the declaration and the evidence."""

import theorem_pages
from otimes.numeric.binding import AXES
from otimes.proofs.catalogue import catalogue, find
from otimes.proofs.evidence import DefinitionEvidence, ProofEvidence, Report
from otimes.proofs.exact import ExactEvidence
from otimes.proofs.mutants import MutantEvidence
from otimes.proofs.on_models import ModelEvidence
from tests.docs.reports import passed, report
from words import ARRAYS


def page(name, **evidence):
    (chapter,) = theorem_pages.numbered(Report((passed(name, **evidence),)))
    return theorem_pages.theorem_page(chapter.entries[0])


def test_a_page_says_it_all():
    text = page("head_is_kron")
    theorem = find("head_is_kron")
    assert text.startswith('# <span class="number">Theorem 3.1</span> A head is its pattern ⊗')
    assert r"\left(A \otimes W_{O} \, W_{V}\right)" in text
    assert "Column convention" in text
    assert r"A head works in three steps: it computes a value at every position $(" in text
    assert r"| $W_{O}$ | $d \times d_{\mathrm{head}}$ | output weights |" in text
    assert "Both sides have the same [normal form](../normal-form.md), 1 diagram." in text
    assert theorem.source in text
    assert ", ".join(theorem.covers) in text
    assert "40 examples" in text
    assert "21 refuted, 1 still true" in text
    assert (
        "| `two_layer` | $0.11$ | $3.1 \\times 10^{-14}$ | recorded z, layer = 1, head = 3 |"
        in text
    )
    assert "does not apply: the model has no heads" in text
    assert "- `swap factors: A \\| B = B \\| A`" in text
    assert "failed" not in text


def test_what_is_measured_is_called_so_and_has_no_symbols():
    seen = ProofEvidence("not seen", "2 of 3 <b> at $5")
    (chapter,) = theorem_pages.numbered(
        Report((passed("skip_trigrams_read_like_text", proof=seen, kind="observation"),))
    )
    text = theorem_pages.theorem_page(chapter.entries[0])
    assert text.startswith('# <span class="number">Observation 5.1</span>')
    assert "Criterion: " in text
    assert "## Symbols" not in text
    assert "<p>2 of 3 &lt;b&gt; at &#36;5</p>" in text


def test_what_no_model_has_is_given_no_meaning_there():
    assert "attention pattern" not in page("eckart_young")


def test_bad_news_is_on_the_page_and_in_the_log():
    bad = {
        "proof": ProofEvidence("refuted", "n = 2\nA = [[0, 1], [0, 0]]"),
        "exact": ExactEvidence(False, 3, "n = 1"),
        "models": (
            ModelEvidence("two_layer", True, False, 9e9, 0.0, "z", "error/bound 9e+09 at z"),
        ),
        "mutants": MutantEvidence(20, (), ("swap factors: undecided",), 0),
    }
    text = page("head_is_kron", **bad)
    assert '<span class="mark bad">refuted</span>' in text
    assert "```text\nn = 2\nA = [[0, 1], [0, 0]]\n```" in text
    assert "of the left side, then that of the right" in text
    assert "$9.0 \\times 10^{9}$" in text
    assert "Escaped" in text
    (line,) = theorem_pages.shortcomings(Report((passed("head_is_kron", **bad),)))
    assert "head_is_kron" in line
    assert theorem_pages.shortcomings(report("head_is_kron")) == []


def test_numbers_and_order_are_the_catalogue_s():
    names = [theorem.name for theorem in catalogue()]
    book = theorem_pages.numbered(report(*names))
    assert [e.theorem.name for chapter in book for e in chapter.entries] == names
    first, second = book[0].entries[:2]
    assert (first.number, second.number) == ("1.1", "1.2")
    nav = [{"Theorems": []}]
    theorem_pages.place_in(nav, book)
    index, chapter, *_ = nav[0]["Theorems"]
    assert index == "theorems/index.md"
    assert chapter["1 Tensor products and conventions"][0] == {
        "1.1 The entries of a Kronecker product": "theorems/kron_entry.md"
    }


def test_the_index_says_what_the_theorems_stand_on():
    found = DefinitionEvidence("two_layer", False, 7.0, "layer 1, head 2")
    bad = Report(report("head_is_kron").theorems, (found,))
    _, text = theorem_pages.pages(bad)[0]
    assert text.startswith("# Theorems\n\n1 theorem: 1 proved.")
    assert "| $7.00$ | layer = 1, head = 2 |" in text
    assert theorem_pages.shortcomings(bad) == [
        "the patterns recorded on two_layer are not the softmax of the scores"
    ]


def test_everything_on_a_model_has_words():
    assert ARRAYS.keys() == AXES.keys()


def test_entries_of_a_family_are_no_links():
    assert "[h]\\[i, j]" in page("head_direct_logit_is_sum_over_sources")
