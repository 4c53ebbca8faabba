"""Exercises: what the judge answers, and which exercises stop a build."""

import doctest
import io
import json
import tarfile

import pytest

pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")

import answers
import exercises
import glossary
import in_browser
import judge_files
import lessons
import links
import pyodide
import search_entries
import typed
from otimes.proofs import replay
from otimes.proofs.catalogue import find


def asked(**request):
    return json.loads(answers.answer(json.dumps(request)))


TRANSPOSE = {"do": "exercise", "left": "(A B)ᵀ", "without": [[r"\(", "without brackets"]]}


def test_a_right_answer_is_proved_with_its_steps_and_its_certificate_replayed():
    found = asked(**TRANSPOSE, answer="Bᵀ Aᵀ")
    assert found["status"] == "proved"
    assert [line["rule"] for line in found["steps"]["lines"]] == ["transpose_mul"]
    assert found["replayed"]["accepted"]


def test_a_wrong_answer_is_refuted_by_matrices_of_at_most_two_rows():
    found = asked(**TRANSPOSE, answer="Aᵀ Bᵀ", shapes="A: n n, B: n n")
    assert found["status"] == "refuted"
    shown = found["counterexample"]
    assert {each["name"] for each in shown["matrices"]} == {"A", "B"}
    (left, right), (i, j) = shown["sides"], shown["entry"]
    assert left["rows"][i][j] == shown["left"] != shown["right"] == right["rows"][i][j]
    assert max(len(each["rows"]) for each in shown["matrices"]) <= 2


def test_sides_are_shown_as_they_were_typed():
    found = asked(do="decide", equation="rotation(i + 1) q = q", shapes="i: scalar, q: 2 1")
    assert found["reading"] == "rotation(i + 1) q = q"
    sides = [side["name"] for side in found["counterexample"]["sides"]]
    assert sides == ["rotation(i + 1) q", "q"]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("", "type the right side"),
        ("(A B)ᵀ", "without brackets"),
        ("X = Bᵀ Aᵀ", "without the equals sign"),
        ("Bᵀ +", "the formula ends too early"),
    ],
)
def test_what_is_no_answer_is_said(said, error):
    assert error in asked(**TRANSPOSE, answer=said)["error"]


def test_a_family_of_matrices_is_shown_one_by_one():
    said = [*answers._matrices("W", [[["1"]], [["2"]]])]
    assert said == [{"name": "W[0]", "rows": [["1"]]}, {"name": "W[1]", "rows": [["2"]]}]


EXERCISE = {
    "question": "?",
    "left": "(A B)ᵀ",
    "answer": "Bᵀ Aᵀ",
    "wrong": ["A B"],
    "hints": ["h"],
    "solution": "s",
}


def test_an_exercise_is_a_form_with_its_hints_and_its_solution():
    text = exercises.exercise(EXERCISE, 3)
    assert "Exercise 3" in text
    assert text.index("Hint 1") < text.index("Solution")
    assert "Bᵀ Aᵀ" not in text  # what the judge finds out need not be in the page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "Aᵀ Bᵀ"}, "does not accept"),
        ({"wrong": ["Bᵀ Aᵀ"]}, "accepts 'Bᵀ Aᵀ', which is listed as wrong"),
        ({"wrong": ["A +"]}, "no wrong answer is refuted"),
        ({"claim": "A B = B A", "is": "proved", "left": None}, "refuted, and not proved"),
    ],
)
def test_a_build_stops_where_the_judge_and_the_author_differ(change, message):
    said = {key: value for key, value in {**EXERCISE, **change}.items() if value is not None}
    with pytest.raises(ValueError, match=message):
        exercises.exercise(said, 1)


def test_a_number_that_nothing_computes_stops_a_build():
    with pytest.raises(Exception, match="no number or figure is called 'nothing'"):
        lessons.made("{{nothing}}", "learn/heads.md")


@pytest.mark.parametrize("name", ["kron_mul_kron", "heads_concat_is_sum", "two_layer_paths"])
def test_a_damaged_certificate_has_a_false_claim_and_is_rejected(name):
    stated = find(name).claim()
    made = answers.decide(stated.lhs, stated.rhs, stated.given).certificate
    what, wrong = in_browser.damaged(json.loads(json.dumps(made)))
    assert "side" in what
    assert asked(do="replay", certificate=json.dumps(made))["accepted"]
    assert not asked(do="replay", certificate=json.dumps(wrong))["accepted"]
    with pytest.raises(replay.Rejected):
        replay.check(wrong)


def test_the_claim_of_a_theorem_is_typed_as_it_is_read():
    assert in_browser.typed(find("kron_mul_kron"))[0] == "(A ⊗ B) (C ⊗ D) = A C ⊗ B D"
    equation, shapes, given = in_browser.typed(find("head_is_kron"))
    assert asked(do="decide", equation=equation, shapes=shapes)["status"] == "proved"
    assert given == []


def test_another_archive_than_the_expected_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pyodide, "FOLDER", tmp_path / "pyodide")
    archive = tmp_path / "archive.tgz"
    with tarfile.open(archive, "w:gz") as out:
        member = tarfile.TarInfo("package/pyodide.mjs")
        member.size = 1
        out.addfile(member, io.BytesIO(b"!"))
    with pytest.raises(ValueError, match=r"SHA-256 .* is expected: it is not used"):
        pyodide.unpack(archive)
    assert not pyodide.there()


HEAD = {
    "do": "exercise",
    "left": "A (X W_V + 𝟏 b) W_O",
    "shapes": "A: n n, X: n d, W_V: d k, W_O: k d, b: 1 k",
    "given": "A 𝟏 = 𝟏",
}


@pytest.mark.parametrize(
    "said",
    [
        "AXW_VW_O + 𝟏bW_O",
        "= A @ X @ W_V @ W_O + 1 b W_O",
        "A (X W_V + 𝟏 b) W_O = A*X*W_V*W_O + 𝟏 b W_O",
        r"A X W_V W_O + \mathbf{1} b W_O",
        r"A X (W_O^{\top} W_V')' + 𝟏 b W_O",
        r"$A X W_V W_O + \mathbf{1} b W_O$",
        "A X transpose(W_O.T W_V.T) + ones b W_O",
    ],
)
def test_ways_to_type_an_answer(said):
    assert asked(**HEAD, answer=said)["status"] == "proved"
    assert asked(**HEAD, answer=f"{said} + 𝟏 b W_O")["status"] == "refuted"


@pytest.mark.parametrize(
    ("left", "shapes", "right", "wrong"),
    [
        ("(I + G)(I + H)", "G: m m, H: m m", "1 + G + H + GH", "1 + G + H + HG"),
        ("vec_rows(A X Wᵀ)", "A: n n, X: n n, W: n n", "np.kron(A, W) @ vec_rows(X)",
         "kron(A, W.T) vec_rows(X)"),
        ("(X P)(X Q)ᵀ", "X: n d, P: d k, Q: d k", "X @ P @ Q.T @ X.T", "X Q P^TX^T"),
        ("rotation(i)ᵀ rotation(j)", "i: scalar, j: scalar", "R_{j - i}", "R_{i - j}"),
        ("(I + B ⊗ W)(I + A ⊗ V)", "A: n n, B: n n, V: d d, W: d d",
         "I_{nd} + A ⊗ V + B ⊗ W + BA ⊗ WV", "I_{nd} + A ⊗ V + B ⊗ W + AB ⊗ WV"),
        ("relu(X) W_V", "X: n d, W_V: d k", "ReLU(X) W_{V}", "ReLU(X W_{V})"),
    ],
)  # fmt: skip
def test_other_notations_are_read(left, shapes, right, wrong):
    exercise = {"do": "exercise", "left": left, "shapes": shapes}
    assert asked(**exercise, answer=right)["status"] == "proved"
    assert asked(**exercise, answer=wrong)["status"] == "refuted"


def test_a_name_of_no_matrix_of_the_exercise_is_not_refuted():
    error = asked(**HEAD, answer="A X WV WO + 𝟏 b W_O")["error"]
    assert error == "there is no WV in this exercise, only A, W_O, W_V, X, b, 𝟏"


def test_a_function_without_brackets_is_asked_for_them():
    error = asked(do="exercise", left="softmax(S + c 𝟏ᵀ)", shapes="S: n m, c: n 1",
                  answer="softmax S")["error"]  # fmt: skip
    assert error == "write what softmax is applied to in brackets: softmax(…)"


@pytest.mark.parametrize(
    ("answer", "reading"),
    [
        (HEAD | {"answer": "A X W_V W_O + 1 b W_O"}, "A (X W_V + 𝟏 b) W_O = A X W_V W_O + 𝟏 b W_O"),
        ({"left": "(X - H) U", "shapes": "X: n d, H: n d, U: d v", "answer": "XU - HU"},
         "(X - H) U = X U - H U"),
        ({"left": "rotation(i)ᵀ rotation(j)", "shapes": "i: scalar, j: scalar",
          "answer": "R(j - i)"}, "rotation(i)ᵀ rotation(j) = rotation(j - i)"),
        ({"left": "softmax(S + c 𝟏ᵀ)", "shapes": "S: n m, c: n 1", "answer": "softmax(S)"},
         "softmax(S + c 𝟏ᵀ) = softmax(S)"),
    ],
    ids=["ones", "minus", "difference", "transpose"],
)  # fmt: skip
def test_a_reading_is_written_as_a_student_writes_it(answer, reading):
    assert asked(**answer | {"do": "exercise", "needs": False})["reading"] == reading


def test_hypotheses_of_many_parts_are_not_proposed():
    found = asked(do="exercise", left="(B ⊗ W)(A ⊗ V)", answer="A B ⊗ W V",
                  shapes="A: n n, B: n n, V: d d, W: d d")  # fmt: skip
    assert found["needs"] == ["B commutes with A", "B times A is the identity"]


def test_a_star_is_the_entrywise_product_where_there_is_one():
    left = "(relu(X U) ∘ (X W)) V"
    for said, status in (("(relu(XU)*(XW))V", "proved"), ("(relu(X U)*(X U)) V", "refuted")):
        found = asked(
            do="exercise", left=left, answer=said, shapes="X: n d, U: d m, W: d m, V: m d"
        )
        assert found["status"] == status


@pytest.mark.parametrize(
    "module", [answers, glossary, judge_files, lessons, links, search_entries, typed]
)
def test_examples_in_docstrings(module):
    results = doctest.testmod(module)
    assert results.attempted
    assert not results.failed
