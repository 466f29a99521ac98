"""The reader of model packages: held against onnxruntime's own, and tried on damaged packages."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.packages.asset_digest import asset_address
from harness.corpus.packages.read_package import PackageError, read_package
from harness.corpus.packages.with_weights import with_weights
from harness.corpus.suites.model_package import is_package
from tests.corpus.packages.damaged_packages import DAMAGES, Damage, write_damaged, write_valid
from tests.corpus.packages.drawn_packages import draw_package

_DRAWN = 200

_LINKS_ON_WINDOWS = "needs a right on Windows"

KNOWN_DIFFERENCES = {
    "device: got": "onnxruntime takes any text as a device; one that it does not know never matches",
    "there is no shared asset": "onnxruntime takes an address with too few digits as a relative path",
    "a package needs a component": "onnxruntime opens a package without components",
    "schema_version: expected a version": 'onnxruntime takes "1" as 1.0',
}
"""Part of the reader's refusal -> what onnxruntime 1.32.0 does although the text of the format forbids it."""


def _ask(roots: Sequence[Path]) -> list[dict[str, Any]]:
    """Return onnxruntime's answers, one for each folder."""
    asked = "".join(f"{json.dumps(str(root))}\n" for root in roots)
    program = Path(__file__).with_name("ask_runtime.py")
    ended = subprocess.run(
        [sys.executable, str(program)], input=asked, capture_output=True, text=True, timeout=120, check=True
    )
    has_api, *answers = map(json.loads, ended.stdout.splitlines())
    if not has_api:
        pytest.skip("this onnxruntime has no API for packages in Python; 1.32 is the first")
    return answers


def test_the_reader_agrees_with_the_runtime_on_drawn_packages(tmp_path: Path) -> None:
    roots = [tmp_path / str(seed) for seed in range(_DRAWN)]
    for seed, root in enumerate(roots):
        draw_package(root, seed)
    both = valid = 0
    different: dict[str, str] = {}
    for root, answer in zip(roots, _ask(roots), strict=True):
        try:
            package = read_package(root)
        except PackageError as error:
            both += "error" in answer
            if "error" not in answer:
                different[root.name] = str(error)
            continue
        valid += 1
        found = {one.name: [[each.name, each.ep] for each in one.variants] for one in package.components}
        assert found == answer.get("components"), (root.name, answer)
        for component in package.components:
            # The runtime chooses for its CPU provider: the first variant of that, if the device fits.
            matching = [
                one.name
                for one in component.variants
                if one.ep == "CPUExecutionProvider" and one.device in {None, "cpu"}
            ]
            assert answer["chosen"][component.name] == next(iter(matching), None)
    told = {seed for seed, why in different.items() if any(one in why for one in KNOWN_DIFFERENCES)}
    assert different.keys() == told, different
    assert valid > _DRAWN // 3
    assert both > _DRAWN // 5


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.long] if one.name == "many_variants" else [])
        for one in DAMAGES
    ],
)
def test_a_damaged_package_is_refused_or_right(damage: Damage, tmp_path: Path, opened: list[str]) -> None:
    if sys.platform == "win32" and ("link" in damage.name or "nul" in damage.name):
        pytest.skip(_LINKS_ON_WINDOWS)
    root = tmp_path / "package"
    write_damaged(root, damage)
    del opened[:]
    if damage.refused:
        with pytest.raises(PackageError, match=re.escape(damage.refused)) as refused:
            read_package(root, hashed=True)
        assert str(root) in str(refused.value)
    else:
        assert len(read_package(root, hashed=True).components[0].variants) in {2, 10_002}
    outside = str(tmp_path / "outside")
    assert not [path for path in opened if path.startswith(outside)]


def test_what_the_runtime_does_with_damaged_packages(tmp_path: Path) -> None:
    tried = [one for one in DAMAGES if not one.runtime_ends and one.name != "many_variants"]
    roots = [tmp_path / one.name / "package" for one in tried]
    for root, damage in zip(roots, tried, strict=True):
        write_damaged(root, damage)
    opens = {one.name for one, answer in zip(tried, _ask(roots), strict=True) if "error" not in answer}
    right = {one.name for one in tried if not one.refused}
    assert opens - right == {one.name for one in tried if one.runtime_opens}
    assert right <= opens


def test_the_address_of_an_asset_is_the_one_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "sub" / "b.txt").write_bytes(b"b")
    (tmp_path / "a.txt").write_bytes(b"a")
    ort = pytest.importorskip("onnxruntime")
    if not hasattr(ort, "ModelPackage"):
        pytest.skip("this onnxruntime has no API for packages in Python; 1.32 is the first")
    assert asset_address(tmp_path) == ort.ModelPackage.compute_directory_hash(str(tmp_path))


def test_a_folder_with_a_manifest_is_a_package(tmp_path: Path) -> None:
    assert not is_package(tmp_path)
    manifest = write_valid(tmp_path / "package")
    (tmp_path / "package" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert is_package(tmp_path / "package")


@pytest.mark.skipif(sys.platform == "win32", reason=_LINKS_ON_WINDOWS)
def test_links_out_of_a_folder_are_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "w.bin").write_bytes(b"w")
    (tmp_path / "secret").write_bytes(b"s")
    (weights / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "model.onnx").write_bytes(b"m")
    placed = with_weights(tmp_path / "model.onnx", weights)
    assert sorted(path.name for path in placed.parent.iterdir()) == ["model.onnx", "w.bin"]


_opened: list[str] = []
_hooked: list[bool] = []


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """Return the paths of files and folders that this process opens, while the test runs."""
    if not _hooked:  # a hook cannot be removed

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event in {"open", "os.listdir", "os.scandir"} and _hooked[-1]:
                _opened.append(str(arguments[0]))

        _hooked.append(False)
        sys.addaudithook(hook)
    _hooked[-1] = True
    yield _opened
    _hooked[-1] = False
