"""The agent in C: how the user's compiler makes a program of its sources, which the package brings."""

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness import agent
from harness.core.text.errors import UsageError, one_line

SOURCES = Path(agent.__file__).parents[1] / "agent_c"

FLAGS = (
    *("-std=c11", "-O2", "-D_GNU_SOURCE", "-D_FILE_OFFSET_BITS=64", "-Wall", "-Wextra", "-Werror"),
    # It reads lengths that another process sends.
    *("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"),
)

_COMPILE_S = 300.0
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")


class BuiltAgent(msgspec.Struct, frozen=True, kw_only=True):
    """A program that was built.

    Attributes:
        glibc: The oldest glibc with which it runs; empty for another C library.
    """

    path: Path
    compiler: str
    nbytes: int
    glibc: str = ""


def build_agent(
    out: Path, *, compiler: str | None = None, target: str = "", flags: Sequence[str] = ()
) -> BuiltAgent:
    """Compile the agent.

    Args:
        out: The program to write; for Windows it gets the ending ``.exe`` if it has none.
        compiler: Name or path of a C11 compiler; None for ``cc``, or that of the target.
        target: Triple of another machine, such as ``aarch64-linux-gnu``; empty for this one.
        flags: Further flags of the compiler, such as those of a sanitizer.

    Raises:
        UsageError: There is no such compiler, or it fails.
    """
    for_windows = "mingw" in target or (not target and sys.platform == "win32")
    if not out.suffix and for_windows:
        out = out.with_suffix(".exe")  # as the compiler would name it
    words = [
        *_compiler(compiler, target),
        *FLAGS,
        *flags,
        *map(str, sorted(SOURCES.glob("*.c"))),
        "-o",
        str(out.absolute()),
    ]
    if for_windows:
        libraries = ["-static", "-s", "-lws2_32", "-lntdll"]  # Windows brings no library of this compiler
    elif "android" in target:
        libraries = ["-ldl", "-lm"]  # its C library has the threads
    else:
        libraries = ["-ldl", "-lm", "-lpthread"]
    try:
        done = subprocess.run(  # noqa: S603 - an argument list, never a shell
            [*words, *libraries],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_COMPILE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError.at("agent build", f"{words[0]} does not run: {one_line(error)}") from error
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
        hint = "name another compiler: --cc"
        raise UsageError.at("agent build", f"{words[0]} fails: {one_line(first, 300)}", hint)
    data = out.read_bytes()
    versions = [tuple(map(int, found)) for found in _GLIBC.findall(data)]
    glibc = ".".join(map(str, max(versions))) if versions else ""
    return BuiltAgent(path=out, compiler=words[0], nbytes=len(data), glibc=glibc)


def _compiler(asked: str | None, target: str) -> list[str]:
    """Return the command of a compiler for a target."""
    candidates = (
        [asked]
        if asked
        else [f"{target}-gcc", f"{target}-clang", "clang"]
        if target
        else ["cc", "gcc", "clang"]
    )
    for name in candidates:
        if name and (found := shutil.which(name)):
            is_cross = target and Path(name).name.startswith("clang")
            return [found, f"--target={target}"] if is_cross else [found]
    tried = ", ".join(filter(None, candidates))
    hint = f"install one, or name it: --cc; {_where_from(target)}"
    raise UsageError.at("agent build", f"there is no compiler; looked for {tried}", hint)


def _where_from(target: str) -> str:
    """Return where a compiler for a target comes from."""
    if "android" in target:
        return "the NDK has it in toolchains/llvm/prebuilt/<system>/bin, which has to be on the PATH"
    package = f"gcc-{target}" if target else "gcc"
    if "mingw" in target:
        package = f"gcc-mingw-w64-{target.partition('-')[0]}"
    return f"on Debian: apt-get install {package.replace('_', '-')}"
