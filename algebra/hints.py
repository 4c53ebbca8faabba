"""What is meant by attributes that are looked for at first, and are called otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping


class Hinting:
    """A base of classes that say, for some names they lack, what is meant.

    >>> class Verdict(Hinting):
    ...     MEANT = {"proved": ".status == 'proved'"}
    >>> Verdict().proved
    Traceback (most recent call last):
    ...
    AttributeError: Verdict has no attribute proved: use .status == 'proved'
    """

    __slots__ = ()
    MEANT: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # which knows the attributes

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with what is meant."""
            if name not in self.MEANT:
                return object.__getattribute__(self, name)  # raises as without this method
            kind = type(self).__name__
            raise AttributeError(f"{kind} has no attribute {name}: use {self.MEANT[name]}")
