"""Measures steps per second beside PyTorch's, eager and with CUDA graphs, in the same rounds."""
import pathlib
import statistics
import sys

from served import Served

NETS = ("mlp", "lenet5", "cifar_quick", "vgg_small", "alexnet")
BATCHES = (4, 64, 1024)
BATCH_MAX = {"alexnet": 64}  # Larger ones' examples would take gigabytes on either side.
OURS = {"fp32": "cuda", "tf32": "cuda-tf32", "bf16": "cuda-bf16"}
PEERS = ("eager", "graphs")
KEPT = "kept"  # PyTorch with its examples on the GPU: no parameter server sends less.
CONVOLUTIONS = tuple(net for net in NETS if net != "mlp")  # Nets whose results may depend on the order of additions.
# The ratios to PyTorch's rate that are to be reached, by batch size.
REACH = {64: {"eager": 1.5}, 1024: {"eager": 1.0, "graphs": 1.0}}
PARAMETERS = {"mlp": 235146, "lenet5": 61706, "cifar_quick": 89578, "vgg_small": 3248202,
              "alexnet": 71953802}
TORCH = [sys.executable, str(pathlib.Path(__file__).resolve().parent / "torch_step.py")]
HEAD = ("net", "precision", "batch", "steps/s", "in any order, steps/s", "examples/s", "PyTorch eager, steps/s",
        "PyTorch graphs, steps/s", "PyTorch graphs, examples on the GPU, steps/s", "x eager", "x graphs",
        "to reach", "MB over PCIe, computed")


class Contenders:
    """Our program and PyTorch, which take turns."""

    def __init__(self, programs):
        self.ours = Served(programs, [programs.program("compute_benchmark"), "-"])
        self.torch = Served(programs, TORCH)

    def rates(self, net, batch, precision, options):
        """Returns the median rate of each contender; None for one that failed, which is not tried
        again."""
        ask = {"slipstream": lambda: self.ours.rate(net, batch, options.seconds, OURS[precision])}
        if net in CONVOLUTIONS:
            ask["any order"] = lambda: self.ours.rate(net, batch, options.seconds,
                                                      OURS[precision] + "-any")
        for peer in (*PEERS, KEPT):
            ask[peer] = lambda peer=peer: self.torch.rate(net, batch, options.seconds, precision, peer)
        seen = {name: [] for name in ask}
        for _ in range(options.rounds):
            for name, rate in ask.items():
                if None not in seen[name]:
                    seen[name].append(rate())
        return {name: None if None in rates else statistics.median(rates)
                for name, rates in seen.items()}

    def close(self):
        self.ours.close()
        self.torch.close()


def batches_of(net, options):
    """Returns the batch sizes that a net is measured with."""
    return [batch for batch in options.batch or BATCHES if batch <= BATCH_MAX.get(net, batch)]


def megabytes_over_pcie(net, batch):
    """Returns the megabytes that one of our steps moves: rows and weights up, gradients down, in
    fp32."""
    return 4 * (batch + 2 * PARAMETERS[net]) / 1e6


def fastest(medians):
    """Returns our faster rate, or 0 if there is none. "any order" counts, since PyTorch's
    convolutions also add in any order."""
    return max(medians.get(name) or 0 for name in ("slipstream", "any order"))


def judge(medians, batch):
    """Returns the ratios to be reached as text, and a list of those that are missed."""
    wanted = REACH.get(batch, {})
    ratios = {peer: fastest(medians) / medians[peer] for peer in PEERS}
    missed = [f"{ratios[peer]:.2f} times {peer}, not {least}" for peer, least in wanted.items()
              if ratios[peer] < least]
    return ", ".join(f"{least} x {peer}" for peer, least in wanted.items()), missed


def is_comparable(medians):
    return all(rate is not None for name, rate in medians.items() if name != KEPT)


def cells(medians, batch, to_reach):
    def shown(rate):
        return "failed" if rate is None else round(rate / batch)
    known = is_comparable(medians)
    return (shown(medians["slipstream"]),
            shown(medians["any order"]) if "any order" in medians else "",
            round(fastest(medians)) or "",
            *(shown(medians[peer]) for peer in (*PEERS, KEPT)),
            *(f"{fastest(medians) / medians[peer]:.2f}" if known else "" for peer in PEERS), to_reach)


def measure(programs, options, section):
    section.note("Ours: the examples lie on the GPU, and are gathered there; all weights go up, all "
                 "gradients come down, the update is the server's. PyTorch's: batches that lie pinned go "
                 "up, but where the column says that examples lie on the GPU, too; the update is on the "
                 "GPU; convolutions in the layout that is faster, as cuDNN measures, in any order. Ratios "
                 "and examples/s are of the faster of ours. Medians of "
                 f"{options.rounds} rounds in turn, {options.seconds} s each.")
    contenders = Contenders(programs)
    try:
        section.note(contenders.torch.ask("versions") or "PyTorch does not run here.")
        for net in options.net or NETS:
            for precision in options.precision or OURS:
                for batch in batches_of(net, options):
                    row_of(section, contenders, options, (net, precision, batch))
    finally:
        contenders.close()


def row_of(section, contenders, options, which):
    net, precision, batch = which
    medians = contenders.rates(net, batch, precision, options)
    to_reach, missed = judge(medians, batch) if is_comparable(medians) else ("", [])
    section.add(net, precision, batch, *cells(medians, batch, to_reach),
                f"{megabytes_over_pcie(net, batch):.2f}")
    for name, rate in medians.items():
        if rate is None:
            section.fail(f"{net} {precision} {batch}: no figure of {name}")
    for what in missed:
        section.fail(f"{net} {precision} {batch}: {what}")
