"""An agent's greeting: found in what a channel brings first, and checked.

Imports stay few, because the prestarted process waits for them.
"""

import hmac
import json
from typing import Any, NamedTuple

from harness.agent.frame import MODES
from harness.agent.hello import GREETING, PROTOCOL
from harness.core.errors import one_line

MOST_DECLINES = 1000
"""Things that an agent may decline; there are some dozens to decline."""

_BEGIN = f"{GREETING} {{".encode()


class GreetingError(Exception):
    """An agent has greeted in a way that allows no conversation; the text describes it."""


class Greeting(NamedTuple):
    """How an agent introduces itself.

    Attributes:
        agent: What it is, for people.
        mode: How it sends, and how messages are sent to it.
        declines: What it does not do -> why.
    """

    agent: str
    mode: str
    declines: dict[str, str]


def find_greeting(line: bytes, token: str, modes: tuple[str, ...] = MODES) -> Greeting | None:
    """Return the greeting in a line of a channel; None if there is none.

    Args:
        line: The line, which may begin with something else, such as a prompt.
        token: That of the hello.
        modes: Those of the hello.

    Raises:
        GreetingError: It is none that was asked for.
    """
    at = line.find(_BEGIN)
    if at < 0:
        return None
    try:
        values = json.loads(line[at + len(_BEGIN) - 1 :])
    except (ValueError, RecursionError) as error:
        raise GreetingError(f"its greeting is no JSON: {one_line(error)}") from error
    return _checked(values, token, modes)


def _checked(values: dict[str, Any], token: str, modes: tuple[str, ...]) -> Greeting:
    version, given, mode = (values.get(key) for key in ("protocol", "token", "mode"))
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(errors="replace"), token.encode()):
        raise GreetingError("it greeted with another token than that of the hello")
    if version != PROTOCOL or isinstance(version, bool):
        raise GreetingError(
            f"it speaks version {one_line(version, 20)} of the agent protocol, and this harness {PROTOCOL}"
        )
    if mode not in modes:
        raise GreetingError(f"it greeted with mode {one_line(mode, 20)}, which is none of {', '.join(modes)}")
    declines = values.get("declines", {})
    if (
        not isinstance(declines, dict)
        or len(declines) > MOST_DECLINES
        or not all(isinstance(reason, str) and reason for reason in declines.values())
    ):
        raise GreetingError("its greeting has no reason in words for something that it declines")
    return Greeting(
        agent=one_line(values.get("agent", ""), 100),
        mode=str(mode),
        declines={name: one_line(reason) for name, reason in declines.items()},
    )
