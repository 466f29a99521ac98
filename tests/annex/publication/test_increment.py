"""A site that grows: what was read is not read again, what is as it was is not made again."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.annex.conformance.profiles.profile import Profile
from harness.annex.conformance.verify.verification import Verifier
from harness.annex.publication import formats
from harness.annex.publication.entry import AcceptedSubmission
from harness.annex.publication.outliers import outlier_findings
from harness.annex.publication.publisher_site import write_publication
from tests.annex.conformance.small_profiles import tiny_profile
from tests.annex.conformance.submissions import changed, wrong
from tests.annex.publication.many import many_submissions
from tests.annex.publication.publisher import DAY, Publisher


def verified(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of submissions that are verified from now on."""
    seen: list[str] = []
    verify = Verifier.verify

    def told(self: Verifier, path: Path) -> object:
        seen.append(path.name)
        return verify(self, path)

    monkeypatch.setattr(Verifier, "verify", told)
    return seen


def stamps(folder: Path) -> Mapping[str, int]:
    """Return the time of each file, after making all of them old."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        os.utime(path, ns=(0, 0))
    return {path.relative_to(folder).as_posix(): 0 for path in files}


def test_one_more_submission_touches_its_own_pages(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.submit("one")
    publisher.submit("two", name="Another EP")
    publisher.site()
    old = stamps(publisher.home / "site")
    seen = verified(monkeypatch)
    publisher.submit("three", version="2.8.0")
    site = publisher.site()
    assert seen == ["three"]
    folder = publisher.home / "site"
    touched = {name for name in old if (folder / name).stat().st_mtime_ns}
    told = {entry.statement.product.name: entry.id for entry in publisher.gathered().entries}
    another = {name for name in old if name.startswith(f"s/{told['Another EP']}/")}
    assert another
    assert not touched & another
    (older,) = (name for name in touched if name.startswith("s/"))  # which has a newer one now
    assert "There is a newer submission" in site[older].decode()
    assert publisher.site("fresh") == site  # as if made at once


def test_the_cache_is_of_the_bytes_and_of_the_day(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = publisher.submit("one")
    publisher.gathered()
    seen = verified(monkeypatch)
    publisher.gathered()
    assert seen == []
    (home / "logs" / "run.txt").write_bytes(b"other\n")
    assert "digest" in publisher.gathered().refused[0].reason
    assert seen == ["one"]


def test_a_submission_that_changes_meanwhile_ends_the_command(publisher: Publisher) -> None:
    home = publisher.submit("one")
    gathered = publisher.gathered()
    (home / "logs" / "run.txt").write_bytes(b"other\n")
    with pytest.raises(Exception, match="changed while the site was written"):
        write_publication(gathered, publisher.home / "site", title="T", today=DAY)


def test_data_has_pages_whose_older_ones_stay(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_DATA_OF_A_PAGE", 4)
    publisher.submit("one")
    (one,) = publisher.gathered().entries

    def pages(count: int) -> dict[str, formats.DataPage]:
        made = many_submissions(one, tiny_profile(), submissions=9)
        return dict(formats.data_pages(made.entries[9 - count :], ()))

    before, after = pages(7), pages(9)
    assert list(before) == ["data.json", "data-1.json"]
    assert list(after) == ["data.json", "data-2.json", "data-1.json"]
    assert [len(one.entries) for one in after.values()] == [1, 4, 4]
    assert [one.next for one in after.values()] == ["data-2.json", "data-1.json", ""]
    assert after["data-1.json"] == before["data-1.json"]


def devices(publisher: Publisher, count: int, profile: Profile) -> list[AcceptedSubmission]:
    """Return an equal submission from each of so many devices of one kind."""
    publisher.submit("one", profile=profile)
    (one,) = publisher.gathered().entries
    where = one.statement.environment
    return [
        changed(
            one,
            id=f"{number:016x}",
            statement=changed(
                one.statement, environment=changed(where, devices=(f"GPU Maker device_id {number + 1}",))
            ),
        )
        for number in range(count)
    ]


def failing(publisher: Publisher, like: AcceptedSubmission, profile: Profile) -> AcceptedSubmission:
    """Return a submission like another one, with other results."""
    publisher.submit("odd", dict.fromkeys(range(5), wrong), profile=profile)
    odd = next(one for one in publisher.gathered().entries if one.not_passed)
    return changed(like, id=odd.id, result=odd.result)


def test_who_differs_from_nearly_all_others_of_the_kind_is_marked(publisher: Publisher) -> None:
    profile = tiny_profile()
    others = devices(publisher, 6, profile)
    odd = failing(publisher, others[0], profile)
    found = outlier_findings([odd, *others[1:]])
    assert found.keys() == {odd.id}
    assert found[odd.id][0].what == "5 of 8 cases differ from nearly all of 5 other devices of the kind"
    assert outlier_findings([odd, *others[1:4]]) == {}  # too few to say


def test_strangers_do_not_outvote_who_signs(publisher: Publisher) -> None:
    profile = tiny_profile()
    strangers = devices(publisher, 6, profile)
    odd = changed(failing(publisher, strangers[0], profile), signer="vendor@example.org")
    assert outlier_findings([odd, *strangers[1:]]) == {}
