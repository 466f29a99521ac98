"""The rules that give a cell its verdict: one function each; the first that applies decides.

``docs/reference/tolerances.md`` lists them in the same order.
"""

from collections.abc import Mapping

from harness.core.verdicts.end_rules import END_RULES, NOT_TRIED_RULES
from harness.core.verdicts.ruling import Rule
from harness.core.verdicts.run_rules import RUN_RULES
from harness.core.verdicts.variant_rules import VARIANT_RULES

RULES: tuple[Rule, ...] = (*NOT_TRIED_RULES, *VARIANT_RULES, *END_RULES, *RUN_RULES)
"""The rules in the order in which they are tried; the first that applies decides."""

RULE_WORDS: Mapping[str, str] = {each.__name__: (each.__doc__ or "").partition("\n")[0] for each in RULES}
"""Name of a rule -> the first line of its docstring, for the documentation."""
