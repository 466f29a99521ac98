"""Environments that lanes wait for: built beside the engine's thread, each once, a few at a time."""

import threading
from collections.abc import Callable

from harness.engine import environments
from harness.engine.uv import InstallError, Uv
from harness.plan.target import Runtime

AT_ONCE = 2
"""Builds at a time: uv downloads and unpacks in many threads of its own."""


class Builds:
    """What is being built, and what could not be.

    Args:
        tell: Called with a line for people when a build begins.
        hear: Called, from another thread, when it has ended, with the runtime and what went wrong. Whoever
            owns this passes both to ``ended``, on the thread on which everything else is called.
    """

    def __init__(
        self, tell: Callable[[str], None], hear: Callable[[Runtime, InstallError | None], None]
    ) -> None:
        self._tell = tell
        self._hear = hear
        self._turns = threading.Semaphore(AT_ONCE)
        self._under_way: dict[Runtime, Uv] = {}
        self._there: set[Runtime] = set()
        self._failed: dict[Runtime, InstallError] = {}

    @property
    def busy(self) -> bool:
        """Whether anything is being built."""
        return bool(self._under_way)

    def is_there(self, runtime: Runtime) -> bool:
        """Whether a runtime can be started; where its environment is not there yet, somebody builds it now.

        Raises:
            InstallError: It could not be built.
        """
        if runtime in self._failed:
            raise self._failed[runtime]
        if runtime not in self._there and runtime not in self._under_way:
            if environments.is_built(runtime):
                self._there.add(runtime)
            else:
                self._begin(runtime)
        return runtime in self._there

    def _begin(self, runtime: Runtime) -> None:
        self._tell(f"building runtime: {', '.join(runtime.packages)}")
        uv = self._under_way[runtime] = Uv()

        def work() -> None:
            problem = None
            try:
                with self._turns:
                    environments.build(runtime, uv)
            except InstallError as error:
                problem = error
            except Exception as error:  # noqa: BLE001 - else lanes would wait for ever
                problem = InstallError(f"{type(error).__name__}: {error}")
            self._hear(runtime, problem)

        threading.Thread(target=work, name="ep-harness-build", daemon=True).start()

    def ended(self, runtime: Runtime, problem: InstallError | None) -> None:
        """A build has ended."""
        del self._under_way[runtime]
        if problem is None:
            self._there.add(runtime)
        else:
            self._failed[runtime] = problem

    def cancel(self) -> None:
        """Kill what builds: nobody waits for it any more. Nothing half-built is left."""
        for uv in self._under_way.values():
            uv.cancel()
