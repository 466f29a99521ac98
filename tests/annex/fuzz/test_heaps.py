"""Heaps of a process with many threads, counted by glibc itself."""

import subprocess
import sys

import pytest

from harness.annex.fuzz.heaps import HEAPS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only glibc has a heap for each thread")

COUNT = """
import ctypes, os, sys, threading
from harness.annex.fuzz.heaps import share_heaps

libc = ctypes.CDLL(None)
if not hasattr(libc, "malloc_info"):
    sys.exit("no glibc")
if sys.argv[1] == "shared":
    share_heaps()
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(8)


def use() -> None:
    together.wait()
    libc.malloc(1000)
    together.wait()


threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc.fdopen.restype = ctypes.c_void_p
stream = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, stream)
libc.fflush(stream)
os._exit(0)
"""


@pytest.mark.parametrize("how", ["shared", "own"])
def test_all_threads_share_a_few_heaps(how: str) -> None:
    ran = subprocess.run([sys.executable, "-c", COUNT, how], capture_output=True, text=True, check=False)
    if "no glibc" in ran.stderr:
        pytest.skip("another C library")
    heaps = ran.stdout.count("<heap ")
    assert (heaps <= HEAPS) is (how == "shared"), ran
