"""Find addresses in the documentation that do not answer: `python -m docs.site.external [--list]`."""

import argparse
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"\]\((https://[^)\s]+)\)")
LIMIT_S = 20
AT_ONCE = 8
# Some sites refuse what does not look like a browser.
HEADERS = {"User-Agent": "Mozilla/5.0 (link check of ort-ep-harness)"}


def main(arguments: list[str] | None = None) -> int:
    """Print each address that does not answer; exit code 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--list", action="store_true", help="print the addresses and where they are linked; ask none"
    )
    given = parser.parse_args(arguments)
    found = addresses(ROOT)
    if given.list:
        for address, pages in found.items():
            print(f"{address}  {', '.join(pages)}")
        return 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        faults = dict(zip(found, pool.map(fault, found), strict=True))
    broken = {address: why for address, why in faults.items() if why}
    for address, why in broken.items():
        print(f"{address}: {why}; linked in {', '.join(found[address])}")
    print(f"{len(found)} addresses, {len(broken)} do not answer")
    return 1 if broken else 0


def addresses(root: Path) -> dict[str, list[str]]:
    """Return the linked addresses, sorted, each with the pages that link it."""
    found: dict[str, list[str]] = {}
    for page in pages(root):
        for address in sorted(set(ADDRESS.findall(page.read_text("utf-8")))):
            found.setdefault(address, []).append(page.relative_to(root).as_posix())
    return dict(sorted(found.items()))


def pages(root: Path) -> Iterator[Path]:
    """Yield the Markdown files of the documentation."""
    yield from sorted(root.glob("*.md"))
    yield from sorted(root.glob("docs/**/*.md"))


def fault(address: str) -> str:
    """Return why an address cannot be read; empty if it can."""
    request = urllib.request.Request(address, headers=HEADERS)  # noqa: S310  # https alone is found
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_S):  # noqa: S310
            return ""
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}"
    except OSError as error:
        return str(error)


if __name__ == "__main__":
    sys.exit(main())
