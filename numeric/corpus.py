"""The training corpus of the tokenizer and the models: the source of Python's standard library.

Every Python has it, so nothing is downloaded. It differs between versions of Python; the model
card records the version and a digest of the files.
"""

import hashlib
import json
import platform
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from otimes.numeric.files import write_whole
from otimes.numeric.tokenizer import BUNDLED, Tokenizer, load_tokenizer

PIECES = r" ?[A-Za-z_]+| ?[0-9]+| ?[^ \t\r\nA-Za-z0-9_]+|[ \t\r\n]+(?![^ \t\r\n])|[ \t\r\n]+"
"""The pre-tokenization pattern. ASCII classes only, so that Python's `re` and the Oniguruma of the
`tokenizers` library agree on it."""

D_VOCAB = 1024

# Not part of the corpus: installed packages, tests, and files specific to the machine.
_SKIPPED_FOLDERS = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__"}
_HELD_OUT_EVERY = 20


@dataclass(frozen=True, slots=True)
class Source:
    """The standard library's Python files, in the order of their paths."""

    texts: tuple[str, ...]
    n_bytes: int
    sha256: str


def read_source(root: Path | None = None) -> Source:
    """Return the source of the standard library, without its tests and installed packages."""
    root = Path(sysconfig.get_path("stdlib")) if root is None else root
    names = sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if not _skipped(path.relative_to(root))
    )
    digest = hashlib.sha256()
    texts = []
    size = 0
    for name in names:
        content = (root / name).read_bytes()
        digest.update(name.encode() + b"\0" + content + b"\0")
        size += len(content)
        texts.append(content.decode("utf-8"))
    return Source(tuple(texts), size, digest.hexdigest())


def _skipped(path: Path) -> bool:
    folders = path.parts[:-1]
    return any(
        folder in _SKIPPED_FOLDERS or folder.startswith("config-") for folder in folders
    ) or path.name.startswith("_sysconfigdata")


def encode_source(
    source: Source, tokenizer: Tokenizer
) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " held_out"]]:
    """Return the training tokens, and the held-out tokens of every 20th file."""
    train_tokens: list[int] = []
    held_out_tokens: list[int] = []
    for place, text in enumerate(source.texts):
        held_out = place % _HELD_OUT_EVERY == _HELD_OUT_EVERY - 1
        (held_out_tokens if held_out else train_tokens).extend(tokenizer.encode(text))
    return np.array(train_tokens), np.array(held_out_tokens)


def unigram_counts() -> Int[np.ndarray, " d_vocab"]:
    """Return how often each token occurs in the training text of the bundled models.

    >>> int(unigram_counts().sum())
    4365013
    """
    content = json.loads((BUNDLED / "unigrams.json").read_text(encoding="utf-8"))
    return np.array(content["counts"])


def write_unigrams(path: Path, source: Source | None = None) -> None:
    """Count the tokens of the training text, and write the file that `unigram_counts` reads."""
    tokenizer = load_tokenizer()
    source = read_source() if source is None else source
    tokens, _ = encode_source(source, tokenizer)
    content = {
        "what": "occurrences of each token in the training text of the bundled models",
        "made_by": "otimes.numeric.corpus.write_unigrams",
        "python": platform.python_version(),
        "sha256": source.sha256,
        "counts": np.bincount(tokens, minlength=tokenizer.d_vocab).tolist(),
    }
    write_whole(path, json.dumps(content).encode() + b"\n")


def train_tokenizer(path: Path) -> None:
    """Train the tokenizer (1024 tokens) on the corpus and write the tokenizer file."""
    from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
    from tokenizers import Tokenizer as LibraryTokenizer

    learner = LibraryTokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    learner.decoder = decoders.ByteLevel()
    learner.train_from_iterator(
        read_source().texts,
        trainers.BpeTrainer(
            vocab_size=D_VOCAB,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    write_whole(path, learner.to_str(pretty=False).encode() + b"\n")
