"""`ep-harness submit`: the result of this machine's device in one file, for a table of many devices."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path, PurePath

import msgspec

from harness.annex.conformance.command_conform import Asked, claim_of, run_profile, wanted_of
from harness.annex.conformance.command_conform_matrix import ConformOptions, wanted_of_row
from harness.annex.conformance.command_conform_text import conform_summary, verified
from harness.annex.conformance.profiles.profile import Profile, load_profile
from harness.annex.conformance.profiles.profile_archive import write_archive
from harness.annex.conformance.profiles.profile_suite import open_profile
from harness.annex.conformance.verify.finding import FindingWeight
from harness.cli.init import examine_here
from harness.cli.output import notify, print_lines, wrapped
from harness.core.files.writing import write_new, writing
from harness.core.records.facts import CPU_PROVIDER
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK, UsageError
from harness.run.run_folder import default_folder

_WIDTH = 12
_SHARED = "device, its driver, platform, versions and digests of libraries, provider options"
_RESULTS = "for each case its verdict, error, times, and the messages of the provider"
_WITHHELD = "your name, account and host, and folders: they are removed from every text"
_NOT_SENT = "no: the command writes one file, which you hand on yourself"


def submit(asked: Asked, *, out: Path | None) -> int:
    """Run a profile on a device of this machine, and write its result as one file; the run's folder stays.

    ``asked.provider`` is empty for the only accelerator that computes here.

    Returns:
        0 the file was written, whatever the result; 3 there is none: the provider cannot be used, the run is
        incomplete, or the submission would be refused.
    """
    profile = load_profile(asked.profile)
    open_profile(profile.label)  # refuses an altered archive before anything is written
    if out is not None and out.exists():
        raise UsageError.at(out, "exists already", "choose another file: --out")
    asked, wanted = (asked, wanted_of(asked)) if asked.provider else _only_accelerator(asked)
    now = dt.datetime.now(dt.UTC)
    file = out or Path(f"submission-{profile.label}-{wanted.name}-{now:%Y%m%d-%H%M%S}.zip")
    for line in _what_is_shared(profile, wanted, file):
        notify(line)
    folder = default_folder(PurePath(f"submit-{profile.label}-{wanted.name}.toml"))
    code, submission = run_profile(claim_of(asked, profile), wanted, folder)
    if code in {EXIT_INCOMPLETE, EXIT_INTERRUPTED}:
        notify("no file was written: the run is not complete")
        return EXIT_INCOMPLETE
    with writing(file, "the submission", "choose another file: --out"):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_new(file, write_archive(submission.files))
    outcome = verified(file)
    print_lines(["", *conform_summary(submission, file, outcome, now.date())])
    if outcome.startswith(FindingWeight.REFUSED):
        file.unlink()
        notify("no file was written: a publisher would refuse it")
        return EXIT_INCOMPLETE
    return EXIT_OK


def _only_accelerator(asked: Asked) -> tuple[Asked, ConformOptions]:
    """Return the only provider besides the CPU provider that computes something here.

    Raises:
        UsageError: There is none, or several.
    """
    rows = {row.provider: row for row in examine_here("submit") if row.computes}
    rows.pop(CPU_PROVIDER, None)
    if not rows:
        hint = f"see `ep-harness doctor`, or name the processor: --target {CPU_PROVIDER}"
        raise UsageError.at("submit", "no accelerator computes here", hint)
    if len(rows) > 1:
        raise UsageError.at("submit", f"several compute here: {', '.join(rows)}", "name one: --target")
    ((name, row),) = rows.items()
    asked = msgspec.structs.replace(asked, provider=name)
    return asked, wanted_of_row(asked, row)


def _what_is_shared(profile: Profile, wanted: ConformOptions, file: Path) -> Iterator[str]:
    yield from wrapped(f"{len(profile.cases)} cases of {profile.label} on {wanted.provider}", _head("runs"))
    yield f"{_head('writes')}{file}"
    yield from wrapped(_SHARED, _head("shares"))
    yield from wrapped(_RESULTS, _head(""))
    yield from wrapped(_WITHHELD, _head("withholds"))
    yield from wrapped(_NOT_SENT, _head("sends"))


def _head(word: str) -> str:
    return f"{word:<{_WIDTH}} "
