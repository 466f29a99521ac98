"""One execution provider (EP) as a file of the catalogue describes it."""

from typing import Annotated, Literal

import msgspec

Text = Annotated[str, msgspec.Meta(min_length=1)]
State = Literal["active", "preview", "deprecated", "removed"]
Platform = Literal["linux", "windows", "macos", "android", "ios", "browser"]
Registration = Literal["static", "bridge", "plugin"]


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about one EP.

    Attributes:
        schema: Version of this file format.
        name: The name exactly as ``get_providers()`` spells it.
        aliases: Other spellings that people and tools use; never a name of another EP.
        vendor: Who makes it.
        state: ``removed`` means that no current onnxruntime can contain it.
        state_note: What the state leaves out, in one line.
        platforms: Operating systems on which it computes.
        registration: ``static`` (compiled into the library), ``bridge`` (a library of its own that is loaded
            on demand), ``plugin`` (a library registered at run time); several where builds differ.
        wheels: Python distributions that bring it.
        plugin_packages: Import names of packages with ``get_library_path()``.
        source: Public documents that the facts come from.
    """

    schema: Literal[1]
    name: Text
    aliases: tuple[Text, ...] = ()
    vendor: Text
    state: State
    state_note: str = ""
    platforms: tuple[Platform, ...]
    registration: tuple[Registration, ...]
    wheels: tuple[Text, ...] = ()
    plugin_packages: tuple[Text, ...] = ()
    source: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
