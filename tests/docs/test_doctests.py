"""Sessions in docstrings become code."""

import pytest

markdown = pytest.importorskip("markdown", reason="the extra `docs` is not installed")

from doctests import Doctests  # noqa: E402


def html(text):
    return markdown.markdown(text, extensions=[Doctests(), "fenced_code"])


def test_a_session_ends_at_a_blank_line():
    text = html("Say\n\n>>> a = 1\n>>> a\n1\n# end\n\nmore.")
    code = '<pre><code class="language-pycon">&gt;&gt;&gt; a = 1\n&gt;&gt;&gt; a\n1\n# end\n'
    assert code in text
    assert text.endswith("<p>more.</p>")


def test_a_session_may_come_last():
    assert html(">>> a\n1").count("<pre>") == 1


def test_code_that_is_fenced_already_is_left_alone():
    assert html("```\n>>> a\n1\n```").count("<pre>") == 1
