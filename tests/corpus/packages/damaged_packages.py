"""Forty packages with one damage each: what the format's text forbids, and what is only odd."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from harness.corpus.packages.asset_digest import asset_address, asset_folder

CPU = "CPUExecutionProvider"


class Damage(NamedTuple):
    """One damage: ``make`` changes a valid package on the disk and in its manifest.

    ``refused`` is a part of the reader's refusal; empty if the package is right nevertheless.
    ``runtime_opens`` is whether onnxruntime 1.32.0 opens it although the text forbids it: a finding.
    ``runtime_ends`` is whether it crashes or hangs instead: a finding, too.
    """

    name: str
    make: Callable[[Path, dict[str, Any]], object]
    refused: str = ""
    runtime_opens: bool = False
    runtime_ends: bool = False


def write_valid(root: Path) -> dict[str, Any]:
    """Write a valid package of one component with two variants and an asset; return its manifest."""
    for name in ("one", "two"):
        (root / name).mkdir(parents=True)
        (root / name / "model.onnx").write_bytes(b"")
    asset = root / "shared_assets" / "new"
    asset.mkdir(parents=True)
    (asset / "tokens.json").write_text("{}", encoding="utf-8")
    address = asset_address(asset)
    asset.rename(asset.with_name(asset_folder(address)))
    return {
        "schema_version": "1.0",
        "components": {"main": {"variants": {name: _variant(name) for name in ("one", "two")}}},
    }


def write_damaged(root: Path, damage: Damage) -> None:
    """Write a package with a damage, and beside it a folder ``outside`` that no reader may touch."""
    root.mkdir(parents=True)
    outside = root.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "model.onnx").write_bytes(b"")
    (outside / "info.json").write_text('{"model_file": "model.onnx"}', encoding="utf-8")
    (outside / "component.json").write_text('{"variants": {}}', encoding="utf-8")
    manifest = write_valid(root)
    content = damage.make(root, manifest)
    if not (root / "manifest.json").exists():
        text = content if isinstance(content, bytes) else json.dumps(manifest).encode()
        (root / "manifest.json").write_bytes(text)


def _variant(name: str) -> dict[str, Any]:
    return {
        "variant_directory": name,
        "ep": CPU,
        "executor_info": {"ort": {"model_file": "model.onnx"}},
    }


def _one(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = manifest["components"]["main"]["variants"]["one"]
    return found


def _ort(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = _one(manifest)["executor_info"]["ort"]
    return found


def _asset(root: Path) -> Path:
    return next((root / "shared_assets").iterdir())


def _address(root: Path) -> str:
    return _asset(root).name.replace("-", ":", 1)


def _model_link(root: Path, _: dict[str, Any]) -> None:
    (root / "one" / "model.onnx").unlink()
    (root / "one" / "model.onnx").symlink_to(root.parent / "outside" / "model.onnx")


def _folder_link(root: Path, manifest: dict[str, Any]) -> None:
    (root / "linked").symlink_to(root.parent / "outside", target_is_directory=True)
    _one(manifest)["variant_directory"] = "linked"


def _info_link(root: Path, manifest: dict[str, Any]) -> None:
    (root / "one" / "info.json").symlink_to(root.parent / "outside" / "info.json")
    _one(manifest)["executor_info"] = {"ort": "info.json"}


def _component_link(root: Path, manifest: dict[str, Any]) -> None:
    (root / "linked").symlink_to(root.parent / "outside", target_is_directory=True)
    manifest["components"]["more"] = "linked"


def _loop(root: Path, manifest: dict[str, Any]) -> None:
    (root / "loop").symlink_to(root / "loop")
    _one(manifest)["variant_directory"] = "loop"


def _asset_link(root: Path, _: dict[str, Any]) -> None:
    (_asset(root) / "more.json").symlink_to(root.parent / "outside" / "info.json")


def _manifest_link(root: Path, manifest: dict[str, Any]) -> None:
    outside = root.parent / "outside" / f"{root.name}.json"
    outside.write_text(json.dumps(manifest), encoding="utf-8")
    (root / "manifest.json").symlink_to(outside)


def _many(_: Path, manifest: dict[str, Any]) -> None:
    manifest["components"]["main"]["variants"] |= {f"v{number}": _variant("two") for number in range(10_000)}


def _nested(_: Path, manifest: dict[str, Any]) -> bytes:
    manifest["additional_metadata"] = "@"
    return json.dumps(manifest).encode().replace(b'"@"', b"[" * 100_000 + b"]" * 100_000)


def _pipe(root: Path, manifest: dict[str, Any]) -> None:
    if hasattr(os, "mkfifo"):
        os.mkfifo(root / "one" / "info.json")
    _one(manifest)["executor_info"] = {"ort": "info.json"}


def _alike(_: Path, manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest).encode().replace(b'"two": {', b'"one": {')


def _installed(path: str) -> Callable[[Path, dict[str, Any]], object]:
    def make(root: Path, manifest: dict[str, Any]) -> None:
        manifest["layout"] = "installed"
        _ort(manifest)["model_file"] = path or str(root.parent / "outside" / "model.onnx")

    return make


def _set(of: Callable[[dict[str, Any]], dict[str, Any]], key: str, value: Any) -> Callable[..., object]:
    return lambda _root, manifest: of(manifest).update({key: value})


def _option(key: str, value: str) -> Callable[..., object]:
    return _set(_ort, "session_options", {key: value})


def _top(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest


DAMAGES: tuple[Damage, ...] = (
    Damage(
        "asset_changed",
        lambda r, _: (_asset(r) / "tokens.json").write_text("{1}"),
        "address",
        runtime_opens=True,
    ),
    Damage(
        "asset_renamed",
        lambda r, _: (_asset(r) / "tokens.json").rename(_asset(r) / "t"),
        "address",
        runtime_opens=True,
    ),
    Damage(
        "asset_more_files", lambda r, _: (_asset(r) / "more").write_bytes(b""), "address", runtime_opens=True
    ),
    Damage("asset_link", _asset_link, "symbolic link", runtime_opens=True),
    Damage("asset_gone", lambda _, m: _ort(m).update(model_file="sha256:" + "0" * 64), "no shared asset"),
    Damage("asset_up", lambda r, m: _ort(m).update(model_file=f"{_address(r)}/../../one"), "'..'"),
    Damage("asset_elsewhere", lambda r, m: m.update(shared_assets={_address(r): "../outside"}), "'..'"),
    Damage("asset_absolute", lambda r, m: m.update(shared_assets={_address(r): str(r)}), "absolute"),
    Damage("asset_misnamed", _set(_top, "shared_assets", {"sha256:12": "one"}), "no address"),
    Damage("model_link", _model_link, "by a link"),
    Damage("variant_link", _folder_link, "by a link"),
    Damage("info_link", _info_link, "by a link"),
    Damage("component_link", _component_link, "by a link"),
    Damage("manifest_link", _manifest_link, "link that leads out", runtime_opens=True),
    Damage("link_to_itself", _loop, "no folder"),
    Damage("model_up", _set(_ort, "model_file", "../../outside/model.onnx"), "'..'"),
    Damage("model_absolute", lambda r, m: _ort(m).update(model_file=str(r / "one/model.onnx")), "absolute"),
    Damage("variant_up", _set(_one, "variant_directory", "../outside"), "'..'"),
    Damage("variant_absolute", lambda r, m: _one(m).update(variant_directory=str(r / "one")), "absolute"),
    Damage(
        "variant_named_up",
        lambda _, m: m["components"]["main"]["variants"].update({"..": {"ep": CPU}}),
        "'..'",
    ),
    Damage("info_up", _set(_one, "executor_info", {"ort": "../manifest.json"}), "'..'"),
    Damage("component_up", _set(lambda m: m["components"], "more", "../outside"), "'..'"),
    Damage("installed_absolute", _installed(""), "absolute", runtime_opens=True),
    Damage("installed_up", _installed("../../outside/model.onnx"), "'..'", runtime_opens=True),
    Damage("installed_inside", _installed("model.onnx")),
    Damage("path_option_up", _option("ep.context_file_path", "../../outside"), "'..'"),
    Damage("profiles", _option("session.enable_profiling", "1"), "write files"),
    Damage("writes_model", _option("session.optimized_model_filepath", "x.onnx"), "write files"),
    Damage("unknown_key", _set(_top, "packager", "x"), "unknown key"),
    Damage("unknown_variant_key", _set(_one, "precision", "int8"), "unknown key"),
    Damage("schema_2", _set(_top, "schema_version", "2.0"), "version 2.0"),
    Damage("no_schema", lambda _, m: m.pop("schema_version"), "schema_version"),
    Damage("no_variant_folder", _set(_one, "variant_directory", "gone"), "no folder"),
    Damage("no_component_folder", _set(lambda m: m["components"], "more", "gone"), "no such file"),
    Damage("two_alike", _alike, "twice", runtime_opens=True),
    Damage("many_variants", _many),
    Damage("nul_in_path", _set(_ort, "model_file", "model\0.onnx"), "\\u0000", runtime_opens=True),
    Damage("nul_in_folder", _set(_one, "variant_directory", "one\0"), "\\u0000", runtime_opens=True),
    Damage("pipe", _pipe, "not a file" if hasattr(os, "mkfifo") else "no such file", runtime_ends=True),
    Damage("deep", _nested, "nested too deeply", runtime_ends=True),
)
