"""Arguments of `profiles`."""

from pathlib import Path

from harness.cli.arguments.command import ONE_ARRAY, ONE_OBJECT, Commands, add_command, add_json

_CODES = {0: "always, unless an argument is wrong", 2: "an argument is wrong, or a profile is altered"}
_LABEL = "label of a profile, such as cnn@1"


def add_profiles(commands: Commands) -> None:
    """Declare the commands of `profiles`."""
    listed = add_command(commands, "list", "list the profiles", "profiles.list_profiles", _CODES)
    add_json(listed, ONE_ARRAY)
    shown = add_command(commands, "show", "show a profile with its cases", "profiles.show", _CODES)
    shown.add_argument("label", metavar="PROFILE", help=_LABEL)
    add_json(shown, ONE_OBJECT)
    export = add_command(
        commands, "export", "check the archive of a profile, and copy it", "profiles.export", _CODES
    )
    export.add_argument("label", metavar="PROFILE", help=_LABEL)
    export.add_argument("--out", type=Path, required=True, metavar="FILE", help="a new file")
