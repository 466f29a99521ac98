"""The places of a target in the form of a matrix file, or of JSON that lists them."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.plan.runs_entry import Seconds
from harness.plan.selector import SelectorText, SelectorValue, Texts

PATTERN = r"[A-Za-z0-9][A-Za-z0-9._+=/-]{0,62}"
IN_WORDS = "up to 63 letters, digits and ._+=/-"
PlaceName = Annotated[
    str,
    Meta(pattern=f"^{PATTERN}$", description=f"a unique name of {IN_WORDS}, which every record has"),
]
VariableName = Annotated[str, Meta(pattern=r"^[^=\x00]+$", description="text without '='")]


class WayTable(msgspec.Struct, kw_only=True):
    """How a place is reached; without `ssh`, `adb` and `command` it is the target's own runtime."""

    ssh: Annotated[SelectorText | UnsetType, Meta(description="A machine reached by ssh: user@host.")] = UNSET
    command: Annotated[SelectorText | UnsetType, Meta(description="Any command that ends in a Python.")] = (
        UNSET
    )
    python: Annotated[SelectorText | UnsetType, Meta(description="Beside `ssh`: the Python over there.")] = (
        UNSET
    )
    adb: Annotated[
        SelectorText | UnsetType,
        Meta(description="An Android device by its serial number; the target's `runtime` has the `agent`."),
    ] = UNSET
    channel: Annotated[
        Literal["binary", "line", "socket"] | UnsetType,
        Meta(description="Beside `ssh`, `adb` or `command`: as in `runtime`."),
    ] = UNSET
    env: Annotated[
        dict[VariableName, SelectorValue], Meta(description="Environment variables besides the target's.")
    ] = {}
    device: Annotated[
        dict[SelectorText, SelectorValue],
        Meta(description="Entries of the device filter besides the target's."),
    ] = {}


class PlaceTable(WayTable, kw_only=True):
    """One place: one of several interchangeable runtimes of a target."""

    name: PlaceName


class PlacesTable(WayTable, kw_only=True):
    """The places of a target: `each`, `count`, `file` or `list`, and the settings for all of them."""

    each: Annotated[
        Annotated[list[PlaceTable], Meta(min_length=1)] | UnsetType, Meta(description="The places.")
    ] = UNSET
    count: Annotated[
        Annotated[int, Meta(ge=1, le=10000)] | UnsetType,
        Meta(description="So many places of one kind; `{n}` in their keys is 1 to `count`."),
    ] = UNSET
    name: Annotated[
        SelectorText | UnsetType,
        Meta(description='Beside `count`: their names, with `{n}`; "place-{n}" without it.'),
    ] = UNSET
    file: Annotated[
        SelectorText | UnsetType,
        Meta(description="A JSON file with a list of places, relative to the matrix file."),
    ] = UNSET
    list: Annotated[
        Texts | UnsetType,
        Meta(description="A command and its arguments that prints such a list."),
    ] = UNSET
    identical: Annotated[
        bool, Meta(description="Whether the run is refused if the environments of two places differ.")
    ] = False
    acquire: Annotated[
        Texts | UnsetType,
        Meta(
            description="A command and its arguments, run here before a place is used; `{name}` is its name."
        ),
    ] = UNSET
    release: Annotated[
        Texts | UnsetType,
        Meta(
            description="The same once a place is used no more, however that came; once for each `acquire`."
        ),
    ] = UNSET
    limit_s: Annotated[
        Seconds, Meta(description="Limit of `list`, `acquire` and `release` in seconds, each.")
    ] = 60.0
