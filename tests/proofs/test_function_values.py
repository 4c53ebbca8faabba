"""What the normal form knows of functions at numbers, the checker knows, too, and it is true."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sympy import OneMatrix, Rational

from otimes.algebra.decide.certificate import to_json
from otimes.algebra.language.functions import KNOWN, is_defined, on_floats
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.verdict import decide
from otimes.proofs.replay import check
from tests.proofs.certificates import n

NUMBERS = [Rational(k, 6) for k in (-12, -6, -3, -2, 0, 2, 3, 4, 6, 12, 24)]


@pytest.mark.parametrize("name", KNOWN)
def test_the_checker_knows_each_value_that_the_normal_form_has(name: str) -> None:
    e = OneMatrix(n, 1)
    for number in NUMBERS:
        value = on_floats(name, np.array([float(number)]))[0] if is_defined(name, number) else None
        for near in () if value is None else {Rational(round(12 * float(value)), 12)}:
            verdict = decide(Activation(name, number * e), near * e, budget=0.2)
            if verdict.status == "proved":
                check(json.loads(to_json(verdict.certificate or {})))
                assert abs(float(near) - value) < 1e-12, (name, number)  # else by 1/12 or more
