"""Where a process died, from the native stack that ``harness.agent.native_stack`` prints."""

import re

import msgspec

from harness.agent.native_stack.block import BEGIN
from harness.agent.native_stack.start import NATIVE_STACK_VARIABLE
from harness.core.records.fault import Frame, NativeCrash
from harness.core.text.errors import one_line
from harness.plan.plan import Plan

SWITCHED_ON = {NATIVE_STACK_VARIABLE: "1"}
"""Environment variables that make a target's crashes explainable."""


def with_native_stacks(plan: Plan) -> Plan:
    """Return a plan whose targets all have native stacks switched on, unless they say otherwise."""
    targets = tuple(
        msgspec.structs.replace(target, env=SWITCHED_ON | target.env) for target in plan.matrix.targets
    )
    return msgspec.structs.replace(plan, matrix=msgspec.structs.replace(plan.matrix, targets=targets))


def with_native_stack(env: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return environment variables, sorted, with native stacks switched on unless they say otherwise."""
    return tuple(sorted((SWITCHED_ON | dict(env)).items()))


FUNCTION_CHARS = 100

_THROWN = re.compile(
    r"terminate called after throwing an instance of '(?P<type>[^'\n]{1,300})'"
    r"(?:\s+what\(\):\s*(?P<what>[^\n]{0,1000}))?"
    r"|terminating (?:due to|with) uncaught exception of type "
    r"(?P<of>[^\n:]{1,300})(?:: (?P<said>[^\n]{0,1000}))?"
)
"""The message of GNU's and LLVM's C++ library about an uncaught exception."""

_BEGIN = re.compile(
    rf"^{re.escape(BEGIN)}(?P<signal>SIG[A-Z0-9]{{1,16}}|signal \d{{1,4}})"
    r"(?: at (?P<address>0x[0-9a-f]{1,16}))?, thread [^\n]*$",
    re.MULTILINE,
)
_FRAME = re.compile(
    r"#\d{1,4}\??\t(?P<library>[^\t]{1,1000})\t\+0x(?P<offset>[0-9a-f]{1,16})(?:\t(?P<function>[^\t]{1,1000}))?"
)

_RUNTIME = re.compile(
    r"(?:lib(?:c|m|dl|rt|pthread|gcc_s|stdc\+\+|c\+\+|c\+\+abi|unwind|ffi|python[\d.]*|asan|tsan|ubsan"
    r"|[jt]c?malloc(?:_minimal)?|jemalloc|mimalloc)(?:[-.][\w.]*)?\.so[\d.]*"
    r"|(?:ld(?:-linux[\w-]*|-musl[\w-]*)?(?:-[\d.]+)?|libc\.musl[\w-]*)\.so[\d.]*"
    r"|linux-vdso\.so[\d.]*|python[\d.]*|pypy[\d.]*|_ctypes\..*|\[.*\])"
)
"""Libraries of the language and of the system: their caller causes a crash in them.

Names in brackets are not libraries: code generated at run time, and what the system maps.
"""


def native_crash(printed: str) -> NativeCrash | None:
    """Return where a process died, from its printed output, of which only the end may remain.

    Returns:
        Return the crash; None if there is no stack in the output. If there are several, because a scenario's
        second process prints one too, return the first that names a provider's library.
    """
    found = [_crash(match, printed[match.end() + 1 :]) for match in _BEGIN.finditer(printed)]
    return next((crash for crash in found if crash.culprit), found[0] if found else None)


def thrown(printed: str) -> str:
    """Return the C++ exception that ended a process, ``type: what()``; empty if none was printed."""
    every = [*_THROWN.finditer(printed)]
    if not every:
        return ""
    found = every[-1]
    kind, what = found["type"] or found["of"], found["what"] or found["said"]
    return ": ".join(filter(None, (kind, (what or "").strip())))


def involved_libraries(crash: NativeCrash) -> tuple[str, ...]:
    """Return the libraries on the stack outside of the C library and Python, innermost first."""
    names = (frame.library for frame in crash.frames if not _RUNTIME.fullmatch(frame.library))
    return tuple(dict.fromkeys(names))


def died_in(crash: NativeCrash | None) -> str:
    """Return `` in LIBRARY`` with the innermost named function; empty if unknown."""
    libraries = involved_libraries(crash) if crash is not None else ()
    if crash is None or not libraries:
        return ""
    named = next((one for one in crash.frames if one.function and one.library in libraries), None)
    if named is None:
        return f" in {libraries[0]}"
    function = one_line(named.function.partition("(")[0], FUNCTION_CHARS)
    if named.library == libraries[0]:
        return f" in {function} of {named.library}"
    return f" in {libraries[0]}, called by {function} of {named.library},"


def _crash(begin: re.Match[str], rest: str) -> NativeCrash:
    """Return the crash of one block; parts cut off at its end are missing."""
    frames = []
    for line in rest.split("\n"):
        match = _FRAME.fullmatch(line)
        if match is None:
            break
        function = match["function"] or ""
        frames.append(Frame(library=match["library"], function=function, offset=int(match["offset"], 16)))
    crash = NativeCrash(signal=begin["signal"], frames=tuple(frames), address=begin["address"] or "")
    libraries = involved_libraries(crash)
    return NativeCrash(
        signal=crash.signal,
        frames=crash.frames,
        culprit=libraries[0] if libraries else "",
        address=crash.address,
    )
