"""Shares of a plan for several machines; all machines compute the same shares, of about equal length."""

import heapq
import re
from collections.abc import Mapping

from harness.core.records.run_info import ShardInfo
from harness.core.text.errors import UsageError
from harness.plan.plan import Plan


def parse_shard(text: str) -> tuple[int, int]:
    """Read ``I/N``.

    Raises:
        UsageError: The text has another form, or I is not within 1 to N.
    """
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    index, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= index <= count:
        raise UsageError.at("--shard", f"got {text!r}", "valid: I/N with I from 1 to N, such as 2/8; or auto")
    return index, count


def shard(plan: Plan, index: int, count: int, durations_ms: Mapping[str, float]) -> Plan:
    """Return one share of a plan, numbered from 1; each cell is in exactly one of the ``count`` shares.

    The longest cells are dealt first, each to the share that is shortest so far (longest processing time
    first: at most a third above the optimum). A cell without a duration counts as the median of the others.
    The shares depend on the arguments alone, so machines agree.

    Raises:
        UsageError: There are more shares than cells, so that this one is empty.
    """
    known = sorted(durations_ms[cell.id] for cell in plan.cells if cell.id in durations_ms)
    usual = known[len(known) // 2] if known else 1.0
    longest_first = sorted((-durations_ms.get(cell.id, usual), cell.id) for cell in plan.cells)
    shares = [(0.0, number) for number in range(count)]
    mine: set[str] = set()
    for negative_ms, cell_id in longest_first:
        length, number = heapq.heappop(shares)
        if number == index - 1:
            mine.add(cell_id)
        heapq.heappush(shares, (length - negative_ms, number))
    if not mine:
        what = f"shard {index}/{count} is empty: the plan has {len(plan.cells):,} cells"
        raise UsageError.at("--shard", what, "use fewer shards")
    return Plan(
        matrix=plan.matrix,
        cells=tuple(cell for cell in plan.cells if cell.id in mine),
        shard=ShardInfo(index=index, count=count, plan=plan.digest, cells=len(plan.cells)),
    )
