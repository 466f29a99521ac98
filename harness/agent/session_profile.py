"""The profile of a session: the nodes that onnxruntime ran, as it lists them."""

from __future__ import annotations

import contextlib
import functools
import json
import os
from typing import Any

from harness.agent.system import new_folder


@functools.cache
def profile_folder() -> str:
    """Return the folder for profiles; making one for each session would take 0.6 ms."""
    return new_folder("profiles-")


def read_profile(session: Any) -> list[dict[str, Any]]:
    """Stop a session's profile and return its events."""
    with open(session.end_profiling(), encoding="utf-8", errors="replace") as file:
        events: list[dict[str, Any]] = json.load(file)
    return events


class SessionProfile:
    """The nodes that a session ran, from onnxruntime's profile; one profile at a time."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str, list[tuple[str, str]]]] = []
        """``(provider, [(name, operator type)])`` of each node, once the profile has ended."""

    def begin(self, settings: Any) -> None:
        """Make a session with these options write a profile."""
        settings.enable_profiling = True
        settings.profile_file_prefix = os.path.join(profile_folder(), "profile")

    def end(self, session: Any) -> None:
        """Stop the session's profile and read it."""
        events = read_profile(session)
        executed: dict[str, tuple[str, list[tuple[str, str]]]] = {}
        for event in events:
            arguments = event.get("args") or {}
            # A node in a loop runs many times, hence the dict; copies between devices are not nodes.
            if event.get("cat") == "Node" and arguments.get("provider"):
                op_type = arguments.get("op_name", "")
                if not op_type.startswith("Memcpy"):
                    name = event["name"]
                    node = (name.rpartition("_kernel_time")[0] or name, op_type)
                    executed[name] = (arguments["provider"], [node])
        self.nodes = list(executed.values())

    def discard(self) -> None:
        """Delete the profile files, also those of sessions that failed."""
        for written in os.scandir(profile_folder()):
            with contextlib.suppress(OSError):  # still in use, on Windows: the next call deletes it
                os.unlink(written.path)
