"""Read ``wptreport.json`` of web-platform-tests (``wpt run --log-wptreport``), and files of its form."""

from collections.abc import Iterator

import msgspec

from harness.core.records.verdict import Verdict

WPT_STATUSES = {
    "PASS": Verdict.PASS,
    "FAIL": Verdict.MISMATCH,
    "ERROR": Verdict.ERROR,
    "INTERNAL-ERROR": Verdict.ERROR,
    "ASSERT": Verdict.ERROR,
    "TIMEOUT": Verdict.HANG,
    "EXTERNAL-TIMEOUT": Verdict.HANG,
    "CRASH": Verdict.CRASH,
    "PRECONDITION_FAILED": Verdict.UNSUPPORTED,
    "SKIP": Verdict.DECLARED,
    "NOTRUN": Verdict.NOT_RUN,
}
"""Status of a test or subtest -> verdict. ``OK`` of a test means that its subtests tell the results."""

_OF_SUBTESTS = "OK"


class WptSubtest(msgspec.Struct, frozen=True):
    """A subtest."""

    name: str
    status: str


class WptTest(msgspec.Struct, frozen=True):
    """A test; ``test`` is its address, such as ``/webnn/conformance_tests/add.https.any.html``."""

    test: str
    status: str
    subtests: tuple[WptSubtest, ...] = ()
    subsuite: str = ""


class WptRunInfo(msgspec.Struct, frozen=True):
    """What ran."""

    product: str = ""
    browser_version: str | None = None


class WptReport(msgspec.Struct, frozen=True):
    """The file, as far as it is read."""

    results: tuple[WptTest, ...]
    run_info: WptRunInfo = WptRunInfo()


def wpt_results(report: WptReport) -> Iterator[tuple[str, str, Verdict]]:
    """Yield ``(product, case, verdict)`` of each test without subtests, and of each subtest.

    A test whose subtests end otherwise than ``OK`` is a case of its own, such as one that crashed.

    Raises:
        ValueError: A status is unknown.
    """
    told = report.run_info
    product = " ".join(filter(None, (told.product, told.browser_version)))
    for one in report.results:
        name = " ".join(filter(None, (one.test.removeprefix("/"), one.subsuite and f"({one.subsuite})")))
        if one.status != _OF_SUBTESTS:
            yield product, name, _verdict(one.status, name)
        for each in one.subtests:
            yield product, f"{name} {each.name}", _verdict(each.status, name)


def _verdict(status: str, name: str) -> Verdict:
    if status not in WPT_STATUSES:
        valid = ", ".join((_OF_SUBTESTS, *WPT_STATUSES))
        raise ValueError(f"the status of {name!r} is {status!r}; valid: {valid}")
    return WPT_STATUSES[status]
