"""What a process tells about its state, and that it can be put back; in processes of their own."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="the fault is one of Linux")

LOOK = """
import ctypes, json, os, sys
import numpy as np
from harness.agent import process_state
watch = process_state.{watch}()
before = watch.read()
assert before == watch.read()
{change}
now = watch.read()
told = watch.told(before, now) if now != before else ""
watch.restore(before)
print(json.dumps([told, watch.read() == before, {after}]))
"""


@pytest.fixture
def look(tmp_path: Path) -> Callable[..., list[object]]:
    def run(watch: str, change: str, after: str = "None") -> list[object]:
        script = LOOK.format(watch=watch, change=change, after=after)
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "KEPT": "1"},
            capture_output=True,
            check=True,
            encoding="utf-8",
        )
        found: list[object] = json.loads(done.stdout)
        return found

    return run


FLUSH = "watch.restore((before[0] ^ {bits}, *before[1:]))"
HALF = "float(np.float32(2.0**-126) * np.float32(0.5)) > 0"
"""Whether the processor knows denormals: the control word that was put back is the real one."""


def test_flushing_of_denormals_is_told_and_ends(look: Callable[..., list[object]]) -> None:
    arm = "0x01000000"
    x86 = "0x8040" if sys.platform != "win32" else "0x01000000"
    change = f"bits = {arm} if watch.is_arm else {x86}\n" + FLUSH.format(bits="bits")
    change += f"\nassert not {HALF}"
    assert look("FloatControl", change, HALF) == [
        "it changed flushing of denormals from off to on",
        True,
        True,
    ]


@linux
def test_rounding_and_traps_are_told(look: Callable[..., list[object]]) -> None:
    rounding = 'ctypes.CDLL("libm.so.6").fesetround(0x800000 if watch.is_arm else 0x400)'
    assert look("FloatControl", rounding) == ["it changed rounding from to nearest to down", True, None]
    trap = 'ctypes.CDLL("libm.so.6").feenableexcept(2 if watch.is_arm else 4)'
    told, back, _ = look("FloatControl", trap)
    assert (told, back) in (
        ("it changed traps from none to division by zero", True),
        ("", True),  # a processor of Arm that has no traps
    )


def test_a_flush_that_was_asked_for_is_nobodys_fault(look: Callable[..., list[object]]) -> None:
    x86 = "0x8040" if sys.platform != "win32" else "0x01000000"
    change = (
        f"bits = 0x01000000 if watch.is_arm else {x86}\n"
        + FLUSH.format(bits="bits")
        + "\nwatch.flush_is_asked = True\nbefore = watch.read()"
    )
    told, _, _ = look("FloatControl", change)
    assert told == ""


@pytest.mark.skipif(sys.platform == "win32", reason="its variables are not watched")
def test_variables_are_those_of_the_c_library(look: Callable[..., list[object]]) -> None:
    change = 'ctypes.CDLL(None).setenv(b"NEW", b"secret", 1); ctypes.CDLL(None).unsetenv(b"KEPT")'
    after = "[ctypes.CDLL(None).getenv(b'NEW'), bool(ctypes.CDLL(None).getenv(b'KEPT'))]"
    assert look("Variables", change, after) == ["it changed the environment: KEPT, NEW", True, [0, True]]


def test_directory_locale_and_mask(look: Callable[..., list[object]]) -> None:
    assert look("Directory", "os.mkdir('below'); os.chdir('below')")[1] is True
    assert look("FileMask", "os.umask(0)", "os.umask(7) != 0")[1] is True
    told, back, _ = look("Locale", "watch.restore(b'C' if before != b'C' else b'')")
    assert back is True
    assert told in ("", "it changed the locale of its process: C")


@linux
def test_counts_of_the_process(look: Callable[..., list[object]]) -> None:
    change = """
import threading
from harness.agent import process_figures as read
first = read.figure("Threads"), read.descriptors(), read.figure("VmHWM") / 1024, read.figure("RssAnon") / 1024
threading.Thread(target=threading.Event().wait, daemon=True).start()
os.dup(0)
held = np.ones(64 << 20, np.uint8)
later = read.figure("Threads"), read.descriptors(), read.figure("VmHWM") / 1024, read.figure("RssAnon") / 1024
"""
    _, _, grown = look("Directory", change, "[b - a for a, b in zip(first, later)]")
    assert isinstance(grown, list)
    assert grown[:2] == [1, 1]
    assert 60 < grown[2] < 100
    assert 60 < grown[3] < 100


@linux
def test_a_process_of_many_cells_is_watched_now_and_then(look: Callable[..., list[object]]) -> None:
    change = """
from harness.agent.manners import Manners
manners = Manners()
manners.settle()
seen = []
for cell in range(60):
    if cell in (5, 6, 40):
        open("file-of-%d.bin" % cell, "w").close()
    if cell == 20:
        manners.has_some = False  # as if nothing had been found yet
    dear = manners.is_dear
    told, sick = manners.close({}, {})
    assert not sick
    assert ("threads" in told) is dear
    seen += [[cell, text] for _, _, text in told.get("manners", ())]
    if cell == 30:
        assert not dear
"""
    _, _, seen = look("Directory", change, "seen")
    written = "it wrote into the working directory: file-of-%d.bin"
    assert isinstance(seen, list)
    assert seen[:2] == [[5, written % 5], [6, written % 6]]
    ((cell, text),) = seen[2:]
    assert 40 <= cell < 48
    assert text.startswith(written % 40)
    assert ("in this cell or one of the 7 before it" in text) is True
