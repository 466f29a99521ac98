"""Checks of the beginning: hello, greeting, and the start of the runtime."""

import time
from collections.abc import Callable

from harness.agent.frame import BINARY, LINE, LONGEST_LINE, framed
from harness.agent.hello import PROTOCOL
from harness.annex.agent_check.bench import Bench, floats
from harness.annex.agent_check.bitwise import same
from harness.annex.agent_check.check_group import CheckGroup
from harness.annex.agent_check.dialogue import Dialogue, Opening
from harness.annex.agent_check.early_ends import FaultError
from harness.core.records.scenario import SCENARIOS, agent_module
from harness.core.values.value import DTYPES
from harness.engine.processes.messages import Imported, Ready, TargetUnavailable

GREETING_CHECKS = CheckGroup("greeting")
START = CheckGroup("start and end")

FUTURE = 999_999
"""A version of the protocol that no agent speaks."""

_NAMES = (
    *("latency", "repeat", "entries", "fixed", "intra_op_threads", "make", "evaluate", "form", "scenario"),
    *("generate", "package", "other", "paths", "tensor_folders", "native_stack"),
)
_PREFIXES = {
    "scenario:": {agent_module(name) for name in SCENARIOS} - {""},
    "dtype:": {*DTYPES, "string"},
    "value:": {"sequence", "map", "optional"},
    "graph_optimization:": {"disabled", "basic", "extended", "layout", "all"},
    "execution_mode:": {"sequential", "parallel"},
    "form:": {"onnx", "ort"},
}


GREETING_CHECKS.add("it greets", lambda bench: bench.greeted())


@GREETING_CHECKS.check("the greeting is a line of ASCII")
def _greets_in_ascii(bench: Bench) -> None:
    line = bench.greeted().first
    if not line.isascii() or len(line) > LONGEST_LINE:
        raise FaultError("greeting", "it has other characters, or more than 65536")


def _greets(opening: Opening) -> Callable[[Bench], Dialogue]:
    return lambda bench: bench.greeted(opening)


GREETING_CHECKS.add(
    "each process has the token of its own hello", lambda bench: [bench.greeted(), bench.greeted()]
)
GREETING_CHECKS.add("binary mode, if only that is offered", _greets(Opening(modes=(BINARY,))))
GREETING_CHECKS.add("line mode, if only that is offered", _greets(Opening(modes=(LINE,))))
GREETING_CHECKS.add(
    "unknown keys of the hello are ignored", _greets(Opening(extra={"weather": {"fine": [True]}}))
)
GREETING_CHECKS.add(
    "of several versions it takes one that it speaks", _greets(Opening(protocols=(FUTURE, PROTOCOL)))
)


@GREETING_CHECKS.check("without a common version it names its own, and ends")
def _names_its_version(bench: Bench) -> None:
    dialogue = bench.start(Opening(protocols=(FUTURE,)))
    try:
        dialogue.greet()
    except FaultError as error:
        if error.word != "version":
            raise
    dialogue.ended("a hello without a common version")


def _converses(opening: Opening) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        dialogue = bench.made_ready(opening)
        _negate(bench, dialogue, 1)
        dialogue.send(("stop",))
        dialogue.ended("stop")

    return run


GREETING_CHECKS.add("the hello may come in the environment", _greets(Opening(by_variable=True)))
GREETING_CHECKS.add("it connects to a TCP address, and greets there", _converses(Opening(by_socket=True)))
GREETING_CHECKS.add(
    "something else than a hello ends it",
    lambda bench: bench.start(Opening(raw=b"hello\n")).ended("a line that is no hello"),
)


@GREETING_CHECKS.check("the end of its input before a hello ends it")
def _ends_without_hello(bench: Bench) -> None:
    dialogue = bench.start(Opening(raw=b""))
    dialogue.hang_up()
    dialogue.ended("the end of its input")


@GREETING_CHECKS.check("what it declines has a known name")
def _declines_known_names(bench: Bench) -> None:
    bench.greeted()
    for name in bench.greeting.declines if bench.greeting else ():
        known = name in _NAMES or name.startswith("make:")
        if not known and not any(
            name.startswith(prefix) and name.removeprefix(prefix) in values
            for prefix, values in _PREFIXES.items()
        ):
            raise FaultError("declines", f"nothing is called {name!r}")


START.add("it loads its runtime without waiting for a configuration", lambda bench: bench.imported())
START.add("it is ready after the configuration", lambda bench: bench.made_ready())


@START.check("ready has the release of the runtime")
def _tells_release(bench: Bench) -> None:
    dialogue = bench.imported()
    dialogue.send(("config", bench.config()))
    message = dialogue.receive("ready")
    if isinstance(message, Ready) and not message.fingerprint.get("onnxruntime"):
        raise FaultError("environment", "the environment of ready lacks onnxruntime, its release")


@START.check("a configuration that comes late is as good")
def _waits(bench: Bench) -> None:
    dialogue = bench.imported()
    time.sleep(2.0)
    dialogue.send(("config", bench.config()))
    if not isinstance(dialogue.receive("ready"), Ready):
        raise FaultError("order", "it is not ready after a pause of 2 s")


START.add("unknown keys of the configuration are ignored", lambda bench: bench.made_ready(weather="fine"))


@START.check("an EP that does not exist is unavailable, and it ends")
def _lacks_provider(bench: Bench) -> None:
    dialogue = bench.greeted()
    dialogue.send(("config", bench.config(providers=["NoSuchExecutionProvider"])))
    message = dialogue.receive("imported")
    if isinstance(message, Imported):
        message = dialogue.receive("unavailable")
    if not isinstance(message, TargetUnavailable):
        raise FaultError("accepted", "it is ready with an EP that does not exist")
    dialogue.ended("unavailable")


@START.check("a plugin that does not exist is unavailable")
def _lacks_plugin(bench: Bench) -> None:
    dialogue = bench.imported()
    dialogue.send(("config", bench.config(plugin="no_such_plugin_anywhere")))
    if not isinstance(dialogue.receive("unavailable"), TargetUnavailable):
        raise FaultError("accepted", "it is ready with a plugin that does not exist")


@START.check("stop before the configuration ends it")
def _stops_early(bench: Bench) -> None:
    dialogue = bench.imported()
    dialogue.send(("stop",))
    dialogue.ended("stop")


@START.check("stop ends it with exit code 0")
def _stops(bench: Bench) -> None:
    dialogue = bench.made_ready()
    dialogue.send(("stop",))
    how = dialogue.ended("stop")
    if how:
        raise FaultError("end", f"it ended with {how} after stop")


START.add("a whole conversation in line mode", _converses(Opening(modes=(LINE,))))
START.add("a whole conversation in binary mode", _converses(Opening(modes=(BINARY,))))


@START.check("frames that arrive byte by byte")
def _reads_slowly(bench: Bench) -> None:
    dialogue = bench.imported()
    for byte in framed(("config", bench.config()), dialogue.mode):
        dialogue.send_bytes(bytes([byte]))
    if not isinstance(dialogue.receive("ready"), Ready):
        raise FaultError("order", "it is not ready after a configuration in single bytes")


@START.check("frames that arrive all at once")
def _reads_together(bench: Bench) -> None:
    dialogue = bench.greeted()
    job = ("job", 1, bench.job(bench.path("negated"), {"x": floats(-4.0)}))
    dialogue.send(("config", bench.config()), job, ("stop",))
    for expected in (Imported, Ready):
        if not isinstance(dialogue.receive(expected.__name__.lower()), expected):
            raise FaultError("order", f"{expected.__name__.lower()} is missing")
    bench.declines("paths")
    same(bench.answer(dialogue, 1).output, floats(2.0))
    dialogue.ended("stop")


@START.check("two processes at the same time")
def _runs_twice(bench: Bench) -> None:
    first, second = bench.made_ready(), bench.made_ready()
    for number, dialogue in enumerate((first, second, first)):
        _negate(bench, dialogue, number)


def _negate(bench: Bench, dialogue: Dialogue, number: int) -> None:
    bench.send_job(dialogue, number, bench.path("negated"), {"x": floats(-9.0, 4.0)})
    same(bench.answer(dialogue, number).output, floats(3.0, 2.0))
