"""The SVG of a normal form: well-formed, the same every time, with every name and port in it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import sympy
from sympy import Identity, MatrixSymbol, Trace

from otimes.algebra.draw.svg import MOST
from otimes.algebra.language.linear import Family, kron, matadd, matmul
from otimes.algebra.normal_form import NormalForm, normal_form
from tests.algebra.draw.test_layout import EXPRESSIONS, A, B, W, X, d, n

SVG = "{http://www.w3.org/2000/svg}"


def parts(form: NormalForm) -> tuple[Any, dict[str, list[Any]]]:
    """Return the root of the XML, and its elements by class."""
    root = ET.fromstring(form._repr_svg_())
    by_class: dict[str, list[Any]] = {}
    for element in root.iter():
        for name in element.get("class", "").split():
            by_class.setdefault(name, []).append(element)
    return root, by_class


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_box_and_every_port_is_drawn(name: str) -> None:
    form = normal_form(EXPRESSIONS[name])
    root, by_class = parts(form)
    assert root.tag == f"{SVG}svg"
    boxes = [box for _, diagram in form.terms for box in diagram.boxes]
    assert len(by_class.get("box", [])) == len(boxes)
    assert len(by_class.get("port", [])) == sum(len(box) - 1 for box in boxes)
    drawn = sorted("".join(text.itertext())[0] for text in by_class.get("name", []))
    assert drawn == sorted(form.labels[box[0]].name[0] for box in boxes)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_same_form_is_the_same_text(name: str) -> None:
    first, again = (normal_form(EXPRESSIONS[name])._repr_svg_() for _ in range(2))
    assert first == again


def test_the_text_does_not_depend_on_the_process() -> None:
    code = (
        "from tests.algebra.draw.test_layout import EXPRESSIONS\n"
        "from otimes.algebra.normal_form import normal_form\n"
        "import hashlib\n"
        "text = normal_form(EXPRESSIONS['two layers'])._repr_svg_()\n"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_it_says_what_it_is_and_suits_light_and_dark() -> None:
    root, by_class = parts(normal_form(kron(A, W)))
    assert root.find(f"{SVG}title").text == "one diagram of A, W"
    assert root.get("role") == "img"
    style = root.find(f"{SVG}style").text
    assert "@media (prefers-color-scheme:dark)" in style
    assert "stroke:currentColor" in style
    assert by_class["wire"]
    assert normal_form(A + B)._repr_svg_().count("<title>a sum of 2 diagrams of A, B</title>") == 1


def signs(form: NormalForm) -> list[str]:
    return [element.text for element in parts(form)[1].get("sign", [])]


def test_a_sum_stands_side_by_side_with_its_signs() -> None:
    form = normal_form(matadd(Identity(n), matmul(-2 / d, A), matmul(A, B), matmul(-1, B, A)))
    assert signs(form) == ["− 2/d", "+", "−"]
    root, _ = parts(form)
    moves = [g.get("transform") for g in root.iter(f"{SVG}g")]
    across = [float(move.removeprefix("translate(").split()[0]) for move in moves]
    assert across == sorted(across)
    assert signs(normal_form(matmul(sympy.Symbol("a") + 1, A))) == ["(a + 1)"]
    assert signs(normal_form(matmul(1 / sympy.sqrt(d), A))) == ["1/√d"]


def test_what_has_no_box_is_drawn_all_the_same() -> None:
    assert signs(normal_form(sympy.ZeroMatrix(n, n))) == ["0"]
    assert signs(normal_form(Trace(Identity(n)))) == ["n"]
    assert signs(normal_form(sympy.Integer(1) * Trace(Identity(1)))) == ["1"]


def test_names_are_text_with_parts_above_and_below_and_escaped() -> None:
    W_O = Family("W_O", (2, 3), n, n)
    (name,) = parts(normal_form(W_O[1, 2]))[1]["name"]
    assert [name.text, *[span.text for span in name]] == ["W", "2,3", "O"]
    (odd,) = parts(normal_form(MatrixSymbol("<A&", n, n)))[1]["name"]
    assert odd.text == "<A&"


def test_a_long_sum_is_cut_and_says_so() -> None:
    many = [MatrixSymbol(f"M{k}", n, d) for k in range(MOST + 5)]
    form = normal_form(matadd(X, *many))
    _, by_class = parts(form)
    assert len(by_class["box"]) == MOST
    assert signs(form)[-1] == "+ … (6 more)"
