"""The agent alone, in this interpreter with the real onnxruntime, over its protocol."""

import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.core.values.value import Value, from_wire, to_wire
from harness.engine.processes.launch import launch_here
from harness.engine.processes.process import AgentProcess


class Channel:
    """Messages to and from an agent in a process of this interpreter."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.process = AgentProcess(launch_here([sys.executable], env or {}, folder))
        self.send = self.process.send
        self.messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self.process.serve, args=(self.messages.put,), daemon=True).start()

    def receive(self) -> Any:
        message = self.messages.get(timeout=60)
        self.process.taken += 1
        return message

    def stop(self) -> None:
        self.send(("stop",))
        assert self.process.wait() == ""


@pytest.fixture(scope="session")
def open_channel(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Channel]:
    return lambda env=None: Channel(tmp_path_factory.mktemp("agent"), env)


@pytest.fixture(scope="session")
def start_agent(
    open_channel: Callable[..., Channel],
) -> Iterator[Callable[..., Callable[..., dict[str, Any]]]]:
    """Start an agent on the CPU provider; a function that gives it one model, for the result message."""
    pytest.importorskip("onnxruntime")
    channels = []

    def start(
        tensor_folders: list[str] | None = None, env: Mapping[str, str] | None = None, **more: object
    ) -> Callable[..., dict[str, Any]]:
        channel = open_channel(env)
        channels.append(channel)
        config: dict[str, Any] = {"providers": ["CPUExecutionProvider"], "options": {}, **more}
        channel.send(("config", {**config, "tensor_folders": tensor_folders}))

        def serve(
            model: bytes,
            *data_sets: Mapping[str, Value],
            put: Callable[[Value], Any] = to_wire,
            **settings: object,
        ) -> dict[str, Any]:
            wired = [[(name, put(value)) for name, value in one.items()] for one in data_sets or [{}]]
            channel.send(("job", 7, {"model": model, "data_sets": wired, **settings}))
            result: dict[str, Any] = {}
            while (message := channel.receive())[0] != "done":
                if message[0] == "result":
                    result = message[2]
            return result

        assert channel.receive() == ("imported",)
        assert channel.receive()[0] == "ready"
        return serve

    yield start
    for channel in channels:
        channel.stop()


@pytest.fixture(scope="session")
def serve(start_agent: Callable[..., Callable[..., dict[str, Any]]]) -> Callable[..., dict[str, Any]]:
    """Give one model to an agent that shares no folders; its result message."""
    return start_agent()


@pytest.fixture(scope="session")
def outputs_of(serve: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Value]]:
    """As ``serve``, but the outputs of the first data set; a failure fails the test."""

    def run(model: bytes, feeds: Mapping[str, Value], **settings: object) -> dict[str, Value]:
        result = serve(model, feeds, **settings)
        assert result["status"] == "ok", result
        return dict(zip(result["names"], map(from_wire, result["outputs"][0]), strict=True))

    return run
