"""The tokenizer against the library that trained it, and on its own."""

import json
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

import otimes.numeric.forward
from otimes.algebra.errors import OtimesError
from otimes.numeric.corpus import PIECES
from otimes.numeric.tokenizer import (
    BUNDLED,
    byte_alphabet,
    load_tokenizer,
    read_tokenizer,
    sample_text,
    sample_tokens,
)

LIBRARY = tokenizers.Tokenizer.from_file(str(BUNDLED / "tokenizer.json"))

TEXTS = {
    "empty": "",
    "space": " ",
    "spaces": "   x    ",
    "tabs": "\tif x:\n\t\treturn\ty\n",
    "windows lines": "a\r\nb\r\n\r\n",
    "form feed": "a\x0cb \x0b c\x00",
    "indentation": "def f(x):\n    if x:\n\n        return x\n",
    "signs": "x**2 != (a@b)[::-1] #!?\u00ac",
    "numbers": "3.14159 0x1F 1_000_000 \u0661\u0662",
    "umlauts": "Übergrößenträger naïve",
    "greek": "∑ λᵢ ⊗ μⱼ",
    "japanese": "日本語のテキスト",
    "emoji": "👩‍👩‍👧 🇪🇺 e\u0301",
    "other white space": "a\u00a0b\u2003c\u2028d",
    "long word": "internationalisation" * 30,
    "same letter": "a" * 200 + "=" * 200 + "\n" * 50,
    "sample": sample_text(),
    "our source": Path(otimes.numeric.forward.__file__).read_text(encoding="utf-8"),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_tokens_are_those_of_the_library(text: str) -> None:
    tokens = load_tokenizer().encode(text)
    assert tokens == LIBRARY.encode(text).ids
    assert load_tokenizer().decode(tokens) == text


@given(st.text())
def test_any_text_is_encoded_as_in_the_library_and_comes_back(text: str) -> None:
    tokens = load_tokenizer().encode(text)
    assert tokens == LIBRARY.encode(text).ids
    assert load_tokenizer().decode(tokens) == text


@given(st.lists(st.integers(0, 1023), max_size=20))
def test_any_tokens_are_decoded_as_in_the_library(tokens: list[int]) -> None:
    """Also those that cut a character of several bytes in two."""
    assert load_tokenizer().decode(tokens) == LIBRARY.decode(tokens)


def test_the_vocabulary() -> None:
    tokenizer = load_tokenizer()
    assert tokenizer.d_vocab == LIBRARY.get_vocab_size() == 1024
    assert sorted(tokenizer.vocabulary.values()) == list(range(1024))
    assert set(byte_alphabet().values()) <= set(tokenizer.vocabulary)
    assert tokenizer.pieces.pattern == PIECES


def test_token_strings_label_an_axis() -> None:
    tokenizer = load_tokenizer()
    tokens = tokenizer.encode("def f(self):\n    return")
    assert tokenizer.token_strings(tokens) == [
        "def", " f", "(", "self", "):", "\n   ", " return",
    ]  # fmt: skip
    assert tokenizer.token_symbols(tokens)[-2:] == ["ĊĠĠĠ", "Ġreturn"]


def test_the_sample_repeats_itself_and_fits_the_models() -> None:
    tokens = sample_tokens()
    assert 60 <= len(tokens) <= 120
    assert load_tokenizer().decode(tokens) == sample_text()
    threes = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
    assert len(set(threes)) < 0.8 * len(threes)
    assert sample_tokens(7) == tokens[:7]


def test_a_prompt_of_no_token_is_refused() -> None:
    with pytest.raises(OtimesError, match="max_tokens must be at least 1, got max_tokens=0"):
        sample_tokens(0)


@pytest.mark.parametrize("token", [-1, 1024])
def test_a_token_out_of_the_vocabulary_is_named(token: int) -> None:
    with pytest.raises(OtimesError, match=f"token {token} is not in the vocabulary.* 0 to 1023"):
        load_tokenizer().decode([token])


def test_a_missing_tokenizer_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OtimesError, match=r"absent\.json does not exist"):
        read_tokenizer(tmp_path / "absent.json")


@pytest.mark.parametrize("content", ["{", "[]", "{}", json.dumps({"model": {"vocab": {}}})])
def test_another_file_is_no_tokenizer(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(OtimesError, match="is not a byte-level tokenizer file"):
        read_tokenizer(path)
