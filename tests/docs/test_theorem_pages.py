"""The pages of theorems: everything on them comes from the declaration and the evidence."""

import base64
import gzip
import html
import json
import re
from pathlib import Path

import pytest

import chains
import glossary
import minified
import packed
import references
import relations
import search_entries
import symbols
import theorem_pages
from otimes.algebra.verdict import decide
from otimes.numeric.binding import AXES
from otimes.proofs.catalogue import catalogue, find
from otimes.proofs.evidence import Check, DefinitionEvidence, ProofEvidence, Report
from otimes.proofs.exact import ExactEvidence
from otimes.proofs.mutants import MutantEvidence
from otimes.proofs.on_models import ModelEvidence
from tests.docs.reports import passed, report
from words import ARRAYS


def page(name, **evidence):
    _, (_, text), _ = theorem_pages.pages(Report((passed(name, **evidence),)))
    return text


def test_a_page_says_it_all():
    text = page("head_is_kron")
    theorem = find("head_is_kron")
    assert text.startswith('# <span class="number">Theorem 3.1</span> A head is its pattern ⊗')
    assert r"\left(A \otimes W_{O} \, W_{V}\right)" in text
    assert "Column convention" in text
    assert r"A head works in three steps: it computes a value at every position $(" in text
    assert r"| $W_{O}$ | $d \times d_{\mathrm{head}}$ | output weights |" in text
    assert "<figcaption>Both sides, 1 diagram</figcaption>" in text
    assert 'aria-label="one diagram of A, W_O, W_V, X"' in text
    assert "einsum('bc,ad,ce,de->ab', W_O, A, W_V, X)" in text
    assert 'by <a href="../rules.html#kron_mul_kron" title="(A ⊗ B) (C ⊗ D) = A C ⊗ B D">' in text
    assert "<summary>Every step, with the equations of the rules: " in text
    assert theorem.source in text
    assert not any(item in text for item in theorem.covers)  # no reader has their list
    assert "40 examples" in text
    assert "21 damaged versions of the equation refuted; 1 more say the same" in text
    assert "https://transformer-circuits.pub/2021/framework/index.html" in text
    assert "@misc{elhage2021mathematical," in text
    assert "otimes verify head_is_kron" in text
    assert "| `two_layer` | 0.11 | 3.1 × 10⁻¹⁴ | recorded z, layer = 1, head = 3 |" in text
    assert "does not apply: the model has no heads" in text
    assert "- `swap factors: A \\| B = B \\| A`" in text
    assert "failed" not in text


def _asked(text):
    """Return the claims of the exercises on a page, with what their solutions say."""
    found = re.findall(r'data-exercise="([^"]*)"', text)
    truths = re.findall(r"<summary>Solution</summary>\n\n(True|False)", text)
    return list(zip([json.loads(html.unescape(each)) for each in found], truths, strict=True))


def _verdict(asked):
    given = asked.get("given", "").split("\n") if asked.get("given") else ()
    return decide(asked["equation"], given=given, shapes=asked["shapes"]).status


@pytest.mark.parametrize(
    "name",
    [
        "head_is_kron",
        "kron_mul_kron",  # factors in another order fit for square matrices only
        "heads_compose",
    ],
)
def test_an_edited_claim_is_judged_as_its_solution_says(name):
    asked = _asked(page(name))
    assert {truth for _, truth in asked} == {"True", "False"}
    for each, truth in asked:
        assert _verdict(each) == {"True": "proved", "False": "refuted"}[truth]


def test_a_mutant_that_says_the_same_is_the_true_one():
    same = "swap factors, left side: (A ⊗ I_d_head) (I_n ⊗ W_O) (I_n ⊗ W_V) vec_rows(X)"
    text = page("head_is_kron", mutants=MutantEvidence(21, (same,), (), 0))
    (each,) = [each for each, truth in _asked(text) if truth == "True"]
    assert each["equation"].startswith("(A ⊗ I_s) (I_s ⊗ W_O) (I_s ⊗ W_V) vec_rows(X) = ")
    assert "True, although two factors have changed places" in text
    assert _verdict(each) == "proved"


def test_a_claim_that_is_hard_to_judge_by_eye_has_no_exercise():
    assert not _asked(page("gpt2_path_sum"))


def test_what_is_measured_is_called_so_and_has_no_symbols():
    seen = ProofEvidence("not seen", "of 3, 2 `<b>` at $5 (criterion: f(x) > 2); 0 of 20")
    text = page("skip_trigrams_read_like_text", proof=seen, kind="observation")
    assert text.startswith('# <span class="number">Observation 5.1</span>')
    assert "Criterion: " in text
    assert "## Symbols" not in text
    assert "<p>Of 3, 2 <code>&lt;b&gt;</code> at &#36;5; 0 of 20.</p>" in text
    assert "convention" not in text


def test_what_a_method_rests_on_is_linked_and_its_box_left_out():
    called = MutantEvidence(3, ("another head",), (), 0)
    rests = (Check("rests on kron_mul_kron", True, ""), Check("tight", True, "1 and 1 at n = 1"))
    checked = ProofEvidence("checked", "ot.SAE, by kron_mul_kron")
    text = page("sae_method", proof=checked, kind="method", mutants=called, more=rests)
    assert "3 wrong arguments noticed, such as another head or layer; 1 more change" in text
    assert "it rests on [`kron_mul_kron`](kron_mul_kron.md)." in text
    assert "it is tight: there are numbers at which both sides are equal." in text
    assert 'class="statement"' not in text


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
    assert "The left side, 1 diagram" in text
    assert "The right side, 1 diagram" in text
    assert "9.0 × 10⁹" in text
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
    listed, topic, *_ = chapter["1 Tensor products and conventions"]
    assert listed == "theorems/chapter-1/index.md"
    assert topic["Products"][0] == {
        "1.1 The entries of a Kronecker product": "theorems/kron_entry.md"
    }


def test_a_chapter_lists_its_entries_with_their_claims():
    text = dict(theorem_pages.pages(report("head_is_kron")))["theorems/chapter-3/index.md"]
    assert text.startswith("# 3 The attention head\n\n**3.1** [A head is its pattern ⊗ its OV")
    assert "](../head_is_kron.md)" in text
    assert "`(I_n ⊗ W_O) (A ⊗ I_d_head) (I_n ⊗ W_V) vec_rows(X) = " in text


def test_the_index_says_what_the_theorems_stand_on():
    found = DefinitionEvidence("two_layer", False, 7.0, "layer 1, head 2")
    bad = Report(report("head_is_kron").theorems, (found,))
    _, text = theorem_pages.pages(bad)[0]
    assert text.startswith("# Theorems\n\n1 theorem: 1 proved.")
    assert "| 7.00 | layer = 1, head = 2 |" in text
    assert theorem_pages.shortcomings(bad) == [
        "the patterns recorded on two_layer are not the softmax of the scores"
    ]


def test_everything_on_a_model_has_words():
    assert ARRAYS.keys() == AXES.keys()


def test_equations_of_rules_are_no_markdown():
    folded = page("head_direct_logit_is_sum_over_sources").partition(packed.OPENS)[2]
    assert "entry_head_sum: Σ_h A[h][i, j] = (Σ_h A[h])[i, j]" in folded.partition("</pre>")[0]


def test_what_is_not_true_by_design_is_no_bad_news():
    text = page("ov_order_matters", proof=ProofEvidence("fails", "n = 1"), kind="counterexample")
    assert '<span class="mark good">Shown to be false</span>: this equation is listed' in text
    assert "mark bad" not in text


def test_what_follows_from_an_entry_is_named_in_its_text_and_not_used_by_it():
    named = report("kron_mul_kron", "head_is_kron").theorems
    assert "`head_is_kron`" in named[0].theorem.prose
    found = relations.graph(named, {"head_is_kron": ["kron_mul_kron"]})
    assert found.uses == {"kron_mul_kron": (), "head_is_kron": ("kron_mul_kron",)}


def test_uses_are_linked_in_both_directions():
    by_name = dict(theorem_pages.pages(report("kron_mul_kron", "head_is_kron")))
    title = "Kronecker products multiply factor by factor (the mixed-product property)"
    assert f"Uses\n:   1.1 [{title}](kron_mul_kron.md)" in by_name["theorems/head_is_kron.md"]
    assert "Used by\n:   3.1 [A head is its pattern" in by_name["theorems/kron_mul_kron.md"]
    assert "[On the map](../map.md#head_is_kron)" in by_name["theorems/head_is_kron.md"]


def test_a_long_derivation_is_shortened_and_ends_where_it_ends():
    lines = [{"tex": "x" * k, "rules": {f"r{k}": 1}, "moves": k % 2 == 0} for k in range(1, 20)]
    short = chains.shortened(lines)
    assert len(short) <= chains.MOST_LINES
    assert short[-1]["tex"] == lines[-1]["tex"]
    assert {rule for line in short for rule in line["rules"]} == {f"r{k}" for k in range(1, 20)}
    assert lines[0]["rules"] == {"r1": 1}


def test_what_is_folded_unpacks_to_itself():
    inside = "<pre>" + "".join(f"{k} ⊗ " for k in range(900)) + "</pre>"
    html = packed.fold(f"a {packed.OPENS}\n{inside}\n{packed.CLOSES} b")
    assert len(html) < len(inside)
    held = re.search('data-packed="([^"]*)"', html).group(1)
    assert gzip.decompress(base64.b64decode(held)).decode() == inside
    assert packed.fold(f"{packed.OPENS}short{packed.CLOSES}") == "short"


def test_terms_of_the_glossary_lead_to_entries_and_lessons():
    names = {theorem.name for theorem in catalogue()}
    learn = {path.stem for path in (Path(glossary.__file__).parents[1] / "learn").glob("*.md")}
    assert len(glossary.TERMS) >= 60
    assert len({term.anchor for term in glossary.TERMS}) == len(glossary.TERMS)
    for term in glossary.TERMS:
        assert set(term.entries) <= names, term.name
        assert set(term.lessons) <= learn, term.name
        assert not re.search(r"[\\$`]", term.plain), term.plain
        assert len(re.findall(r"[.?](?= [A-Z]|$)", term.meaning)) <= 3, term.name


def test_the_first_occurrence_of_a_term_is_linked():
    text = (
        '<h2>A logit</h2><p title="a > softmax">Logits, <code>softmax</code>, <a href="x">an'
        " embedding</a> and logits.</p><p>K-composition; recomposition; previous-token\nheads</p>"
        '<h2 id="source">Source</h2><p>Superposition</p>'
    )
    html = glossary.linked(text, "theorems/chapter-3/index.html")
    found = re.findall(r'<a class="term" href="([^"]*)">([^<]*)</a>', html)
    assert found == [
        ("../../glossary.html#logit", "Logits"),
        ("../../glossary.html#k-composition", "K-composition"),
        ("../../glossary.html#previous-token-head", "previous-token\nheads"),
    ]
    assert re.sub('<a class="term"[^>]*>(.*?)</a>', r"\1", html, flags=re.DOTALL) == text
    own = '<dt><span id="logit"></span>Logit</dt><dd>A logit: see softmax</dd>'
    assert glossary.linked(own, "glossary.html").count('href="#softmax"') == 1
    assert "#logit" not in glossary.linked(own, "glossary.html")


def test_papers_that_are_cited_are_linked():
    sources = [theorem.source for theorem in catalogue()]
    unused = [p.title for p in references.PAPERS if not any(map(p.cited_in, sources))]
    assert not unused
    assert sum(any(references.cited(source)) for source in sources) > 0.8 * len(sources)


def test_search_knows_what_words_mean_the_same():
    found = search_entries.entry("3.1", find("rotary_scores_by_distance"), "The attention head")
    assert "rope" in found["text"].lower()
    assert found["location"] == "theorems/rotary_scores_by_distance.html"
    assert len(json.dumps(found)) < 2_500


def test_a_minified_page_keeps_what_is_shown():
    html = (
        '<div class="x" title="y z">\n  <p>a <b>b</b>\n c</p>\n\n'
        "<pre>x\n  y</pre>  <button>d</button> <i>e</i></div>"
    )
    short = (
        '<div class=x title="y z"><p>a <b>b</b> c</p>'
        "<pre>x\n  y</pre> <button>d</button> <i>e</i></div>"
    )
    assert minified.page(html) == short


def test_the_table_of_symbols_has_what_is_stated_and_says_what_is_arbitrary():
    """Symbols that only tie a claim to recorded activations are in no formula of its page."""
    memory = symbols.text(find("key_value_memory"))
    assert "$K$" in memory
    assert "b_{" not in memory
    assert "any; tried with: gain of the final norm" in symbols.text(
        find("common_column_keeps_probabilities")
    )
    assert symbols.text(find("looking_back_scores_one")).startswith("Notation:")  # no empty table
    assert "d$, $R$ of them" in symbols.text(find("edge_patching_sums_to_node_patching"))


def test_a_hypothesis_is_named_once_where_it_is_used():
    line = {"tex": "x", "idea": "hypothesis 1, transpose", "rules": {"given_1": 1}, "moves": False}
    assert chains._shown(line).startswith("transpose, by hypothesis 1\n")
    alone = {**line, "idea": "hypothesis 1"}
    assert chains._shown(alone).startswith("by hypothesis 1\n")


def test_an_observation_that_was_measured_is_no_law_of_errors():
    proof = ProofEvidence("measured", "99 %")
    said = page("grokking_seen", proof=proof, kind="observation")
    assert "measured on the networks that the text names" in said
    assert "stated power" not in said


def test_entries_that_prose_names_are_linked_by_their_number():
    listed = Report((passed("k_composition_term"), passed("trained_induction_is_k_composition")))
    text = dict(theorem_pages.pages(listed))["theorems/trained_induction_is_k_composition.md"]
    assert '[Theorem 6.1](k_composition_term.md "The K-composition term of a score")' in text
    assert "`k_composition_term`" not in text.partition("## Code to run")[0]
    assert theorem_pages.named("`W_Q` and `nothing`", {}) == "`W_Q` and `nothing`"
