"""Bundles: their manifest, their files with or without the digests of the manifest, their zip."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.mutation.attempt import Attempt
from benchmarks.mutation.changes import changed_bytes, changed_json, changed_message
from benchmarks.mutation.commands import Commands
from harness.annex.triage.bundle import BundleContents, ModelSource, write_bundle
from harness.core.records.verdict import Verdict
from harness.core.values.value import tensor
from harness.plan.target import Target
from tests.annex.triage.bundle.relu_bundle import CPU, fault_of, model_bytes


class Bundles:
    """A planted mismatch of one Relu."""

    def __init__(self, home: Path, commands: Commands) -> None:
        self._cache = str(home / "cache")
        given = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
        right = np.maximum(given, 0)
        contents = BundleContents(
            fault=fault_of(Verdict.MISMATCH),
            model=ModelSource(content=model_bytes()),
            inputs=(("x", tensor(given)),),
            expected=(("y", tensor(right + np.float32(1))),),
            found=(("y", tensor(right)),),
            limits={"y": 1e-3},
            target=Target(name="here", provider=(CPU,)),
            time_limit_s=10,
        )
        self._home = home / "F1"
        write_bundle(self._home, contents)

    def attempt(self, made: Attempt) -> None:
        """Change one file, or the zip."""
        rng, folder = made.rng, made.folder / "F1"
        shutil.copytree(self._home, folder)
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        name = rng.choice([*names, "manifest.json", "manifest.json", "model.onnx", "model.onnx"])
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(self._changed(name, content, rng))
        if name != "manifest.json" and rng.random() < 0.8:
            seal(folder, name)
        where = "F1"
        if rng.random() < 0.3:
            where = "F1.zip"
            with zipfile.ZipFile(made.folder / where, "w") as archive:
                for each in names:
                    archive.write(folder / each, each)
            if rng.random() < 0.5:
                path = made.folder / where
                path.write_bytes(changed_bytes(path.read_bytes(), rng))
        made.run("replay", where, "--provider", CPU, EP_HARNESS_CACHE=self._cache)

    @staticmethod
    def _changed(name: str, content: bytes, rng: Any) -> bytes:
        if name.endswith(".json"):
            return changed_json(content, rng)
        if name.endswith(".onnx") and rng.random() < 0.8:
            model = onnx.ModelProto.FromString(content)
            changed_message(model, rng)
            changed: bytes = model.SerializeToString()
            return changed
        return changed_bytes(content, rng)


def seal(folder: Path, name: str) -> None:
    """Have the manifest name a file as it is."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    content = (folder / name).read_bytes()
    if name in manifest["files"]:
        manifest["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        path.write_text(json.dumps(manifest), encoding="utf-8")
