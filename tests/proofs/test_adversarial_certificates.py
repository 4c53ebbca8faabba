"""Whatever is proved comes with a certificate that the checker accepts, however things are called.

The claims are those of the attacks on the judge, and what is proved of them is true (that is tested
there): here a certificate that is missing or rejected is the mistake.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from algebra.decide import decide
from algebra.errors import OtimesError
from proofs.replay import Rejected, check
from tests.algebra.adversarial import Attack
from tests.algebra.adversarial_plain import Plain
from tests.algebra.attack import BUDGET, proof_alone

EACH = 10_000 if os.environ.get("OTIMES_LONG") == "1" else 120
# Proofs without a certificate as yet: the judge takes the product of the first layers for any
# matrix, and the checker knows which one it is: the judge proves more than the certificate states.
KNOWN = {3 * 10**6 + 78}
ATTACKS: dict[str, Callable[[int], Any]] = {"names": Attack, "plain": Plain}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_every_proof_has_a_certificate_that_is_accepted(attack: Callable[[int], Any]) -> None:
    wrong = []
    with proof_alone():
        for seed in range(3 * 10**6, 3 * 10**6 + EACH):
            claim = attack(seed).claim()
            try:
                verdict = decide(claim.lhs, claim.rhs, claim.given, budget=BUDGET)
            except OtimesError:
                continue
            if verdict.status != "proved":
                continue
            if verdict.certificate is None:
                wrong.append(f"seed {seed}: no certificate\n{claim}")
                continue
            try:
                check(json.loads(json.dumps(verdict.certificate)))
            except Rejected as why:
                if attack is Attack and seed in KNOWN:
                    continue
                wrong.append(f"seed {seed}: {why}\n{claim}")
    assert not wrong, "\n".join(wrong)
