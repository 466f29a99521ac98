"""Dialogues with random changes, for the agent in C: the fuzz of its frames.

Changes have the right checksum, so that they reach what reads JSON, values and jobs.
``python -m tests.agent_c.dialogue_fuzz PROGRAM FOLDER SECONDS`` runs for longer than CI does; PROGRAM is
built with sanitizers. What ends it otherwise than it may is left in FOLDER, one file for each dialogue.
"""

import copy
import random
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from harness.agent.frame import BINARY, LINE, framed
from harness.agent.message import pack_message
from harness.annex.agent_check.models import MODELS, model

JOBS = 24  # messages of one dialogue: a process costs more than they do
_LIMIT_S = 120.0

CONFIG: dict[str, Any] = {
    "providers": ["CPUExecutionProvider"],
    "options": {},
    "plugin": None,
    "device": {},
    "binding_device": "",
    "session": {},
    "memory_limit_mb": None,
    "tensor_folders": [],
}
HELLO = b'ep-harness {"protocols": [1], "token": "%s", "modes": ["binary"], "connect": ""}\n' % (b"a" * 32)

FLOATS = {"dtype": "float32", "shape": [2], "data": b"12345678"}
_TEXTS = {"dtype": "string", "shape": [2], "data": ["a", "b\0c"]}
_VALUES: dict[str, list[list[Any]]] = {
    "negated": [["x", FLOATS]],
    "two": [["x", FLOATS]],
    "subtracted": [["p", FLOATS], ["q", FLOATS]],
    "sequence": [["x", {"sequence": [FLOATS, FLOATS]}]],
    "to sequence": [["x", FLOATS]],
    "map": [["x", {"keys": _TEXTS, "values": FLOATS}]],
    "to map": [["x", {"dtype": "float32", "shape": [1, 2], "data": b"12345678"}]],
    "optional": [["x", None]],
}
_SCENARIOS: dict[str, dict[str, Any]] = {
    "sessions": {"count": 3, "budget_s": 1.0},
    "concurrent": {"threads": 3, "runs": 2, "budget_s": 1.0},
    **{name: {} for name in ("from_bytes", "separate_outputs", "dynamic_shapes", "cpu_fallback_disabled")},
    **{
        name: {}
        for name in ("interleaved", "async_runs", "io_binding", "buffers", "initializers", "adapters")
    },
    **{name: {} for name in ("ort_format", "ep_context", "compile", "lifecycle", "terminate", "profiling")},
    "graph_capture": {"option": ["enable_graph_capture", "1"]},
    "dynamic_options": {
        "options": [["ep.dynamic.workload_type", ["Default", "Efficient"]]],
        "documented": False,
    },
}
_ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        "",
        "x",
        "x" * 300,
        "../../x",
        "\0",
        "\ud7ff",
        [],
        {},
        b"",
        b"\xff" * 9,
        0,
        1,
        -1,
        2.5,
        -0.0,
    ),
    *(63, 65, 2**31, -(2**31), 2**32 + 1, 2**53, 2**63 - 1, 2**64, 1e308, 5e-324, [0, -1], [2**40, 2**40]),
    {"sequence": [None]},
    {"sequence": []},
    {"dtype": "int4", "shape": [3], "data": b"ab"},
    {"dtype": "string", "shape": [1], "data": [1]},
    {"keys": [], "values": []},
    {"dtype": "float32", "shape": [1] * 65, "data": b"1234"},
)


def whole_job(folder: Path, name: str) -> dict[str, Any]:
    """Return a job for one of the models."""
    return {
        "model": str(folder / name),
        "data_sets": [copy.deepcopy(_VALUES[name])],
        "graph_optimization": "all",
        "execution_mode": "sequential",
    }


def any_job(chance: random.Random, number: int, folder: Path) -> list[Any]:
    """Return a job that could be served."""
    job = whole_job(folder, chance.choice(list(_VALUES)))
    job["data_sets"] *= chance.choice((1, 1, 2))
    job["graph_optimization"] = chance.choice(("all", "disabled", "layout"))
    if chance.random() < 0.5:
        scenario = chance.choice(list(_SCENARIOS))
        job.update({"scenario": scenario, "scenario_settings": dict(_SCENARIOS[scenario])})
    for key, value in (
        ("repeat", {"runs": 3, "sessions": 1}),
        ("other", True),
        ("latency", {"warm_up": 1, "repeats": 3, "budget_s": 0.05}),
        ("entries", {"session.intra_op.allow_spinning": "0"}),
        ("fixed", {"N": 2}),
    ):
        if chance.random() < 0.25:
            job[key] = value
    if chance.random() < 0.1:
        job["model"] = {"digest": "a" * 64, "files": [["m.onnx", 4, "b" * 64], ["w/w.bin", 3, "c" * 64]]}
    return ["job", number, job]


def changed(chance: random.Random, value: Any) -> Any:
    """Return a message with one change somewhere within."""
    if isinstance(value, dict | list) and value and chance.random() < 0.8:
        made: Any = copy.copy(value)
        at: Any = chance.choice(list(made)) if isinstance(made, dict) else chance.randrange(len(made))
        way = chance.random()
        if way < 0.06:
            del made[at]
        elif way < 0.1 and isinstance(made, dict):
            made[chance.choice(("", "\0", "data", "shape", "sequence", "x" * 200))] = made[at]
        elif way < 0.1:
            made.insert(at, made[at])
        else:
            made[at] = changed(chance, made[at])
        return made
    if isinstance(value, bytes) and chance.random() < 0.5:
        return value[: chance.randrange(len(value) + 1)]
    if isinstance(value, int) and chance.random() < 0.3:
        return value + chance.choice((-1, 1))
    return copy.deepcopy(chance.choice(_ODD))


def with_changed_text(chance: random.Random, message: Any) -> bytes:
    """Return a frame whose JSON is changed, and whose checksum is that of the change."""
    text, parts, _ = pack_message(message)
    made = bytearray(text)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(made))
        way = chance.random()
        if way < 0.4:
            made[at] = chance.choice(b'[]{}",:\\0-9eu.\x00\x80\xff\xc3 tfn')
        elif way < 0.6:
            made[at:at] = chance.choice((b"[" * 70, b"\\ud800", b"1e999", b"-", b'"\\u0000bytes"', b"9" * 40))
        elif way < 0.8:
            del made[at : at + chance.randrange(1, 9)]
        else:
            made[at:at] = made[at : at + 30]
        made = made or bytearray(b" ")
    binary = b"".join(map(bytes, parts))
    content = bytes(made) + binary
    return b"#b %d %d %08x\n%s\n" % (len(made), len(binary), zlib.crc32(content), content)


def frame_of(chance: random.Random, message: list[Any]) -> bytes:
    """Return the whole frame of a job with changes."""
    name, number, content = message
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        content = changed(chance, content)
    try:
        return framed([name, number, content], chance.choice((BINARY, LINE)))
    except (ValueError, TypeError, OverflowError):
        return b""  # what Python itself cannot send


def broken_frame(chance: random.Random, message: list[Any]) -> bytes:
    """Return a frame with a changed text, message or header; most end the agent."""
    way = chance.random()
    if way < 0.8:
        return with_changed_text(chance, message)
    if way < 0.9:
        return with_changed_text(chance, ["config", CONFIG])
    made = bytearray(framed(message, chance.choice((BINARY, LINE))))
    made[chance.randrange(len(made))] = chance.randrange(256)
    return bytes(made)


def dialogue(chance: random.Random, folder: Path) -> bytes:
    """Return all that an agent reads in one dialogue; its models are in a folder.

    The agent reads ahead, and a broken frame ends it at once; so a dialogue has either changed jobs or such.
    """
    config = CONFIG if chance.random() < 0.9 else changed(chance, CONFIG)
    frames = [framed(["config", config])]
    change = broken_frame if chance.random() < 0.5 else frame_of
    for number in range(JOBS):
        frames.append(change(chance, any_job(chance, number, folder)))
        if chance.random() < 0.1:
            frames.append(framed(["model", number, "m.onnx", 0, b"1234"]))
    return HELLO + b"".join(frames) + framed(["stop"])


def write_models(folder: Path) -> None:
    """Write the models that the dialogues name."""
    for name in _VALUES:
        (folder / name).write_bytes(model(MODELS[name]).SerializeToString())


class Ended(NamedTuple):
    """An agent that has got some input.

    Attributes:
        code: Its exit code; None if it took too long.
    """

    code: int | None
    sent: bytes = b""
    printed: bytes = b""


def ended(program: Path, data: bytes) -> Ended:
    """Return what became of an agent that got some input."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [program.absolute()],
                input=data,
                capture_output=True,
                timeout=_LIMIT_S,
                check=False,
                cwd=folder,
            )
        except subprocess.TimeoutExpired:
            return Ended(None)
    return Ended(done.returncode, done.stdout, done.stderr)


def main() -> None:
    """Run until the time is over; write what was done."""
    program, kept, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    seed = int(time.time())
    end, count, late, findings = time.monotonic() + seconds, 0, 0, 0
    kept.mkdir(parents=True, exist_ok=True)
    models = kept / "models"
    models.mkdir(exist_ok=True)
    write_models(models)
    while time.monotonic() < end:
        data = dialogue(random.Random(seed + count), models)  # noqa: S311 - to be repeated
        code, _, printed = ended(program, data)
        count += 1
        late += code is None
        if code not in {0, 1, None}:
            findings += 1
            (kept / f"{seed + count - 1}.bin").write_bytes(data)
            (kept / f"{seed + count - 1}.txt").write_bytes(b"%d\n%s" % (code, printed[-20000:]))
        sys.stdout.write(f"{count} dialogues of {JOBS} jobs, {findings} findings, {late} too long\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
