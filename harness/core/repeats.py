"""What repeated runs of one cell say, in words."""

from harness.core.record import Repeats


def several_results(repeats: Repeats) -> str:
    """``3 different results in 2 sessions of 10 runs each, up to 1.2e-07 from the first``."""
    sessions = "session" if repeats.sessions == 1 else "sessions"
    runs = "run" if repeats.runs == 1 else "runs each"
    apart = "" if repeats.max_abs is None else f", up to {repeats.max_abs:.3g} from the first"
    made = f"{repeats.sessions} {sessions} of {repeats.runs} {runs}"
    return f"{repeats.distinct} different results in {made}{apart}"
