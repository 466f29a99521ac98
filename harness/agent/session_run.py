"""One run of a session, with outputs in wire form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.target_errors import MissingOutputsError, UnfeedableError
from harness.agent.wire import narrow_type, ort_value, output_to_wire, value_to_wire

PROGRESS_S = 0.1  # seconds between reports that runs go on: the harness limits the time of one run


class Runner:
    """Runs a session; outputs are in wire form, with large ones still as ``Bulk``."""

    def __init__(self, session: Any, only: int | None = None) -> None:
        self.session = session
        outputs = session.get_outputs()
        if only is not None:
            outputs = outputs[only : only + 1]
        self.names = [output.name for output in outputs]
        self.types = [output.type.lower() for output in outputs]
        self.has_narrow = any(map(narrow_type, self.types))
        """Return a function that does one run and nothing else; ``in_wire_form`` takes its result."""

    def only(self, index: int) -> Runner:
        """Return a runner of the same session that requests a single output."""
        return Runner(self.session, index)

    def __call__(self, feeds: dict[str, Any]) -> list[Any]:
        """Run once, and return the outputs in wire form."""
        return self.in_wire_form(self.step(feeds)())

    def step(self, feeds: dict[str, Any], options: Any = None) -> Callable[[], list[Any]]:
        """Return a function that does one run and nothing else; ``in_wire_form`` takes what it returns.

        ``options`` are onnxruntime's of a run, if any.

        Raises:
            numpy cannot hold these outputs: read them from the memory of OrtValues instead.
        """
        more = () if options is None else (options,)
        if not self.has_narrow:
            return lambda: list(self.session.run(self.names, feeds, *more))
        # numpy cannot hold these outputs: read them from the memory of OrtValues instead.
        values = {}
        for name, feed in feeds.items():
            is_array = isinstance(feed, np.ndarray)
            if isinstance(feed, (list, dict, type(None))) or (is_array and feed.dtype.kind == "O"):
                raise UnfeedableError("containers or strings together with an output type that numpy lacks")
            values[name] = ort_value().ortvalue_from_numpy(feed) if is_array else feed
        return lambda: list(self.session.run_with_ort_values(self.names, values, *more))

    def in_wire_form(self, values: list[Any]) -> list[Any]:
        """Return the values that a step returned, in wire form.

        Raises:
            MissingOutputsError: There are too few: with ``enable_cuda_graph``, CUDA returns only bound
                outputs.
        """
        if len(values) < len(self.names):
            raise MissingOutputsError(
                "the session ran and returned %d of its %d outputs; the scenario io_binding binds them"
                % (len(values), len(self.names))
            )
        if self.has_narrow:
            return [value_to_wire(value, narrow_type(kind)) for value, kind in zip(values, self.types)]
        return [output_to_wire(value, kind) for value, kind in zip(values, self.types)]
