"""Rules for the variants of a package: which one the runtime selects."""

from harness.core.records.scenario import Observations
from harness.core.records.variant_use import ANSWER_WORDS
from harness.core.records.verdict import Phase, Verdict
from harness.core.verdicts.judging import Judging
from harness.core.verdicts.ruling import Rule, Ruling

_NOTHING_MATCHES = "No suitable model variant"
"""What onnxruntime raises where no variant matches."""


def no_variant(judging: Judging) -> Ruling | None:
    """No variant of a package is for this target, so that an application gets an error from the selection."""
    facts = judging.facts.scenario
    if "by_rules" not in facts or facts["by_rules"] or facts.get("chosen"):
        return None
    refusal = str(facts.get("refusal", ""))
    why = "nothing matches" if not refusal or _NOTHING_MATCHES in refusal else refusal
    return Ruling(Verdict.NO_VARIANT, f"{why}: {_answers(facts)}")


def wrong_variant(judging: Judging) -> Ruling | None:
    """The runtime selects another variant than its own rules demand, or one where they demand none."""
    facts = judging.facts.scenario
    if "by_rules" not in facts or "chosen" not in facts or facts["chosen"] == facts["by_rules"]:
        return None
    chosen, best = (facts[key] or "none" for key in ("chosen", "by_rules"))
    return Ruling(
        Verdict.WRONG_VARIANT, f"it selects {chosen}, and by the rules it is {best}: {_answers(facts)}"
    )


def stale_variant(judging: Judging) -> Ruling | None:
    """The EP accepts a compiled variant, and cannot load it, or another build made it."""
    facts, ended = judging.facts.scenario, judging.facts.ended
    chosen = facts.get("chosen")
    if not chosen or "by_rules" not in facts:
        return None
    if ended is not None and ended.how == "raised" and judging.facts.phase is Phase.CREATE:
        score = facts.get("score")
        if isinstance(score, int) and score > 0:
            what = f"the EP accepts {chosen} ({_answers(facts)}), and cannot load it: {ended.message}"
            return Ruling(Verdict.STALE_VARIANT, what)
    stale = facts.get("stale")
    if isinstance(stale, tuple) and chosen in stale:
        what = f"{chosen} was compiled by another build than its compatibility string says"
        return Ruling(Verdict.STALE_VARIANT, f"{what}: {_answers(facts)}")
    return None


VARIANT_RULES: tuple[Rule, ...] = (no_variant, wrong_variant, stale_variant)
"""In the order in which they are tried."""


def _answers(facts: Observations) -> str:
    """Return the EP's answer to each variant of a package, in words."""
    names, answers = facts.get("variants"), facts.get("answers")
    if not isinstance(names, tuple) or not isinstance(answers, tuple):
        return "its variants are unknown"
    words = (
        f"{name}: {ANSWER_WORDS.get(str(answer), answer)}"
        for name, answer in zip(names, answers, strict=False)
    )
    return "; ".join(words) or "it has no variants"
