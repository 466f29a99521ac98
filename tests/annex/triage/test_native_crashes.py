"""Processes that die inside of a library made for it: how they die, and what is found out about it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from harness import agent
from harness.agent.native_stack.block import JIT, NOWHERE
from harness.agent.native_stack.start import ON, UNAVAILABLE_PREFIX
from harness.core.records.fault import NativeCrash
from harness.core.records.verdict import Verdict
from harness.engine.processes.native_crash import SWITCHED_ON, native_crash
from harness.engine.tasks.events import Event, Finished, TargetReady
from tests.kit import FAKE_ENV, of_folder, run_matrix, write_model

COMPILER = shutil.which("gcc") or shutil.which("cc")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process read another one's stack"),
    pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed"),
]

MOST_S = 2.0
REPEATS = int(os.environ.get("NATIVE_REPEATS", "1"))

KINDS = {
    "segv": ("SIGSEGV", ("inner_segv",)),
    "abort": ("SIGABRT", ("inner_abort",)),
    "fpe": ("SIGFPE", ("divide", "inner_fpe")),
    "heap": ("SIGABRT", ("inner_heap",)),
    "overflow": ("SIGSEGV", ("inner_overflow",)),
    "ill": ("SIGILL", ("inner_ill",)),
    "null": ("SIGSEGV", ("inner_null",)),
    "jit": ("SIGSEGV", ("inner_jit",)),
    "handled": ("SIGSEGV", ("inner_segv", "inner_handled")),
    "aborted": ("SIGABRT", ("inner_segv", "inner_aborted")),
}
NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
THROUGH_ENGINE = ("segv", "abort", "overflow", "handled")
"""Those that die in a run of the engine, too, which passes on what the process printed, whatever it was."""

BUILDS = {
    "open": ("-fvisibility=default",),
    "hidden": ("-fvisibility=hidden",),
    "stripped": ("-fvisibility=hidden", "-s"),
    "no_tables": ("-fvisibility=hidden", "-fno-asynchronous-unwind-tables", "-fno-omit-frame-pointer"),
}
CHILD = """
import json, os, sys, time
sources = json.loads(sys.stdin.readline())
space = {"__name__": "importer"}
exec(sources["harness.agent.importer"], space)
space["Importer"](sources).install()
from harness.agent.native_stack.start import start_if_asked
print(start_if_asked(), flush=True)
import ctypes
sys.stdin.readline()
"""


class Death(NamedTuple):
    """How a process has died."""

    signal: str
    seconds: float
    printed: str

    @property
    def crash(self) -> NativeCrash:
        found = native_crash(self.printed)
        assert found is not None, self.printed
        return found

    def functions(self, library: str) -> tuple[str, ...]:
        return tuple(frame.function for frame in self.crash.frames if frame.library == library)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("libraries")
    found = {}
    for build, options in BUILDS.items():
        found[build] = folder / f"libdying_{build}.so"
        source = Path(__file__).with_name("dying_library.c")
        command = [
            str(COMPILER),
            "-O1",
            "-fPIC",
            "-shared",
            "-Wno-infinite-recursion",
            *options,
            "-o",
            str(found[build]),
            str(source),
        ]
        subprocess.run([*command, "-lpthread"], check=True)
    return found


@pytest.fixture(scope="module")
def sources() -> str:
    folder = Path(agent.__file__).parent
    texts = {"harness": ""}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join(("harness", "agent", *parts)).removesuffix(".__init__")
        texts[name] = path.read_text(encoding="utf-8")
    return json.dumps(texts)


@pytest.fixture
def die(sources: str, tmp_path: Path) -> Callable[..., Death]:
    """Run code in a process that is watched, as an agent's is, until it dies."""

    def run(code: str, before: str = "", state: str = ON, texts: str = sources) -> Death:
        output = tmp_path / "output.txt"
        with output.open("w+b", buffering=0) as file:
            process = subprocess.Popen(
                [sys.executable, "-c", before + CHILD + code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, **SWITCHED_ON},
                cwd=tmp_path,
                text=True,
            )
            assert process.stdin is not None
            assert process.stdout is not None
            with process.stdin, process.stdout:
                process.stdin.write(texts + "\n")
                process.stdin.flush()
                assert process.stdout.readline().startswith(state)
                began = time.monotonic()
                process.stdin.write("\n")
                process.stdin.flush()
                code_found = process.wait(60)
                took_s = time.monotonic() - began
        name = signal.Signals(-code_found).name if code_found < 0 else f"exit code {code_found}"
        return Death(name, took_s, output.read_text(encoding="utf-8"))

    return run


def call(library: Path, kind: str, entry: str = "run_kernel", loader: str = "CDLL") -> str:
    return f"ctypes.{loader}({str(library)!r}).{entry}({NUMBERS[kind]})"


@pytest.mark.parametrize("entry", ["run_kernel", "run_in_thread"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_death_stays_what_it_is_and_is_explained(
    die: Callable[..., Death], libraries: dict[str, Path], kind: str, entry: str
) -> None:
    name, innermost = KINDS[kind]
    library = libraries["hidden"]
    outermost = ("run_kernel", "run_in_thread") if entry == "run_kernel" else ("run_kernel", "start")
    for _ in range(REPEATS):
        death = die(call(library, kind, entry))
        assert death.signal == death.crash.signal == name
        assert death.seconds < MOST_S
        assert death.crash.culprit == library.name
        functions = death.functions(library.name)
        if kind == "overflow":
            assert len(functions) > 50
            assert set(functions) == {"inner_overflow"}
        else:
            end = outermost[:1] if entry == "run_kernel" else outermost
            assert functions == (*innermost, "outer", *end)


def test_the_address_of_a_fault_is_told(die: Callable[..., Death], libraries: dict[str, Path]) -> None:
    assert die(call(libraries["open"], "segv")).crash.address == "0x10"
    assert die(call(libraries["open"], "handled")).crash.address == "0x10"
    assert die(call(libraries["open"], "null")).crash.address == "0x0"
    assert die(call(libraries["open"], "abort")).crash.address == ""


def test_a_lock_of_the_interpreter_that_is_held_changes_nothing(
    die: Callable[..., Death], libraries: dict[str, Path]
) -> None:
    for entry in ("run_kernel", "run_in_thread"):
        death = die(call(libraries["hidden"], "fpe", entry, loader="PyDLL"))
        assert death.signal == "SIGFPE"
        assert death.seconds < MOST_S
        assert death.functions(libraries["hidden"].name)[:3] == ("divide", "inner_fpe", "outer")


def test_without_symbols_the_offset_is_that_of_the_library(
    die: Callable[..., Death], libraries: dict[str, Path]
) -> None:
    stripped, hidden = libraries["stripped"], libraries["hidden"]
    crash = die(call(stripped, "fpe")).crash
    own = [frame for frame in crash.frames if frame.library == stripped.name]
    # Exported, so the loader itself needs its name; the others have none.
    assert [frame.function for frame in own] == ["", "", "", "run_kernel"]
    starts = starts_of_functions(hidden)
    named = die(call(hidden, "fpe")).crash.frames[:3]
    assert [frame.offset for frame in own[:3]] == [starts[f.function] + f.offset for f in named]


def starts_of_functions(library: Path) -> dict[str, int]:
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("binutils are not installed")
    lines = subprocess.run([nm, str(library)], check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [line.split() for line in lines]
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3}


def test_without_unwind_tables_frame_pointers_lead_on(
    die: Callable[..., Death], libraries: dict[str, Path]
) -> None:
    library = libraries["no_tables"]
    death = die(call(library, "fpe"))
    assert death.signal == "SIGFPE"
    assert death.functions(library.name) == ("divide", "inner_fpe", "outer", "run_kernel")
    assert "#1?\t" in death.printed


def test_code_without_a_file_is_told_as_such(die: Callable[..., Death], libraries: dict[str, Path]) -> None:
    frames = die(call(libraries["open"], "jit")).crash.frames
    assert (frames[0].library, frames[0].function, frames[0].offset) == (JIT, "", 3)
    frames = die(call(libraries["open"], "null")).crash.frames
    assert (frames[0].library, frames[0].offset) == (NOWHERE, 0)


def test_a_library_that_was_deleted_or_replaced_is_read_from_memory(
    die: Callable[..., Death], libraries: dict[str, Path], tmp_path: Path
) -> None:
    library = tmp_path / "libgone.so"
    for after in (
        f"os.unlink({str(library)!r})",
        f"os.rename(__import__('sys').executable, {str(library)!r})",
    ):
        shutil.copy(libraries["open"], library)
        code = f"library = ctypes.CDLL({str(library)!r}); {after}; library.run_kernel({NUMBERS['fpe']})"
        if "rename" in after:
            decoy = tmp_path / "decoy"
            shutil.copy(libraries["stripped"], decoy)
            code = code.replace("__import__('sys').executable", repr(str(decoy)))
        death = die(code)
        assert death.signal == "SIGFPE"
        # ``divide`` is local, and so not among the symbols that the loader needs.
        assert death.functions("libgone.so") == ("", "", "", "run_kernel")


def test_the_frame_where_the_named_library_died(
    die: Callable[..., Death], libraries: dict[str, Path]
) -> None:
    crash = die(call(libraries["hidden"], "heap")).crash
    frame = next(one for one in crash.frames if one.library == crash.culprit)
    assert frame.function == "inner_heap"


def test_a_process_that_ends_by_itself_prints_nothing(die: Callable[..., Death]) -> None:
    death = die("sys.exit(3)")
    assert (death.signal, death.printed) == ("exit code 3", "")


def test_signals_that_are_handled_or_ignored_stay_so(die: Callable[..., Death]) -> None:
    death = die(
        "import signal, threading\n"
        "seen = []\n"
        "signal.signal(signal.SIGSEGV, lambda *_: seen.append(1))\n"
        "signal.signal(signal.SIGBUS, signal.SIG_IGN)\n"
        "for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGSEGV): os.kill(os.getpid(), number)\n"
        "threads = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(50)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "os.posix_spawn('/bin/true', ['true'], {}); os.wait()\n"
        "sys.exit(10 + len(seen))"
    )
    assert (death.signal, death.printed) == ("exit code 12", "")


def test_a_watcher_that_is_killed_leaves_the_death_as_it_is(
    die: Callable[..., Death], libraries: dict[str, Path]
) -> None:
    find = (
        "watcher = next(int(line.split()[1]) for line in open('/proc/self/status') if 'TracerPid' in line)\n"
    )
    death = die(find + "os.kill(watcher, 9)\n" + call(libraries["hidden"], "segv"))
    assert (death.signal, death.printed) == ("SIGSEGV", "")
    assert death.seconds < MOST_S


def test_a_watcher_that_takes_too_long_is_ended(
    die: Callable[..., Death], libraries: dict[str, Path], sources: str
) -> None:
    texts = json.loads(sources)
    crash_print = "harness.agent.native_stack.crash_print"
    # No other thread can run, so that only the system can end it.
    texts[crash_print] += "\n    def print(self, *_):\n        __import__('ctypes').PyDLL(None).sleep(100)\n"
    death = die(call(libraries["hidden"], "abort"), texts=json.dumps(texts))
    assert death.signal == "SIGABRT"
    assert 1.0 < death.seconds < MOST_S
    assert native_crash(death.printed) is None


def test_a_process_that_another_one_traces_is_told_to_be_unavailable(die: Callable[..., Death]) -> None:
    """What a debugger, a sandbox or a setting of the system does: ptrace is refused."""
    occupy = (
        "import ctypes, os, time\n"
        "ready, done = os.pipe(), os.pipe()\n"
        "if not os.fork():\n"
        "    ctypes.CDLL(None).ptrace(0x4206, os.getppid(), None, None)\n"
        "    os.write(ready[1], b'.')\n"
        "    while True:\n"
        "        try: tid, status = os.waitpid(-1, 0x40000000)\n"
        "        except OSError: os._exit(0)\n"
        "        if os.WIFSTOPPED(status):\n"
        "            ctypes.CDLL(None).ptrace(7, tid, None, ctypes.c_void_p(os.WSTOPSIG(status)))\n"
        "os.read(ready[0], 1)\n"
    )
    death = die(
        "os.abort()",
        before=occupy,
        state=f"{UNAVAILABLE_PREFIX}the system refuses ptrace: Operation not permitted",
    )
    assert (death.signal, death.printed) == ("SIGABRT", "")


WATCHED, ALONE, ELSEWHERE = "watched", "alone", "elsewhere"


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory, libraries: dict[str, Path]) -> list[Event]:
    """Models that die in the library, each before a good one, with and without stacks, here and elsewhere."""
    folder = tmp_path_factory.mktemp("native")
    for number in map(NUMBERS.get, THROUGH_ENGINE):
        write_model(folder / "models" / f"{number}_a" / f"1_native{number}_in_run.onnx")
        write_model(folder / "models" / f"{number}_a" / "2_after.onnx")
    env = {**FAKE_ENV, "FAKE_LIBRARY": str(libraries["hidden"])}
    target = {"provider": "CUDAExecutionProvider"}
    runtime = {"command": sys.executable}
    watched = {**env, **SWITCHED_ON}
    matrix = of_folder(
        {"name": WATCHED, "env": watched, **target},
        {"name": ALONE, "env": env, **target},
        {"name": ELSEWHERE, "env": watched, "runtime": runtime, **target},
    )
    return run_matrix(folder, matrix)


@pytest.mark.parametrize("target", [WATCHED, ELSEWHERE])
@pytest.mark.parametrize("kind", THROUGH_ENGINE)
def test_through_the_engine(events: list[Event], libraries: dict[str, Path], target: str, kind: str) -> None:
    name, innermost = KINDS[kind]
    finished = dying(events, target)[kind]
    assert (finished.record.verdict, finished.record.cause) == (Verdict.CRASH, name)
    crash = native_crash(finished.printed)
    assert crash is not None
    assert (crash.signal, crash.culprit) == (name, libraries["hidden"].name)
    own = [frame.function for frame in crash.frames if frame.library == libraries["hidden"].name]
    assert tuple(own[: len(innermost)]) == innermost


def test_stacks_change_no_verdict_and_are_off_by_default(events: list[Event]) -> None:
    alone = dying(events, ALONE)
    for target in (WATCHED, ELSEWHERE):
        for kind, finished in dying(events, target).items():
            other = alone[kind].record
            record = finished.record
            assert (record.verdict, record.phase, record.cause, record.reason, record.attempt) == (
                other.verdict,
                other.phase,
                other.cause,
                other.reason,
                other.attempt,
            )
    assert all(native_crash(finished.printed) is None for finished in alone.values())
    after = [e for e in events if isinstance(e, Finished) and e.record.model.endswith("2_after.onnx")]
    assert {finished.record.verdict for finished in after} == {Verdict.PASS}
    assert len(after) == 3 * len(THROUGH_ENGINE)


def test_the_environment_tells_whether_there_are_stacks(events: list[Event]) -> None:
    told = {
        event.target: event.fingerprint.get("native_stack")
        for event in events
        if isinstance(event, TargetReady)
    }
    assert told == {WATCHED: "on", ELSEWHERE: "on", ALONE: None}


def dying(events: list[Event], target: str) -> dict[str, Finished]:
    names = list(KINDS)
    return {
        names[int(event.record.model.rpartition("native")[2].partition("_")[0])]: event
        for event in events
        if isinstance(event, Finished) and event.record.target == target and "native" in event.record.model
    }


def test_a_second_process_of_a_scenario_is_explained_too(tmp_path: Path, libraries: dict[str, Path]) -> None:
    write_model(tmp_path / "models" / f"1_native{NUMBERS['fpe']}_in_reload.onnx")
    env = {**FAKE_ENV, "FAKE_LIBRARY": str(libraries["hidden"]), **SWITCHED_ON}
    matrix = of_folder(
        {"name": WATCHED, "provider": "CUDAExecutionProvider", "env": env}, axes={"scenario": ["ep_context"]}
    )
    (finished,) = (event for event in run_matrix(tmp_path, matrix) if isinstance(event, Finished))
    assert (finished.record.verdict, finished.record.cause) == (Verdict.CRASH, "SIGFPE")
    crash = native_crash(finished.printed) or pytest.fail(finished.printed)
    frame = next(one for one in crash.frames if one.library == crash.culprit)
    assert frame.function == "divide"
