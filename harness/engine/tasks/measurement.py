"""A cell that has been measured, from its last answer to its verdict."""

import msgspec

from harness.core.comparison.policy import Policy
from harness.core.records.facts import Facts


class Measurement(msgspec.Struct, frozen=True):
    """The facts of a cell, and the policy that judges them; a cell that did not run needs none."""

    facts: Facts
    policy: Policy = Policy()

    def but(self, facts: Facts) -> "Measurement":
        """Return it with other facts."""
        return Measurement(facts, self.policy)
