"""The golden cache: what is saved is loaded, unchanged."""

import shutil
from pathlib import Path

import ml_dtypes
import msgspec
import numpy as np
import pytest

from harness.core.text.errors import UsageError
from harness.core.values.value import DTYPES, Map, Sequence, Tensor, Value, tensor, to_wire
from harness.corpus.beside.value_file import read_value
from harness.corpus.caches.row_cache import FILE_NAME, LARGEST_CONTENT, open_row_cache
from harness.corpus.case import Case
from harness.corpus.model.port import ValueType
from harness.corpus.model.protos import encode
from harness.golden.golden_answer import Golden
from harness.golden.golden_cache import GoldenStore
from harness.golden.provenance import provenance
from tests.golden.typed_cases import ONE_CASE, case_of_types

TENSOR = ValueType(kind="tensor")
STRINGS = tensor(np.array(["", "ä€😀", "a\nb"], dtype=object))
FLOATS = tensor(np.array([1.5, -0.0, np.nan, np.inf], np.float32))
PROVENANCE = {"onnxruntime": "1.31.1", "machine": "x86_64"}


def golden(model: Case, *values: Value) -> Golden:
    return Golden(status="ok", outputs=(tuple(zip(model.outputs, values, strict=True)),))


@pytest.fixture
def store(tmp_path: Path) -> GoldenStore:
    return GoldenStore(PROVENANCE, tmp_path)


def tensors() -> dict[str, Tensor]:
    codes = np.arange(6, dtype=np.uint8) % 4
    made = {
        name: Tensor(dtype=name, array=codes.astype(dtype).reshape(2, 3)) for name, dtype in DTYPES.items()
    }
    return {**made, "string": STRINGS, "scalar": tensor(np.array(3.5)), "empty": tensor(np.zeros((0, 2)))}


@pytest.mark.parametrize("name", tensors())
def test_every_element_type_comes_back(store: GoldenStore, name: str) -> None:
    value = tensors()[name]
    store.save(ONE_CASE, golden(ONE_CASE, value))
    for _ in ("from its files", "from the row cache"):
        loaded = store.load(ONE_CASE)
        assert loaded is not None
        ((_, back),) = loaded.outputs[0]
        assert to_wire(back) == to_wire(value)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (ValueType(kind="sequence", item=TENSOR), Sequence(items=(FLOATS, tensor(np.zeros((2, 2)))))),
        (ValueType(kind="sequence", item=TENSOR), Sequence(items=())),
        (ValueType(kind="optional", item=TENSOR), FLOATS),
        (ValueType(kind="optional", item=TENSOR), None),
        (
            ValueType(kind="optional", item=ValueType(kind="sequence", item=TENSOR)),
            Sequence(items=(tensor(np.array([1], ml_dtypes.bfloat16)),)),
        ),
        (
            ValueType(kind="map", dtype="int64", item=TENSOR),
            Map(keys=tensor(np.array([3, -1])), values=tensor(np.array([0.5, 2], np.float32))),
        ),
        (
            ValueType(kind="sequence", item=ValueType(kind="map", dtype="string", item=TENSOR)),
            Sequence(items=(Map(keys=STRINGS, values=tensor(np.array([1, 2, 3], np.float32))),)),
        ),
    ],
)
def test_every_container_comes_back(store: GoldenStore, declared: ValueType, value: Value) -> None:
    model = case_of_types((declared, TENSOR))
    store.save(model, golden(model, value, FLOATS))
    for _ in ("from its files", "from the row cache"):
        loaded = store.load(model)
        assert loaded is not None
        (name, back), (_, beside) = loaded.outputs[0]
        assert name == "out/0"
        assert to_wire(back) == to_wire(value)
        assert to_wire(beside) == to_wire(FLOATS)


def test_all_data_sets_and_the_rest_of_a_golden_come_back(store: GoldenStore) -> None:
    outputs = tuple(((ONE_CASE.outputs[0], tensor(np.array([n]))),) for n in range(12))
    saved = Golden(status="ok", outputs=outputs, disputed="random")
    store.save(ONE_CASE, saved)
    loaded = store.load(ONE_CASE)
    assert loaded is not None
    assert [to_wire(data_set[0][1]) for data_set in loaded.outputs] == [
        to_wire(data_set[0][1]) for data_set in outputs
    ]
    assert loaded.disputed == "random"
    assert loaded.provenance == PROVENANCE


def test_a_refusal_is_an_answer_and_a_loss_is_none(store: GoldenStore) -> None:
    store.save(ONE_CASE, Golden(status="lost", message="it crashed"))
    assert store.load(ONE_CASE) is None
    store.save(ONE_CASE, Golden(status="refused", message="no kernel for Foo"))
    loaded = store.load(ONE_CASE)
    assert loaded is not None
    assert (loaded.status, loaded.message, loaded.outputs) == ("refused", "no kernel for Foo", ())


def test_another_model_or_provenance_is_another_entry(store: GoldenStore, tmp_path: Path) -> None:
    store.save(ONE_CASE, golden(ONE_CASE, FLOATS))
    assert store.load(msgspec.structs.replace(ONE_CASE, digest="e")) is None
    for key in PROVENANCE:
        assert GoldenStore({**PROVENANCE, key: "other"}, tmp_path).load(ONE_CASE) is None
    assert GoldenStore(dict(reversed(PROVENANCE.items())), tmp_path).load(ONE_CASE) is not None


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("damage", ["cut", "gone", "zeros", "manifest", "format"])
def test_a_damaged_entry_counts_as_none_and_can_be_written_anew(
    store: GoldenStore, tmp_path: Path, damage: str, *, cached: bool
) -> None:
    store.save(ONE_CASE, golden(ONE_CASE, FLOATS))
    assert not cached or store.load(ONE_CASE) is not None
    (manifest,) = tmp_path.rglob("manifest.json")
    (values,) = tmp_path.rglob("output_0.pb")
    if damage == "cut":
        values.write_bytes(values.read_bytes()[:-3])
    elif damage == "gone":
        values.unlink()
    elif damage == "zeros":  # a golden of zeros is the answer of a provider that computes nothing
        zeros = tensor(np.zeros(FLOATS.array.shape, np.float32))
        content = encode(zeros, TENSOR)
        assert len(content) == len(values.read_bytes())
        values.write_bytes(content)
    elif damage == "manifest":
        manifest.write_bytes(manifest.read_bytes()[:20])
    else:
        manifest.write_bytes(b'{"format": "x"}')
    assert store.load(ONE_CASE) is None
    store.save(ONE_CASE, golden(ONE_CASE, FLOATS))
    assert store.load(ONE_CASE) is not None


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files of outputs that were read."""
    found: list[Path] = []

    def spy(file: Path, declared: ValueType, digest: str) -> Value:
        found.append(file)
        return read_value(file, declared, digest)

    monkeypatch.setattr("harness.golden.golden_cache.read_value", spy)
    return found


def test_a_golden_is_read_from_its_files_once(store: GoldenStore, tmp_path: Path, reads: list[Path]) -> None:
    store.save(ONE_CASE, golden(ONE_CASE, FLOATS))
    assert reads == []
    first = store.load(ONE_CASE)
    assert len(reads) == 1
    later = GoldenStore(PROVENANCE, tmp_path).load(ONE_CASE)
    assert len(reads) == 1
    assert first is not None
    assert later is not None
    assert to_wire(later.outputs[0][0][1]) == to_wire(first.outputs[0][0][1])
    assert msgspec.structs.replace(first, outputs=()) == msgspec.structs.replace(later, outputs=())


def test_a_refusal_comes_from_the_row_cache_too(store: GoldenStore) -> None:
    saved = Golden(status="refused", message="no kernel", disputed="random", provenance=PROVENANCE)
    store.save(ONE_CASE, saved)
    assert store.load(ONE_CASE) == store.load(ONE_CASE) == saved


def test_large_goldens_are_read_each_time(store: GoldenStore, reads: list[Path]) -> None:
    store.save(ONE_CASE, golden(ONE_CASE, tensor(np.zeros(LARGEST_CONTENT, np.int8))))
    for _ in range(2):
        assert store.load(ONE_CASE) is not None
    assert len(reads) == 2


@pytest.mark.parametrize("what", ["manifest.json", "the entry", "everything"])
def test_a_golden_that_is_deleted_by_hand_is_gone(store: GoldenStore, tmp_path: Path, what: str) -> None:
    store.save(ONE_CASE, golden(ONE_CASE, FLOATS))
    assert store.load(ONE_CASE) is not None
    (manifest,) = tmp_path.rglob("manifest.json")
    if what == "manifest.json":
        manifest.unlink()
    elif what == "the entry":
        shutil.rmtree(manifest.parent)
    else:
        shutil.rmtree(tmp_path)
    assert store.load(ONE_CASE) is None
    store.save(ONE_CASE, golden(ONE_CASE, STRINGS))
    loaded = store.load(ONE_CASE)
    assert loaded is not None
    assert to_wire(loaded.outputs[0][0][1]) == to_wire(STRINGS)


def test_a_damaged_row_cache_loses_no_golden(store: GoldenStore, tmp_path: Path, reads: list[Path]) -> None:
    store.save(ONE_CASE, golden(ONE_CASE, FLOATS))
    store.load(ONE_CASE)
    for number, damage in enumerate((b"", b"garbage" * 1000), 2):
        (tmp_path / FILE_NAME).write_bytes(damage)
        for ending in ("-wal", "-shm"):
            (tmp_path / f"{FILE_NAME}{ending}").unlink(missing_ok=True)
        open_row_cache.cache_clear()
        assert GoldenStore(PROVENANCE, tmp_path).load(ONE_CASE) is not None
        assert len(reads) == number


def test_values_of_another_kind_than_declared_are_not_kept(store: GoldenStore, tmp_path: Path) -> None:
    model = case_of_types((ValueType(kind="sequence", item=TENSOR),))
    store.save(model, golden(model, FLOATS))
    assert store.load(model) is None
    assert not list(tmp_path.rglob("output_0.pb"))


def test_a_store_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be filled"):
        GoldenStore(PROVENANCE, tmp_path / "file").save(ONE_CASE, golden(ONE_CASE, FLOATS))


def test_provenance_names_the_runtime_and_the_processor() -> None:
    found = provenance()
    assert found.keys() == {
        "onnxruntime",
        "machine",
        "processor",
        "graph_optimization",
        "intra_op_num_threads",
        "session.disable_quant_qdq",
        "session.x64quantprecision",
    }
    assert found["machine"]
    assert found["onnxruntime"] == ort_version()


def ort_version() -> str:
    ort = pytest.importorskip("onnxruntime")
    return msgspec.convert(ort.__version__, str)
