"""Python source on which behaviours are looked for: prompts of one length, in the bundled tokens.

It was written for this purpose, and the bundled models were not trained on it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from otimes.numeric.tokenizer import load_tokenizer

N_POS = 120

SOURCES = (
    '''class Account:
    def __init__(self, owner, balance=0):
        self.owner = owner
        self.balance = balance

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance = self.balance + amount
        return self.balance

    def close(self):
        remaining = self.balance
        self.balance = 0
        return remaining
''',
    '''import os
import sys

def read_lines(path, encoding="utf-8"):
    with open(path, encoding=encoding) as stream:
        lines = stream.readlines()
    return [line.rstrip() for line in lines]

def count_words(path):
    total = 0
    for line in read_lines(path):
        words = line.split()
        total = total + len(words)
    return total

print(count_words(sys.argv[1]), os.getcwd())
''',
    '''def find_path(graph, start, end, path=None):
    path = (path or []) + [start]
    if start == end:
        return path
    if start not in graph:
        return None
    for node in graph[start]:
        if node not in path:
            found = find_path(graph, node, end, path)
            if found is not None:
                return found
    return None

def test_find_path():
    graph = {"a": ["b", "c"], "b": ["c"], "c": []}
    assert find_path(graph, "a", "c") is not None
''',
    '''def parse_options(args):
    options = {}
    for arg in args:
        if arg.startswith("--"):
            name, value = arg[2:].split("=", 1)
            options[name] = value
        else:
            options[arg] = True
    return options

def main(args):
    try:
        options = parse_options(args)
    except ValueError as error:
        print("bad option:", error)
        return 1
    for name, value in sorted(options.items()):
        print(name, value)
    return 0
''',
)  # fmt: skip


@lru_cache(maxsize=1)
def prompts() -> np.ndarray:
    """Return the first `N_POS` tokens of each source [prompt, pos]."""
    encode = load_tokenizer().encode
    return np.array([encode(source)[:N_POS] for source in SOURCES])


def texts() -> list[list[str]]:
    """Return the text of each token of the prompts."""
    return [load_tokenizer().token_strings(row) for row in prompts()]
