"""The command that runs a profile again as a submission did, built here from checked words.

Visitors paste it. ``reproduce`` of the statement is a stranger's text, which no page shows.
"""

import re
import shlex

import msgspec

from harness.annex.publication.entry import AcceptedSubmission
from harness.catalog.catalog import find_provider
from harness.plan.file_names import option_names_a_file

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}", re.ASCII)
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,99}", re.ASCII)
_VALUE = re.compile(r"""[A-Za-z0-9_ .,:=+{}\[\]"-]{0,300}""", re.ASCII)
"""Only characters that no system's shell interprets inside quotes."""

_PLACES = ("browser", "node")


class RerunCommand(msgspec.Struct, frozen=True, kw_only=True):
    """How to run it again.

    Attributes:
        command: One line for a shell; empty if the provider's name is not valid in a command.
        without: Options that it omits: they name files, or contain special characters.
    """

    command: str = ""
    without: tuple[str, ...] = ()


def rerun_of(entry: AcceptedSubmission) -> RerunCommand:
    """Return the command: profile, provider, plugin package of the catalogue, options, place and claims."""
    where = entry.statement.environment
    if not _NAME.fullmatch(where.provider):
        return RerunCommand()
    words = ["ep-harness", "conform", "--profile", entry.profile, "--target", where.provider]
    known = find_provider(where.provider)
    if entry.has_plugin and known is not None and known.plugin_packages:
        words += ["--plugin", known.plugin_packages[0]]
    without = []
    for key, value in sorted(where.provider_options.items()):
        if _is_plain(where.provider, key, value):
            words += ["--option", f"{key}={value}"]
        else:
            without.append(key)
    words += [f"--{where.runtime}"] if where.runtime in _PLACES else []
    for claim in entry.statement.claims:
        words += ["--claim", claim]
    return RerunCommand(command=shlex.join(words), without=tuple(without))


def _is_plain(provider: str, key: str, value: str) -> bool:
    plain = _KEY.fullmatch(key) and _VALUE.fullmatch(value)
    return plain is not None and not option_names_a_file(provider, key, value)
