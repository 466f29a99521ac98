"""How an agent that is a program of its own starts: here, behind a command, or where there is no Python.

On another machine a POSIX shell takes the part of ``harness.agent.launcher``: it sets the variables, gives
the agent an empty folder, sends signs of life, and reports how the agent ended. Everything that it needs
comes through standard input, so that no process list shows it. On Windows a batch file takes this part, for
an agent whose name ends in ``.exe``; only signs of life are beyond it.
"""

import functools
import hashlib
import json
import secrets
import shlex
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.agent.frame import BINARY, LINE, MODES
from harness.agent.hello import hello
from harness.agent.launcher import sign_of_life
from harness.agent.orphans import OWNER
from harness.engine.processes import bring_files, windows_shell
from harness.engine.processes.started import (
    BEAT_S,
    SOCKET,
    SSH,
    Started,
    port_there,
    ssh_command,
    start_process,
)
from harness.plan.target import Runtime

_SSH_HOME = "$HOME/.cache/ort-ep-harness/agents"
_ADB_HOME = "/data/local/tmp/ort-ep-harness"
"""The folder over there that keeps agents by their SHA-256, and the folders of their processes."""

_WINE = frozenset({"wine", "wine64"})
"""Programs that start a server for all processes of Windows here. It outlives them, and must not be ended as
one that an agent has left behind; the agent ends what it started by a job object."""

_READS_SCRIPT = ("sh", "-c", 'IFS= read -r script; eval "$script"')
"""A shell reads a line byte by byte, so that the rest of its input is for the agent."""

# One line. The agent alone has stdin and stdout; a sign of life that nobody takes ends it.
_SCRIPT = (
    "trap '' PIPE HUP; umask 077; home={home}; folder=$home/run-{marker}",
    'mkdir -p "$folder" && cd "$folder" || exit 1',
    "{exports}",
    "exec 3<&0; {agent} <&3 3<&- 2>>output.txt & agent=$!",
    "exec 0</dev/null 1>/dev/null 3<&-",
    "(while echo '{sign}' >&2 && sleep {beat_s} 2>/dev/null; do :; done; kill -9 $agent) & beat=$!",
    "wait $agent; code=$?; kill $beat 2>/dev/null; how=",
    '[ $code -eq 0 ] || how="exit code $code"',
    "[ $code -le 128 ] || how=SIG$(kill -l $((code - 128)))",
    "tail -c 16384 output.txt >&2; printf '\\n%s %s\\n' {marker} \"$how\" >&2",
    'cd / && rm -rf "$folder"',
)


def launch_program(runtime: Runtime, env: Mapping[str, str], folder: Path) -> Started:
    """Start a program that is an agent; arguments and errors as ``launch`` has them."""
    listener = socket.create_server(("127.0.0.1", 0)) if runtime.channel == SOCKET else None
    port = listener.getsockname()[1] if listener else 0
    token = secrets.token_hex(16)
    modes = {LINE: (LINE,), BINARY: (BINARY,)}.get(runtime.channel or "", MODES)
    there = port_there(port) if runtime.ssh else port
    opening = hello(token, modes, f"tcp://127.0.0.1:{there}" if listener else "").encode() + b"\n"
    marker = owner = ""
    if runtime.ssh and windows_shell.is_for_windows(runtime.agent[0]):
        marker = f"ep-harness-{secrets.token_hex(8)}"
        command = _windows_command(runtime, port, env, folder, marker)
        variables: Mapping[str, str] = {}
    elif runtime.ssh or runtime.adb:
        marker = f"ep-harness-{secrets.token_hex(8)}"
        command = _remote_command(runtime, port)
        opening = _script(runtime, env, marker).encode() + b"\n" + opening
        variables = {}
    else:
        command = (*shlex.split(runtime.command or ""), *_found(runtime))
        owner = "" if _WINE.intersection(Path(word).name for word in command) else secrets.token_hex(8)
        variables = {**env, OWNER: owner} if owner else env
    return Started(
        popen=start_process(command, variables, folder, silent=listener is not None),
        folder=folder,
        token=token,
        modes=modes,
        preamble=opening,
        listener=listener,
        marker=marker,
        by_ssh=bool(marker),
        owner=owner,
        asks_first=runtime.command is not None,
    )


def _found(runtime: Runtime) -> tuple[str, ...]:
    """Return the words of an agent that starts here.

    Raises:
        FileNotFoundError: There is no such program, which a command would tell less clearly.
    """
    program, *arguments = runtime.agent
    found = shutil.which(program)
    if found is None and (runtime.command is None or program in runtime.agent_files):
        problem = "it is not executable" if Path(program).is_file() else "there is no such program"
        raise FileNotFoundError(f"agent {program}: {problem}")
    return (program if runtime.command else str(found), *arguments)


def _remote_command(runtime: Runtime, port: int) -> tuple[str, ...]:
    """Return a command here that uploads what is missing there, and then becomes the connection."""
    plan = {
        "files": [_upload(runtime, path) for path in runtime.agent_files],
        "prepare": [[*_adb(runtime), "reverse", f"tcp:{port}", f"tcp:{port}"]]
        if runtime.adb and port
        else [],
        "then": [*_reach(runtime, port), shlex.join(_READS_SCRIPT)],
        "undo": [],
    }
    return _bringing(plan)


def _bringing(plan: dict[str, Any]) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", str(Path(bring_files.__file__).absolute()), json.dumps(plan))


def _upload(runtime: Runtime, path: str) -> dict[str, Any]:
    """Return how a file gets there. Only mkdir, test, cat, chmod and mv are needed over there."""
    reach, home, name = _reach(runtime, 0), _home(runtime), _kept_name(path)
    folder, new = f"{home}/{name.partition('/')[0]}", f".{secrets.token_hex(4)}"
    there = f'"{folder}"/{shlex.quote(name.partition("/")[2])}'
    begin, end = f'umask 077; mkdir -p "{folder}"', f"chmod 700 {there}{new} && mv {there}{new} {there}"
    bring = [[*reach, f"{begin} && cat >{there}{new} && {end}"]]
    if runtime.adb:  # its folder has no character to quote
        bring = [[*reach, begin], [*_adb(runtime), "push", path, f"{home}/{name}{new}"], [*reach, end]]
    return {"path": path, "asked": [*reach, f"test -x {there} && echo present"], "bring": bring}


def _windows_command(
    runtime: Runtime, port: int, env: Mapping[str, str], folder: Path, marker: str
) -> tuple[str, ...]:
    """Return what ``_remote_command`` does, for Windows behind ssh; ``folder`` takes the batch file."""
    reach, home = _reach(runtime, 0), windows_shell.WINDOWS_HOME
    files: list[dict[str, Any]] = []
    for path in runtime.agent_files:
        there, new = f"{home}/{_name_for_windows(path)}", f".{secrets.token_hex(4)}"
        files.append(
            {
                "path": path,
                "asked": [*reach, windows_shell.said(f"if exist {there} echo present")],
                "bring": [
                    [*reach, _folder_for_windows(there.rpartition("/")[0])],
                    _copy(runtime, path, there + new),
                    # Another process may bring it at the same time, and run it already.
                    [*reach, windows_shell.said(f"if not exist {there} move /y {there}{new} {there}")],
                    [*reach, windows_shell.said(f"if exist {there}{new} del {there}{new}")],
                ],
            }
        )
    words = [
        "..\\" + _name_for_windows(word).replace("/", "\\")
        if word in runtime.agent_files
        else windows_shell.escaped(word)
        for word in runtime.agent
    ]
    batch, run = folder / "run.cmd", f"{home}/run-{marker}.cmd"
    batch.write_bytes(windows_shell.batch_file(env, words, marker).encode())
    prepare = [[*reach, _folder_for_windows(home)], _copy(runtime, str(batch), run)]
    then = [*_reach(runtime, port), windows_shell.said(run)]
    undo = [*reach, windows_shell.said(f"if exist {run} del {run}")]
    return _bringing({"files": files, "prepare": prepare, "then": then, "undo": undo})


def _folder_for_windows(path: str) -> str:
    return windows_shell.said(f"if not exist {path} mkdir {path}")


def _copy(runtime: Runtime, path: str, there: str) -> list[str]:
    return ["scp", "-q", *SSH[1:-2], "--", path, f"{runtime.ssh}:{there}"]


def _name_for_windows(path: str) -> str:
    return f"{_digest_now(path)}/{windows_shell.plain_name(Path(path).name)}"


def _reach(runtime: Runtime, port: int) -> list[str]:
    """Return the command that hands its last argument to a shell over there."""
    if runtime.adb:
        return [*_adb(runtime), "shell"]
    return list(ssh_command(str(runtime.ssh), port))


def _adb(runtime: Runtime) -> list[str]:
    return ["adb", "-s", str(runtime.adb)]


def _home(runtime: Runtime) -> str:
    return _ADB_HOME if runtime.adb else _SSH_HOME


def _script(runtime: Runtime, env: Mapping[str, str], marker: str) -> str:
    """Return the line of shell that runs an agent over there."""
    words = [_word_there(word, runtime) for word in runtime.agent]
    exports = [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    return "; ".join(_SCRIPT).format(
        home=_home(runtime),
        marker=marker,
        exports="; ".join(exports) or ":",
        agent=" ".join(words),
        sign=sign_of_life(marker),
        beat_s=int(BEAT_S),
    )


def _word_there(word: str, runtime: Runtime) -> str:
    """Return a word of the agent's command in shell, where an uploaded file has its path over there."""
    if word not in runtime.agent_files:
        return shlex.quote(word)
    return f'"$home"/{shlex.quote(_kept_name(word))}'


def _kept_name(path: str) -> str:
    """Return the name of a file over there, below the folder of agents."""
    return f"{_digest_now(path)}/{Path(path).name}"


def _digest_now(path: str) -> str:
    """Return the SHA-256 of a file that is uploaded.

    Raises:
        FileNotFoundError: There is no such file, which the system would tell less clearly.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"agent {path}: there is no such file to upload")
    about = Path(path).stat()
    return _digest(path, about.st_size, about.st_mtime_ns)


@functools.cache
def _digest(path: str, _size: int, _mtime_ns: int) -> str:
    """Return the SHA-256 of a file, read again if it changes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
