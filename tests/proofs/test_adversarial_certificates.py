"""Whatever is proved comes with a certificate that the checker accepts, however things are called.

The claims are those of the attacks on the judge, and what is proved of them is true (that is tested
there): here a certificate that is missing or rejected is the mistake.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from otimes.algebra.errors import OtimesError
from otimes.algebra.verdict import decide
from otimes.proofs.replay import Rejected, check
from tests.algebra.decide.adversarial import Attack
from tests.algebra.decide.adversarial_plain import Plain
from tests.algebra.decide.attack import BUDGET, proof_alone

EACH = 10_000 if os.environ.get("OTIMES_LONG") == "1" else 30
# Free indices over the depth of an induction; sums over orders by number.
FOUND: dict[Any, list[int]] = {
    Attack: [3 * 10**6 + seed for seed in (423, 1247, 1371, 4136)],
    Plain: [],
}
ATTACKS: dict[str, Any] = {"names": Attack, "plain": Plain}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_every_proof_has_a_certificate_that_is_accepted(attack: Any) -> None:
    wrong = []
    with proof_alone():
        for seed in [*range(3 * 10**6, 3 * 10**6 + EACH), *FOUND[attack]]:
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
                wrong.append(f"seed {seed}: {why}\n{claim}")
    assert not wrong, "\n".join(wrong)
