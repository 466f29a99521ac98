"""Spreads beside their goldens: what is saved is loaded, and removed with the golden."""

from pathlib import Path

import numpy as np
import pytest

from harness.core.noise.noise_moves import Move
from harness.core.noise.spread import Spread
from harness.core.values.value import Floats, tensor
from harness.golden.golden_answer import Golden
from harness.golden.golden_cache import GoldenStore
from harness.golden.golden_list import prune_goldens
from harness.golden.spreads import load_spread, save_spread
from tests.golden.typed_cases import ONE_CASE

AMPLITUDES = (0.0, 16.0, 16.0)


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """The folder of a golden."""
    store = GoldenStore({"onnxruntime": "1.31.1"}, tmp_path)
    store.save(ONE_CASE, Golden(status="ok", outputs=((("out/0", tensor(np.ones(3, np.float32))),),)))
    return store.entry(ONE_CASE)


def spread() -> Spread:
    arrays: tuple[dict[str, Floats], ...] = (
        {"out/0": np.array([1e-7, 2e-7, 3e-300]), "out/1[0]": np.full((2, 0), 1.0)},
        {"out/0": np.array(0.5)},
    )
    return Spread(
        precision="float32",
        outputs=arrays,
        lost=(
            {},
            {"out/0": 29.5, "index": 1.0},
        ),
        moved=({"index": Move(reach=np.array([[3.0, 0.0]]), most=1)}, {}),
    )


def test_a_spread_comes_back(entry: Path) -> None:
    save_spread(entry, "float32", spread(), AMPLITUDES)
    found = load_spread(entry, "float32")
    assert found is not None
    assert found.precision == "float32"
    assert found.lost == spread().lost
    first, second = found.moved
    assert (first["index"].reach.tolist(), first["index"].most, dict(second)) == ([[3.0, 0.0]], 1, {})
    for left, right in zip(found.outputs, spread().outputs, strict=True):
        assert left.keys() == right.keys()
        for leaf, array in right.items():
            assert left[leaf].shape == array.shape
            assert (left[leaf] == array).all()
    assert load_spread(entry, "float16") is None


def test_its_parameters_stand_beside_it(entry: Path) -> None:
    save_spread(entry, "float32", spread(), AMPLITUDES)
    text = (entry / "spread_float32" / "spread.json").read_text(encoding="utf-8")
    assert '"amplitudes": [\n    16.0\n  ]' in text


def test_one_that_is_there_stays(entry: Path) -> None:
    save_spread(entry, "float32", spread(), AMPLITUDES)
    save_spread(entry, "float32", Spread(precision="float32", outputs=()), AMPLITUDES)
    found = load_spread(entry, "float32")
    assert found is not None
    assert len(found.outputs) == 2


@pytest.mark.parametrize("damage", ["torn", "values", "shape", "gone", "manifest", "pickle"])
def test_a_damaged_spread_counts_as_none(entry: Path, damage: str) -> None:
    save_spread(entry, "float32", spread(), AMPLITUDES)
    home = entry / "spread_float32"
    file = home / "test_data_set_0-output_0.npy"
    if damage == "torn":
        file.write_bytes(file.read_bytes()[:-1])
    elif damage == "gone":
        file.unlink()
    elif damage == "manifest":
        (home / "spread.json").write_text("{", encoding="utf-8")
    elif damage == "pickle":
        np.save(file, np.array([object()]), allow_pickle=True)
    else:
        np.save(file, np.ones(3 if damage == "values" else 4))
    assert load_spread(entry, "float32") is None
    save_spread(entry, "float32", spread(), AMPLITUDES)
    assert load_spread(entry, "float32") is not None


def test_another_method_makes_it_anew(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_spread(entry, "float32", spread(), AMPLITUDES)
    monkeypatch.setattr("harness.golden.spreads.SPREADS_FORMAT", 0)
    assert load_spread(entry, "float32") is None


def test_no_spread_without_a_golden(tmp_path: Path) -> None:
    save_spread(tmp_path / "nothing", "float32", spread(), AMPLITUDES)
    assert not (tmp_path / "nothing").exists()


def test_it_goes_with_its_golden(entry: Path, tmp_path: Path) -> None:
    save_spread(entry, "float32", spread(), AMPLITUDES)
    assert len(list(prune_goldens(older_than_s=-3600, root=tmp_path))) == 1
    assert load_spread(entry, "float32") is None
