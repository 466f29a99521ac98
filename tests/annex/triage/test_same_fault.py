"""Which options a fault needs: those without which it is not known to appear."""

from harness.annex.triage.same_fault import needed_options
from harness.core.records.fault import Condition

AXES = (("option.mode", "fast"), ("option.streams", "2"), ("scenario", "plain"))


def without(name: str, value: str, *, fails: bool | None) -> Condition:
    return Condition(kind="option", name=name, value=f"not {value}", fails=fails)


def test_an_option_is_needed_unless_the_failure_appears_without_it() -> None:
    assert needed_options(AXES, ()) == ("mode=fast", "streams=2")
    spared = [without("mode", "fast", fails=False), without("streams", "2", fails=True)]
    assert needed_options(AXES, spared) == ("mode=fast",)
    assert needed_options(AXES, [without("mode", "slow", fails=True)]) == ("mode=fast", "streams=2")
    assert needed_options(AXES, [without("mode", "fast", fails=None)]) == ("mode=fast", "streams=2")
