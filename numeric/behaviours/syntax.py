"""The words of a text, and syntactic relations of Python source, by tokens.

A word is a run of letters and underscores, or of digits, that the tokenizer may have cut. Python's
parser gives what a dependency parser gives for a natural language: each relation names a dependent
token and the token that it belongs to.
"""

import ast
from collections.abc import Iterator, Sequence

from otimes.algebra.errors import OtimesError
from otimes.numeric.tokenizer import load_tokenizer

RELATIONS = ("argument", "value", "operand", "attribute", "body")
"""argument: to the function called; value: to the name it is assigned to; operand: the second of an
operation to the first; attribute: to its object; body: the first token of a statement to the
keyword of its block."""


def word_numbers(texts: Sequence[str]) -> list[int]:
    """Return a number for each token, the same for the tokens of one word.

    >>> word_numbers(["def", " my", "_name", "(", "x", "1"])
    [0, 1, 1, 2, 3, 4]
    """
    numbers: list[int] = []
    before = ""
    for text in texts:
        joined = bool(before) and _kind(before) and _kind(before) == _kind(text[:1])
        numbers.append(numbers[-1] if joined else (numbers[-1] + 1 if numbers else 0))
        before = text[-1:]
    return numbers


def _kind(character: str) -> str:
    """Return the class of a character that words are made of: letters or digits; empty if none."""
    if character.isascii() and (character.isalpha() or character == "_"):
        return "letter"
    return "digit" if character.isascii() and character.isdigit() else ""


def python_relations(text: str) -> dict[str, list[int]]:
    """Return, for each relation, the position of the related earlier token of each token, or −1.

    The relations are those of `RELATIONS`; the tokens are those of the bundled tokenizer. Each list
    is what `syntactic_scores` takes as `related`. The related token is the last one of its word.

    >>> python_relations("x = f(y)")["argument"]
    [-1, -1, -1, -1, 2, -1]

    Raises: OtimesError for text that is not Python.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise OtimesError(f"the text is not Python source: {error}") from None
    tokenizer = load_tokenizer()
    tokens = tokenizer.encode(text)
    starts = _token_of_character(tokenizer.token_strings(tokens), text)
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    found = {name: [-1] * len(tokens) for name in RELATIONS}
    for name, dependent, head in _pairs(tree):
        query = starts[lines[dependent[0] - 1] + dependent[1]]
        key = starts[lines[head[0] - 1] + head[1]]
        if key < query:
            found[name][query] = key
    return found


Spot = tuple[int, int]  # the line from 1 and the column from 0, as `ast` counts them


def _pairs(tree: ast.AST) -> Iterator[tuple[str, Spot, Spot]]:
    """Yield each relation with the first character of the dependent and the last of the head."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for argument in node.args:
                yield "argument", _first(argument), _last(node.func)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name | ast.Attribute):
            yield "value", _first(node.value), _last(node.targets[0])
        elif isinstance(node, ast.BinOp):
            yield "operand", _first(node.right), _last(node.left)
        elif isinstance(node, ast.Compare):
            yield "operand", _first(node.comparators[0]), _last(node.left)
        elif isinstance(node, ast.Attribute):
            end = _last(node)
            yield "attribute", (end[0], end[1] - len(node.attr) + 1), _last(node.value)
        if isinstance(node, ast.FunctionDef | ast.If | ast.For | ast.While | ast.With):
            for statement in node.body:
                yield "body", _first(statement), _first(node)


def _first(node: ast.expr | ast.stmt) -> Spot:
    return node.lineno, node.col_offset


def _last(node: ast.expr) -> Spot:
    return node.end_lineno or 0, (node.end_col_offset or 0) - 1


def _token_of_character(strings: Sequence[str], text: str) -> list[int]:
    """Return the number of the token that each character of an ASCII text is in."""
    if not text.isascii() or "".join(strings) != text:
        raise OtimesError("relations are found in ASCII text only")
    return [number for number, string in enumerate(strings) for _ in string]
