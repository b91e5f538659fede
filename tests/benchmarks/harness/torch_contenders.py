"""PyTorch's contenders: a parameter server made of its remote calls, and gloo's all-reduce."""
import functools
import subprocess
import sys

from contender import Contender
from contender_process import START_S, ContenderProcess
from programs import program

PACKAGE = "python3-torch"
RANKS = 2  # The ranks of an all-reduce, which is compared with one worker and one server.


@functools.lru_cache
def torch_missing():
    """Returns why PyTorch cannot be measured; empty if it can."""
    done = subprocess.run([sys.executable, "-c", "import torch.distributed.rpc"], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=START_S)
    return f"not installed (apt install {PACKAGE})" if done.returncode != 0 else ""


class TorchContender(Contender):
    script = ""
    environment = {}

    def missing(self):
        return torch_missing()

    def start_rank(self, rank, *arguments):
        return ContenderProcess(
            f"rank-{rank}", [sys.executable, program(f"tests/benchmarks/peers/{self.script}"),
                             self.directory / "rendezvous", rank, *arguments],
            self.directory, {"OMP_NUM_THREADS": "1", **self.environment})


class TorchRpcContender(TorchContender):
    """Uses whatever transport PyTorch chooses between processes of one machine."""
    name = "torch-rpc"
    script = "torch_rpc_rank.py"
    transport = "auto"

    def missing(self):
        rule = self.setting.rule
        return super().missing() if rule == "sgd" else f"with {rule}, as its servers know only sgd"

    def start(self):
        roles = (self.setting.workers, self.setting.servers)
        ranks = [self.start_rank(rank, *roles, self.setting.bytes, self.transport)
                 for rank in range(sum(roles))]
        self.servers = ranks[:self.setting.servers]
        self.workers = ranks[self.setting.servers:]


class TorchRpcTcpContender(TorchRpcContender):
    name = "torch-rpc-tcp"
    transport = "tcp"


class AllReduce(Contender):
    """Two ranks, each with a gradient, end with the sum. Each sends one model and receives one."""
    row_roles = (RANKS, 0)

    def missing(self):
        rule = self.setting.rule
        return super().missing() if rule == "sgd" else f"with {rule}, as a sum knows no rule"

    def amount(self, count):
        return 2 * self.setting.bytes * count


class GlooContender(AllReduce, TorchContender):
    name = "gloo-allreduce"
    script = "gloo_rank.py"

    def start(self):
        self.workers = [self.start_rank(rank, RANKS, self.setting.bytes) for rank in range(RANKS)]
