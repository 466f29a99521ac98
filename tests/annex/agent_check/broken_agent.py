"""An agent that is broken in one way, the real one bent at one place: ``python broken_agent.py FAULT``."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

# Not typed: their parts are replaced.
agent, frames, hello, model_store, stream, tensor_files = (
    cast("Any", importlib.import_module(f"harness.agent.{name}"))
    for name in ("agent", "frame", "hello", "model_store", "stream", "tensor_files")
)

FAULTS: dict[str, Callable[[], None]] = {}
Message = Any


def fault(bend: Callable[[], None]) -> Callable[[], None]:
    FAULTS[bend.__name__] = bend
    return bend


def in_greeting(**changed: Any) -> None:
    """Greet with other values."""
    right = hello.greeting

    def greeting(*given: Any) -> str:
        word, _, text = right(*given).partition(" ")
        return f"{word} {json.dumps({**json.loads(text), **changed})}"

    stream.greeting = greeting


def on_send(bend: Callable[[Message, Callable[[Message], None]], None]) -> None:
    """Have messages pass through a function, which gets the message and what sends one."""
    right = stream.Stream.send

    def send(self: Any, message: Message) -> None:
        bend(message, lambda each: right(self, each))

    stream.Stream.send = send


def in_result(bend: Callable[[dict[str, Any]], None]) -> None:
    """Change results before they are sent."""

    def change(message: Message, send: Callable[[Message], None]) -> None:
        if message[0] == "result" and message[2]["status"] == "ok":
            bend(message[2])
        send(message)

    on_send(change)


def in_tensors(bend: Callable[[dict[str, Any]], None]) -> None:
    """Change the tensors of results."""

    def change(result: dict[str, Any]) -> None:
        for outputs in result["outputs"]:
            for each in filter(None, outputs):
                bend(each)

    in_result(change)


@fault
def silent() -> None:
    time.sleep(100)


@fault
def greets_with_another_token() -> None:
    in_greeting(token="0" * 32)


@fault
def speaks_the_next_version() -> None:
    in_greeting(protocol=2)


@fault
def chooses_its_own_mode() -> None:
    in_greeting(mode="semaphore")


@fault
def declines_without_a_reason() -> None:
    in_greeting(declines={"make": ""})


@fault
def declines_what_nobody_knows() -> None:
    in_greeting(declines={"weekends": "never"})


@fault
def prints_into_the_stream() -> None:
    right = stream.framed
    stream.framed = lambda *given: b"a library says hello\n" + right(*given)


@fault
def counts_wrong_checks() -> None:
    right = frames.zlib.crc32
    stream_only = stream.framed

    def framed(*given: Any) -> Any:
        frames.zlib = type("Zlib", (), {"crc32": lambda *each: right(*each) ^ 1})
        try:
            return stream_only(*given)
        finally:
            frames.zlib = type("Zlib", (), {"crc32": right})

    stream.framed = framed


@fault
def sends_a_message_of_its_own() -> None:
    def gossip(message: Message, send: Callable[[Message], None]) -> None:
        send(("gossip",))
        send(message)

    on_send(gossip)


@fault
def sends_what_is_no_json() -> None:
    right = stream.framed

    def framed(message: Message, mode: str) -> Any:
        if message[0] == "imported":
            content = b'["phase", NaN, "run"]'
            return b"#b %d 0 %08x\n%s\n" % (len(content), frames.zlib.crc32(content), content)
        return right(message, mode)

    stream.framed = framed


@fault
def keeps_its_phases_to_itself() -> None:
    on_send(lambda message, send: None if message[0] == "phase" else send(message))


@fault
def begins_a_run_for_ever() -> None:
    def flood(message: Message, send: Callable[[Message], None]) -> None:
        for _ in range(100 if message[0] == "result" else 0):
            send(("phase", message[1], "run"))
        send(message)

    on_send(flood)


@fault
def is_done_before_the_result() -> None:
    held: list[Message] = []

    def change(message: Message, send: Callable[[Message], None]) -> None:
        if message[0] == "result":
            held.append(message)
            return
        send(message)
        if message[0] == "done":
            send(held.pop())

    on_send(change)


@fault
def answers_another_job() -> None:
    on_send(lambda message, send: send((message[0], 99, message[2]) if message[0] == "result" else message))


@fault
def rounds_the_identities_of_jobs() -> None:
    def change(message: Message, send: Callable[[Message], None]) -> None:
        small = message[0] in ("phase", "result", "done")
        send((message[0], message[1] & 0x7FFFFFFF, *message[2:]) if small else message)

    on_send(change)


@fault
def makes_vectors_of_scalars() -> None:
    in_tensors(lambda each: each.update(shape=each["shape"] or [1]))


@fault
def swaps_bytes() -> None:
    def swap(each: dict[str, Any]) -> None:
        if each["dtype"] == "float32" and isinstance(each["data"], bytes):
            each["data"] = np.frombuffer(each["data"], np.float32).byteswap().tobytes()

    in_tensors(swap)


@fault
def knows_one_nan_only() -> None:
    def tidy(each: dict[str, Any]) -> None:
        if each["dtype"] == "float32" and isinstance(each["data"], bytes):
            values = np.frombuffer(each["data"], np.float32).copy()
            values[np.isnan(values)] = np.nan
            each["data"] = values.tobytes()

    in_tensors(tidy)


@fault
def counts_in_float64() -> None:
    def round_off(each: dict[str, Any]) -> None:
        if each["dtype"] == "int64":
            each["data"] = (np.frombuffer(each["data"], np.int64) // 4 * 4).tobytes()

    in_tensors(round_off)


@fault
def leaves_out_empty_tensors() -> None:
    def leave_out(each: dict[str, Any]) -> None:
        if 0 in each["shape"]:
            each.update(shape=[0])

    in_tensors(leave_out)


@fault
def runs_the_first_data_set_only() -> None:
    in_result(lambda result: result.update(outputs=result["outputs"][:1]))


@fault
def repeats_only_what_is_quick() -> None:
    def leave_out(result: dict[str, Any]) -> None:
        if result["timings_ms"]["first_run"] >= 100:
            del result["repeats"], result["other"]

    in_result(leave_out)


@fault
def plays_no_ways() -> None:
    in_result(lambda result: result.pop("generated", None))


@fault
def sorts_its_outputs() -> None:
    in_result(lambda result: result.update(names=sorted(result["names"])))


@fault
def dies_in_a_run() -> None:
    def die(message: Message, send: Callable[[Message], None]) -> None:
        send(message)
        if message[0] == "phase":
            os._exit(3)

    on_send(die)


@fault
def hangs_in_a_job() -> None:
    on_send(lambda message, send: time.sleep(100) if message[0] == "result" else send(message))


@fault
def goes_on_without_a_harness() -> None:
    stream.os = type("Os", (), {**vars(os), "_exit": lambda _: None})


@fault
def ends_with_an_exit_code() -> None:
    right = stream.serve

    def serve(main: Any) -> None:
        right(main)
        os._exit(3)

    stream.serve = serve


@fault
def takes_any_provider() -> None:
    bend_config(lambda config: config.update(providers=["CPUExecutionProvider"]))


def bend_config(bend: Callable[[dict[str, Any]], None]) -> None:
    right = stream.Stream.receive

    def receive(self: Any, timeout: float | None = None) -> Message:
        message = right(self, timeout)
        if message[0] == "config":
            bend(message[1])
        return message

    stream.Stream.receive = receive


@fault
def ignores_what_it_does_not_know() -> None:
    agent.check_fields = lambda _: None


@fault
def makes_up_its_placement() -> None:
    in_result(lambda result: result["placement"].update(ep_nodes=7))


@fault
def says_nothing_about_itself() -> None:
    def change(message: Message, send: Callable[[Message], None]) -> None:
        send(("ready", {}) if message[0] == "ready" else message)

    on_send(change)


@fault
def fails_without_a_word() -> None:
    def change(message: Message, send: Callable[[Message], None]) -> None:
        if message[0] == "result" and message[2]["status"] == "error":
            message[2].update(message="")
        send(message)

    on_send(change)


class Anything(str):
    """Equal to every text."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


class EqualSum:
    """A checksum that equals every other one."""

    def update(self, content: bytes) -> None:
        """Take part in it."""

    def hexdigest(self) -> str:
        return Anything()


@fault
def believes_any_content() -> None:
    model_store.hashlib = type("Hashlib", (), {"sha256": EqualSum})


@fault
def writes_anywhere() -> None:
    model_store.parts_of = lambda name: name.split("/") if not name.startswith("/") else [name]


@fault
def leaves_its_files() -> None:
    tensor_files.os = type("Os", (), {**vars(os), "unlink": lambda _: None})


if __name__ == "__main__":
    FAULTS[sys.argv[1]]()
    stream.serve(agent.main)
