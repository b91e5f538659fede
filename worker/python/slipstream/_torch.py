"""Training a PyTorch module in a run."""
from __future__ import annotations

from typing import Any, Callable, Mapping, Optional

import torch

from ._errors import NotReady, Refused
from ._models import trained
from ._results import PushResult
from ._run import Run


# Fewer values than these are not worth a message of their own.
_EARLY_VALUES_MIN = 1 << 18


def _views(memory: Mapping[str, Any],
           parameters: Mapping[str, torch.nn.Parameter]) -> dict[str, torch.Tensor]:
    missing = set(parameters) ^ set(memory)
    if missing:
        raise Refused(f"{sorted(missing)[0]!r} is not in both the module and the model that was "
                      "synchronized")
    return {name: torch.frombuffer(memory[name], dtype=torch.float32).view(parameter.shape)
            for name, parameter in parameters.items()}


def adopt(module: torch.nn.Module, run: Run) -> None:
    """Gives a module the run's weights, now and whenever there are new ones. Parameters on the
    processor come to lie in their memory. Where workers keep their weights, parameters stay where
    they are, and get the run's weights now and at the end."""
    parameters = trained(module)
    weights = _views(run.weights, parameters)
    keeps = run.settings.keeps_weights
    for name, parameter in parameters.items():
        if parameter.device.type == "cpu" and parameter.dtype == torch.float32 and not keeps:
            parameter.data = weights[name]

    @torch.no_grad()
    def take() -> None:
        for name, parameter in parameters.items():
            if parameter.data_ptr() != weights[name].data_ptr():
                parameter.data.copy_(weights[name])

    take()
    run.on_weights(lambda: take() if run.finished or not keeps else None)


def check_fits(run: Run, name: str) -> None:
    """Raises Refused if the class of this name does not do what the run's worker.algorithm asks for."""
    settings = run.settings
    if settings.publishes:
        fitting = "Run.publish"
    elif settings.keeps_weights:
        fitting = "EASGD"
    elif settings.local_steps:
        fitting = "Downpour" if settings.pushes_gradients else "LocalSteps"
    else:
        fitting = "Optimizer"
    if name != fitting:
        raise Refused(f"the run's worker.algorithm is {settings.algorithm}, which is for "
                      f"slipstream.{fitting}: use that instead of slipstream.{name}, or set another "
                      "worker.algorithm")


class Memory:
    """A module's parameters by name, and the run's memory of their weights and gradients."""

    def __init__(self, run: Run, module: torch.nn.Module) -> None:
        self.trained: dict[str, torch.nn.Parameter] = trained(module)
        self.weights = _views(run.weights, self.trained)
        self.values = _views(run.values, self.trained)


class _EarlyGradients:
    """Lets gradients go while backward computes the others, which it does from the last parameter to
    the first, as a rule."""

    def __init__(self, run: Run, memory: Memory) -> None:
        self._run = run
        self._names = list(memory.trained)
        self._begins = [0]
        for name in self._names:
            self._begins.append(self._begins[-1] + memory.trained[name].numel())
        self._ready: set[int] = set()
        self._released = self._begins[-1]
        self._next = len(self._names) - 1  # The last parameter that is not ready.
        # torch drops the nodes that accumulate gradients, and the hooks with them, if nobody has them.
        self._kept = [self._watch(number, memory.trained[name])
                      for number, name in enumerate(self._names)]

    def _watch(self, number: int, parameter: torch.nn.Parameter) -> Any:
        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            return parameter.register_post_accumulate_grad_hook(lambda _: self._on_ready(number))
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        node.register_hook(lambda *_: self._on_ready(number))
        return node

    def begin(self) -> None:
        """Begins a step: its gradients are zero, and backward comes."""
        self._ready.clear()
        self._released = self._begins[-1]
        self._next = len(self._names) - 1
        self._run._begin_early()

    def _on_ready(self, number: int) -> None:
        if number in self._ready:
            raise NotReady(f"the gradient of {self._names[number]} is being sent, and backward has "
                           "added to it: with overlap=True a step has one backward pass")
        self._ready.add(number)
        while self._next in self._ready:
            self._next -= 1
        begin = self._begins[self._next + 1]
        if self._released - begin >= _EARLY_VALUES_MIN:
            self._run._release(begin)
            self._released = begin


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

    overlap: gradients are sent while backward computes the others, which shortens the step of a
             large model. A step then has one backward pass, and what changes gradients between
             `backward` and `step` has no effect. On processors alone.
    """

    def __init__(self, run: Run, model: torch.nn.Module, *, overlap: bool = False) -> None:
        check_fits(run, "Optimizer")
        self._run = run
        self._memory = Memory(run, model)
        adopt(model, run)
        super().__init__(list(self._memory.trained.values()), {})
        for values in self._memory.values.values():
            values.zero_()
        self._is_zeroed = True
        self._adopt_gradients()
        parameters = self._memory.trained.values()
        if overlap and any(parameter.device.type != "cpu" for parameter in parameters):
            raise Refused("overlap=True: a parameter is on a GPU, whose gradients are copied in step")
        self._early = _EarlyGradients(run, self._memory) if overlap else None

    def _adopt_gradients(self) -> None:
        for name, parameter in self._memory.trained.items():
            if parameter.device.type == "cpu" and parameter.dtype == torch.float32:
                parameter.grad = self._memory.values[name]

    @property
    def last(self) -> PushResult:
        """The result of the last step; waits for it."""
        return self._run.last

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Waits for the answers to the last step and for the weights of the next, and sets the
        gradients to zero. `set_to_none` makes no difference: gradients lie in the run's memory.

        If no work is left, the model gets the final weights, and a further `step` raises RunFinished.
        """
        del set_to_none
        self._is_zeroed = True
        if not self._run.fetch():
            self._run.finish()
        self._adopt_gradients()
        for parameter in self._memory.trained.values():
            if parameter.grad is not None:
                parameter.grad.zero_()
        if self._early is not None and not self._run.finished:
            self._early.begin()

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
            elif not self._is_zeroed:
                raise NotReady("step comes without zero_grad since the last one, so that gradients of "
                               "several mini-batches have added up")
        self._run._begin_push(None, examples, loss)
        self._is_zeroed = False
        return value
