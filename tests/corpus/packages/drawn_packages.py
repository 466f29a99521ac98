"""Packages that are drawn by a seed: most are valid, others have one thing that the format may forbid."""

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.corpus.packages.asset_digest import asset_address, asset_folder

EPS = ("CPUExecutionProvider", "OpenVINOExecutionProvider", "CUDAExecutionProvider", "QNNExecutionProvider")

Manifest = dict[str, Any]


class Draft:
    """A package on its way to the disk: its manifest, its files, and the variants that it has."""

    def __init__(self, draw: random.Random, root: Path) -> None:
        self.draw, self.root = draw, root
        self.manifest: Manifest = {"schema_version": draw.choice(["1.0", "1.0", "1.0", 1, "1.3"])}
        self.variants: list[tuple[dict[str, Any], Path]] = []
        self.later: list[tuple[Path, Any]] = []
        """JSON files to write last, after a change of what they have."""
        for key in ("package_name", "package_version", "description"):
            if draw.random() < 0.4:
                self.manifest[key] = draw.choice(["phi", "4.0.0", "a model, ü", ""])
        if draw.random() < 0.3:
            self.manifest["layout"] = "portable"
        if draw.random() < 0.3:
            self.manifest["additional_metadata"] = draw.choice([{"any": [1, None]}, "text", 7, None])
        names = draw.sample(["decoder", "vision", "a b", "Z", "ü"], draw.randint(1, 3))
        self.manifest["components"] = {name: self._component(name) for name in names}

    def _component(self, name: str) -> Any:
        form = self.draw.choice(["inline", "folder", "file"])
        home = self.root if form == "inline" else self.root / f"c-{name}"
        home.mkdir(parents=True, exist_ok=True)
        kinds = self.draw.sample(["cpu", "ov", "cuda", "npu", "x-1"], self.draw.randint(1, 4))
        body: dict[str, Any] = {"variants": {kind: self._variant(home, f"{name}-{kind}") for kind in kinds}}
        if self.draw.random() < 0.3:
            body["component_name"] = "another name"
        if form == "inline":
            return body
        file = home / ("component.json" if form == "folder" else "parts.json")
        self.later.append((file, body))
        return home.name if form == "folder" else f"{home.name}/{file.name}"

    def _variant(self, home: Path, folder: str) -> dict[str, Any]:
        draw = self.draw
        (home / folder).mkdir(parents=True, exist_ok=True)
        (home / folder / "model.onnx").write_bytes(b"")
        body: dict[str, Any] = {"variant_directory": folder}
        if draw.random() < 0.9:
            body["ep"] = draw.choice(EPS[:2] if draw.random() < 0.7 else EPS)
        if draw.random() < 0.4:
            body["device"] = draw.choice(["cpu", "cpu", "gpu", "npu"])
        if draw.random() < 0.3:
            body["compatibility_string"] = draw.choice(["", "v1;soc=7"])
        info: dict[str, Any] = {"model_file": "model.onnx"}
        if draw.random() < 0.4:
            info["session_options"] = {"session.disable_prepacking": "1"}
        if draw.random() < 0.3:
            info["provider_options"] = {"num_threads": "1"}
        if draw.random() < 0.3:
            (home / folder / "ort_info.json").write_text(json.dumps(info), encoding="utf-8")
            body["executor_info"] = {"ort": "ort_info.json"}
        elif draw.random() < 0.9:
            body["executor_info"] = {"ort": info}
        if draw.random() < 0.2:
            body.setdefault("executor_info", {})["genai"] = {"anything": [1, 2]}
        self.variants.append((body, home / folder))
        return body

    def variant(self) -> tuple[dict[str, Any], Path]:
        """Return one of its variants, with its folder."""
        return self.draw.choice(self.variants)

    def info(self) -> dict[str, Any]:
        """Return what onnxruntime reads of one variant, inline."""
        body, _ = self.variant()
        info: dict[str, Any] = {"model_file": "model.onnx"}
        body["executor_info"] = {"ort": info}
        return info

    def asset(self, content: bytes = b"tokens") -> str:
        """Add a shared asset, and return its address."""
        folder = self.root / "shared_assets" / "new"
        folder.mkdir(parents=True)
        (folder / "data.bin").write_bytes(content)
        address = asset_address(folder)
        folder.rename(folder.with_name(asset_folder(address)))
        return address

    def write(self) -> None:
        """Write the JSON files."""
        for file, body in [*self.later, (self.root / "manifest.json", self.manifest)]:
            file.write_text(json.dumps(body), encoding="utf-8")


def _outside(draft: Draft) -> Path:
    other = draft.root.with_name(f"{draft.root.name}-outside")
    other.mkdir(exist_ok=True)
    (other / "model.onnx").write_bytes(b"")
    return other


def _set(of: Callable[[Draft], dict[str, Any]], key: str, *values: Any) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        of(draft)[key] = draft.draw.choice(values)

    return change


def _top(draft: Draft) -> dict[str, Any]:
    return draft.manifest


def _variant(draft: Draft) -> dict[str, Any]:
    return draft.variant()[0]


def _drop(of: Callable[[Draft], dict[str, Any]], key: str) -> Callable[[Draft], None]:
    return lambda draft: of(draft).pop(key, None) and None


def _component_value(*values: Any) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        draft.manifest["components"]["other"] = draft.draw.choice(values)

    return change


def _asset_model(below: str) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        draft.info()["model_file"] = draft.asset() + below

    return change


def _absolute_model(draft: Draft) -> None:
    draft.info()["model_file"] = str(_outside(draft) / "model.onnx")


def _absolute_folder(draft: Draft) -> None:
    draft.variant()[0]["variant_directory"] = str(_outside(draft))


def _unknown_in_later_minor(draft: Draft) -> None:
    draft.manifest |= {"schema_version": "1.9", "new_key": 1}
    draft.variant()[0]["new_key"] = {"a": 1}


def _override(path: str) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        (draft.root / "elsewhere").mkdir()
        address = "sha256:" + hashlib.sha256(b"").hexdigest()
        draft.manifest["shared_assets"] = {address: path}
        if path == "elsewhere":
            draft.info()["model_file"] = address + "/model.onnx"

    return change


def _no_default_folder(draft: Draft) -> None:
    draft.manifest["components"]["lazy"] = {"variants": {"nowhere": {"ep": EPS[0]}}}


CHANGES: tuple[Callable[[Draft], None], ...] = (
    _set(_top, "schema_version", "2.0", "0.9", "1", "1.x", "", 2, 1.0, [], None, "1.0.0", "01.0", " 1.0"),
    _drop(_top, "schema_version"),
    _set(_top, "layout", "installed", "Portable", 3),
    _set(_top, "unknown", 1, None),
    _set(_top, "package_name", 3, None, ["a"]),
    _set(_top, "components", {}, [], "decoder"),
    _drop(_top, "components"),
    _set(_top, "shared_assets", [], {"sha256:abc": "x"}, {"md5:1": "x"}, {}),
    _component_value("missing", "../other", 3, None, {}, {"variants": {}}, {"variants": []}, []),
    _component_value({"variants": {}, "unknown": 1}, {"variants": {}, "component_name": 3}),
    _set(_variant, "unknown", 1),
    _set(_variant, "ep", 3, None, "", ["CPUExecutionProvider"]),
    _set(_variant, "device", "CPU", "tpu", 1, None, ""),
    _set(_variant, "compatibility_string", 3, None),
    _set(_variant, "variant_directory", "missing", "../x", "", ".", 3, "./model"),
    _set(_variant, "executor_info", [], 3, None, {"ort": 3}, {"ort": None}, {"ort": "missing.json"}, {}),
    _set(_variant, "executor_info", {"ort": "model.onnx"}, {"ort": "../manifest.json"}, {"ort": {}}),
    _set(Draft.info, "model_file", "missing.onnx", "../model.onnx", 3, "", None, ".", "a/../model.onnx"),
    _set(Draft.info, "session_options", {"a": 1}, [], {"a": None}, {"session.enable_profiling": "1"}, None),
    _set(Draft.info, "session_options", {"session.optimized_model_filepath": "x"}, {"": "x"}),
    _set(Draft.info, "session_options", {"ep.context_file_path": "../x"}, {"ep.context_file_path": "x"}),
    _set(Draft.info, "provider_options", {"a": 1}, [], {"a": {}}, {"a": ""}),
    _set(Draft.info, "unknown", 1, None),
    _asset_model("/data.bin"),
    _asset_model("/../data.bin"),
    _asset_model(""),
    _set(Draft.info, "model_file", "sha256:" + "0" * 64, "sha256:zz"),
    _override("elsewhere"),
    _override("../elsewhere"),
    _absolute_model,
    _absolute_folder,
    _unknown_in_later_minor,
    _no_default_folder,
)
"""What the format may forbid, one thing each."""


def draw_package(root: Path, seed: int) -> None:
    """Write the package of a seed into a new folder."""
    root.mkdir()
    draw = random.Random(seed)  # noqa: S311 - no secret
    draft = Draft(draw, root)
    if draw.random() < 0.7:
        draw.choice(CHANGES)(draft)
    draft.write()
