"""Read a model package from its folder, by the text of the format; onnxruntime is not asked.

What the text forbids is refused with its place. Nothing outside of the folder is read: not by absolute paths
and ``..``, which the layout *installed* allows, and not by symbolic links, which onnxruntime follows.
"""

import functools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.core.files.reading import MOST_SETTINGS, read_regular
from harness.core.files.structure import FilePlace, deviations, shown
from harness.core.text.errors import Problem, UsageError, one_line
from harness.corpus.packages.asset_digest import ASSET_SCHEME, asset_address, asset_folder
from harness.corpus.packages.confined_path import OUTSIDE, leads_out, why_refused
from harness.corpus.packages.with_weights import WEIGHTS_OPTION
from harness.corpus.suites.model_package import (
    ASSETS,
    COMPONENT_FILE,
    PACKAGE_MANIFEST,
    DeviceType,
    ModelPackage,
    OrtInfo,
    PackageComponent,
    PackageLayout,
    PackageVariant,
)

MAJOR = 1
"""The only major version of the format so far."""

_KNOWN_MINOR = 0
"""The newest minor version whose keys are known; a later one may have more keys."""

PATH_OPTIONS = (WEIGHTS_OPTION, "ep.context_file_path")
"""Session configuration entries whose values are paths, resolved as ``model_file`` is."""

WRITING_OPTIONS = (
    "session.debug_layout_transformation",
    "session.collect_node_memory_stats_to_file",
    "session.enable_profiling",
    "session.optimized_model_filepath",
)
"""Session configuration entries that make a session write files: a package must not have them."""

_METADATA = "additional_metadata"
"""A key with any value, which belongs to others."""

_Table = TypeVar("_Table", bound=msgspec.Struct)

_ADDRESS = re.compile(r"sha256:[0-9a-f]{64}")
_ASSET_FOLDER = re.compile(r"sha256-[0-9a-f]{64}")
_VERSION = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")

_Version = Annotated[str, Meta(pattern=_VERSION.pattern, description='a version such as "1.0"')]


class _ManifestTable(msgspec.Struct, kw_only=True):
    schema_version: _Version | int
    package_name: str | UnsetType = UNSET
    package_version: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    layout: PackageLayout | UnsetType = UNSET


class _ComponentTable(msgspec.Struct, kw_only=True):
    component_name: str | UnsetType = UNSET


class _VariantTable(msgspec.Struct, kw_only=True):
    variant_directory: str | UnsetType = UNSET
    ep: str | UnsetType = UNSET
    device: DeviceType | UnsetType = UNSET
    compatibility_string: str | UnsetType = UNSET


class _OrtTable(msgspec.Struct, kw_only=True):
    model_file: str | UnsetType = UNSET
    session_options: dict[str, str] = {}
    provider_options: dict[str, str] = {}


class PackageError(UsageError):
    """A package that the format's text forbids, or that cannot be read."""


def read_package(root: Path, *, hashed: bool = False) -> ModelPackage:
    """Return the package in a folder.

    Args:
        root: The folder with ``manifest.json``.
        hashed: Whether the content of each shared asset is compared with its address, which reads all of it.

    Raises:
        PackageError: It is no package, or one that the text of the format forbids.
    """
    reader = _Reader(root)
    try:
        return reader.package(hashed=hashed)
    except OSError as error:
        raise PackageError.at(root, one_line(error.strerror or error)) from error


class _Reader:
    """Reads one package; ``tolerant`` is whether a later minor version may have keys that are unknown."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.real = os.path.realpath(root)
        self.tolerant = False
        self.assets: dict[str, Path] = {}

    def package(self, *, hashed: bool) -> ModelPackage:
        place = FilePlace(str(self.root / PACKAGE_MANIFEST))
        table = self.read(self.root / PACKAGE_MANIFEST, place)
        schema = _schema(table, place)
        self.tolerant = schema[1] > _KNOWN_MINOR
        components = self.table(table, "components", place)
        overrides = self.table(table, ASSETS, place, {})
        own = self.checked(table, _ManifestTable, place, ("components", ASSETS))
        if not components:
            raise _refusal(place.key("components"), "a package needs a component, and there is none")
        self.assets = self.all_assets(overrides, place.key(ASSETS))
        if hashed:
            self.check_assets()
        where = place.key("components")
        return ModelPackage(
            root=self.root,
            schema=schema,
            name=own.package_name or "",
            version=own.package_version or "",
            description=own.description or "",
            layout=own.layout or "portable",
            components=tuple(
                self.component(name, body, where.key(name)) for name, body in components.items()
            ),
            assets=self.assets,
        )

    def component(self, name: str, body: object, place: FilePlace) -> PackageComponent:
        home = self.root
        if isinstance(body, str):
            path = self.inside(self.root, body, place)
            if path.is_dir():
                path /= COMPONENT_FILE
            home, place = path.parent, FilePlace(str(path))
            body = self.read(path, place)
        if not isinstance(body, dict):
            raise _refusal(place, f"expected a table or the path of a component, got {shown(body)}")
        variants = self.table(body, "variants", place)
        self.checked(body, _ComponentTable, place, ("variants",))
        where = place.key("variants")
        found = (self.variant(one, table, home, where.key(one)) for one, table in variants.items())
        return PackageComponent(name=name, variants=tuple(found))

    def variant(self, name: str, body: object, home: Path, place: FilePlace) -> PackageVariant:
        if not isinstance(body, dict):
            raise _refusal(place, f"expected a table, got {shown(body)}")
        infos = self.table(body, "executor_info", place, {})
        own = self.checked(body, _VariantTable, place, ("executor_info",))
        named = own.variant_directory
        below = name if named is UNSET else named
        folder = self.inside(home, below, place if named is UNSET else place.key("variant_directory"))
        if named is not UNSET and not folder.is_dir():
            raise _refusal(place.key("variant_directory"), f"there is no folder {shown(named)}")
        ort = None
        for consumer, info in infos.items():
            where = place.key("executor_info").key(consumer)
            payload = self.payload(info, folder, where)
            if consumer == "ort":
                ort = self.ort(payload, folder, where)
        return PackageVariant(
            name=name,
            folder=folder,
            ep=own.ep or "",
            device=own.device or None,
            compatibility=own.compatibility_string or "",
            consumers=tuple(infos),
            ort=ort,
        )

    def payload(self, info: object, folder: Path, place: FilePlace) -> dict[str, Any]:
        """Return what a consumer reads: a table, or the content of the JSON file that a text names."""
        if isinstance(info, dict):
            return info
        if not isinstance(info, str):
            raise _refusal(place, f"expected a table or the name of a file, got {shown(info)}")
        path = self.inside(folder, info, place)
        return self.read(path, FilePlace(str(path)))

    def ort(self, table: dict[str, Any], folder: Path, place: FilePlace) -> OrtInfo:
        # Keys of later releases are the runtime's own affair: the text demands no refusal here.
        known = {key: value for key, value in table.items() if key in _OrtTable.__struct_fields__}
        own = _converted(known, _OrtTable, place)
        where = place.key("session_options")
        for key in own.session_options:
            if key in WRITING_OPTIONS:
                raise _refusal(where.key(key), "the option makes a session write files, which no package may")
        options = {
            key: str(self.resolved(value, folder, where.key(key))) if key in PATH_OPTIONS else value
            for key, value in own.session_options.items()
        }
        model = own.model_file
        return OrtInfo(
            model_file=None if model is UNSET else self.resolved(model, folder, place.key("model_file")),
            session_options=options,
            provider_options=own.provider_options,
        )

    def resolved(self, text: str, folder: Path, place: FilePlace) -> Path:
        """Return what a reference leads to: a path below the variant's folder, or one in a shared asset."""
        if not text.startswith(ASSET_SCHEME):
            return self.inside(folder, text, place)
        address, _, below = text.partition("/")
        if address not in self.assets:
            raise _refusal(place, f"there is no shared asset {shown(address)}", "add it to shared_assets")
        return self.inside(self.assets[address], below, place) if below else self.assets[address]

    def all_assets(self, overrides: Mapping[str, Any], place: FilePlace) -> dict[str, Path]:
        """Return every shared asset: those that the manifest places, and those in their own folder."""
        found: dict[str, Path] = {}
        for address, path in overrides.items():
            where = place.key(address)
            if not _ADDRESS.fullmatch(address):
                raise _refusal(where, "no address of an asset", "valid: sha256: and 64 hexadecimal digits")
            if not isinstance(path, str):
                raise _refusal(where, f"expected the path of a folder, got {shown(path)}")
            found[address] = self.inside(self.root, path, where)
        folder = self.root / ASSETS
        if not folder.is_dir() or leads_out(self.real, folder):
            return found
        for entry in sorted(folder.iterdir()):
            if _ASSET_FOLDER.fullmatch(entry.name) and entry.is_dir() and not leads_out(self.real, entry):
                found.setdefault(entry.name.replace("-", ":", 1), entry)
        return found

    def check_assets(self) -> None:
        """Refuse an asset whose content is not what its address says."""
        for address, folder in self.assets.items():
            found = asset_address(folder)
            if found != address:
                what = f"its content has the address {found}: a file was changed, renamed or lost"
                raise PackageError.at(folder, what, f"restore it, or rename the folder {asset_folder(found)}")

    def inside(self, base: Path, text: str, place: FilePlace) -> Path:
        """Return a path of the package.

        Raises:
            PackageError: It leads out of the package's folder.
        """
        if why := why_refused(text):
            raise _refusal(place, f"the path {shown(text)} {why}", OUTSIDE)
        path = base / text
        if leads_out(self.real, path):
            raise _refusal(place, f"the path {shown(text)} leads out of the package by a link", OUTSIDE)
        return path

    def read(self, path: Path, place: FilePlace) -> dict[str, Any]:
        """Return a JSON file of the package."""
        if leads_out(self.real, path):
            raise _refusal(place, "the file is a link that leads out of the package", OUTSIDE)
        try:
            content = read_regular(path, MOST_SETTINGS)
            table = _json(content)
        except FileNotFoundError as error:
            raise _refusal(place, "no such file") from error
        except OSError as error:
            raise _refusal(place, one_line(error.strerror or error)) from error
        except RecursionError as error:
            raise _refusal(place, "no JSON that can be read: nested too deeply") from error
        except (msgspec.DecodeError, ValueError) as error:
            raise _refusal(place, f"no JSON: {one_line(error, 120)}") from error
        if not isinstance(table, dict):
            raise _refusal(place, f"expected a table, got {shown(table)}")
        return table

    def table(
        self, table: Mapping[str, Any], key: str, place: FilePlace, default: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the table under a key."""
        found = table.get(key, default)
        if key not in table and default is None:
            raise _refusal(place, f"the key {key!r} is missing")
        if not isinstance(found, dict):
            raise _refusal(place.key(key), f"expected a table, got {shown(found)}")
        return found

    def checked(
        self, table: Mapping[str, Any], kind: type[Any], place: FilePlace, others: tuple[str, ...]
    ) -> Any:
        """Return the plain keys of a table by their declared types; ``others`` are checked elsewhere."""
        plain = {key: value for key, value in table.items() if key not in (*others, _METADATA)}
        if self.tolerant:
            plain = {key: value for key, value in plain.items() if key in kind.__struct_fields__}
        return _converted(plain, kind, place)


def _json(content: bytes) -> Any:
    """Return JSON as plain values.

    Raises:
        ValueError: It is not JSON in UTF-8, or a table has a key twice: readers differ in which one counts.
        RecursionError: It is nested too deeply.
    """

    def table(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            raise ValueError(
                f"a table has the key {next(key for key in keys if keys.count(key) > 1)!r} twice"
            )
        return found

    text = content.removeprefix(b"\xef\xbb\xbf")
    msgspec.json.decode(text)  # Python's own reader lets NaN and halves of characters pass
    return json.loads(text, object_pairs_hook=table)


@functools.cache
def _type(kind: type[Any]) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(kind)


def _schema(table: Mapping[str, Any], place: FilePlace) -> tuple[int, int]:
    """Return the version of the format, of which the major decides whether it can be read."""
    place = place.key("schema_version")
    found = table.get("schema_version")
    if type(found) is int:
        found = f"{found}.0"
    matched = _VERSION.fullmatch(found) if isinstance(found, str) else None
    if matched is None:
        raise _refusal(place, f'expected a version such as "1.0", got {shown(found)}')
    major, minor = int(matched[1]), int(matched[2])
    if major != MAJOR:
        raise _refusal(place, f"version {major}.{minor} of the format", f"valid: {MAJOR}.x")
    return major, minor


def _refusal(place: FilePlace, what: str, hint: str = "") -> PackageError:
    return PackageError(place.problem(what, hint))


def _converted(table: dict[str, Any], kind: type[_Table], place: FilePlace) -> _Table:
    """Return a table by its type; every deviation is looked for only if there is one."""
    try:
        if table.keys() <= set(kind.__struct_fields__) and "\\x00" not in repr(table):
            return msgspec.convert(table, kind)
    except msgspec.ValidationError:
        pass
    _refuse(deviations(table, _type(kind), place))
    return msgspec.convert(table, kind)


def _refuse(problems: Iterator[Problem]) -> None:
    found = [*problems]
    if found:
        raise PackageError(*found)
