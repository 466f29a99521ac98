"""The rules that give a cell its verdict: one function each; the first that applies decides.

``docs/reference/tolerances.md`` lists them in the same order.
"""

from collections.abc import Mapping

from harness.core.verdicts import end_rules, run_rules, variant_rules
from harness.core.verdicts.ruling import Rule

RULES: tuple[Rule, ...] = (
    end_rules.harness_error,
    end_rules.file_changed,
    end_rules.not_tried,
    end_rules.option_rejected,
    variant_rules.no_variant,
    variant_rules.wrong_variant,
    variant_rules.stale_variant,
    end_rules.invalid_model,
    end_rules.cpu_refuses,
    end_rules.no_input,
    end_rules.cpu_dies_too,
    end_rules.out_of_memory,
    end_rules.crash_or_hang,
    end_rules.timeout,
    end_rules.refused,
    end_rules.beyond_data,
    end_rules.error,
    end_rules.unfeedable,
    run_rules.no_golden,
    run_rules.disputed_golden,
    run_rules.fallback_at_run,
    run_rules.undefined_input,
    run_rules.not_by_the_ep,
    run_rules.wrong_values,
    run_rules.nondeterministic,
    run_rules.other_inputs,
    run_rules.wrong_device,
    run_rules.right,
)
"""The rules in the order in which they are tried; the first that applies decides."""

RULE_WORDS: Mapping[str, str] = {each.__name__: (each.__doc__ or "").partition("\n")[0] for each in RULES}
"""Name of a rule -> the first line of its docstring, for the documentation."""
