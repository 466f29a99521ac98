"""Checks of ends: the harness goes away, or sends nonsense, in each phase."""

from collections.abc import Callable

from harness.agent.frame import framed
from harness.annex.agent_check.bench import Bench, floats
from harness.annex.agent_check.check_group import CheckGroup
from harness.annex.agent_check.dialogue import Dialogue
from harness.annex.agent_check.early_ends import FaultError
from harness.engine.processes.messages import PhaseEntered, PieceNeeded

ENDING = CheckGroup("the harness goes away")
NONSENSE = CheckGroup("nonsense from the harness")

_PHASES = ("before the runtime", "before the configuration", "when ready", "in a job", "in a long run")


def _reached(bench: Bench, phase: str) -> Dialogue:
    """Return a process that has reached a phase."""
    if phase == "before the runtime":
        return bench.greeted()
    if phase == "before the configuration":
        return bench.imported()
    dialogue = bench.made_ready()
    if phase == "in a job":
        path = bench.path("negated")
        dialogue.send(*(("job", number, bench.job(path, {"x": floats(1.0)})) for number in range(50)))
    elif phase == "in a long run":
        bench.send_job(dialogue, 1, bench.path("endless"), {"x": floats(1.0)})
        _await_run(bench, dialogue)
    return dialogue


def _await_run(bench: Bench, dialogue: Dialogue) -> None:
    while True:
        message = dialogue.receive("the phase run of an endless model")
        if isinstance(message, PieceNeeded):
            bench.give_piece(dialogue, message)
        elif not isinstance(message, PhaseEntered):
            raise FaultError("order", "an endless model came to an end")
        elif message.phase == "run":
            return


def _hangs_up(phase: str) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        dialogue = _reached(bench, phase)
        dialogue.hang_up()
        dialogue.ended(f"the end of the stream {phase}")

    return run


for reached in _PHASES:
    ENDING.add(f"the stream ends {reached}: so does it", _hangs_up(reached))


def _nonsense(data: bytes) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        dialogue = bench.made_ready()
        dialogue.send_bytes(data)
        dialogue.ended("nonsense in place of a frame")

    return run


NONSENSE.add("a line of text ends it", _nonsense(b"hello\n" * 100))
NONSENSE.add("a frame with another CRC-32 ends it", _nonsense(b'#b 8 0 00000000\n["stop"]\n'))
NONSENSE.add("a frame that is no JSON ends it", _nonsense(framed(["x"]).replace(b'["x"]', b'["x" ')))


@NONSENSE.check("half a frame and the end of the stream end it")
def _half_a_frame(bench: Bench) -> None:
    dialogue = bench.made_ready()
    dialogue.send_bytes(framed(("job", 1, {"model": "x" * 1000}))[:100])
    dialogue.hang_up()
    dialogue.ended("half a frame")
