"""What travels into a target's process: the agent's modules, packed into one piece of source.

Packed they are a third of their size, which tells on a slow line: they go over it for each process.
"""

import binascii
import functools
import json
import zlib
from pathlib import Path

from harness import agent

STAYS = {"launcher"}
"""Modules that are no part of an agent."""


@functools.cache
def agent_source() -> str:
    """The source of an agent, for execnet's ``remote_exec``."""
    folder = Path(agent.__file__).parent
    sources = {"harness": ""}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        if parts[-1] not in STAYS:
            name = ".".join(("harness", "agent", *parts)).removesuffix(".__init__")
            sources[name] = path.read_text(encoding="utf-8")
    packed = binascii.b2a_base64(zlib.compress(json.dumps(sources).encode()), newline=False).decode()
    return f"{sources['harness.agent.importer']}\n\narrive(channel, {packed!r})\n"
