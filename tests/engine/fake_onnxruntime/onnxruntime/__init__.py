"""An onnxruntime that misbehaves on demand: pure Python, seen by a target's process through PYTHONPATH.

It computes one model, ``y = Relu(x), k = Cast<int32>(x), z = Neg(x)``. How it misbehaves stands in the
model's file name, ``<number>_<fault>.onnx``, or, for what happens before any model, in the variable
``FAKE_FAULT``. A fault ``<action>_in_<phase>`` does something drastic there; the others bend the answer.
With the fault ``reference`` it computes any model, as ``onnx.reference`` does.
"""

from __future__ import annotations

import atexit
import ctypes
import enum
import fcntl
import json
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

EP, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
FAULT = os.environ.get("FAKE_FAULT", "")
LIBRARY_MISSING = (
    "Failed to load library libonnxruntime_providers_cuda.so with error: "
    "libcublasLt.so.13: cannot open shared object file: No such file or directory"
)
FLOOD_BYTES = 100 << 20
WARM_RUNS = 6
SLOW_S = 0.8
FLAKY_SHARE = 0.2
CUDA_700 = "CUDA error 700: an illegal memory access was encountered"

__version__ = os.environ.get("FAKE_VERSION", "1.31.1")

STATE = SimpleNamespace(
    later=lambda: None,  # done before anything else, once a provider is broken for good
    shift=np.float32(os.environ.get("FAKE_SHIFT", "0")),  # added to whatever is computed
    answers={},  # of the session before
    held=[],
    loaded=False,  # the libraries of pip's packages
    seen=set(),  # models that must not come again
    model="",  # the stem of the last one's file name
)


CONTEXT = '"\tEPContext '
"""How a node of a compiled model begins: the field op_type of a NodeProto."""


class Fail(Exception):  # noqa: N818 - onnxruntime's own name
    """What onnxruntime raises for most errors."""


class NotImplemented(Exception):  # noqa: A001, N818 - onnxruntime's own name
    """What onnxruntime raises where a kernel is missing."""


class UnreadableError(Exception):
    """An error whose message is not UTF-8, as pybind11 makes it."""

    def __str__(self) -> str:
        return b"\xff\xfe".decode("utf-8")


def segfault() -> None:
    ctypes.string_at(0)


def hang() -> None:
    time.sleep(1000)


def hang_with_gil() -> None:
    ctypes.PyDLL(None).sleep(1000)


def spin() -> None:
    while True:
        pass


def burn() -> None:
    """Use 0.4 s of the processor that the variable names, however long that takes."""
    os.sched_setaffinity(0, {int(os.environ["FAKE_PROCESSOR"])})
    until = time.thread_time() + 0.4
    while time.thread_time() < until:
        pass


def stuck() -> None:
    """Leave the process id in the marker and hang where no other thread can run."""
    Path(os.environ["FAKE_MARKER"]).write_text(str(os.getpid()), encoding="utf-8")
    hang_with_gil()


def nap() -> None:
    time.sleep(float(os.environ.get("FAKE_NAP", "0.1")))


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_once() -> None:
    marker = Path(os.environ["FAKE_MARKER"])
    if not marker.exists():
        marker.touch()
        kill()


def wait_once() -> None:
    """Leave the process id in the marker and wait to be killed; the next attempt goes on."""
    marker = Path(os.environ["FAKE_MARKER"])
    if not marker.exists():
        marker.with_suffix(".new").write_text(str(os.getpid()), encoding="utf-8")
        marker.with_suffix(".new").rename(marker)
        hang()


def cut_off() -> None:
    """Lose the connection to the harness: kill the launcher that stands between."""
    assert b"closefd" in Path(f"/proc/{os.getppid()}/cmdline").read_bytes()
    os.kill(os.getppid(), signal.SIGKILL)
    hang()


def how_often(what: str) -> int:
    """How often this has come up, in whichever process that has the same marker."""
    with Path(f"{os.environ['FAKE_MARKER']}.{what}").open("ab") as file:
        file.write(b".")
        return file.tell()


def at_first(action: Callable[[], None], times: int = 1) -> Callable[[], None]:
    """Do something the first times that this model comes, whoever runs it."""

    def act_at_first() -> None:
        if how_often(STATE.model) <= times:
            os.write(2, b"at first\n")
            action()

    return act_at_first


def only_once() -> None:
    """Make one session of a model in each process, and no other."""
    if STATE.model in STATE.seen:
        raise Fail("a second session of the model")
    STATE.seen.add(STATE.model)


def only_in(process: int, action: Callable[[], None]) -> Callable[[], None]:
    """Do something in the first process, or in the second one, and in no other."""

    def act_there() -> None:
        if how_often("process") == process:
            action()

    return act_there


def gate() -> None:
    """Wait until there is a file beside the marker."""
    Path(f"{os.environ['FAKE_MARKER']}.waits").touch()
    while not Path(f"{os.environ['FAKE_MARKER']}.open").exists():
        time.sleep(0.01)


def only_one() -> None:
    """Let the first process pass and no other."""
    try:
        Path(os.environ["FAKE_MARKER"]).touch(exist_ok=False)
    except FileExistsError:
        raise Fail("the device is busy") from None


def leave_child() -> None:
    """Die while a child of ours lives on."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    Path(os.environ["FAKE_MARKER"]).with_suffix(".child").write_text(str(child.pid), encoding="utf-8")
    os.abort()


def fork() -> None:
    """Die while a copy of this process lives on, with all its descriptors."""
    if os.fork():
        os.abort()
    hang()


def leave_daemon(then: Callable[[], None] = lambda: None) -> Callable[[], None]:
    """Leave a copy of this process, with all its descriptors, in a session of its own; then go on."""

    def leave() -> None:
        if not os.fork():
            os.setsid()
            if os.fork():
                os._exit(0)
            hang()
        os.wait()
        then()

    return leave


def leave_twelve() -> None:
    """Leave twelve processes in sessions of their own."""
    for _ in range(12):
        subprocess.Popen(["sleep", "1000"], start_new_session=True)


def lower_limit() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def flood() -> None:
    lines = (b"noise " * 170 + b"\n") * 1000
    for _ in range(FLOOD_BYTES // len(lines)):
        os.write(1, lines)


def size_up() -> None:
    """Leave in the marker how much of what was printed is on the disk."""
    Path(os.environ["FAKE_MARKER"]).write_text(str(os.fstat(2).st_size), encoding="utf-8")


def allocate() -> None:
    """Take 64 GiB, but only where a limit saves the machine."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        raise Fail("no limit is set")
    np.ones(64 << 30, np.uint8)


def bad_alloc() -> None:
    """Die as C++ does where nobody catches it."""
    os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\n")
    os.abort()


def break_for_good(message: str, later: Callable[[], None]) -> Callable[[], None]:
    """Fail, and leave the whole process in a state in which every later call does what ``later`` does."""

    def action() -> None:
        STATE.later = later
        raise Fail(message)

    return action


def shift() -> None:
    """Leave the registers of the device in a state in which it computes something else, and say so."""
    say()
    STATE.shift = np.float32(1)


def of_agent(name: str) -> Any:
    """What the agent calls by this name, from the frames below."""
    import inspect  # no process that does not ask waits for it

    frame = inspect.currentframe()
    while frame is not None and name not in frame.f_locals:
        frame = frame.f_back
    assert frame is not None
    return frame.f_locals[name]


def pipe_of_agent() -> int:
    """The descriptor of the agent's messages: the only pipe here that can be written to."""
    found = [
        number
        for number in range(3, 64)
        if is_open(number)
        and stat.S_ISFIFO(os.fstat(number).st_mode)
        and fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
    ]
    assert len(found) == 1
    return found[0]


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def write_to_harness(data: bytes) -> None:
    """Put any bytes into the stream of the agent's messages."""
    os.write(pipe_of_agent(), data)


def write_frame(length: int, payload: bytes = b"") -> None:
    """Put the header of a frame and any payload into the stream of the agent's messages."""
    write_to_harness(b"#b %d 0 %08x\n%s" % (length, zlib.crc32(payload), payload))


def write_whole(content: bytes) -> None:
    """Put a complete frame with any content into the stream of the agent's messages."""
    write_to_harness(b"#b %d 0 %08x\n%s\n" % (len(content), zlib.crc32(content), content))


def unreadable_and_gone() -> None:
    write_whole(b"\xff\xfe\xfd\xfc")
    os._exit(3)


def garbage() -> None:
    write_to_harness(b"a library says hello\n" * 100)


def half_then_exit() -> None:
    write_frame(1000, b"half of it")
    os._exit(3)


def half_then_hang() -> None:
    write_frame(1000, b"half of it")
    hang()


def hang_up() -> None:
    """Close the stream of the agent's messages, and go on."""
    os.close(pipe_of_agent())
    hang_with_gil()


def say_to_harness(kind: str, *rest: Any) -> Callable[[], None]:
    """Send a message that the harness has no reason to expect; the job's own id stands for ``...``."""

    def action() -> None:
        words = tuple(of_agent("job_id") if word is ... else word for word in rest)
        of_agent("channel").send((kind, *words))

    return action


def keep_saying(word: str, *rest: Any) -> Callable[[], None]:
    """Send a message again and again, each of which gives a model more time."""

    def say_for_ever() -> None:
        while True:
            say_to_harness(word, *rest)()
            time.sleep(0.01)

    return say_for_ever


def say() -> None:
    os.write(1, b"stdout of the provider\n")
    os.write(2, b"stderr of the provider \xff\x1b[31m\n")
    ctypes.CDLL(None).puts(b"buffered in C")


def throw(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


def die_in_library(which: int) -> Callable[[], None]:
    """Die in native code, as ``tests/annex/triage/dying_library.c`` does; its variable names the library."""
    return lambda: ctypes.CDLL(os.environ["FAKE_LIBRARY"]).run_kernel(which)


def leave_outlaw() -> None:
    """Leave a process that has neither our variables nor our session."""
    child = subprocess.Popen(["sleep", "1000"], env={}, start_new_session=True)
    Path(f"{os.environ['FAKE_MARKER']}.outlaw").write_text(str(child.pid), encoding="utf-8")


def round_up() -> None:
    ctypes.CDLL("libm.so.6").fesetround(0x400000 if os.uname().machine == "aarch64" else 0x800)


def change_variables() -> None:
    """Change them where Python does not see it."""
    ctypes.CDLL(None).setenv(b"OMP_NUM_THREADS", b"64", 1)
    ctypes.CDLL(None).unsetenv(b"PYTHONPATH")


def redirect() -> None:
    """Send what is printed elsewhere, and close standard input."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.close(0)


def handle_signals() -> None:
    """Ignore one signal, and block another one."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})


def overwrite() -> None:
    """Compute in place of the input."""
    x = of_agent("feeds")["x"]
    ctypes.memset(x.ctypes.data, 0, x.nbytes)


def take_gib() -> None:
    np.ones(1300 << 20, np.uint8)


ACTIONS: dict[str, Callable[[], None]] = {
    "roundup": round_up,
    "locale": lambda: ctypes.CDLL(None).setlocale(6, b"C"),
    "chdir": lambda: os.chdir("/"),
    "variables": change_variables,
    "redirect": redirect,
    "handle": handle_signals,
    "scribble": lambda: Path("compiled.bin").touch(),
    "outlaw": leave_outlaw,
    "overwrite": overwrite,
    "gib": take_gib,
    "segv": segfault,
    "abort": os.abort,
    "exit3": lambda: os._exit(3),
    "exit0": lambda: os._exit(0),
    "hang": hang,
    "hanggil": hang_with_gil,
    "spin": spin,
    "burn": at_first(burn),
    "kill": kill,
    "nap": nap,
    "killonce": kill_once,
    "orphan": leave_child,
    "waitonce": wait_once,
    "once": only_once,
    "gate": gate,
    "cutoff": cut_off,
    "cutoffonce": at_first(cut_off),
    "segvonce": at_first(segfault),
    **{f"native{which}": die_in_library(which) for which in range(10)},
    "firstdies": only_in(1, lambda: os._exit(3)),
    "firsthangs": only_in(1, hang),
    "seconddies": only_in(2, lambda: os._exit(3)),
    "secondhangs": only_in(2, hang),
    "single": only_one,
    "stuck": stuck,
    "sizeup": size_up,
    "huge": allocate,
    "badalloc": bad_alloc,
    "sticky": break_for_good(CUDA_700, throw(Fail(CUDA_700))),
    "wordy": break_for_good("x" * (1 << 20), throw(Fail("y" * (1 << 20)))),
    "shifts": break_for_good("something is wrong", shift),
    "freezes": break_for_good("something is wrong", hang),
    "rots": break_for_good("something is wrong", segfault),
    "half": half_then_exit,
    "halfhang": half_then_hang,
    "garbage": garbage,
    "unreadablemessage": lambda: write_whole(b"\xff\xfe\xfd\xfc"),
    "changedmessage": lambda: write_to_harness(b"#b 2 0 00000000\n[]\n"),
    "unreadableandgone": unreadable_and_gone,
    "nomessage": lambda: write_whole(b"hello"),
    "hangup": hang_up,
    "gossip": say_to_harness("gossip", ...),
    "begins": keep_saying("phase", ..., "run"),
    "asks": say_to_harness("need", ..., "model.onnx", 0),
    "lunch": say_to_harness("phase", ..., "lunch"),
    "ended": say_to_harness("ended"),
    "stranger": say_to_harness("result", 12345, {"status": "ok"}),
    "result": say_to_harness("result", ..., {"status": "ok"}),
    "early": say_to_harness("done", ..., {"took_ms": 2.0, "teardown_ms": 1.0, "processor_ms": 2.0}),
    "useless": say_to_harness("unavailable", "no_device", "gone", "", {}),
    "again": say_to_harness("ready", {}),
    "fork": fork,
    "daemon": leave_daemon(lambda: os._exit(0)),
    "twelve": leave_twelve,
    "limit": lower_limit,
    "flood": flood,
    "say": say,
    "memory": throw(MemoryError()),
    "alloc": throw(Fail("Failed to allocate memory for requested buffer of size 137438953472")),
    "error": throw(Fail("[ONNXRuntimeError] : 1 : FAIL : something is wrong")),
    "stumble": at_first(throw(Fail("it stumbled"))),
    "stumbletwice": at_first(throw(Fail("it stumbled")), times=2),
    "notimpl": throw(NotImplemented("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : no kernel for Relu")),
    "ansi": throw(Fail("\x1b[31mred\x1b[0m \x00\udcff <script>alert(1)</script>")),
    "long": throw(Fail("x" * (1 << 20))),
    "unreadable": throw(UnreadableError()),
}


def act(fault: str, phase: str) -> None:
    action, _, where = fault.partition("_in_")
    if where == phase:
        ACTIONS[action]()


def bent(fault: str, outputs: dict[str, Any], runs: int) -> dict[str, Any]:
    """The outputs, made wrong in the way that the fault names."""
    y, k, z = outputs["y"], outputs["k"], outputs["z"]
    last = np.where(runs % 2, np.nextafter(z, np.float32(np.inf)), z)  # one unit in the last place
    changes: dict[str, Callable[[], dict[str, Any]]] = {
        "wrong_dtype": lambda: {"y": y.astype(np.float64)},
        "wrong_shape": lambda: {"y": y.reshape(2, 2)},
        "missing_output": lambda: {"z": None},
        "extra_output": lambda: {"w": y},
        "nan": lambda: {"z": np.array([np.nan, *z[1:]], np.float32)},
        "off_by_one": lambda: {"k": k + np.array([0, 1, 0, 0], np.int32)},
        "reordered": lambda: {"z": z[::-1].copy()},
        "swapped": lambda: {"y": z, "z": y},
        "stale": lambda: dict(STATE.answers),
        "zeros": lambda: {"z": np.zeros_like(z)},
        "jitter": lambda: {"z": z + runs * np.float32(0.5)},
        "small_jitter": lambda: {"z": last},
        "tires": lambda: {"z": z + (runs > WARM_RUNS)},
    }
    changed = {**outputs, **changes.get(fault, dict)()}
    present = {name: value for name, value in changed.items() if value is not None}
    return dict(reversed(present.items())) if fault == "permuted" else present


def rounding(options: dict[str, str], entries: dict[str, str]) -> np.float32:
    """What a result is multiplied by in the arithmetic that was chosen; the variable says who cannot hear."""
    chosen = {} if os.environ.get("FAKE_DEAF") else options
    if "mlas.enable_gemm_fastmath_arm64_bfloat16" in entries:
        return np.float32(1 + 4e-3)
    return np.float32(1 + (4e-6 if chosen.get("use_tf32") == "0" else 2e-6))


def evaluator(model: str | bytes) -> Any:
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model)


class GraphOptimizationLevel(enum.Enum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.Enum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class SessionOptions:
    def __init__(self) -> None:
        self.profile_file_prefix = ""
        self.for_devices: tuple[str, dict[str, str]] | None = None
        self.entries: dict[str, str] = {}
        self.fixed: dict[str, int] = {}

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        self.fixed[name] = size

    def add_session_config_entry(self, key: str, value: str) -> None:
        self.entries[key] = value

    def add_provider_for_devices(self, devices: list[Any], options: dict[str, str]) -> None:
        self.for_devices = devices[0].ep_name, options


class InferenceSession:
    def __init__(
        self,
        model: str | bytes,
        settings: SessionOptions,
        providers: list[Any] | None = None,
        enable_fallback: int = 1,
    ) -> None:
        if enable_fallback:
            raise Fail("the harness must switch the silent retry off")
        self.model = model
        self.fault = "" if isinstance(model, bytes) else Path(model).stem.partition("_")[2]
        self.compiled = False
        if isinstance(model, str) and Path(model).stem == "context":
            self.compiled = True
            self.fault = Path(model).read_text(encoding="utf-8").removeprefix(CONTEXT)
            act(self.fault, "reload")
        if "ep.context_file_path" in settings.entries and self.fault != "not_compiled":
            if self.fault == "never_compiled":
                raise Fail("the provider cannot be asked for a context")
            content = CONTEXT + self.fault if self.fault != "empty_context" else ""
            Path(settings.entries["ep.context_file_path"]).write_text(content, encoding="utf-8")
        STATE.model = "" if isinstance(model, bytes) else Path(model).stem
        self.settings = settings
        self.runs = self.inside = 0
        self.met = False
        self.door = threading.Condition()
        STATE.later()
        if FAULT == "leak" and not isinstance(model, bytes):
            STATE.held.append(b"x" * (1 << 20))
        name, options = settings.for_devices or (providers or [(CPU, {})])[0]
        if isinstance(model, bytes):
            act(FAULT, "register")
            if FAULT == "library_on_stderr":
                os.write(2, LIBRARY_MISSING.encode() + b"\n")
        if options.get("precision") == "wrong":
            raise Fail(f"unknown value for an option of {name}")
        self.kept: dict[str, Any] = {}
        self.chance = random.Random(STATE.model)  # noqa: S311 - the same at each start
        act(self.fault, "create")
        unloaded = FAULT == "needs_libraries" and not STATE.loaded
        dropped = unloaded or FAULT in {"dropped", "library_on_stderr"} or self.fault == "dropped_at_create"
        chain = [one if isinstance(one, str) else one[0] for one in providers or [name]]
        self.providers = [CPU] if dropped else list(dict.fromkeys([*chain, CPU]))
        rounds = self.fault in {"rounds", "frail"}
        self.error = rounding(options, settings.entries) if rounds else np.float32(1)
        if self.fault == "frail" and "use_tf32" not in options:
            segfault()

    def __del__(self) -> None:
        act(getattr(self, "fault", ""), "teardown")

    def get_providers(self) -> list[str]:
        return [CPU] if self.fault == "providers_change" and self.runs else self.providers

    def get_session_options(self) -> SessionOptions:
        return self.settings

    def get_outputs(self) -> list[Any]:
        if self.fault == "hostile_name":
            return [SimpleNamespace(name="y\udcff\x1b[31m" + "n" * (1 << 20), type="tensor(float)")]
        if self.fault == "reference":
            return [
                SimpleNamespace(name=name, type="tensor(float)")
                for name in evaluator(self.model).output_names
            ]
        names = bent(self.fault, {name: np.zeros(4) for name in ("y", "k", "z")}, 0)
        return [SimpleNamespace(name=name, type="tensor(float)") for name in names]

    def run(self, names: list[str], feeds: dict[str, Any]) -> list[Any]:
        STATE.later()
        act(self.fault, "run")
        if self.compiled:
            act(self.fault, "rerun")
        if self.fault in {"crosstalk", "crowded"}:
            self.meet()
        if self.fault == "wears" and self.runs > WARM_RUNS:
            segfault()
        if self.fault == "reference":
            return list(evaluator(self.model).run(names, feeds))
        x = feeds["x"]
        right = {"y": np.maximum(x, 0) + STATE.shift, "k": x.astype(np.int32), "z": -x * self.error}
        outputs = bent(self.fault, right, self.runs)
        outputs = self.by_run(outputs)
        if self.fault == "other_context" and self.compiled:
            outputs["z"] = outputs["z"] + 1
        if self.met:
            outputs["z"] = outputs["z"] + 1
        if self.fault != "stale":
            STATE.answers = right
        self.runs += 1
        return [outputs.get(name, outputs["y"]) for name in names]

    def by_run(self, outputs: dict[str, Any]) -> dict[str, Any]:
        """The outputs, as far as they depend on which run of the session it is."""
        if self.fault.startswith("slow") and not self.runs:
            time.sleep(SLOW_S)
        if self.fault.endswith("flaky") and self.chance.random() < FLAKY_SHARE:
            outputs["z"] = outputs["z"] + 1
        if self.fault.endswith("keeps"):
            outputs = self.kept = self.kept or outputs
        return outputs

    def meet(self) -> None:
        """Wait for another run of this session; one alone is let pass, as are the first ones."""
        if self.runs < WARM_RUNS // 2:
            return
        with self.door:
            self.inside += 1
            self.door.notify_all()
            if self.door.wait_for(lambda: self.inside > 1, timeout=10):
                if self.fault == "crowded":
                    raise Fail("one at a time")
                self.met = True

    def assigned(self) -> list[tuple[str, list[str]]]:
        """``(provider, operators)`` of each partition."""
        mine, second = [*self.providers, CPU][:2]
        if self.fault == "free_crash" and self.settings.fixed:
            os.abort()
        if self.fault.startswith("free_") and not self.settings.fixed:
            return [(CPU, ["Relu", "Cast", "Neg"])]
        return {
            "placed_nowhere": [(CPU, ["Relu", "Cast", "Neg"])],
            "folded": [],
            "placed_partly": [(mine, ["Relu", "Cast"]), (CPU, ["Neg"])],
            "chained": [(mine, ["Relu"]), (second, ["Cast", "Neg"])],
            "chained_partly": [(mine, ["Relu"]), (second, ["Cast"]), (CPU, ["Neg"])],
            "placed_but_shapes": [(mine, ["Relu", "Cast", "Neg"]), (CPU, ["Shape"])],
            "hostile_placement": [(mine, ["Relu\udcff\x1b[31m"])],
        }.get(self.fault, [(mine, ["Relu", "Cast"]), (mine, ["Neg"])])

    def get_provider_graph_assignment_info(self) -> list[Any]:
        # 1.24 is known to leave nodes out.
        said = [] if __version__.startswith("1.24") else self.assigned()
        return [
            SimpleNamespace(
                ep_name=name, get_nodes=lambda ops=ops: [SimpleNamespace(op_type=op) for op in ops]
            )
            for name, ops in said
        ]

    def end_profiling(self) -> str:
        events = [
            {"cat": "Node", "name": f"{index}_{op}", "args": {"provider": name, "op_name": op}}
            for index, (name, ops) in enumerate(self.assigned())
            for op in ops
        ]
        path = Path(self.settings.profile_file_prefix + ".json")
        path.write_text(json.dumps([{"cat": "Session", "name": "model_run"}, *events]), encoding="utf-8")
        return str(path)


def get_available_providers() -> list[str]:
    return [CPU] if FAULT == "unlisted" else [*os.environ.get("FAKE_PROVIDERS", "").split(), EP, CPU]


def preload_dlls(*, msvc: bool) -> None:
    del msvc
    STATE.loaded = True


def register_execution_provider_library(name: str, path: str) -> None:
    del name, path
    if FAULT == "refuse_registration":
        raise Fail("the library speaks API version 99")
    if FAULT == "library_in_error":
        raise Fail(LIBRARY_MISSING)


def unregister_execution_provider_library(name: str) -> None:
    del name
    act(FAULT, "unload")


def get_ep_devices() -> list[Any]:
    hardware = SimpleNamespace(type="GPU", vendor="Acme\udcff", vendor_id=1, device_id=2, metadata={})
    device = SimpleNamespace(ep_name=EP, device=hardware, ep_metadata={"version": np.float64(2)})
    return [] if FAULT == "no_device" else [device]


atexit.register(act, FAULT, "exit")
act(FAULT, "import")
if FAULT == "not_installed":
    raise ModuleNotFoundError("No module named 'onnxruntime'", name="onnxruntime")
if FAULT == "broken_dependency":
    raise ModuleNotFoundError("No module named 'coloredlogs'", name="coloredlogs")
if FAULT == "library_at_import":
    raise ImportError(LIBRARY_MISSING)
if FAULT == "hollow":
    del InferenceSession
