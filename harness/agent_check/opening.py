"""Checks of the beginning: hello, greeting, and the start of the runtime."""

import time

from harness.agent.frame import BINARY, LINE, LONGEST_LINE, framed
from harness.agent.hello import PROTOCOL
from harness.agent_check.bench import Bench, floats
from harness.agent_check.check import FaultError, Group, NotDoneError
from harness.agent_check.compare import same
from harness.agent_check.dialogue import Dialogue, Opening
from harness.agent_check.models import negated
from harness.core.scenario import SCENARIOS, agent_module
from harness.core.value import DTYPES
from harness.engine.messages import Imported, Ready, TargetUnavailable

GREETING = Group("greeting")
START = Group("start and end")

FUTURE = 999_999
"""A version of the protocol that no agent speaks."""

_VALUES = ("sequence", "map", "optional")
_FIELDS = (
    "latency",
    "repeat",
    "entries",
    "intra_op_threads",
    "make",
    "evaluate",
    "form",
    "scenario",
    "other",
)
_REST = ("paths", "tensor_folders", "native_stack")
_PREFIXES = {
    "scenario:": {agent_module(name) for name in SCENARIOS} - {""},
    "dtype:": {*DTYPES, "string"},
    "value:": set(_VALUES),
    "graph_optimization:": {"disabled", "basic", "extended", "layout", "all"},
    "execution_mode:": {"sequential", "parallel"},
    "form:": {"onnx", "ort"},
}


@GREETING.check("it greets")
def _greets(bench: Bench) -> None:
    bench.greeted()


@GREETING.check("the greeting is a line of ASCII")
def _greets_in_ascii(bench: Bench) -> None:
    line = bench.greeted()
    if not line.first.isascii() or len(line.first) > LONGEST_LINE:
        raise FaultError("greeting", "it has other characters, or more than 65536")


@GREETING.check("each process has the token of its own hello")
def _greets_anew(bench: Bench) -> None:
    for _ in range(2):
        bench.greeted()


@GREETING.check("binary mode, if only that is offered")
def _greets_in_binary(bench: Bench) -> None:
    bench.greeted(Opening(modes=(BINARY,)))


@GREETING.check("line mode, if only that is offered")
def _greets_in_lines(bench: Bench) -> None:
    bench.greeted(Opening(modes=(LINE,)))


@GREETING.check("unknown keys of the hello are ignored")
def _ignores_keys(bench: Bench) -> None:
    bench.greeted(Opening(extra={"weather": {"fine": [True]}}))


@GREETING.check("of several versions it takes one that it speaks")
def _takes_a_version(bench: Bench) -> None:
    bench.greeted(Opening(protocols=(FUTURE, PROTOCOL)))


@GREETING.check("without a common version it names its own, and ends")
def _names_its_version(bench: Bench) -> None:
    dialogue = bench.start(Opening(protocols=(FUTURE,)))
    try:
        dialogue.greet()
    except FaultError as error:
        if error.word != "version":
            raise
    dialogue.ended("a hello without a common version")


@GREETING.check("the hello may come in the environment")
def _greets_by_variable(bench: Bench) -> None:
    bench.greeted(Opening(by_variable=True))


@GREETING.check("it connects to a TCP address, and greets there")
def _greets_by_socket(bench: Bench) -> None:
    _converse(bench, Opening(by_socket=True))


@GREETING.check("something else than a hello ends it")
def _refuses_others(bench: Bench) -> None:
    bench.start(Opening(raw=b"hello\n")).ended("a line that is no hello")


@GREETING.check("the end of its input before a hello ends it")
def _ends_without_hello(bench: Bench) -> None:
    dialogue = bench.start(Opening(raw=b""))
    dialogue.hang_up()
    dialogue.ended("the end of its input")


@GREETING.check("what it declines has a known name")
def _declines_known_names(bench: Bench) -> None:
    bench.greeted()
    for name in bench.greeting.declines if bench.greeting else ():
        known = name in (*_FIELDS, *_REST) or name.startswith("make:")
        if not known and not any(
            name.startswith(prefix) and name.removeprefix(prefix) in values
            for prefix, values in _PREFIXES.items()
        ):
            raise FaultError("declines", f"nothing is called {name!r}")


@START.check("it loads its runtime without waiting for a configuration")
def _imports(bench: Bench) -> None:
    bench.imported()


@START.check("it is ready after the configuration")
def _becomes_ready(bench: Bench) -> None:
    bench.made_ready()


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


@START.check("unknown keys of the configuration are ignored")
def _ignores_config(bench: Bench) -> None:
    bench.made_ready(weather="fine")


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


@START.check("a whole conversation in line mode")
def _converses_in_lines(bench: Bench) -> None:
    _converse(bench, Opening(modes=(LINE,)))


@START.check("a whole conversation in binary mode")
def _converses_in_binary(bench: Bench) -> None:
    _converse(bench, Opening(modes=(BINARY,)))


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
    path = bench.path("negated", negated())
    job = ("job", 1, bench.job(path, {"x": floats(-4.0)}))
    dialogue.send(("config", bench.config()), job, ("stop",))
    for expected in (Imported, Ready):
        if not isinstance(dialogue.receive(expected.__name__.lower()), expected):
            raise FaultError("order", f"{expected.__name__.lower()} is missing")
    if bench.greeting and "paths" in bench.greeting.declines:
        raise NotDoneError(f"declined: {bench.greeting.declines['paths']}")
    same(bench.answer(dialogue, 1).outputs()[0][1], floats(2.0))
    dialogue.ended("stop")


@START.check("two processes at the same time")
def _runs_twice(bench: Bench) -> None:
    first, second = bench.made_ready(), bench.made_ready()
    for number, dialogue in enumerate((first, second, first)):
        _negate(bench, dialogue, number)


def _converse(bench: Bench, opening: Opening) -> None:
    dialogue = bench.made_ready(opening)
    _negate(bench, dialogue, 1)
    dialogue.send(("stop",))
    dialogue.ended("stop")


def _negate(bench: Bench, dialogue: Dialogue, number: int) -> None:
    path = bench.path("negated", negated())
    dialogue.send(("job", number, bench.job(path, {"x": floats(-9.0, 4.0)})))
    same(bench.answer(dialogue, number).outputs()[0][1], floats(3.0, 2.0))
