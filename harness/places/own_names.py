"""The names of this account and this host, which nothing that leaves the machine needs."""

import getpass
import os
import re
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

SHORTEST = 3
"""Least length of a user's or host's name; a shorter one would be found in any text."""

GENERIC = frozenset(
    {"admin", "administrator", "localhost", "nobody", "root", "runner", "ubuntu", "user", "vagrant"}
)
"""Accounts and hosts that reveal nothing. Some are ordinary words: the root of a mean square."""

USER, HOST = "<user>", "<host>"

_HOSTNAME = re.compile(r"(?<=\bhostname=)[\w.-]+")
"""The machine in a CUDA error: the target's, which may differ from this one."""


def own_users() -> tuple[str, ...]:
    """Return the names of this account that reveal something, sorted."""
    return tuple(sorted({one for one in _accounts() if _reveals(one)}))


def own_hosts() -> tuple[str, ...]:
    """Return the names of this host that reveal something, the longer ones first."""
    host = socket.gethostname()
    return tuple(sorted({one for one in (host, host.partition(".")[0]) if _reveals(one)}, reverse=True))


def without_names(text: str, users: Iterable[str], hosts: Iterable[str]) -> str:
    """Return the text with placeholders for these names, where they are whole words, and for CUDA's host."""
    for known, placeholder in ((users, USER), (hosts, HOST)):
        for name in known:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", placeholder, text)
    return _HOSTNAME.sub(HOST, text)


def _accounts() -> Iterator[str]:
    for variable in ("USER", "USERNAME", "LOGNAME", "SUDO_USER"):
        yield os.environ.get(variable, "")
    yield Path(os.path.expanduser("~")).name  # noqa: PTH111 - may be unset
    try:
        yield getpass.getuser()
    except (OSError, KeyError):  # an account without a name, as in containers
        return


def _reveals(name: str) -> bool:
    return len(name) >= SHORTEST and name.lower() not in GENERIC
