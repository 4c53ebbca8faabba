"""The built site in a browser: `make test-site`, after `make docs`, with Chromium.

Pages are opened over loopback: one theorem in eight and all others, or every page with
OTIMES_LONG=1. None may log an error, ask another host, show TeX, or be wider than the window. The
judge answers exercises, replays certificates, and refutes changed claims.
"""

from __future__ import annotations

import gzip
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from otimes._docs import address, server
from tests.site import chromium

SITE = Path(os.environ.get("OTIMES_SITE") or Path(__file__).parents[2] / "site")
WIDTHS = (390, 800, 1300)

STATE = "document.querySelector('{}').dataset.state"


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """Return the address of the served site."""
    with server(SITE, 0) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield address(serving)
        serving.shutdown()


@pytest.fixture(scope="module")
def page() -> Iterator[chromium.Page]:
    """Return a page of Chromium."""
    if chromium.path() is None:
        pytest.fail("Chromium is not installed: on Debian and Ubuntu, apt install chromium")
    with chromium.page() as opened:
        yield opened


def _clean(page: chromium.Page, base: str) -> list[str]:
    """Return what was logged and what was asked of other hosts, and forget it."""
    outside = [url for url in page.requests if not url.startswith((base, "data:", "blob:"))]
    found = [*page.logged, *[f"asks for {url}" for url in outside]]
    page.logged.clear()
    page.requests.clear()
    return found


def _too_wide(page: chromium.Page) -> list[str]:
    """Return the widths of the window at which the page is wider."""
    found = []
    for width in WIDTHS:
        page.resize(width)
        end = time.monotonic() + 3  # parts of the page move to their new place
        while (shown := page.value("document.documentElement.scrollWidth")) > width:
            if time.monotonic() > end:
                found.append(f"is {shown} pixels wide at {width}")
                break
    return found


def _pages() -> list[Path]:
    """Return the pages that are opened."""
    theorems = sorted((SITE / "theorems").glob("*.html"))
    others = sorted({*SITE.rglob("*.html")} - {*theorems, SITE / "404.html"})
    return others + theorems[:: 1 if os.environ.get("OTIMES_LONG") else 8]


# Text of formulas is in annotations for screen readers, which are not shown.
SHOWN_TEX = r"""
[...document.querySelectorAll("article p, article li, article td, article h1")].filter(
    (e) => !e.querySelector("code, annotation, textarea") && !e.closest(".judge, pre")
        && /\$\$|\\[a-z]{3,}/.test(e.textContent)).map((e) => e.textContent.slice(0, 80))
"""


def test_every_page_opens_without_errors_and_fits(page: chromium.Page, base: str) -> None:
    wrong = {}
    for file in _pages():
        name = file.relative_to(SITE).as_posix()
        page.open(base + name)
        found = [*_too_wide(page), *map(str, page.value(SHOWN_TEX)), *_clean(page, base)]
        if found:
            wrong[name] = found
    assert not wrong, "\n".join(f"{name}: {found}" for name, found in wrong.items())


def test_pages_and_the_site_are_light() -> None:
    """A page has under 150 kB beside its fonts, and the site 40 MB without the judge."""
    files = [path for path in SITE.rglob("*") if path.is_file()]
    heavy = {
        path.name: path.stat().st_size
        for path in files
        if path.suffix == ".html" and path.stat().st_size > 150_000
    }
    assert not heavy, heavy
    judge = SITE / "assets" / "judge"
    weight = sum(path.stat().st_size for path in files if not path.is_relative_to(judge))
    assert weight < 40_000_000, weight


def test_folded_parts_open_and_fit(page: chromium.Page, base: str) -> None:
    for width in WIDTHS:
        page.resize(width)
        page.open(f"{base}theorems/two_layer_paths.html")
        assert page.value("document.querySelectorAll('svg.otimes-diagram').length") == 4
        page.value("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
        assert page.until("document.querySelector('pre.chain')?.textContent.includes('mul_add')")
        assert page.value("document.documentElement.scrollWidth") <= width
    assert not _clean(page, base)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_diagrams_have_the_colour_of_the_text(page: chromium.Page, base: str, dark: bool) -> None:
    page.dark(dark)
    page.open(f"{base}theorems/head_is_kron.html")
    colour = "getComputedStyle(document.querySelector('{}')).{}"
    stroke = page.value(colour.format(".otimes-diagram .wire", "stroke"))
    assert stroke == page.value(colour.format(".diagram", "color"))
    page.dark(False)


def test_the_map_is_searched_and_walked_by_keyboard(page: chromium.Page, base: str) -> None:
    page.open(f"{base}map.html#head_is_kron")
    said = "document.querySelector('.map-said').innerText"
    assert page.until(f"{said}.includes('A head is its pattern')")
    assert page.value("document.querySelectorAll('.map-lines .near').length") > 0
    before = page.value(said)
    _press(page, "ArrowRight")
    assert page.until(f"{said} !== {before!r}")
    page.value(
        "(() => { const f = document.querySelector('.theorem-map input');"
        " f.value = 'kron mul'; f.dispatchEvent(new Event('input')); })()"
    )
    assert page.until("document.querySelectorAll('.map-dot.found').length") >= 1
    assert page.until(f"{said}.includes('found')")
    assert not _too_wide(page)
    assert not _clean(page, base)


@pytest.mark.parametrize("served", [True, False], ids=["served", "from disk"])
def test_what_pages_share_is_in_its_place(page: chromium.Page, base: str, served: bool) -> None:
    path = "theorems/head_is_kron.html"
    page.resize(1300)
    page.open(base + path if served else (SITE / path).as_uri())
    count = "document.querySelectorAll('{}').length"
    assert page.value(count.format(".md-tabs__link")) > 10
    assert page.value(count.format(".md-sidebar--primary .md-nav__link")) > 10
    assert page.value(count.format(".md-sidebar--primary a.md-nav__link--active")) == 1
    page.value("document.querySelector('label[for=__search]').click()")
    page.value("document.querySelector('.md-search__input').focus()")
    page.call("Input.insertText", text="RoPE")
    _press(page, "ArrowLeft")  # the theme asks when a key is released
    assert page.until(count.format(".md-search-result__item"))
    found = page.value("document.querySelector('.md-search-result__item').innerText")
    assert found.startswith("RoPE")
    _clean(page, base)  # from disk, every file is outside


def test_terms_say_what_they_mean(page: chromium.Page, base: str) -> None:
    page.open(f"{base}learn/paths.html")
    assert page.value("document.querySelectorAll('a.term').length") > 5
    page.value("document.querySelector('a.term[href$=\"#logit\"]').focus()")
    hint = "document.querySelector('a.term[href$=\"#logit\"]').title"
    assert page.until(hint).startswith("The number that the model gives")
    assert not _clean(page, base)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out(page: chromium.Page, base: str, dark: bool) -> None:
    page.dark(dark)
    page.open(f"{base}learn/heads.html")
    colour = "getComputedStyle(document.querySelector('{}')).{}.match(/[\\d.]+/g).map(Number)"
    text = page.value(colour.format("article p", "color"))
    behind = page.value(colour.format("body", "backgroundColor"))
    opacity = text[3] if len(text) > 3 else 1
    contrast = abs(sum(text[:3]) - sum(behind[:3])) / 3 * opacity
    assert contrast > 100
    assert (sum(behind[:3]) < 300) == dark
    page.dark(False)


def _answer(page: chromium.Page, number: int, text: str) -> str:
    """Type an answer into an exercise of a page, and return what the judge says."""
    block = f"document.querySelectorAll('.exercise')[{number}]"
    page.value(
        f"{block}.dataset.state = ''; {block}.querySelector('[name=answer]').value = {text!r}"
    )
    page.value(f"{block}.querySelector('form').requestSubmit()")
    return str(page.until(f"{block}.dataset.state"))


@pytest.mark.parametrize(
    ("lesson", "number", "right", "wrong"),
    [
        ("tensor-products", 0, "(A ⊗ W) vec_rows(X)", "(W ⊗ A) vec_rows(X)"),
        ("tensor-products", 2, "A ⊗ W", "A ⊗ Wᵀ"),
        ("tensor-products", 3, r"A B C \otimes U V W", "C B A ⊗ W V U"),
        ("tensor-products", 5, "40,000", "200"),
        ("norms", 5, "3/4", "3·4"),
        ("paths", 1, "3^3", "2 · 3"),
        ("heads", 0, "= AXW_VW_O", "A X W_O W_V"),
        ("heads", 2, "W_O W_V", "W_V W_O"),
        ("heads", 3, "U diag(s)", "diag(s) U"),
        ("heads", 6, "A X W_V W_O + 𝟏 b W_O", "A X W_V W_O"),
        ("paths", 0, "I + G + H + G H", "I + G H"),
        ("paths", 2, "4", "3"),
        ("paths", 3, "B A ⊗ W V", "A B ⊗ V W"),
        ("circuits", 0, "X W_Q W_Kᵀ Xᵀ", "X W_Q W_K Xᵀ"),
        ("induction", 1, "X W Vᵀ Xᵀ Aᵀ", "X W Aᵀ Xᵀ Vᵀ"),
        ("paths", 4, "I + B ⊗ W + A ⊗ V + B A ⊗ W V", "I + B A ⊗ W V"),
        ("norms", 0, "X P", "X P + c 𝟏ᵀ"),
        ("rotary", 0, "rotation(j - i)", "rotation(i - j)"),
        ("mlps", 0, "relu(X U) S + relu(X V) T", "relu(X U) T + relu(X V) S"),
        ("interventions", 2, "H U - G U", "G U - H U"),
        ("own-model", 0, "X (O V)^T", "X O V"),
    ],
)
def test_exercises_are_marked(
    page: chromium.Page, base: str, lesson: str, number: int, right: str, wrong: str
) -> None:
    url = f"{base}learn/{lesson}.html"
    if page.value("location.href") != url:
        page.open(url)
    assert _answer(page, number, right) == "proved"
    assert _answer(page, number, wrong) in ("refuted", "error")
    block = f"document.querySelectorAll('.exercise')[{number}]"
    assert page.value(f"{block}.classList.contains('wrong')")
    assert not _clean(page, base)


ASKED = """
new Promise((resolve) => {
  const worker = new Worker("%s", { type: "module" }), said = [];
  worker.onmessage = ({ data }) => {
    if (data.status) return said.push(data.status);
    worker.terminate();
    return resolve([JSON.parse(data.answer || "null"), said, data.failed]);
  };
  const request = JSON.stringify({ do: "exercise", left: "(A B)ᵀ", answer: "Bᵀ Aᵀ" });
  worker.postMessage({ id: 1, request });
})
"""


def test_the_judge_starts_from_the_memory_of_the_build(page: chromium.Page, base: str) -> None:
    page.open(f"{base}index.html")
    found, said, failed = page.value(ASKED % "assets/judge/worker.mjs")
    assert failed is None
    assert found["status"] == "proved"
    assert found["replayed"]["accepted"]
    assert said == ["Starting Python in this page …", "Working …"]


def test_the_judge_starts_from_its_sources_where_it_must(
    page: chromium.Page, tmp_path: Path
) -> None:
    judge = tmp_path / "judge"
    judge.mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>a page</title>", "utf-8")
    for path in (SITE / "assets" / "judge").iterdir():
        (judge / path.name).symlink_to(path)
    memory = next(judge.glob("memory-*.gz"))
    memory.unlink()
    memory.write_bytes(gzip.compress(b"no memory"))
    with server(tmp_path, 0) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        page.open(f"{address(serving)}index.html")
        found, said, failed = page.value(ASKED % "judge/worker.mjs")
        serving.shutdown()
    assert failed is None
    assert found["status"] == "proved"
    assert "Loading the judge …" in said
    page.logged.clear()
    page.requests.clear()


# A page tells that it shows a block in a frame, and begins other work when it is idle.
SEEN_AND_IDLE = """
const idle = (then) => requestIdleCallback(() => requestIdleCallback(then));
const frames = (then) => requestAnimationFrame(() => requestAnimationFrame(then));
window.idled = false;
frames(() => idle(() => { window.idled = true; }));
"""


def test_the_judge_starts_early_for_who_asks_again(page: chromium.Page, base: str) -> None:
    page.open(f"{base}glossary.html")  # which has no exercise, so that no worker is on its way
    page.value("sessionStorage.clear()")
    page.requests.clear()
    page.open(f"{base}learn/heads.html")
    page.value("document.querySelector('.exercise').scrollIntoView()")
    page.value(SEEN_AND_IDLE)
    page.until("window.idled")
    assert not [each for each in page.requests if "judge/files.json" in each]  # only looks
    assert _answer(page, 0, "A X W_V W_O") == "proved"
    page.requests.clear()
    page.open(f"{base}learn/paths.html")
    page.value("document.querySelector('.exercise').scrollIntoView()")
    page.until(f"performance.getEntriesByName('{base}assets/judge/files.json').length")
    assert not _clean(page, base)


@pytest.mark.parametrize("theorem", ["kron_mul_kron", "head_is_kron"])
def test_the_variants_of_a_theorem_are_judged(page: chromium.Page, base: str, theorem: str) -> None:
    page.open(f"{base}theorems/{theorem}.html")
    seen = set()
    for number in range(page.value("document.querySelectorAll('.exercise').length")):
        block = f"document.querySelectorAll('.exercise')[{number}]"
        solution = page.value(f"{block}.querySelector('details:last-of-type p').textContent")
        truth = "proved" if solution.startswith("True") else "refuted"
        page.value(f"{block}.querySelector('[value={truth}]').click()")
        assert page.until(f"{block}.dataset.state") == truth
        assert page.value(f"{block}.classList.contains('right')")
        seen.add(truth)
    assert seen == {"proved", "refuted"}
    assert not _clean(page, base)


def test_a_false_statement_is_told_from_a_true_one(page: chromium.Page, base: str) -> None:
    page.open(f"{base}learn/paths.html")
    for number, truth in ((5, "refuted"), (6, "proved")):
        block = f"document.querySelectorAll('.exercise')[{number}]"
        for button in ("proved", "refuted"):
            page.value(
                f"{block}.dataset.state = ''; {block}.querySelector('[value={button}]').click()"
            )
            assert page.until(f"{block}.dataset.state") == truth
            assert page.value(f"{block}.classList.contains('right')") == (button == truth)


def test_certificates_are_replayed_and_damaged_ones_rejected(
    page: chromium.Page, base: str
) -> None:
    page.open(f"{base}theorems/head_is_kron.html")
    state = STATE.format("[data-kind=certificate]")
    for button, expected in (
        (".check", "accepted"),
        (".damage", "rejected"),
        (".check", "accepted"),
    ):
        page.value(f"{state} = ''; document.querySelector('.judge {button}').click()")
        assert page.until(state) == expected
    text = "document.querySelector('[data-kind=certificate] textarea')"
    forged = f"""{text}.value.replace('"rule":"cancel"', '"rule":"trust"')"""
    page.value(f"{state} = ''; {text}.value = {forged}")
    page.value("document.querySelector('.judge .edited').click()")
    assert page.until(state) == "rejected"


def test_a_changed_claim_is_refuted(page: chromium.Page, base: str) -> None:
    page.open(f"{base}theorems/kron_mul_kron.html")
    state = STATE.format("[data-kind=claim]")
    field = "document.querySelector('[name=equation]')"
    ask = "document.querySelector('[data-kind=claim] form').requestSubmit()"
    page.value(ask)
    assert page.until(state) == "proved"
    changes = (".value.replace('A C', 'C A')", "error"), (".value.replace('D', 'D B')", "error")
    for change, expected in changes:
        page.value(f"{state} = ''; {field}.value = {field}{change}; {ask}")
        assert page.until(state) == expected
    page.value(f"{state} = ''; {field}.value = '(A ⊗ B) (C ⊗ D) = 2 (A C ⊗ B D)'; {ask}")
    assert page.until(state) == "refuted"
    assert page.value("document.querySelectorAll('[data-kind=claim] .judge-matrix').length") >= 6
    assert not _clean(page, base)


def test_a_page_from_disk_says_how_to_serve_it(page: chromium.Page) -> None:
    page.open((SITE / "theorems" / "kron_mul_kron.html").as_uri())
    page.value("document.querySelector('.check').click()")
    said = "document.querySelector('[data-kind=certificate] .judge-answer').innerText"
    assert page.until(f"{said}.includes('otimes docs')")
    assert not [each for each in _clean(page, "file:") if "favicon" not in each]


def test_a_lesson_works_by_keyboard(page: chromium.Page, base: str) -> None:
    page.open(f"{base}learn/tensor-products.html")
    page.value("document.querySelector('[name=answer]').focus()")
    for character in r"(A \otimes W) vec_rows(X)":
        page.call("Input.dispatchKeyEvent", type="char", text=character)
    for kind in ("keyDown", "keyUp"):
        page.call(
            "Input.dispatchKeyEvent", type=kind, key="Enter", text="\r", windowsVirtualKeyCode=13
        )
    assert page.until(STATE.format(".exercise")) == "proved"
    page.value("document.querySelector('.exercise > details > summary').focus()")
    for kind in ("keyDown", "keyUp"):
        page.call(
            "Input.dispatchKeyEvent", type=kind, key="Enter", text="\r", windowsVirtualKeyCode=13
        )
    assert page.until("document.querySelector('.exercise > details').open")


WIDGETS = {
    "tensor-products": ("kronecker",),
    "heads": ("move",),
    "paths": ("paths",),
    "induction": ("circuit", "compose", "eigenvalues"),
    "rotary": ("rotary",),
    "own-model": ("rounding",),
}


@pytest.mark.parametrize(
    ("lesson", "widget"), [(page, name) for page, names in WIDGETS.items() for name in names]
)
def test_widgets_work_by_keyboard(page: chromium.Page, base: str, lesson: str, widget: str) -> None:
    page.open(f"{base}learn/{lesson}.html")
    body = f"document.querySelector('[data-widget={widget}]')"
    shown = f"{body}.querySelector('[role=status]').innerHTML"
    kinds = {"input[type=range]": "ArrowLeft", "select": "ArrowDown", "input[type=checkbox]": " "}
    kinds |= {"button:not([aria-pressed=true])": "Enter", "input[aria-label]": "7"}
    changed = 0
    for selector, key in kinds.items():
        for number in range(page.value(f"{body}.querySelectorAll('{selector}').length")):
            before = page.value(shown)
            control = f"{body}.querySelectorAll('{selector}')[{number}]"
            page.value(f"{control} && {control}.focus()")
            _press(page, key)
            changed += page.value(shown) != before
    assert changed >= 3
    assert not _clean(page, base)


def _press(page: chromium.Page, key: str) -> None:
    """Press and release a key, as a person does."""
    arrows = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
    codes = {**arrows, " ": 32, "Enter": 13, "7": 55}
    text = {" ": " ", "Enter": "\r", "7": "7"}.get(key, "")
    for kind in ("keyDown", "keyUp"):
        page.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key=key,
            code=key if len(key) > 1 else "Space",
            windowsVirtualKeyCode=codes[key],
            **({"text": text} if text and kind == "keyDown" else {}),
        )
