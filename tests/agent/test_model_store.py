"""Models from elsewhere, as an agent keeps them."""

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import pytest

from harness.agent import model_store
from harness.agent.inbox import Inbox
from harness.agent.model_store import Delivery, ModelStore

PIECE = 8  # bytes


def parcel(**contents: bytes) -> dict[str, Any]:
    """What a model is made of; ``a__b`` is file b in folder a."""
    files = [
        [name.replace("__", "/"), len(content), hashlib.sha256(content).hexdigest()]
        for name, content in contents.items()
    ]
    return {"digest": hashlib.sha256(repr(files).encode()).hexdigest(), "files": files}


def deliver(store: ModelStore, **contents: bytes) -> str:
    """Give a model to a store, in pieces."""
    delivery = Delivery(store, parcel(**contents))
    while delivery.lacks_something():
        content = contents[delivery.name.replace("/", "__")]
        delivery.take(content[delivery.offset :][:PIECE])
    store.keep(delivery)
    return store.find(parcel(**contents))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("EP_HARNESS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ort-ep-harness" / "models"


@pytest.fixture
def store() -> ModelStore:
    return ModelStore()


def test_a_model_keeps_its_names(store: ModelStore, cache: Path) -> None:
    contents = {"m": b"the model itself", "weights__w": b"0123456789", "empty": b""}
    path = Path(deliver(store, **contents))
    assert path.parent.parent == cache
    for name, content in contents.items():
        assert (path.parent / name.replace("__", "/")).read_bytes() == content
    assert ModelStore().find(parcel(**contents)) == str(path)


@pytest.mark.skipif(os.name != "posix", reason="other users have no such bits there")
@pytest.mark.parametrize("how", ["open to others", "a link"])
def test_a_cache_that_others_can_change_is_not_used(
    store: ModelStore, cache: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cache.parents[1] / "own"
    own.mkdir()
    monkeypatch.chdir(own)
    cache.parent.mkdir()
    if how == "a link":
        (cache.parents[1] / "elsewhere").mkdir(mode=0o700)
        cache.symlink_to(cache.parents[1] / "elsewhere")
    else:
        cache.mkdir()
        cache.chmod(0o777)
    path = Path(deliver(store, m=b"model"))
    assert path.parents[2] == own
    assert list(cache.iterdir()) == []


def test_what_arrives_changed_is_not_kept(store: ModelStore, cache: Path) -> None:
    delivery = Delivery(store, parcel(m=b"right"))
    assert delivery.lacks_something()
    delivery.take(b"wrong")
    with pytest.raises(OSError, match="m changed during the transfer"):
        delivery.lacks_something()
    delivery.discard()
    assert list(cache.iterdir()) == []


def test_the_second_of_two_processes_uses_what_the_first_has_kept(store: ModelStore, cache: Path) -> None:
    late = Delivery(store, parcel(m=b"model"))
    path = deliver(ModelStore(), m=b"model")
    assert late.lacks_something()
    late.take(b"model")
    assert not late.lacks_something()
    store.keep(late)
    assert store.find(parcel(m=b"model")) == path
    assert len(list(cache.iterdir())) == 1


def test_what_was_used_longest_ago_goes_first(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setattr(model_store, "STORE_LIMIT", 100)
    paths = [Path(deliver(store, m=bytes([number]) * 40)) for number in range(2)]
    abandoned = cache / ".new-abandoned"
    abandoned.mkdir()
    now = time.time()
    os.utime(abandoned, (now - 100_000, now - 100_000))
    for age_s, path in zip((1000, 2000), paths, strict=True):
        os.utime(path.parent, (now - age_s, now - age_s))
    newest = Path(deliver(store, m=b"x" * 40))
    assert [path.is_file() for path in (*paths, newest)] == [True, False, True]
    assert not abandoned.exists()
    # A process that used one of them a moment ago is about to open it.
    deliver(store, m=b"y" * 90)
    assert [path.is_file() for path in (*paths, newest)] == [False, False, True]


def test_a_disk_is_not_filled(store: ModelStore, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    free = type("Usage", (), {"free": 30})
    monkeypatch.setattr("shutil.disk_usage", lambda _: free)
    deliver(store, m=b"x" * 15)
    with pytest.raises(OSError, match="more than half of the free space"):
        Delivery(store, parcel(m=b"x" * 16))
    assert len(list(cache.iterdir())) == 1


class Empty(Exception):  # noqa: N818 - stands for the stream's TimeoutError
    """Nothing is there yet."""


class Channel:
    """What a harness says, and what it is asked for."""

    TimeoutError = Empty

    def __init__(self, *messages: Any) -> None:
        self.messages = list(messages)
        self.asked: list[Any] = []
        self.answers: dict[Any, bytes | None] = {}

    def send(self, message: Any) -> None:
        self.asked.append(message)
        if message in self.answers:
            self.messages.append(("model", *message[1:], self.answers[message]))

    def receive(self, timeout: float | None = None) -> Any:
        if not self.messages and timeout is not None:
            raise Empty
        if not self.messages:
            raise EOFError
        return self.messages.pop(0)


def job(number: int, model: Any) -> tuple[str, int, dict[str, Any]]:
    return "job", number, {"model": model}


def test_models_of_later_jobs_are_asked_for_in_time() -> None:
    first, second = parcel(m=b"first"), parcel(m=b"second")
    channel = Channel(job(1, first), job(2, second), job(3, first), ("model", 1, "m", 0, b"first"))
    inbox = Inbox(channel)
    assert inbox.next()[1] == 1
    assert channel.asked == [("need", 1, "m", 0), ("need", 2, "m", 0)]
    channel.messages += [("model", 2, "m", 0, b"sec"), ("model", 2, "m", 3, b"ond"), ("stop",)]
    assert Path(inbox.next()[2]["model"]).read_bytes() == b"second"
    assert channel.asked[2:] == [("need", 2, "m", 3)]
    assert Path(inbox.next()[2]["model"]).read_bytes() == b"first"
    assert inbox.next() == ("stop",)
    with pytest.raises(EOFError):
        inbox.next()


def test_a_model_that_fails_one_job_is_asked_for_again_by_the_next() -> None:
    model = parcel(m=b"model")
    channel = Channel(job(1, model), job(2, model))
    channel.answers = {("need", 1, "m", 0): None, ("need", 2, "m", 0): b"model"}
    inbox = Inbox(channel)
    assert inbox.next()[2]["trouble"] == "the model did not arrive: m can no longer be read"
    assert Path(inbox.next()[2]["model"]).read_bytes() == b"model"
    assert channel.asked == [("need", 1, "m", 0), ("need", 2, "m", 0)]


@pytest.mark.parametrize("piece", [b"model", b"mo"])
def test_another_process_brings_the_model_first(piece: bytes, cache: Path) -> None:
    """What was asked for still comes, when its job is done, and is not asked for to its end."""
    model = parcel(m=b"model")
    channel = Channel(job(1, model))
    inbox = Inbox(channel)

    def send(message: Any) -> None:
        channel.asked.append(message)
        deliver(ModelStore(), m=b"model")
        channel.messages += [("model", 1, "m", 0, piece), ("stop",)]

    channel.send = send  # type: ignore[method-assign]
    assert Path(inbox.next()[2]["model"]).read_bytes() == b"model"
    assert inbox.next() == ("stop",)
    assert channel.asked == [("need", 1, "m", 0)]
    assert [path.name for path in cache.iterdir()] == [model["digest"]]


def test_a_model_that_both_see_is_not_asked_for() -> None:
    channel = Channel(job(1, "/here/m.onnx"), job(2, "/here/n.onnx"))
    inbox = Inbox(channel)
    assert [inbox.next()[2]["model"] for _ in range(2)] == ["/here/m.onnx", "/here/n.onnx"]
    assert channel.asked == []
