"""A Slurm of its own on this machine: one controller, several nodes with devices that do not exist.

Everything lies in one folder and listens on free ports of the loopback address; nothing of an installed
Slurm is read or changed. A node is a ``slurmd -N``, so it can be killed, and started again.
"""

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "squeue", "scancel")
"""Of Debian's packages munge and slurm-wlm."""

CONFIGURATION = """
ClusterName=test
SlurmctldHost=localhost
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
# cred_expire: a job that is requeued waits so many seconds, two minutes by default.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# The nodes are one machine: more processors than it has, and no check of its memory.
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=100000
ReturnToService=2
# Seconds: a node that went silent is down soon, and what is cancelled or out of time is killed soon.
SlurmdTimeout={node_timeout_s}
KillWait=2
MinJobAge=300
OverTimeLimit=0
GresTypes=npu
{nodes}
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

START_S = 30.0
"""Seconds for the nodes to become idle, on a busy machine."""


class Slurm:
    """A running Slurm.

    Args:
        folder: An empty folder.
        nodes: Names of its nodes.
        devices: Devices of type ``npu`` on each node.
        node_timeout_s: Seconds after which a silent node is down.
    """

    def __init__(self, folder: Path, nodes: Sequence[str], devices: int = 2, node_timeout_s: int = 5) -> None:
        self.folder = folder
        self.nodes = tuple(nodes)
        self.devices = devices
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        """What its commands need, besides the variables of this process."""
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._configure(devices, node_timeout_s)

    def start(self) -> None:
        """Start everything, and wait until all nodes are idle.

        Raises:
            TimeoutError: They are not in time; the text has the ends of the logs.
        """
        socket_path = self.folder / "munge.socket"
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        # --force: the folder may be closed to other users, who have no business here.
        options = (
            f"--key-file={key}",
            f"--socket={socket_path}",
            f"--pid-file={self.folder / 'munged.pid'}",
            f"--log-file={self.folder / 'munged.log'}",
            f"--seed-file={self.folder / 'munged.seed'}",
        )
        self._spawn("munged", "munged", "--foreground", "--force", *options)
        wait_until(socket_path.exists, "munged has no socket", START_S)
        self._spawn("slurmctld", "slurmctld", "-D")
        for node in self.nodes:
            self.start_node(node)
        self.wait_for_nodes("idle", *self.nodes)

    def start_node(self, node: str) -> None:
        """Start a node's daemon."""
        self._spawn(node, "slurmd", "-D", "-N", node)

    def revive_node(self, node: str) -> None:
        """Start a node that was killed, and let Slurm forget what ran on it, or it looks long for that."""
        self.call("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed")
        self.start_node(node)
        # Refused if the daemon was quicker, and the node is back already.
        self.call("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
        self.wait_for_nodes("idle", node)

    def kill_node(self, node: str) -> None:
        """Kill a node as if its power went: its daemon, and all that runs on it."""
        process = self._running.pop(node)
        pids = list(_of_node(self.folder, node))
        process.kill()
        process.wait()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def signal_node(self, node: str, number: signal.Signals) -> None:
        """Send a signal to a node's daemon, and to all that runs on it."""
        for pid in (self._running[node].pid, *_of_node(self.folder, node)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def wait_for_nodes(self, state: str, *nodes: str, timeout_s: float = START_S) -> None:
        """Wait until nodes are in a state, such as ``idle``, ``down``."""
        wait_until(
            lambda: all(self.node_state(node) == state for node in nodes),
            f"not {state}",
            timeout_s,
            self.logs,
        )

    def node_state(self, node: str) -> str:
        """Return the state of a node, without marks such as that it does not answer."""
        return self.call("sinfo", "-h", "-N", "-n", node, "-o", "%T", check=False).strip().rstrip("*~#!%$@^-")

    def call(self, *command: str, check: bool = True) -> str:
        """Return what one of its commands prints."""
        done = subprocess.run(
            command,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def jobs(self, *states: str) -> list[str]:
        """Return the ids of jobs in states, such as ``PENDING``; without any, of all that wait or run.

        One that is being cleaned up neither waits nor runs: on a node that was killed, this takes its time.
        """
        chosen = ",".join(states or ("PENDING", "CONFIGURING", "RUNNING", "SUSPENDED"))
        return self.call("squeue", "-h", "-r", "-o", "%A", "-t", chosen).split()

    def job_state(self, job: str) -> str:
        """Return the state of a job, of an ended one too."""
        return self._of_job(job, "%T")

    def node_of(self, job: str) -> str:
        """Return the node on which a job runs."""
        return self._of_job(job, "%N")

    def submitter(self, job: str) -> int:
        """Return the process on this machine, the first of its session, that has submitted a job."""
        return int(self.call("squeue", "-h", "-j", job, "-O", "AllocSID").strip())

    def _of_job(self, job: str, form: str) -> str:
        return self.call("squeue", "-h", "-t", "all", "-j", job, "-o", form).strip()

    def clear_but(self, job: str) -> None:
        """End all jobs but one."""
        self.call("scancel", *(other for other in self.jobs() if other != job))

    def wait_for_no_job(self, timeout_s: float = 60.0) -> list[str]:
        """Return the jobs that are still there after some seconds; none, if all end before."""
        deadline = time.monotonic() + timeout_s
        while (left := self.jobs()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def occupy(self, free: int = 0) -> list[str]:
        """Submit one job for each node that takes all its devices, and return their ids once they run.

        Args:
            free: Devices of the last node that are left.
        """
        nodes = len(self.nodes)
        for node in self.nodes:
            taken = self.devices - (free if node == self.nodes[-1] else 0)
            self.call("sbatch", "-w", node, f"--gres=npu:{taken}", "-o", "/dev/null", "--wrap", "sleep 600")
        wait_until(lambda: len(self.jobs("RUNNING")) == nodes, "the jobs do not run", START_S, self.logs)
        return self.jobs("RUNNING")

    def clear(self) -> None:
        """End all jobs, and wait until all nodes are idle."""
        self.call("scancel", "--full", "-s", "KILL", "-u", getpass.getuser(), check=False)
        self.call("scancel", "-u", getpass.getuser(), check=False)
        self.wait_for_nodes("idle", *self.nodes, timeout_s=2 * START_S)

    def logs(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-2000:]}"
            for path in sorted(self.folder.glob("*.log"))
        )

    def stop(self) -> None:
        """End all jobs and daemons."""
        if "slurmctld" in self._running:
            self.call("scancel", "--full", "-s", "KILL", "-u", getpass.getuser(), check=False)
        for node in self.nodes:
            if node in self._running:
                self.kill_node(node)
        for process in reversed(tuple(self._running.values())):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()

    def _configure(self, devices: int, node_timeout_s: int) -> None:
        (self.folder / "state").mkdir(parents=True)
        ports = free_ports(1 + len(self.nodes))
        lines = [
            f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=8 RealMemory=1000"
            f" Gres=npu:{devices} State=UNKNOWN"
            for node, port in zip(self.nodes, ports[1:], strict=True)
        ]
        text = CONFIGURATION.format(
            controller_port=ports[0],
            user=getpass.getuser(),
            folder=self.folder,
            node_timeout_s=node_timeout_s,
            nodes="\n".join(lines),
        )
        (self.folder / "slurm.conf").write_text(text)
        gres = [f"NodeName={node} Name=npu Count={devices}\n" for node in self.nodes]
        (self.folder / "gres.conf").write_text("".join(gres))
        # No control groups: they belong to the machine.
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")

    def _spawn(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out.log").open("ab") as output:
            self._running[name] = subprocess.Popen(
                command,
                env={**os.environ, **self.environment, "PATH": search_path()},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                start_new_session=True,
            )


def missing_programs() -> tuple[str, ...]:
    """Return the programs of Slurm that are not installed."""
    return tuple(name for name in PROGRAMS if shutil.which(name, path=search_path()) is None)


def search_path() -> str:
    """Return where programs are; daemons are where only root looks by default."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def free_ports(count: int) -> list[int]:
    """Return ports that nothing listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


def wait_until(
    condition: Callable[[], bool], problem: str, timeout_s: float, detail: Callable[[], str] = lambda: ""
) -> None:
    """Wait for a condition.

    Raises:
        TimeoutError: It did not come true in time.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{problem} within {timeout_s:g} s\n{detail()}")
        time.sleep(0.1)


def _of_node(folder: Path, node: str) -> Iterator[int]:
    """Yield the processes that a node of a Slurm has started: those with its variables."""
    marks = (f"SLURMD_NODENAME={node}".encode(), f"SLURM_CONF={folder / 'slurm.conf'}".encode())
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            held = environ.read_bytes().split(b"\0")
            if all(mark in held for mark in marks):
                yield int(environ.parent.name)
