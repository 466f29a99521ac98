"""Submissions compared with each other: whom a copy or a name marks, and whom it does not."""

import datetime as dt
from pathlib import Path

import msgspec
import pytest

from harness.annex.conformance.submission import SSH_SIGNATURE, STATEMENT
from harness.annex.conformance.verify.verification import Verification, verify_submissions
from harness.annex.publication.gather import gather
from harness.annex.publication.lines import product_lines
from harness.core.records.record import Record
from tests.annex.conformance.small_profiles import tiny_profile, write_profile
from tests.annex.conformance.submissions import NOW, Draft, changed, new_key, write_folder


class Desk:
    """A publisher's folder, and the keys of vendors."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.profiles = write_profile(home / "profiles", tiny_profile())
        self.folder = home / "submissions"
        self.signers = home / "signers"
        self.signers.touch()
        self._keys: dict[str, Path] = {}
        self._made = 0

    def key(self, identity: str) -> Path:
        if identity not in self._keys:
            self._keys[identity], line = new_key(self.home, identity)
            with self.signers.open("a") as file:
                file.write(line)
        return self._keys[identity]

    def files(
        self, *, by: str = "", times: float | None = None, days: int = 0, **product: str
    ) -> dict[str, bytes]:
        self._made += 1
        more = self._made / 64 if times is None else times

        def timed(_: int, record: Record) -> Record:
            return changed(record, timings_ms={key: ms + more for key, ms in record.timings_ms.items()})

        draft = Draft(timed)
        created = (NOW + dt.timedelta(days=days)).isoformat()
        draft.statement = lambda s: changed(s, created=created, product=changed(s.product, **product))
        return draft.files(self.key(by) if by else None)

    def submit(self, name: str, files: dict[str, bytes]) -> None:
        write_folder(files, self.folder / name)

    def done(self) -> dict[str, Verification]:
        paths = sorted(self.folder.iterdir())
        found = verify_submissions(paths, now=NOW + dt.timedelta(days=9), profiles=self.profiles)
        return {one.name: one for one in found}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))
    return Desk(tmp_path)


def names(one: Verification) -> set[str]:
    return {each.name for each in one.findings} - {"no-signature", "signer-unchecked"}


def test_a_refused_copy_marks_nobody(desk: Desk) -> None:
    desk.submit("honest", desk.files(times=1.0))
    copy = desk.files(times=1.0, vendor="Thief")
    statement = msgspec.json.decode(copy[STATEMENT])
    desk.submit("copy", {**copy, STATEMENT: msgspec.json.encode({**statement, "level": "partial"})})
    done = desk.done()
    assert done["copy"].outcome == "refused"
    assert "copied" in names(done["copy"])
    assert (done["honest"].outcome, names(done["honest"])) == ("verified", set())


def test_an_unsigned_copy_marks_no_signed_original(desk: Desk) -> None:
    desk.submit("honest", desk.files(by="vendor", times=1.0))
    desk.submit("copy", desk.files(times=1.0, vendor="Thief"))
    done = desk.done()
    assert names(done["copy"]) == {"copied"}
    assert names(done["honest"]) == set()


def test_two_copies_of_equal_standing_are_both_marked(desk: Desk) -> None:
    desk.submit("a", desk.files(by="one", times=1.0, vendor="One"))
    desk.submit("b", desk.files(by="two", times=1.0, vendor="Two"))
    assert {name: names(one) for name, one in desk.done().items()} == {"a": {"copied"}, "b": {"copied"}}


def test_an_unsigned_stranger_under_a_signed_name(desk: Desk) -> None:
    desk.submit("honest", desk.files(by="vendor", version="2.7.0"))
    desk.submit("stranger", desk.files(version="2.7.0", days=1))
    done = desk.done()
    assert names(done["stranger"]) == {"other-signer"}
    assert names(done["honest"]) == set()


@pytest.mark.parametrize("vendor", ["VENDOR", "\u0475endor", "Vendor ", "Vend\u043er", "\uff36endor"])
def test_a_name_that_looks_like_a_signed_one(vendor: str, desk: Desk) -> None:
    desk.submit("honest", desk.files(by="vendor"))
    desk.submit("stranger", desk.files(vendor=vendor))
    done = desk.done()
    assert names(done["stranger"]) - {"hidden-text"} == {"look-alike"}
    assert names(done["honest"]) == set()


def test_a_product_that_looks_like_another(desk: Desk) -> None:
    desk.submit("honest", desk.files(by="vendor"))
    desk.submit("stranger", desk.files(vendor="Other", name="\u0415P"))
    desk.submit("third", desk.files(vendor="Third"))  # the usual name of its provider
    done = desk.done()
    assert names(done["stranger"]) == {"look-alike"}
    assert names(done["honest"]) == names(done["third"]) == set()


def test_of_two_spellings_that_nobody_signed_the_rarer_one_is_marked(desk: Desk) -> None:
    desk.submit("a", desk.files(vendor="One"))
    desk.submit("b", desk.files(vendor="0ne"))
    assert all(names(one) == {"look-alike"} for one in desk.done().values())
    desk.submit("c", desk.files(vendor="One"))
    assert {name for name, one in desk.done().items() if names(one)} == {"b"}


def test_two_signers_of_one_vendor_are_both_marked_and_one_signer_is_not(desk: Desk) -> None:
    desk.submit("a", desk.files(by="one"))
    desk.submit("b", desk.files(by="one", version="2.7.0", days=1, contact="x"))
    assert {name: names(one) for name, one in desk.done().items()} == {"a": set(), "b": set()}
    desk.submit("c", desk.files(by="two"))
    assert all(names(one) == {"other-signer"} for one in desk.done().values())


def test_who_tells_no_vendor_takes_no_name(desk: Desk) -> None:
    desk.submit("a", desk.files(by="one", vendor="unnamed"))
    desk.submit("b", desk.files(vendor="unnamed"))
    assert {name: names(one) for name, one in desk.done().items()} == {"a": set(), "b": set()}


def test_a_line_of_the_index_belongs_to_its_signer(desk: Desk) -> None:
    desk.submit("older", desk.files(by="vendor"))
    desk.submit("honest", desk.files(by="vendor", days=1))
    desk.submit("stranger", desk.files(days=2))
    now = NOW + dt.timedelta(days=9)
    for signers in (None, desk.signers):
        gathered = gather(desk.folder, now=now, signers=signers, profiles=desk.profiles)
        assert gathered.refused == ()
        signed, other = product_lines(gathered.entries)
        days = [each.statement.created[8:10] for each in signed.of_profile("tiny@1")]
        assert days == ["26", "25"]
        (newest,) = signed.newest.values()
        assert (newest.signer != "", newest.marks) == (True, ())
        (found,) = other.newest.values()
        assert found.signer == ""
        assert any(mark.startswith("other-signer") for mark in found.marks)
        assert signed.id != other.id


def test_a_copy_without_the_signature_does_not_take_the_place_of_the_original(desk: Desk) -> None:
    files = desk.files(by="vendor")
    desk.submit("z-honest", files)
    desk.submit("a-copy", {name: content for name, content in files.items() if name != SSH_SIGNATURE})
    gathered = gather(desk.folder, now=NOW, profiles=desk.profiles)
    (entry,) = gathered.entries
    assert entry.signer
    assert [one.source for one in gathered.refused] == ["a-copy"]
