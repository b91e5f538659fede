"""Steps per second beside PyTorch's, eager and as CUDA graphs, in the same rounds."""
import pathlib
import re
import statistics
import subprocess
import sys
import threading

import report

NETS = ("mlp", "lenet5", "cifar_quick")
BATCHES = (4, 64, 1024)
OURS = {"fp32": "cuda", "tf32": "cuda-tf32", "bf16": "cuda-bf16"}
PEERS = ("eager", "graphs")
PARAMETERS = {"mlp": 235146, "lenet5": 61706, "cifar_quick": 89578}
INPUTS = {"mlp": 784, "lenet5": 784, "cifar_quick": 3072}
TORCH_STEP = pathlib.Path(__file__).resolve().parent / "torch_step.py"
TIMEOUT = 120


def rate_in(said):
    """Images per second, or None where a program does not say."""
    found = re.search(r"images_per_s=([0-9.]+)", said)
    return float(found.group(1)) if found else None


class Torch:
    """torch_step.py, which starts once, as PyTorch takes seconds to."""

    def __init__(self, python=sys.executable):
        self.process = subprocess.Popen([python, str(TORCH_STEP)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def rate(self, net, batch, seconds, precision, mode):
        """None if it has ended, or does not answer: then it is ended."""
        deadline = threading.Timer(TIMEOUT, self.process.kill)
        deadline.start()
        try:
            self.process.stdin.write(f"{net} {batch} {seconds} {precision} {mode}\n")
            self.process.stdin.flush()
            return rate_in(self.process.stdout.readline())
        except BrokenPipeError:
            return None
        finally:
            deadline.cancel()

    def close(self):
        self.process.kill()
        self.process.communicate()


def our_rate(programs, net, batch, seconds, precision):
    command = [programs.program("compute_benchmark"), net, str(batch), str(seconds),
               OURS[precision]]
    status, said = programs.run(command, TIMEOUT)
    if status == 0:
        return rate_in(said)
    print(" ".join(command), said[-2000:], sep="\n")
    return None


def rates_of(programs, torch, options, net, batch, precision):
    """The median of each contender; None where one round failed."""
    seen = {"slipstream": [], **{peer: [] for peer in PEERS}}
    for _ in range(options.rounds):
        seen["slipstream"].append(our_rate(programs, net, batch, options.seconds, precision))
        for peer in PEERS:
            seen[peer].append(torch.rate(net, batch, options.seconds, precision, peer))
    return {name: None if None in rates else statistics.median(rates)
            for name, rates in seen.items()}


def megabytes_over_pcie(net, batch):
    """Of one of our steps: the batch and the weights up, the gradients down, fp32."""
    return 4 * (batch * INPUTS[net] + 2 * PARAMETERS[net]) / 1e6


def cells(medians, batch):
    ours = medians["slipstream"]
    shown = ["failed" if rate is None else round(rate / batch) for rate in medians.values()]
    for peer in PEERS:
        known = ours is not None and medians[peer] is not None
        shown.append(f"{ours / medians[peer]:.2f}" if known else "")
    return shown


def measure(programs, options):
    rows, failed = [], False
    torch = Torch()
    try:
        for net in NETS:
            for precision in OURS:
                for batch in BATCHES:
                    medians = rates_of(programs, torch, options, net, batch, precision)
                    failed |= medians["slipstream"] is None
                    rows.append((net, precision, batch, *cells(medians, batch),
                                 f"{megabytes_over_pcie(net, batch):.2f}"))
                    print(*rows[-1], flush=True)
    finally:
        torch.close()
    lines = report.table(["net", "precision", "batch", "steps/s", "PyTorch eager, steps/s",
                          "PyTorch graphs, steps/s", "x eager", "x graphs", "MB over PCIe"], rows)
    lines += ["", "Ours: the batch and all weights go up, all gradients come down, the update is the "
              "server's. PyTorch's: the batch goes up, the update is on the GPU. Medians of rounds "
              "in turn."]
    return report.Section("Steps per second", lines, failed)
