"""Figures of triage on planted faults; exit code 1 if a limit is missed."""

import argparse
import sys
import tempfile
from pathlib import Path
from benchmarks.detection.subjects import subjects
from benchmarks.triage.planted import Choice, hunt_all

def main() -> int:
    p = argparse.ArgumentParser()
    p.add_argument("what")
    p.add_argument("--model", action="append")
    p.add_argument("--kind", action="append")
    p.add_argument("--share", type=float, default=0.25)
    p.add_argument("--sites", type=int, default=1)
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for model in subjects(Path(temporary), a.model or (), 1):
            for row in hunt_all(model, Choice(kinds=tuple(a.kind or ()), share=a.share, sites=a.sites)):
                h = row.hunted
                print(row.outcome, row.model, row.fault, row.guilty if len(row.guilty) < 3 else "many", f"{row.effect}", h and (h.judged_by, h.verdict, h.nodes[:4], len(h.nodes), f"{h.locating}/{h.allowed}", h.reducing, f"{h.nodes_before}->{h.nodes_after}", h.bytes_after, h.verdict_after, h.seconds), flush=True)
    return 0
