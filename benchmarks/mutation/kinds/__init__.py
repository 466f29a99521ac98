"""What others write, a kind in each file; ``KINDS`` has them by name."""

from benchmarks.mutation.attempt import Kind
from benchmarks.mutation.kinds.agents import Agents
from benchmarks.mutation.kinds.bundles import Bundles
from benchmarks.mutation.kinds.caches import Caches
from benchmarks.mutation.kinds.data_sets import DataSets
from benchmarks.mutation.kinds.matrices import Matrices
from benchmarks.mutation.kinds.models import Models
from benchmarks.mutation.kinds.run_folders import RunFolders
from benchmarks.mutation.kinds.submissions import Submissions

KINDS: dict[str, type[Kind]] = {
    "models": Models,
    "data sets": DataSets,
    "bundles": Bundles,
    "submissions": Submissions,
    "run folders": RunFolders,
    "matrices": Matrices,
    "agents": Agents,
    "caches": Caches,
}
