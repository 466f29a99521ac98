"""A model package as values: components, their variants, and what onnxruntime does with each variant."""

from pathlib import Path
from typing import Literal

import msgspec

PACKAGE_MANIFEST = "manifest.json"
"""The file by which a folder is a package."""

COMPONENT_FILE = "component.json"

ASSETS = "shared_assets"
"""Folder of the assets, each of which is a folder named after the digest of its content."""

PackageLayout = Literal["portable", "installed"]
DeviceType = Literal["cpu", "gpu", "npu"]


class OrtInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What onnxruntime reads of a variant: ``executor_info.ort``.

    Attributes:
        model_file: The model, below the package's folder; None if the variant names none.
        session_options: Session configuration entries; paths among the values are absolute.
        provider_options: Options of the variant's execution provider.
    """

    model_file: Path | None = None
    session_options: dict[str, str] = {}
    provider_options: dict[str, str] = {}


class PackageVariant(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of a component.

    Attributes:
        folder: Its folder, below the package's folder; it need not exist unless the manifest names it.
        ep: The one execution provider that it is for; empty if it names none, which is never selected.
        device: The type of device that it is for; None for any.
        compatibility: The provider's own text about what it was compiled for; empty for none.
        consumers: All consumers of ``executor_info``, in the order of the manifest.
        ort: None if onnxruntime is no consumer.
    """

    name: str
    folder: Path
    ep: str = ""
    device: DeviceType | None = None
    compatibility: str = ""
    consumers: tuple[str, ...] = ()
    ort: OrtInfo | None = None


class PackageComponent(msgspec.Struct, frozen=True, kw_only=True):
    """One component: a model with its variants, in the order that decides between equals."""

    name: str
    variants: tuple[PackageVariant, ...]


class ModelPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package that was read.

    Attributes:
        root: Its folder.
        schema: Major and minor version of the format.
        assets: Address (``sha256:`` and 64 digits) -> folder, all below the root.
    """

    root: Path
    schema: tuple[int, int]
    name: str = ""
    version: str = ""
    description: str = ""
    layout: PackageLayout = "portable"
    components: tuple[PackageComponent, ...]
    assets: dict[str, Path] = {}


def is_package(folder: Path) -> bool:
    """Return whether a folder has a manifest, so that it is a package and no plain folder of models."""
    return (folder / PACKAGE_MANIFEST).is_file()
