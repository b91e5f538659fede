"""What the tests of PyTorch programs share: small models, loops, and runs of one worker."""
import unittest

import cluster
import python_package

python_package.use_package()

import slipstream

try:
    import torch
    from torch.nn import functional
except ImportError:
    torch = None

RATE = 0.25  # A power of two, so that a step of one is exact.
CONFIG = f"""
name: torch
model: {{from: workers}}
training: {{work: own, batch_size: 16}}
consistency: {{policy: hardsync}}
optimizer: {{kind: sgd, learning_rate: {RATE}}}
cluster: {{servers: [localhost:7070, localhost:7071], workers: 1, lease: 3s}}
"""
# The difference in any weight to the same steps of torch.optim: a rounding in each of some steps.
APART_MAX = 1e-5


def examples(count=160, inputs=20, classes=5):
    random = torch.Generator().manual_seed(3)
    return (torch.randn(count, inputs, generator=random),
            torch.randint(0, classes, (count,), generator=random))


def net(inputs=20, hidden=300, classes=5):
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(inputs, hidden), torch.nn.Tanh(),
                               torch.nn.Linear(hidden, classes))


def loss_of(model, batch):
    return functional.cross_entropy(model(batch[0]), batch[1])


def loader(batch_size=16):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*examples()), batch_size)


def step(model, optimizer, batch):
    optimizer.zero_grad()
    loss_of(model, batch).backward()
    optimizer.step()


def train(model, optimizer, batches):
    for batch in batches:
        step(model, optimizer, batch)


def apart(model, other):
    return max((ours.detach().float() - theirs.detach().float()).abs().max().item()
               for ours, theirs in zip(model.parameters(), other.parameters()))


@unittest.skipIf(torch is None, "needs python3-torch")
class TorchRuns(unittest.TestCase):
    """Tests of runs whose one worker is in this process."""

    @classmethod
    def setUpClass(cls):
        print(f"PyTorch {torch.__version__}")
        torch.set_num_threads(1)

    def servers(self, settings=None):
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        config = cluster.write_config(scratch.name, CONFIG)
        live = cluster.Cluster(config, settings or {}, scratch.name, workers=0)
        self.addCleanup(live.stop)
        return live

    def joined(self, model, settings=None, examples_of_epoch=0, **options):
        """Starts servers. Returns a run that has the model, and an optimizer for it."""
        run = slipstream.connect(self.servers(settings).coordinator)
        self.addCleanup(run.leave, "the test is over")
        run.synchronize(model, examples=examples_of_epoch)
        return run, slipstream.Optimizer(run, model, **options)
