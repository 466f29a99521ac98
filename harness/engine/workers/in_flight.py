"""How many tasks a process holds, and gets at a time: as many as it does in half a second."""

TOGETHER = 24
"""Tasks in one message, at most: a fast process would end all that it has before the last of many is made."""

BYTES_IN_FLIGHT = 64 << 20
"""Bytes of inputs from which on a worker gets no further task: they lie in memory until their turn."""

IN_FLIGHT_S = 0.5
"""Seconds of work that a process holds. The harness does other work while the process does half of it, and
the more it gets at a time, the fewer threads wake on either side.

More has its price: a process that leaks does all that it holds before it is replaced (near its limit it gets
few, therefore), and no faster process can take it over."""

FEWEST_IN_FLIGHT = 8
FEWEST_AT_PLACE = 2
"""The same at a place: the next task is there while the result of one is on its way."""

FIRST_IN_FLIGHT = 16
"""Tasks that a process holds while their duration is unknown."""
MOST_IN_FLIGHT = 160
"""ONNX's operator tests on the CPU provider through pytest, two cores, medians of six by turns: 4.64 s with
64 and 8 in one message, 4.46 s with 160 and 8, 4.34 s with 160 and 24; 320 and 32 gained nothing more."""

WEIGHT = 0.25
"""Weight of the latest task in the average."""


class Pace:
    """Averages the latest tasks of a process."""

    def __init__(self) -> None:
        self.fewest = FEWEST_IN_FLIGHT
        """Tasks that it holds even if they take long; few where other machines wait for work."""
        self.capacity = FIRST_IN_FLIGHT
        """Tasks that the process holds at most."""
        self._task_s = 0.0
        """Seconds that a task takes; 0 before the first has ended."""

    @property
    def task_s(self) -> float:
        """Seconds that a task takes, on average of the latest ones; 0 before the first has ended."""
        return self._task_s

    def add(self, task_s: float, *, ends_soon: bool = False) -> None:
        """Count a task of so many seconds, as the harness measured it.

        A process that is about to be replaced holds no more than it must: it does all that it holds before,
        and may grow by hundreds of MiB in one session.
        """
        self._task_s += (task_s - self._task_s) * (WEIGHT if self._task_s else 1.0)
        tasks = IN_FLIGHT_S / self._task_s if self._task_s > 0.0 else MOST_IN_FLIGHT
        most = self.fewest if ends_soon else MOST_IN_FLIGHT
        self.capacity = round(min(max(tasks, self.fewest), most))
