"""Many synthetic submissions of many devices, for tests of a site's size and of what readers find in it.

They are copies of a few verified submissions with other statements: the pages are made as of real ones.
"""

import hashlib
import random

import msgspec

from harness.annex.conformance.level import ProfileResult, profile_result
from harness.annex.conformance.profiles.profile import Profile
from harness.annex.publication.entry import AcceptedSubmission
from harness.annex.publication.gather import Gathered
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from tests.annex.conformance.submissions import changed, good_record

KINDS = ("CPU", "GPU", "NPU")


def many_submissions(
    one: AcceptedSubmission,
    profile: Profile,
    *,
    submissions: int,
    devices: int = 300,
    products: int = 12,
    versions: int = 40,
) -> Gathered:
    """Return so many submissions, the same ones each time.

    Product ``n`` computes case ``n`` of the profile (counted in a circle) from its version ``1.10`` on, and
    product 0 not case 3 from ``1.35`` on.
    """
    numbers = random.Random(52)  # noqa: S311 - no secrets
    records = [good_record(profile, index) for index in range(len(profile.cases))]
    results = {place: _result(profile, records, place) for place in [None, *range(len(records))]}
    found = {}
    for number in range(submissions):
        product = number % products
        device = numbers.randrange(devices)
        version = numbers.randrange(versions)
        late, broken = version < 10, product == 0 and version >= 35
        kind = KINDS[device % len(KINDS)]
        where = changed(
            one.statement.environment,
            devices=(f"{kind} Maker{device % 9} vendor_id {4000 + device % 9} device_id {device + 1}",),
            onnxruntime=f"1.{20 + version % 13}.0",
            drivers={"driver": f"{500 + version}.{device % 4}"},
        )
        said = changed(
            one.statement,
            environment=where,
            created=f"2026-{1 + version % 12:02}-{1 + number % 28:02}T00:00:{number % 60:02}Z",
            product=changed(
                one.statement.product,
                name=f"Product {product:02}",
                vendor=f"Vendor {product % 5}",
                version=f"1.{version}",
            ),
        )
        key = hashlib.sha256(msgspec.json.encode((number, said))).hexdigest()[:16]
        found[key] = changed(
            one,
            id=key,
            statement=said,
            result=results[product % len(records) if late else 3 if broken else None],
            content=key,
            names=("statement.json",),
        )
    newest = sorted(found.values(), key=lambda each: (each.statement.created, each.id), reverse=True)
    return Gathered(
        entries=tuple(newest),
        refused=(),
        profiles={profile.label: profile},
        files=lambda entry: {"statement.json": msgspec.json.encode(entry.statement)},
    )


def _result(profile: Profile, records: list[Record], refused: int | None) -> ProfileResult:
    told = [
        changed(record, verdict=Verdict.UNSUPPORTED) if index == refused else record
        for index, record in enumerate(records)
    ]
    return profile_result(profile, (), told)
