"""LSF numbers the jobs of an array, so that each can run its share: `--shard auto`."""

from harness.plan.auto_shard import Counter

LSF = Counter(system="LSF", index="LSB_JOBINDEX", count="LSB_JOBINDEX_END", first=1)
