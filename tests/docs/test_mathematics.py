"""Mathematics in Markdown: what is typeset, what is left alone, and what stops a build."""

import re
from html import escape

import pytest

markdown = pytest.importorskip("markdown", reason="the extra `docs` is not installed")
pytest.importorskip("mkdocs")
pytest.importorskip("py_mini_racer")

# Only where the extra is installed.
import compact  # noqa: E402
import symbols  # noqa: E402
import theorem_pages  # noqa: E402
from mathematics import FormulaError, Mathematics, Typesetter  # noqa: E402
from otimes.algebra.language.shapes import inspect  # noqa: E402
from otimes.proofs.catalogue import catalogue, find  # noqa: E402
from tests.docs.reports import report  # noqa: E402

TOPICS: dict[str, list[str]] = {}
"""The names of the theorems by the module that states them."""
for theorem in catalogue():
    TOPICS.setdefault(theorem.state.__module__, []).append(theorem.name)
# Of some chapters: a build of the site, which CI makes, stops at what is wrong
# in any.
SOME = (
    "tensor_products.products",
    "residual_stream.stream",
    "attention_head.circuits",
    "shallow_models.one_layer",
    "depth.components",
    "reading_weights.eigenvalues",
)
# The worker that makes the pages of a topic has made its chains before: see test_explain.
BY_TOPIC = [
    pytest.param(names, id=topic, marks=pytest.mark.xdist_group(topic))
    for topic, names in TOPICS.items()
    if topic.endswith(SOME)
]


class Named(Typesetter):
    """Typesets each formula, and returns its TeX in brackets."""

    def html(self, tex, display):
        super().html(tex, display)
        return f"[[{escape(tex.strip(), quote=False)}]]"


@pytest.fixture(scope="module")
def mathematics():
    """One V8 for all tests of the file, as a build has one for all pages."""
    extension = Mathematics(Named())
    extension.page = "some/page.md"
    return extension


@pytest.fixture
def read(mathematics):
    """Markdown to HTML, each typeset formula shown as [[its TeX]]."""

    def convert(text):
        return markdown.markdown(text, extensions=["tables", "fenced_code", mathematics])

    return convert


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a $x_1 * y_2$ and $z*w$", "<p>a [[x_1 * y_2]] and [[z*w]]</p>"),
        ("$a$-$b$, $c$.", "<p>[[a]]-[[b]], [[c]].</p>"),
        ("costs \\$5, and $x\\$y$", "<p>costs $5, and [[x\\$y]]</p>"),
        ("on $$x$$ line", "<p>on [[x]] line</p>"),
        ("# Of $A$", "<h1>Of [[A]]</h1>"),
        ("1. a\n2. $b$", "<ol>\n<li>a</li>\n<li>[[b]]</li>\n</ol>"),
        (r"$\{a\}_b$", r"<p>[[\{a\}_b]]</p>"),
    ],
)
def test_formulas_in_the_line(read, text, html):
    assert read(text) == html


def test_display_may_hold_anything(read):
    """Blank lines, underlines of headings and ampersands belong to the formula."""
    text = "before\n$$\n\\begin{aligned}\na &= b \\\\\n\n&= c\n\\end{aligned}\n$$\nafter $x$"
    before, formula, after = re.split(r"\n?<div class=\"formula\">|</div>\n", read(text))
    assert before == "<p>before</p>"
    assert "\n\n&amp;= c\n" in formula
    assert after == "<p>after [[x]]</p>"


def test_formulas_in_a_table(read):
    html = read("| a | b |\n|---|---|\n| $x_1$ | $\\lvert y \\rvert$ |")
    assert "<td>[[x_1]]</td>" in html
    assert "<td>[[\\lvert y \\rvert]]</td>" in html


@pytest.mark.parametrize(
    "text", ["`$x$`", "``$`x`$``", "```\n$x$\n```", "    $$x$$", "```sh\necho $HOME $USER\n```"]
)
def test_code_is_left_alone(read, text):
    html = read(text)
    assert "[[" not in html
    assert "$" in html


def test_html_and_mathml_and_no_script():
    html = Typesetter().html(r"A \otimes B", True)
    assert "aria-hidden=true" in html
    assert "<math " in html
    assert "<script" not in html


def test_a_formula_is_typeset_once():
    typesetter = Typesetter()
    first = typesetter.html("a + b", False)
    assert typesetter.html(" a + b ", False) is first
    assert typesetter.html("a + b", True) is not first


def test_a_compact_formula_has_the_same_elements_and_a_class_for_each_style():
    """Every class that is left is in the compact style sheet, and no text is lost."""
    raw = (
        '<span class="katex"><span class="katex-mathml"><math xmlns="http://www.w3.org/1998/Math/'
        'MathML"><semantics><mi>W</mi><annotation encoding="application/x-tex">W</annotation>'
        '</semantics></math></span><span class="mord mathnormal strange" '
        'style="margin-right:0.1389em;">W</span><span style="top:-9.87em;">x y</span></span>'
    )
    short = compact.formula(raw)
    assert re.sub("<[^>]*>", "|", short) == re.sub(
        "<[^>]*>", "|", re.sub("<annot.*?/annotation>|</?semantics>", "", raw)
    )
    assert "style=top:-9.87em" in short
    sheet = compact.stylesheet()
    (classes,) = re.findall(r'class="([^"]+)">W', short)
    italic, spaced = classes.split()  # nothing is said of .mord
    assert f".katex .{italic}{{font-family:KaTeX_Math" in sheet
    assert f" .{spaced}{{margin-right:.1389em}}" in sheet
    assert ".mathnormal" not in sheet


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$\\otimesq$", r"some/page\.md: .*\\\\otimesq.* is not TeX: Undefined control sequence"),
        ("$$\n\\frac{1}{\n$$", r"some/page\.md: .*frac.* is not TeX"),
        ("$x \\\\ y$$", "pairs with no other"),
        ("$$\na", r"some/page\.md: the formula 'a' has no closing \$\$"),
        ("only 5$", r"some/page\.md: the dollar sign in 'only 5\$' pairs with no other"),
        ("| a |\n|---|\n| $|x|$ |", r"write .*\\vert for a bar inside a table"),
    ],
)
def test_what_is_not_tex_stops_the_build(read, text, message):
    with pytest.raises(FormulaError, match=message):
        read(text)


@pytest.mark.parametrize("names", BY_TOPIC)
def test_each_theorem_has_a_page_and_all_its_formulas_are_tex(read, names):
    """Chains of steps too, with the names that an induction gives to the first layers."""
    (_, index), *pages, (_, chapter) = theorem_pages.pages(report(*names))
    assert "(chapter-" in index
    assert [path for path, _ in pages] == [f"theorems/{name}.md" for name in names]
    for name, (path, text) in zip(names, pages, strict=True):
        assert f"(../{name}.md)" in chapter
        said = find(name).claim().expressions  # none where it is measured; or numbers only
        assert ("[[" in read(text)) >= bool(said), path
        if said and inspect(*said).tensors:
            assert len(symbols.text(find(name)).splitlines()) > 2
