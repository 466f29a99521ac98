"""The agent alone, in this interpreter with the real onnxruntime, over execnet."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import execnet
import onnx
import onnx.parser
import pytest

from harness.agent.message import MessageChannel
from harness.core.value import Value, from_wire, to_wire
from harness.engine.launch import agent_source


@pytest.fixture(scope="session")
def start_agent() -> Iterator[Callable[..., Callable[..., dict[str, Any]]]]:
    """Start an agent on the CPU provider; a function that gives it one model, for the result message."""
    pytest.importorskip("onnxruntime")
    group = execnet.Group()
    channels = []

    def start(tensor_folders: list[str] | None = None) -> Callable[..., dict[str, Any]]:
        gateway = group.makegateway("popen//execmodel=main_thread_only")
        channel = MessageChannel(gateway.remote_exec(agent_source()))
        channels.append(channel)
        config: dict[str, Any] = {"providers": ["CPUExecutionProvider"], "options": {}}
        channel.send({**config, "tensor_folders": tensor_folders})

        def serve(
            model: bytes,
            *data_sets: Mapping[str, Value],
            put: Callable[[Value], Any] = to_wire,
            **settings: object,
        ) -> dict[str, Any]:
            wired = [[(name, put(value)) for name, value in one.items()] for one in data_sets or [{}]]
            channel.send(("job", 7, {"model": model, "data_sets": wired, **settings}))
            result: dict[str, Any] = {}
            while (message := channel.receive(60))[0] != "done":
                if message[0] == "result":
                    result = message[2]
            return result

        assert channel.receive(60) == ("imported",)
        assert channel.receive(60)[0] == "ready"
        return serve

    yield start
    for channel in channels:
        channel.send(("stop",))
        channel.channel.waitclose(30)
    group.terminate(timeout=5)


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


@pytest.fixture(scope="session")
def parse() -> Callable[..., bytes]:
    """A serialized model from ONNX's text form."""

    def text(graph: str, opset: int = 26, ir: int = 13) -> bytes:
        head = f'<ir_version: {ir}, opset_import: ["" : {opset}, "ai.onnx.ml" : 3]>'
        model: bytes = onnx.parser.parse_model(head + graph).SerializeToString()
        return model

    return text
