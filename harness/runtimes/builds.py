"""Builds of environments, beside the engine's thread."""

import threading
from collections.abc import Callable

from harness.plan.target import Runtime
from harness.runtimes.environments import build, installer, is_built
from harness.runtimes.installer import Installer, InstallError

_AT_ONCE = 2
"""Number of concurrent builds: uv downloads and unpacks in many threads."""


class Builds:
    """The builds in progress, and the failed ones.

    Args:
        note: Called with a line for people when a build begins.
        on_end: Called from another thread at the end of a build, with the runtime and the error. The owner
            passes both to ``finish``, on the thread of all other calls.
    """

    def __init__(
        self, note: Callable[[str], None], on_end: Callable[[Runtime, InstallError | None], None]
    ) -> None:
        self._note = note
        self._on_end = on_end
        self._slots = threading.Semaphore(_AT_ONCE)
        self._running: dict[Runtime, Installer] = {}
        self._built: set[Runtime] = set()
        self._failed: dict[Runtime, InstallError] = {}

    @property
    def busy(self) -> bool:
        """Whether anything is being built."""
        return bool(self._running)

    def is_built(self, runtime: Runtime) -> bool:
        """Return whether a runtime can be started; start the build of its environment if it is missing.

        Raises:
            InstallError: The build failed.
        """
        if runtime in self._failed:
            raise self._failed[runtime]
        if runtime not in self._built and runtime not in self._running:
            if is_built(runtime):
                self._built.add(runtime)
            else:
                self._start(runtime)
        return runtime in self._built

    def _start(self, runtime: Runtime) -> None:
        self._note(f"building runtime: {', '.join(runtime.packages)}")
        builder = self._running[runtime] = installer(runtime)

        def work() -> None:
            problem = None
            try:
                with self._slots:
                    build(runtime, builder)
            except InstallError as error:
                problem = error
            except Exception as error:  # noqa: BLE001 - else queues would wait for ever
                problem = InstallError(f"{type(error).__name__}: {error}")
            self._on_end(runtime, problem)

        threading.Thread(target=work, name="ep-harness-build", daemon=True).start()

    def finish(self, runtime: Runtime, problem: InstallError | None) -> None:
        """Process the end of a build."""
        del self._running[runtime]
        if problem is None:
            self._built.add(runtime)
        else:
            self._failed[runtime] = problem

    def cancel(self) -> None:
        """Kill running builds. No incomplete environment is left."""
        for builder in self._running.values():
            builder.cancel()
