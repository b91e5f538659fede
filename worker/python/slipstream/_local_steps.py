"""Steps of a user's own optimizer in a run, and their exchange with the servers."""
from __future__ import annotations

import copy
import types
from typing import Any, Callable, Optional, TypeVar

import torch
from torch.nn.utils.clip_grad import clip_grad_norm_

from ._errors import Refused, RunFinished
from ._pending import wait
from ._results import PushResult
from ._run import Run
from ._torch import check_fits, shared_module


class _CountedSteps:
    """Steps of an optimizer of the user's on this worker's weights, with an exchange after those of
    each push. The run's algorithm, in C++, decides what is pushed, and what becomes of the weights.

    Inside the `with` block, `optimizer.step` has an effect on the run, so each call stands for one
    mini-batch.
    """

    # The name of the class that users know.
    _name = ""

    def __init__(self, run: Run, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
        check_fits(run, self._name)
        self._run = run
        self._worker = run._worker
        self._memory = shared_module(run, model)
        self._optimizer = optimizer
        self._fresh = copy.deepcopy(optimizer.state_dict())
        self._work: Optional[list[tuple[int, int]]] = None  # That of the steps; None once none is left.
        self._taken = 0
        self._absent: set[str] = set()  # Parameters without a gradient in any of these steps.
        self._step: Optional[Callable[..., Any]] = None

    @property
    def last(self) -> PushResult:
        """The result of the last exchange; waits for it."""
        return self._run.last

    def __enter__(self: "_Steps") -> "_Steps":
        if not wait(self._worker.begin_local_steps()):
            self._run._work = None
        if self._run.settings.lands_apart:
            self._memory.lie_in(self._run._views(self._worker.local_weights()))
        self._fetch()
        self._run._stepped_by = self._name
        self._step = self._optimizer.step
        # A method of the optimizer's, as schedulers of the learning rate wrap the one that they find.
        step = types.MethodType(lambda _, *words, **named: self._counted_step(*words, **named),
                                self._optimizer)
        setattr(self._optimizer, "step", step)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._step is not None
        setattr(self._optimizer, "step", self._step)
        self._run._stepped_by = ""
        self._worker.end_local_steps()
        if self._run.settings.lands_apart and not self._run.settings.keeps_weights:
            self._run._work = None  # Given up if fragments of its push have left; else the next fetch has it.

    def _gradients(self) -> list[torch.Tensor]:
        """Returns the gradients of a mini-batch, if the algorithm pushes gradients: in the order of the
        run's tensors, an empty one for none. They are as the step is to use them."""
        return []

    # The steps.

    def _counted_step(self, closure: Optional[Callable[[], Any]] = None, **named: Any) -> Any:
        assert self._step is not None
        if self._work is None:
            raise RunFinished("no work is left in this run")
        self._memory.check()
        if self._run._work is not self._work:  # Another was skipped.
            self._begin()
        if self._taken == 0:
            self._run._check_given()
        is_last = self._taken + 1 >= self._run.mini_batches_at_hand()
        is_wanted: list[bool] = []

        def heed() -> None:
            if not is_wanted:
                missing = self._memory.without_gradient()
                self._absent = self._absent & missing if self._taken else missing
                with torch.no_grad():
                    is_wanted.append(self._on_gradients(is_last))

        def computed() -> Any:
            assert closure is not None
            value = closure()
            heed()
            return value

        if closure is None:
            heed()
            value = self._step(**named)
        else:
            value = self._step(computed, **named)
        self._taken += 1
        self._exchange_weights()
        if is_last:
            self._push(all(is_wanted))
        return value

    def _on_gradients(self, is_last: bool) -> bool:
        """Tells of the gradients of a mini-batch, before the step. Returns whether the push is wanted."""
        if is_last and self._run.settings.keeps_weights:
            self._memory.store()
            if not self._run._fetch_center():
                return False
            self._memory.load()
        gradients = self._gradients()
        self._worker.on_gradient([gradient.data_ptr() for gradient in gradients])
        del gradients  # They had to live as long as the call.
        return True

    def _exchange_weights(self) -> None:
        if self._worker.has_to_exchange():
            self._memory.store()
            wait(self._worker.exchange_weights())
            self._memory.load()

    @torch.no_grad()
    def _push(self, is_wanted: bool) -> None:
        if is_wanted:
            if not self._run.settings.keeps_weights:  # These were exchanged before the step.
                self._memory.store()
            self._run._begin_push(None, None, None, absent=self._absent, stepped_by=self._name)
        self._fetch(is_pushed=is_wanted)  # Now, as nobody tells of the next forward pass.

    @torch.no_grad()
    def _fetch(self, *, is_pushed: bool = False) -> None:
        if not self._run.fetch():
            self._work = None
            self._run.finish()
            return
        if is_pushed and self._run.last.outcome == "NONFINITE":
            self._reset_state()
        self._begin()

    @torch.no_grad()
    def _begin(self) -> None:
        """Begins the steps for the work at hand."""
        self._work = self._run._work
        self._taken = 0
        self._absent = set()
        self._exchange_weights()

    def _reset_state(self) -> None:
        """Gives the optimizer the state that it came with: its own may be as little finite as the weights."""
        groups = self._optimizer.state_dict()["param_groups"]  # A scheduler may have changed them.
        self._optimizer.load_state_dict({**self._fresh, "param_groups": groups})


_Steps = TypeVar("_Steps", bound=_CountedSteps)


class LocalSteps(_CountedSteps):
    """Steps of an optimizer of your own on this worker's weights; what they did is pushed after each
    `steps` of them, or part by part in between (worker.fragments). run.yaml says by worker.algorithm,
    local_sgd or diloco, what the servers make of it, and by worker.steps how many they are.

        with slipstream.LocalSteps(run, model, optimizer):
            for positions in run.batches():
                optimizer.zero_grad()
                criterion(model(x[positions]), y[positions]).backward()
                optimizer.step()              # the last of `steps` exchanges weights, too

    The state of the optimizer stays this worker's. Inside the block, `optimizer.step` has an effect
    on the run, so each call stands for one mini-batch.
    """

    _name = "LocalSteps"

    def __init__(self, run: Run, model: torch.nn.Module, optimizer: torch.optim.Optimizer, *,
                 sync_every: Optional[int] = None) -> None:
        super().__init__(run, model, optimizer)
        if sync_every not in (None, run.settings.steps):
            raise Refused(f"sync_every={sync_every}, and run.yaml has worker.steps: "
                          f"{run.settings.steps}; all workers take as many")


def _clip_values(parameters: list[torch.nn.Parameter], bound: float) -> None:
    """Clips gradients as the worker in C++ does: values that are not finite stay, so that the step is
    left out."""
    for parameter in parameters:
        gradient = parameter.grad
        if gradient is not None:
            gradient.copy_(torch.where(gradient.isfinite(), gradient.clamp(-bound, bound), gradient))


class Downpour(_CountedSteps):
    """Steps of an optimizer of your own on this worker's weights, and the sum of their gradients for
    the servers' optimizer (worker.outer) after each worker.push_every of them. For worker.algorithm
    downpour.

        with slipstream.Downpour(run, model, optimizer):
            for positions in run.batches():
                optimizer.zero_grad()
                criterion(model(x[positions]), y[positions]).backward()
                optimizer.step()              # the last of `push_every` pushes, too

    The next steps start from the servers' weights; with worker.fetch_every, only those after so many
    mini-batches do, and the others go on from this worker's. optimizer.clip_value and clip_norm of
    run.yaml clip the gradients before each step. Inside the block, `optimizer.step` has an effect on
    the run, so each call stands for one mini-batch.
    """

    _name = "Downpour"

    def _gradients(self) -> list[torch.Tensor]:
        settings, parameters = self._run.settings, list(self._memory.trained.values())
        if settings.clip_value > 0:
            _clip_values(parameters, settings.clip_value)
        if settings.clip_norm > 0:
            clip_grad_norm_(parameters, settings.clip_norm)
        return self._memory.gradients()


class EASGD(_CountedSteps):
    """Elastic averaging: steps of an optimizer of your own on weights that this worker keeps. After
    each worker.push_every of them, these weights and the servers', the center, are drawn towards each
    other by worker.elasticity / workers of their distance. For worker.algorithm easgd, and for eamsgd,
    whose optimizer has Nesterov's momentum: torch.optim.SGD(…, momentum=0.9, nesterov=True).

        with slipstream.EASGD(run, model, optimizer):
            for positions in run.batches():
                optimizer.zero_grad()
                criterion(model(x[positions]), y[positions]).backward()
                optimizer.step()              # the last of `push_every` exchanges, too

    After the run the model has the center. Inside the block, `optimizer.step` has an effect on the
    run, so each call stands for one mini-batch.
    """

    _name = "EASGD"


DiLoCo = LocalSteps
LocalSGD = LocalSteps
