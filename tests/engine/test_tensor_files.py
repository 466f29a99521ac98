"""Tensors that travel as files: every type, places that are full, gone or hostile, and what is left."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from harness.agent import tensor_files as agent_files
from harness.agent import wire as agent_wire
from harness.agent.target_errors import NoRoomError
from harness.agent.tensor_files import Bulk, TensorFiles
from harness.core.values.value import DTYPES, Map, Sequence, Tensor, Value, pack, tensor
from harness.engine.processes import mapped_tensors
from harness.engine.processes.mapped_tensors import Tensors
from harness.engine.processes.messages import RunResult
from harness.engine.tasks.configuration import cpu_configuration
from harness.engine.tasks.outcome import Ran, from_result
from harness.engine.tasks.task import Question, QuestionTask
from harness.engine.workers.device import NO_SLOT
from harness.engine.workers.in_flight import BYTES_IN_FLIGHT
from harness.engine.workers.queues import TaskQueue
from harness.engine.workers.worker import Worker
from harness.plan.file_format import Timeouts
from harness.plan.target import Runtime

SMALL = 64
LARGE = tensor(np.arange(1000, dtype=np.float32))
POSIX = pytest.mark.skipif(os.name != "posix", reason="POSIX files")


class Usage(NamedTuple):
    """What ``shutil.disk_usage`` says, as far as it matters."""

    free: int


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (agent_files, agent_wire, mapped_tensors):
        monkeypatch.setattr(module, "FILE_FROM", SMALL)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    return first, second


@pytest.fixture
def tensors(places: tuple[Path, Path]) -> Tensors:
    return Tensors(places)


def files(places: tuple[Path, Path]) -> list[str]:
    return sorted(path.name for place in places for path in place.iterdir())


def same(one: Value, other: Value) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        equal = pack(one) == pack(other) if one.dtype != "string" else np.array_equal(one.array, other.array)
        return one.dtype == other.dtype and one.array.shape == other.array.shape and equal
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one.items) == len(other.items) and all(map(same, one.items, other.items))
    if isinstance(one, Map) and isinstance(other, Map):
        return same(one.keys, other.keys) and same(one.values, other.values)
    return one is None and other is None


def of_every_type() -> list[Value]:
    bits = np.random.default_rng(0).integers(0, 2, 6000).astype(np.float32).reshape(2, -1)
    values: list[Value] = [Tensor(dtype=name, array=bits.astype(dtype)) for name, dtype in DTYPES.items()]
    large = tensor(np.arange(500))
    texts = tensor(np.array(["a", "é" * 50, ""] * 20, dtype=object))
    return [*values, texts, None, Sequence(items=(large, large)), Map(keys=large, values=large)]


def name_of(value: Value) -> str:
    return value.dtype if isinstance(value, Tensor) else type(value).__name__


@pytest.mark.parametrize("value", of_every_type(), ids=name_of)
def test_any_value_arrives(value: Value, tensors: Tensors, places: tuple[Path, Path]) -> None:
    wire = tensors.put(value)
    assert bool(files(places)) is (value is not None and name_of(value) != "string")
    assert same(tensors.take(wire), value)
    assert files(places) == []


@pytest.mark.parametrize(
    "size", [SMALL // 4 - 1, SMALL // 4, agent_files.MAP_FROM // 4 - 1, agent_files.MAP_FROM // 4]
)
def test_each_size_takes_its_way(size: int, tensors: Tensors, places: tuple[Path, Path]) -> None:
    array = np.arange(size, dtype=np.float32)
    wire = tensors.put(tensor(array))
    assert ("file" in wire) is ("data" not in wire) is (array.nbytes >= SMALL)
    assert len(files(places)) == (array.nbytes >= SMALL)
    assert tensors.nbytes == array.nbytes
    arrived = tensors.take(wire)
    assert files(places) == []
    assert isinstance(arrived, Tensor)
    assert np.array_equal(arrived.array, array)
    assert not arrived.array.flags.writeable


def test_mappings_are_few(tensors: Tensors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_files, "MAP_FROM", 100)
    monkeypatch.setattr(agent_files, "MAP_ALWAYS_FROM", 5000)
    monkeypatch.setattr(agent_files, "MAP_LIMIT", len(agent_files.MAPPINGS) + 3)
    before = len(agent_files.MAPPINGS)
    arrived = [tensors.take(tensors.put(LARGE)) for _ in range(6)]
    assert len(agent_files.MAPPINGS) - before == 3
    larger = tensor(np.zeros(5000, np.uint8))
    arrived.append(tensors.take(tensors.put(larger)))
    assert len(agent_files.MAPPINGS) - before == 4
    assert all(map(same, arrived, [LARGE] * 6 + [larger]))
    arrived.clear()
    assert len(agent_files.MAPPINGS) == before


def test_what_is_no_block_of_memory_is_written_in_its_order(tensors: Tensors) -> None:
    array = np.arange(400, dtype=np.int16).reshape(20, 20)
    for view in (array.T, array[::2, ::3], array[::-1]):
        assert same(tensors.take(tensors.put(tensor(view))), tensor(view.copy()))


def test_a_file_is_closed_to_others_and_its_name_never_comes_twice(
    tensors: Tensors, places: tuple[Path, Path]
) -> None:
    names = {tensors.put(LARGE)["file"] for _ in range(3)}
    assert len(names) == 3
    if os.name == "posix":
        assert {path.stat().st_mode & 0o777 for path in places[0].iterdir()} == {0o600}


# --- no room ---


def free(places: dict[Path, int]) -> Callable[[str], Usage]:
    return lambda folder: Usage(places[Path(folder)])


def test_a_place_is_taken_only_if_it_has_twice_the_room(
    tensors: Tensors, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = places
    monkeypatch.setattr(shutil, "disk_usage", free({first: 2 * 4000 - 1, second: 2 * 4000}))
    assert (second / tensors.put(LARGE)["file"]).exists()
    monkeypatch.setattr(shutil, "disk_usage", free({first: 2 * 4000, second: 0}))
    assert (first / tensors.put(LARGE)["file"]).exists()
    monkeypatch.setattr(shutil, "disk_usage", free({first: 0, second: 0}))
    wire = tensors.put(LARGE)
    assert wire["data"] == LARGE.array.tobytes()
    assert same(tensors.take(wire), LARGE)


def full_disk(handle: int, data: memoryview) -> int:
    """As ``os.write`` does where a part has room."""
    if os.fstat(handle).st_size:
        raise OSError(errno.ENOSPC, "No space left on device")
    return WRITE(handle, data[:10])


WRITE = os.write


def test_a_disk_that_fills_up_meanwhile_keeps_no_part(
    tensors: Tensors, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", full_disk)
    wire = tensors.put(LARGE)
    monkeypatch.undo()
    assert files(places) == []
    assert same(tensors.take(wire), LARGE)


def test_a_folder_that_is_gone_is_no_obstacle(tensors: Tensors, places: tuple[Path, Path]) -> None:
    places[0].rmdir()
    wire = tensors.put(LARGE)
    assert [path.name for path in places[1].iterdir()] == [wire["file"]]
    assert same(tensors.take(wire), LARGE)


TEXTS = tensor(np.array(["x" * 900] * 2, dtype=object))


@pytest.mark.parametrize("value", [LARGE, TEXTS], ids=name_of)
def test_what_fits_nowhere_is_refused_in_words(value: Value, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_files, "INLINE_LIMIT", 4001)
    tensors = Tensors()
    tensors.put(tensor(np.zeros(1, np.float32)))
    with pytest.raises(NoRoomError, match=r"^the inputs take more than the \d+ MiB"):
        tensors.put(value)
    monkeypatch.setattr(agent_files, "INLINE_LIMIT", 10810)
    tensors.begin()
    tensors.put(value)


def test_texts_have_a_limit_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_files, "TEXT_LIMIT", 10806)
    tensors = Tensors()
    tensors.put(TEXTS)
    with pytest.raises(NoRoomError, match=r"^the texts of the inputs take more than the \d+ MiB"):
        tensors.put(tensor(np.array(["x"], dtype=object)))


def test_a_refusal_names_the_folders_and_leaves_nothing_in_them(
    tensors: Tensors, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors.put(LARGE)
    monkeypatch.setattr(agent_files, "INLINE_LIMIT", 1000)
    monkeypatch.setattr(shutil, "disk_usage", free(dict.fromkeys(places, 0)))
    with pytest.raises(NoRoomError, match=f"and find no room in .*{places[0].name} or .*{places[1].name}$"):
        tensors.put(LARGE)
    tensors.discard()
    assert files(places) == []
    assert tensors.nbytes == 0


# --- hostile or dying agents ---


NO_NAMES = ("../kept", "/etc/passwd", "", ".", "..", "out-1/../../kept", "out-1\n", "OUT-1", "out-1\0", "out")
NO_NAMES_EITHER = (7, None, b"out-1", ["out-1"], "out-" + "1" * 300, "\udcff-1")


@pytest.mark.parametrize("name", [*NO_NAMES, *NO_NAMES_EITHER], ids=ascii)
def test_a_name_that_is_none_is_not_looked_for(tensors: Tensors, tmp_path: Path, name: object) -> None:
    (tmp_path / "kept").write_bytes(LARGE.array.tobytes())
    with pytest.raises(ValueError, match="is not the name of a tensor's file"):
        tensors.take({"dtype": "float32", "shape": [1000], "file": name})
    assert (tmp_path / "kept").exists()


def make_link(path: Path) -> None:
    (path.parent.parent / "kept").write_bytes(LARGE.array.tobytes())
    path.symlink_to(path.parent.parent / "kept")


def make_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


PLANTED: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path,
    "link": make_link,
    "folder": lambda path: path.mkdir(),
    "fifo": os.mkfifo,
    "empty": lambda path: path.touch(),
    "short": lambda path: path.write_bytes(bytes(3999)),
    "long": lambda path: path.write_bytes(bytes(4001)),
    "huge": make_huge,
}


def descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


@POSIX
@pytest.mark.parametrize("planted", PLANTED)
def test_a_file_that_is_none_is_an_error_of_its_sender(
    tensors: Tensors, places: tuple[Path, Path], planted: str
) -> None:
    PLANTED[planted](places[0] / "out-1")
    before = descriptors()
    with pytest.raises(ValueError, match=r"cannot be read|do not fill float32\[1000\]"):
        tensors.take({"dtype": "float32", "shape": [1000], "file": "out-1"})
    if planted == "link":
        assert (places[0].parent / "kept").exists()
    assert descriptors() == before


NONSENSE = (
    {"dtype": "string", "shape": [4000]},
    {"dtype": "float31", "shape": [1000]},
    {"dtype": "int4", "shape": [7]},
    {"dtype": "float32", "shape": [-1]},
    {"dtype": "float32"},
    {"shape": [1000]},
)


@pytest.mark.parametrize("form", NONSENSE, ids=str)
def test_a_file_does_not_make_nonsense_sensible(
    tensors: Tensors, places: tuple[Path, Path], form: dict[str, Any]
) -> None:
    (places[0] / "out-1").write_bytes(bytes(4000))
    with pytest.raises((ValueError, KeyError, TypeError)):
        tensors.take({**form, "file": "out-1"})


@pytest.mark.parametrize(
    "wire", ["x", 3, ["file"], {"sequence": [{"file": "out-1"}]}, {"keys": 1, "values": 2}], ids=str
)
def test_other_nonsense_stays_an_error(tensors: Tensors, wire: Any) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        tensors.take(wire)


def test_a_result_is_read_with_its_files(tensors: Tensors, places: tuple[Path, Path]) -> None:
    sender = TensorFiles([str(place) for place in places], "out", "the outputs")
    wires = [sender.send(agent_wire.output_to_wire(LARGE.array + shift)) for shift in (0, 1, 2)]
    assert files(places) == ["out-1", "out-2", "out-3"]
    result = {
        "status": "ok",
        "names": ["y"],
        "outputs": [wires[:1], wires[1:2]],
        "second": wires[2:],
        "providers": [],
        "providers_after": [],
        "timings_ms": {},
        "placement": {
            "ep_nodes": 1,
            "cpu_nodes": 0,
            "ep_ops": {},
            "cpu_ops": {},
            "partitions": 1,
            "source": "profile",
        },
    }
    outcome = from_result(msgspec.convert(result, RunResult), tensors)
    assert isinstance(outcome, Ran)
    assert outcome.second is not None
    found = [*outcome.outputs, outcome.second]
    assert all(same(found[shift][0][1], tensor(LARGE.array + shift)) for shift in (0, 1, 2))
    assert files(places) == []


# --- outputs of two runs ---


def test_two_runs_are_compared_where_they_lie() -> None:
    for size in (SMALL, Bulk.BLOCK, Bulk.BLOCK + 13, 3 * Bulk.BLOCK + 8):
        one = np.arange(size, dtype=np.uint8)
        assert agent_wire.output_to_wire(one) == agent_wire.output_to_wire(one.copy())
        for position in {0, Bulk.BLOCK, size - 1} & set(range(size)):
            other = one.copy()
            other[position] ^= 1
            assert agent_wire.output_to_wire(one) != agent_wire.output_to_wire(other)
    assert agent_wire.output_to_wire(np.zeros(100)) != agent_wire.output_to_wire(np.zeros(101))
    assert agent_wire.output_to_wire(np.full(100, np.nan)) == agent_wire.output_to_wire(np.full(100, np.nan))


# --- tasks in flight ---


class Silent:
    """As much of a process as a worker needs that is only given tasks."""

    def send(self, *messages: object) -> None:
        """Lost."""


def test_a_worker_holds_few_large_tasks() -> None:
    worker = Worker(1, Silent())  # type: ignore[arg-type]
    worker.serve(TaskQueue("cpu", cpu_configuration(Runtime()), Timeouts()), NO_SLOT)
    worker.on_ready(0.0)
    assert worker.has_room
    worker.give(QuestionTask(about=Question(suite="s", model="m"), nbytes=BYTES_IN_FLIGHT - 1), {})
    assert worker.has_room
    worker.give(QuestionTask(about=Question(suite="s", model="m"), nbytes=1), {})
    assert not worker.has_room
    worker.in_flight.popleft()
    worker.in_flight.popleft()
    worker.give(QuestionTask(about=Question(suite="s", model="m"), nbytes=100 * BYTES_IN_FLIGHT), {})
    assert not worker.has_room
