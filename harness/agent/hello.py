"""The hello of a harness, and an agent's greeting: the lines that precede all frames."""

from __future__ import annotations

import json
from typing import Any

from harness.agent.frame import MODES

PROTOCOL = 1  # the version that this package speaks
HELLO, GREETING = "ep-harness", "ep-agent"  # the first word of each line
PROBE = b"ep-probe " + bytes(range(256)).replace(b"\n", b"") + b"\r"
"""A line of all bytes, sent before the hello and before the greeting.

If a channel adds or removes carriage returns, either this line changes, which contains one, or the next line,
which contains none."""

HELLO_VARIABLE = "EP_HARNESS_HELLO"  # holds the hello if standard input does not reach the agent


def hello(token: str, modes: tuple[str, ...] = MODES, connect: str = "") -> str:
    """Return the line with which a harness begins, without its line feed."""
    values = {"protocols": [PROTOCOL], "token": token, "modes": list(modes), "connect": connect}
    return "%s %s" % (HELLO, json.dumps(values))


def read_hello(line: str) -> dict[str, Any]:
    """Return the content of a hello.

    Raises:
        ValueError: It is not a hello.
    """
    word, _, text = line.partition(" ")
    values = json.loads(text) if word == HELLO else None
    if not isinstance(values, dict) or not isinstance(values.get("token"), str):
        raise ValueError("no hello of a harness: %r" % line[:100])  # noqa: TRY004 - bad data
    return values


def chosen_mode(values: dict[str, Any]) -> str:
    """Return the mode in which an agent sends: the first that the hello offers and this package speaks."""
    return next((mode for mode in values.get("modes", ()) if mode in MODES), MODES[0])


def greeting(values: dict[str, Any], agent: str, declines: dict[str, str]) -> str:
    """Return the line that answers a hello, without its line feed."""
    answer = {
        "protocol": PROTOCOL,
        "token": values["token"],
        "mode": chosen_mode(values),
        "agent": agent,
        "declines": declines,
    }
    return "%s %s" % (GREETING, json.dumps(answer))
