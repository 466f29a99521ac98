"""The profile of a session: the nodes that onnxruntime executed, as it wrote them down."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
from typing import Any


@functools.cache
def folder() -> str:
    """Where profiles are written, in this process's own folder: one for each session takes 0.6 ms."""
    return tempfile.mkdtemp(prefix="profiles-", dir=os.getcwd())


class Profile:
    """The nodes that a session executes, written down by onnxruntime as they run; one at a time."""

    def __init__(self) -> None:
        self.prefix = os.path.join(folder(), "profile")
        self.nodes: list[tuple[str, list[str]]] = []
        """``(provider, [operator type])`` of each node, once the profile has ended."""

    def discard(self) -> None:
        """Remove what was written, also by a session that came to nothing."""
        for written in os.scandir(folder()):
            with contextlib.suppress(OSError):  # still in use, on Windows: it goes with the next
                os.unlink(written.path)

    def begin(self, settings: Any) -> None:
        """Have a session with these options write one."""
        settings.enable_profiling = True
        settings.profile_file_prefix = self.prefix

    def end(self, session: Any) -> None:
        """Read what was executed; what the session runs from now on is not written down."""
        with open(session.end_profiling(), encoding="utf-8", errors="replace") as file:
            events = json.load(file)
        executed: dict[str, tuple[str, list[str]]] = {}
        for event in events:
            arguments = event.get("args") or {}
            # A node in a loop runs many times, hence the dict; copies between devices are no nodes.
            if event.get("cat") == "Node" and arguments.get("provider"):
                op_type = arguments.get("op_name", "")
                if not op_type.startswith("Memcpy"):
                    executed[event["name"]] = (arguments["provider"], [op_type])
        self.nodes = list(executed.values())
