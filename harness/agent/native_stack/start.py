"""Start the watcher of this process, if its environment asks for it."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

from harness.agent.bootstrap import BOOTSTRAP, program

NATIVE_STACK_VARIABLE = "EP_HARNESS_NATIVE_STACK"
"""The variable of a target that switches native stacks on with ``1``."""

ON = "on"
"""The state, and the watcher's message, once it is watching."""

UNAVAILABLE_PREFIX = "unavailable: "
"""Prefix of a state, before the reason."""

_LIMIT_S = 10.0
"""Seconds for the watcher to start."""

PR_SET_PTRACER = 0x59616D61
"""The prctl that names a tracer to Yama, the security module of many distributions."""

_START = "from harness.agent.native_stack.watcher import watch; watch(%d)"


def start_if_asked() -> str:
    """Start the watcher if the environment says so; return ``on``, ``unavailable: `` and why, or nothing."""
    if os.environ.get(NATIVE_STACK_VARIABLE) != "1":
        return ""
    try:
        return _start()
    except (OSError, ValueError, AttributeError) as error:
        return "%s%s" % (UNAVAILABLE_PREFIX, error)


def _start() -> str:
    if sys.platform != "linux":
        return UNAVAILABLE_PREFIX + "only Linux lets an ordinary process read the stack of another one"
    if struct.calcsize("P") != 8 or os.uname().machine not in ("x86_64", "aarch64"):  # noqa: PLR2004
        return UNAVAILABLE_PREFIX + "stacks are read on x86_64 and aarch64, this is %s" % os.uname().machine
    if not sys.executable:
        return UNAVAILABLE_PREFIX + "this Python does not know its own path, so it cannot start a watcher"
    # Imported only here, for an ordinary run does not need them.
    import select
    import subprocess

    watcher = subprocess.Popen(  # noqa: S603 - an argument list, never a shell
        [sys.executable, "-I", "-S", "-c", BOOTSTRAP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,  # standard error stays: it is the file with the output of this process
    )
    assert watcher.stdin is not None and watcher.stdout is not None  # noqa: S101, PT018 - pipes were asked for
    with watcher.stdin, watcher.stdout:
        # It fails on systems without this restriction.
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(watcher.pid))
        watcher.stdin.write(program(_START % os.getpid(), "harness.agent.native_stack"))
        watcher.stdin.flush()
        readable, _, _ = select.select([watcher.stdout], [], [], _LIMIT_S)
        said = watcher.stdout.readline().decode("utf-8", "replace").strip() if readable else ""
    if said == ON:
        return ON
    watcher.kill()
    watcher.wait()
    return UNAVAILABLE_PREFIX + (said or "the watcher did not start")
