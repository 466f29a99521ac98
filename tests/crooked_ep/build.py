"""Compile the crooked EP: a plugin EP for onnxruntime with faults on a switch.

By hand::

    python tests/crooked_ep/build.py /tmp            # prints the library's path
    ep-harness check CrookedExecutionProvider --plugin /tmp/libcrooked-….so --quick
    ep-harness check CrookedExecutionProvider --plugin /tmp/libcrooked-….so --option fault=stale
    CROOKED_EP_FAULT=segv_at_load ep-harness check ...  # what happens before there is a session

It computes some twenty operators on the CPU, each in a plain loop, and claims what it computes rightly. It
has two devices: the CPU, and an NPU with memory of its own that is no hardware. It writes and loads compiled
models; ``CROOKED_EP_VERSION`` makes it another version of itself, which calls them outdated or refuses them.
Options: ``fault``, a name of ``native/faults.def``; ``precision``, ``fp32`` or ``fp16``;
``only``, the name of the one node at which a wrong value acts. It refuses others.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).with_name("native")
COMPILER = shutil.which("gcc") or shutil.which("cc")
FLAGS = ("-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-fexceptions", "-Wall", "-Wextra")
"""``-fexceptions``: one fault throws through its C functions."""
LIBRARIES = ("-lm", "-lpthread", "-ldl")


def build(folder: Path, *flags: str) -> Path:
    """Return the library, which has the digest of its sources in its name; compile it if it is not there.

    Args:
        folder: Where it goes; created if needed.
        flags: More flags of the compiler, such as ``-DNO_SYMBOL``.

    Raises:
        RuntimeError: No compiler, or it refuses the sources.
    """
    if COMPILER is None:
        raise RuntimeError("no C compiler (gcc or cc) is installed")
    digest = hashlib.sha256(repr((COMPILER, FLAGS, flags)).encode())
    sources = sorted(SOURCES.iterdir())
    for path in sources:
        digest.update(path.name.encode() + path.read_bytes())
    library = folder / f"libcrooked-{digest.hexdigest()[:12]}.so"
    if library.is_file():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    # Workers of xdist may compile at the same time: the last one to finish replaces an equal file.
    unfinished = folder / f"{library.name}.{os.getpid()}"
    files = [str(path) for path in sources if path.suffix == ".c"]
    done = subprocess.run(
        [COMPILER, *FLAGS, *flags, "-o", str(unfinished), *files, *LIBRARIES],
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    if done.returncode:
        raise RuntimeError(f"{COMPILER} refuses the crooked EP:\n{done.stderr}")
    unfinished.replace(library)
    return library


if __name__ == "__main__":
    sys.stdout.write(f"{build(Path(sys.argv[1]), *sys.argv[2:])}\n")
