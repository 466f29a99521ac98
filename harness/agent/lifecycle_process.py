"""The process that the scenario ``lifecycle`` watches: it registers a library, uses it and unregisters it.

It announces each step, because any may be its last.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
from typing import Any

from harness.agent.fresh_process import Pipe, message_descriptor
from harness.agent.furthest import FurthestFromFirst
from harness.agent.identity import mapped
from harness.agent.ort_runtime import import_onnxruntime
from harness.agent.process_figures import descriptors
from harness.agent.safe_text import clean, finite
from harness.agent.session_run import Runner
from harness.agent.session_target import SessionTarget
from harness.agent.system import PARENT, die_with, elapsed_ms, limit_memory, resident_mib
from harness.agent.target_errors import UnavailableError
from harness.agent.wire import to_feed

SERVE_LIFECYCLE = "from harness.agent.lifecycle_process import serve_lifecycle; serve_lifecycle()"
"""What this process runs."""

ORDERS = ("in_rounds", "left_registered", "registered_twice", "two_libraries", "unregistered_in_use")
"""The orders of the steps; in the last one the application breaks onnxruntime's rules."""


def serve_lifecycle() -> None:
    """Take the steps in the order that the first message names; the exit of this process is the last one."""
    die_with(os.environ.pop(PARENT, ""))
    pipe = Pipe(sys.stdin.buffer, os.fdopen(message_descriptor(), "wb"))
    order, rounds, config, job = pipe.receive()
    limit_memory(config.get("memory_limit_mb"))
    life = _Life(pipe, config, job)
    try:
        getattr(life, order)(rounds)
        life.report()
    except Exception as error:  # noqa: BLE001 - any error is the result
        told = error.args[1] if isinstance(error, UnavailableError) else error
        pipe.send(("failed", clean(type(error).__name__), clean(told)))
        life.forget()
    life.step("exit")


class _Life:
    """One process with a plugin library."""

    def __init__(self, pipe: Pipe, config: dict[str, Any], job: dict[str, Any]) -> None:
        self.pipe = pipe
        self.config = config
        self.job = job
        self.ort = import_onnxruntime()
        self.target: Any = None
        self.session: Any = None
        self.results = FurthestFromFirst()
        self.libraries: int | None = None
        self.library = ""
        """Path of the plugin library."""

    # --- orders ---

    def in_rounds(self, rounds: int) -> None:
        """Register, use and unregister, again and again."""
        for _ in range(rounds):
            registered_ms = self.use()
            self.close()
            unregistered_ms = self.unregister()
            loaded = mapped()
            self.pipe.send(
                (
                    "round",
                    {
                        "register_ms": registered_ms,
                        "unregister_ms": unregistered_ms,
                        "round_rss_mib": resident_mib(),
                        "round_descriptors": descriptors(),
                        "round_libraries": None if loaded is None else len(loaded),
                        "stays": None if loaded is None else os.path.realpath(self.library) in loaded,
                    },
                )
            )

    def left_registered(self, _: int) -> None:
        """Exit without unregistering."""
        self.use()
        self.close()

    def registered_twice(self, _: int) -> None:
        """Register the library a second time under its name, which onnxruntime refuses; then go on."""
        self.register()
        self.step("register again")
        try:
            self.ort.register_execution_provider_library(self.target.registered, self.library)
        except Exception as error:  # noqa: BLE001 - as it should
            self.pipe.send(("told", "second_registration", "refused: %s" % clean(error)))
        else:
            self.pipe.send(("told", "second_registration", "accepted"))
        self.open_and_run()
        self.close()
        self.unregister()

    def two_libraries(self, _: int) -> None:
        """Register a copy of the library under another name, and unregister it while a session is open."""
        self.register()
        self.step("register a copy")
        name = "%s-copy" % self.target.registered
        copy = shutil.copy(self.library, self.config["tensor_folders"][0])
        try:
            self.ort.register_execution_provider_library(name, copy)
        except Exception as error:  # noqa: BLE001 - a library may have to be the only one of its kind
            self.pipe.send(("told", "second_library", "refused: %s" % clean(error)))
            return
        self.pipe.send(("told", "second_library", "accepted"))
        self.open_and_run()
        self.step("unregister the copy")
        self.ort.unregister_execution_provider_library(name)
        self.run()
        self.close()
        self.unregister()

    def unregistered_in_use(self, _: int) -> None:
        """Unregister while a session is open, which an application must not do."""
        self.use()
        self.unregister()
        self.step("run after it")
        self.run()

    # --- steps ---

    def step(self, name: str) -> None:
        """Announce a step."""
        self.pipe.send(("step", name))

    def use(self) -> float:
        """Register the library, open a session and run it; return the milliseconds of the registration."""
        registered_ms = self.register()
        self.open_and_run()
        return registered_ms

    def register(self) -> float:
        """Register the library, and find the target's device."""
        self.step("register")
        started = time.perf_counter()
        described: dict[str, Any] = {}
        self.target = SessionTarget(self.ort, dict(self.config), described)
        self.library = described["plugin"]["library"]
        return elapsed_ms(started)

    def open_and_run(self) -> None:
        """Create a session and run it."""
        self.step("session")
        self.session = self.target.session(self.job["model"], self.job)
        self.run()

    def run(self) -> None:
        """Run each data set, and compare with the first runs of this process."""
        self.step("run")
        runner = Runner(self.session)
        sets = self.job["data_sets"]
        self.results.compare([runner({name: to_feed(wire) for name, wire in inputs}) for inputs in sets])

    def close(self) -> None:
        """Release the session."""
        self.step("release")
        self.session = None

    def unregister(self) -> float:
        """Unregister the library; return the milliseconds."""
        self.step("unregister")
        self.target.devices = []
        gc.collect()
        started = time.perf_counter()
        self.ort.unregister_execution_provider_library(self.target.registered)
        return elapsed_ms(started)

    def report(self) -> None:
        """Send the results that are furthest from the first ones."""
        files = self.target.files
        results = self.results
        outputs = [list(map(files.send, values)) for _, values in results.worst]
        self.pipe.send(("outputs", finite({"difference": results.apart}), results.differing, outputs))

    def forget(self) -> None:
        """Release what an error has left, as the end of an application does."""
        self.session = None
        if self.target is not None:
            self.target.devices = []
        gc.collect()
