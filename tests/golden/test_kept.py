"""Goldens are removed when they have not been used for long, and not before."""

import os
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

from harness.core.values.value import tensor
from harness.golden.golden_answer import Golden
from harness.golden.golden_cache import GoldenStore
from harness.golden.golden_list import kept_by_case, kept_goldens, prune_goldens
from harness.golden.provenance import evaluator_provenance
from tests.golden.typed_cases import ONE_CASE

DAY_S = 86400.0
GOLDEN = Golden(status="ok", outputs=((("out/0", tensor(np.ones(4, np.float32))),),))


@pytest.fixture
def stores(tmp_path: Path) -> dict[str, GoldenStore]:
    return {release: GoldenStore({"onnxruntime": release}, tmp_path) for release in ("1.30.0", "1.31.1")}


def age(root: Path, days: float) -> None:
    for one in kept_goldens(root):
        os.utime(one.folder, (time.time() - days * DAY_S,) * 2)


def test_a_golden_that_is_read_stays(stores: dict[str, GoldenStore], tmp_path: Path) -> None:
    for store in stores.values():
        store.save(ONE_CASE, GOLDEN)
    for _ in ("from its files", "from the row cache"):
        age(tmp_path, 40)
        assert stores["1.31.1"].load(ONE_CASE) is not None
        used = {
            one.manifest.provenance["onnxruntime"]: one.used_at
            for one in kept_goldens(tmp_path)
            if one.manifest is not None
        }
        assert used["1.31.1"] > time.time() - DAY_S > used["1.30.0"]
    (gone,) = prune_goldens(older_than_s=30 * DAY_S, root=tmp_path)
    assert gone.by == "onnxruntime 1.30.0"
    assert gone.nbytes > 16
    assert stores["1.30.0"].load(ONE_CASE) is None
    assert stores["1.31.1"].load(ONE_CASE) is not None
    assert list(prune_goldens(older_than_s=30 * DAY_S, root=tmp_path)) == []


def test_what_cannot_be_read_goes_too(stores: dict[str, GoldenStore], tmp_path: Path) -> None:
    stores["1.31.1"].save(ONE_CASE, GOLDEN)
    (manifest,) = tmp_path.rglob("manifest.json")
    manifest.write_bytes(b"{")
    assert kept_by_case(tmp_path) == {}
    (gone,) = prune_goldens(older_than_s=0.0, root=tmp_path)
    assert gone.by == ""
    assert not manifest.parent.exists()


def test_a_case_is_found_under_each_provenance(stores: dict[str, GoldenStore], tmp_path: Path) -> None:
    for store in stores.values():
        store.save(ONE_CASE, GOLDEN)
    found = kept_by_case(tmp_path)
    assert found.keys() == {ONE_CASE.digest}
    assert sorted(one["onnxruntime"] for one in found[ONE_CASE.digest]) == ["1.30.0", "1.31.1"]
    assert kept_by_case(tmp_path / "nothing") == {}


def test_references_are_no_goldens_and_are_pruned_like_them(tmp_path: Path) -> None:
    made = (
        {"onnxruntime": "1.31.1", "graph_optimization": "disabled"},
        {"onnxruntime": "1.31.1", "environment": "of a target"},
        evaluator_provenance(),
    )
    for provenance in made:
        GoldenStore(provenance, tmp_path).save(ONE_CASE, GOLDEN)
    assert kept_by_case(tmp_path) == {}
    gone = {one.by for one in prune_goldens(older_than_s=0.0, root=tmp_path)}
    assert gone == {"onnxruntime 1.31.1", f"onnx.reference {onnx.__version__}"}
