"""How the processes of a target ended that were asked to end: one summary of all of them."""

import msgspec

from harness.core.records.run_info import TargetExit
from harness.core.records.verdict import Verdict
from harness.engine.tasks.events import ProcessEnded
from harness.plan.expectation import ALL_CLEAN, is_expected_exit


def with_end(before: TargetExit, event: ProcessEnded) -> TargetExit:
    """Return a summary with one more end; the first unclean end gives phase, cause and reason."""
    ended, unclean = before.ended + 1, before.unclean + bool(event.cause)
    first = before
    if event.cause and not before.unclean:
        at = f"at place {event.place}: " if event.place else ""
        first = msgspec.structs.replace(
            before,
            verdict=Verdict.UNCLEAN_EXIT,
            phase=event.phase,
            cause=event.cause,
            reason=f"{at}{event.reason}",
        )
    expected = is_expected_exit(event.expected, unclean=bool(unclean))
    reason = first.reason if unclean else "" if expected else ALL_CLEAN
    return msgspec.structs.replace(first, ended=ended, unclean=unclean, expected=expected, reason=reason)
