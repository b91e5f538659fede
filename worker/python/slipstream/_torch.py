"""Training a PyTorch module in a run."""
from __future__ import annotations

from typing import Any, Callable, Mapping, Optional

import torch

from ._errors import Refused, RunFinished
from ._run import PushResult, Run


def _trained(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    return {name: parameter for name, parameter in module.named_parameters()
            if parameter.requires_grad and parameter.numel() > 0}


def _views(memory: Mapping[str, Any],
           trained: Mapping[str, torch.nn.Parameter]) -> dict[str, torch.Tensor]:
    missing = set(trained) ^ set(memory)
    if missing:
        raise Refused(f"{sorted(missing)[0]!r} is not in both the module and the model that was "
                      "synchronized")
    return {name: torch.frombuffer(memory[name], dtype=torch.float32).view(parameter.shape)
            for name, parameter in trained.items()}


def adopt(module: torch.nn.Module, run: Run) -> None:
    """Gives a module the run's weights. Parameters on the processor come to lie in their memory."""
    trained = _trained(module)
    for name, view in _views(run.weights, trained).items():
        parameter = trained[name]
        if parameter.device.type == "cpu":
            parameter.data = view
        else:
            parameter.data.copy_(view)


class _Weights:
    """The module's parameters and the run's memory of them, kept equal."""

    def __init__(self, run: Run, module: torch.nn.Module) -> None:
        self.trained = _trained(module)
        self.weights = _views(run.weights, self.trained)
        self.values = _views(run.values, self.trained)

    @torch.no_grad()
    def take(self) -> None:
        """Takes the weights that the run has fetched."""
        for name, parameter in self.trained.items():
            if parameter.data_ptr() != self.weights[name].data_ptr():
                parameter.data.copy_(self.weights[name])


class Optimizer(torch.optim.Optimizer):
    """The servers' optimizer, for a loop like any other:

        opt = slipstream.Optimizer(run, model)
        for positions in run.batches():
            opt.zero_grad()                   # waits for the newest weights
            loss = criterion(model(x[positions]), y[positions])
            loss.backward()
            opt.step(loss=loss.item())        # pushes the gradients

    run.yaml says which rule the servers apply, and with what learning rate; `param_groups` have
    none. The run's worker.algorithm has to be gradient. Between `step` and `zero_grad` the gradients
    are being sent and must stay as they are.
    """

    def __init__(self, run: Run, model: torch.nn.Module) -> None:
        if not run.settings.pushes_gradients:
            raise Refused(f"the run's worker.algorithm is {run.settings.algorithm}, which pushes what "
                          "local steps did: use slipstream.LocalSteps with an optimizer of your own")
        self._run = run
        self._memory = _Weights(run, model)
        super().__init__(list(self._memory.trained.values()), {})
        self._adopt_gradients()

    def _adopt_gradients(self) -> None:
        for name, parameter in self._memory.trained.items():
            if parameter.device.type == "cpu":
                parameter.grad = self._memory.values[name]

    @property
    def last(self) -> PushResult:
        """The result of the last step; waits for it."""
        return self._run.last

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Waits for the answers to the last step and for the weights of the next, and sets the
        gradients to zero. `set_to_none` makes no difference: gradients lie in the run's memory.

        Raises RunFinished, which ends the run's `with` block quietly, if no work is left.
        """
        del set_to_none
        if not self._run.fetch():
            self._run.finish()
            raise RunFinished("no work is left in this run")
        self._memory.take()
        self._adopt_gradients()
        for parameter in self._memory.trained.values():
            if parameter.grad is not None:
                parameter.grad.zero_()

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None, *,
             examples: Optional[int] = None, loss: Optional[float] = None) -> Any:
        """Pushes the gradients, which are means over the mini-batch, and returns at once.

        examples: as in Run.push. loss: for status and logs.
        """
        value = None
        if closure is not None:
            with torch.enable_grad():
                value = closure()
            loss = float(value) if loss is None else loss
        for name, parameter in self._memory.trained.items():
            target = self._memory.values[name]
            if parameter.grad is None:
                target.zero_()
            elif parameter.grad.data_ptr() != target.data_ptr():
                target.copy_(parameter.grad)
        self._run._begin_push(None, examples, loss)
        return value


class LocalSteps:
    """Steps of an optimizer of your own on this worker's weights; what they did is pushed after each
    `steps` of them. run.yaml says by worker.algorithm, local_sgd or diloco, what the servers make of
    it, and by worker.steps how many they are.

        with slipstream.LocalSteps(run, model, optimizer):
            for positions in run.batches():
                optimizer.zero_grad()
                criterion(model(x[positions]), y[positions]).backward()
                optimizer.step()              # the last of `steps` exchanges weights, too

    The state of the optimizer stays this worker's. Inside the block, `optimizer.step` has an effect
    on the run, so each call stands for one mini-batch.
    """

    def __init__(self, run: Run, model: torch.nn.Module, optimizer: torch.optim.Optimizer, *,
                 sync_every: Optional[int] = None) -> None:
        if run.settings.pushes_gradients:
            raise Refused(f"the run's worker.algorithm is {run.settings.algorithm}: its servers apply "
                          "gradients; use slipstream.Optimizer, or set worker.algorithm to diloco or "
                          "local_sgd")
        if sync_every not in (None, run.settings.steps):
            raise Refused(f"sync_every={sync_every}, and run.yaml has worker.steps: "
                          f"{run.settings.steps}; all workers take as many")
        self._run = run
        self._memory = _Weights(run, model)
        self._optimizer = optimizer
        self._base: dict[str, torch.Tensor] = {}
        self._taken = 0
        self._step: Optional[Callable[..., Any]] = None

    @property
    def last(self) -> PushResult:
        """The result of the last exchange; waits for it."""
        return self._run.last

    def __enter__(self) -> "LocalSteps":
        self._begin()
        self._step = self._optimizer.step
        # Another attribute of this object alone: the optimizer looks the same to whoever has it.
        setattr(self._optimizer, "step", self._counted_step)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._step is not None
        setattr(self._optimizer, "step", self._step)

    def _counted_step(self, *arguments: Any, **named: Any) -> Any:
        assert self._step is not None
        if not self._base:
            raise RunFinished("no work is left in this run")
        value = self._step(*arguments, **named)
        self._taken += 1
        if self._taken >= self._run.mini_batches_at_hand():
            self._exchange()
        return value

    @torch.no_grad()
    def _begin(self) -> None:
        """Notes the weights that the steps of a push begin with."""
        if not self._run.fetch():
            self._run.finish()
            self._memory.take()
            return
        self._memory.take()
        self._base = {name: weights.clone() for name, weights in self._memory.weights.items()}
        self._taken = 0

    @torch.no_grad()
    def _exchange(self) -> None:
        for name, parameter in self._memory.trained.items():
            local = parameter.data.to("cpu")
            torch.sub(self._base[name], local, out=self._memory.values[name])
        self._run._begin_push(None, None, None)
        self._base = {}
        self._begin()  # Now, as nobody tells of the next forward pass, which needs the weights.


DiLoCo = LocalSteps
LocalSGD = LocalSteps
