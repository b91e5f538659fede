"""OpenMPI's all-reduce. Its program is built here, as nothing else needs OpenMPI."""
import os
import shutil
import subprocess

from contender_process import ContenderFailed, ContenderProcess
from programs import program
from torch_contenders import RANKS, AllReduce

BUILD_S = 120


class OpenMpiContender(AllReduce):
    name = "openmpi-allreduce"

    def missing(self):
        if shutil.which("mpicxx") and shutil.which("mpirun"):
            return super().missing()
        return "not installed (apt install libopenmpi-dev openmpi-bin)"

    def build(self):
        built = self.directory / "mpi_allreduce"
        done = subprocess.run(
            ["mpicxx", "-O3", "-std=c++20", "-o", built,
             program("tests/benchmarks/peers/mpi_allreduce.cc")],
            check=False, capture_output=True, text=True, timeout=BUILD_S)
        if done.returncode != 0:
            raise ContenderFailed(f"{self.name}: mpicxx: {done.stderr}")
        return built

    def start(self):
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        # Use shared memory, which is for processes of one machine.
        self.workers = [ContenderProcess(
            "mpirun", ["mpirun", *as_root, "-np", RANKS, "--mca", "btl", "self,vader", self.build(),
                       self.setting.bytes], self.directory)]
