"""Training a PyTorch module in a run."""
from __future__ import annotations

import weakref
from typing import Any, Callable, Iterable, Mapping, Optional

import torch

from ._arrays import plain_tensor
from ._errors import NotReady, Refused, RunFinished
from ._models import original, parameters_by_name, trained
from ._results import PushResult
from ._run import Run

# Fewer values than these are not worth a message of their own.
_EARLY_VALUES_MIN = 1 << 18

# What `torch.optim.Optimizer` has in its groups, and here the run's settings say.
_RATE_REMEDY = ("the servers apply the rule, with optimizer.learning_rate, optimizer.schedule and the other "
                "settings of run.yaml")


def _views(memory: Mapping[str, Any],
           parameters: Mapping[str, torch.nn.Parameter]) -> dict[str, torch.Tensor]:
    missing = set(parameters) ^ set(memory)
    if missing:
        raise Refused(f"{sorted(missing)[0]!r} is not in both the module and the model that was synchronized: "
                      "give that one; two models that train by rules of their own need two runs")
    return {name: torch.frombuffer(values, dtype=torch.float32).view(parameters[name].shape)
            for name, values in memory.items()}


def _listed(names: Iterable[str]) -> str:
    """Returns the first of the names, and how many more there are."""
    every = sorted(names)
    return ", ".join(every[:5]) + (f" and {len(every) - 5} more" if len(every) > 5 else "")


class _Arrival:
    """Has a module wait for the run's weights, before it computes or its state is read. A copy of the
    module, and one that is loaded from a file, waits for none."""

    def __init__(self, run: Optional[Run] = None) -> None:
        self._run = (lambda: None) if run is None else weakref.ref(run)

    def __call__(self, *_: Any, **__: Any) -> None:
        run = self._run()
        if run is not None:
            run._await_weights()

    def __deepcopy__(self, _: Any) -> "_Arrival":
        return _Arrival()

    def __reduce__(self) -> Any:
        return _Arrival, ()


class SharedModule:
    """A module whose parameters take part in a run, beside the run's memory of weights and of values
    to push.

    Parameters on the processor lie in the memory of the weights, so that these arrive where forward
    reads them. Others, and those that a program has moved or converted since, get copies. Where the
    servers' weights land apart from the worker's own, the parameters lie in memory of the program's
    until local steps begin (`lie_in`).
    """

    def __init__(self, run: Run, module: torch.nn.Module) -> None:
        self.module = original(module)
        self.trained: dict[str, torch.nn.Parameter] = trained(self.module)
        self.weights = _views(run.weights, self.trained)
        self.values = _views(run.values, self.trained)
        self._lands_apart = run.settings.lands_apart
        self._frozen = {name: parameter for name, parameter in parameters_by_name(self.module).items()
                        if not parameter.requires_grad}
        self._members = self._listed_members()
        self._hooks: list[Any] = []
        self._always_waits = False
        self._has_begun = False
        if self._lands_apart:
            self.load()
        else:
            self.lie_in(run.weights)

    def lie_in(self, weights: Mapping[str, Any]) -> None:
        """Has the parameters lie in this memory of weights from now on, and have their values."""
        self.weights = _views(weights, self.trained)
        # Tensors of their own: share_memory() and others move the memory of the module's.
        for name, values in _views(weights, self.trained).items():
            parameter = self.trained[name]
            is_alike = parameter.device.type == "cpu" and parameter.dtype == torch.float32
            if is_alike and parameter.is_contiguous():
                parameter.data = values
        self.load()

    def wait_before_use(self, run: Run, *, always: bool) -> None:
        """Has the module wait for the run's weights before it computes: the first time, or always, and
        then also before its state is read."""
        self._remove_hooks()
        self._always_waits = always
        arrival = _Arrival(run)
        self._hooks.append(self.module.register_forward_pre_hook(arrival))
        if always:  # The tensors of a state are the module's own, so it is early enough.
            self._hooks.append(self.module._register_state_dict_hook(arrival))

    def _remove_hooks(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def take(self, is_final: bool) -> None:
        """Gives the module the weights that have come to the run's memory. Where they land apart from
        the worker's own, it gets none but the final ones."""
        if is_final or not self._always_waits:
            self._remove_hooks()
        if not is_final and self._lands_apart:
            return
        self.load()
        # So torch notices if backward comes to a graph whose weights are gone. The first weights are
        # those that the module has.
        if self._has_begun and hasattr(torch.autograd.graph, "increment_version"):
            for parameter in self.trained.values():
                torch.autograd.graph.increment_version(parameter)
        self._has_begun = True

    @torch.no_grad()
    def load(self) -> None:
        """Copies weights from the run's memory to parameters that lie elsewhere."""
        for name, parameter in self._elsewhere():
            parameter.data.copy_(self.weights[name])

    @torch.no_grad()
    def store(self) -> None:
        """Copies parameters that lie elsewhere to the run's memory of weights."""
        for name, parameter in self._elsewhere():
            self.weights[name].copy_(parameter.data)

    def _elsewhere(self) -> list[tuple[str, torch.nn.Parameter]]:
        return [(name, parameter) for name, parameter in self.trained.items()
                if parameter.data_ptr() != self.weights[name].data_ptr()]

    def _listed_members(self) -> list[int]:
        return [id(member) for module in self.module.modules()
                for members in (module._parameters, module._modules) for member in members.values()]

    def check(self) -> None:
        """Raises Refused, with their names, if parameters that want training are not in the run."""
        if self._listed_members() != self._members:
            found = trained(self.module)
            known = {**self._frozen, **self.trained}
            strange = [name for name, parameter in found.items() if known.get(name) is not parameter]
            if strange:
                raise Refused(f"{_listed(strange)}: added or replaced since synchronize, so not part of "
                              "the run: change the module before run.synchronize")
            gone = set(self.trained) - set(parameters_by_name(self.module))
            if gone:
                raise Refused(f"{_listed(gone)}: gone from the module since synchronize (by weight_norm or "
                              "a parametrization, perhaps): change the module before run.synchronize")
            self._members = self._listed_members()
        thawed = [name for name, parameter in self._frozen.items() if parameter.requires_grad]
        if thawed:
            raise Refused(f"{_listed(thawed)}: needed no gradients at synchronize, and does now: call "
                          "run.synchronize first, and freeze what is to be thawed later after it")

    def gradients(self) -> list[torch.Tensor]:
        """Returns the gradients in the order of the run's tensors, on the processor, one value after
        another; an empty one where there is none. Only those that are not so already are copied."""
        return [_plain_gradient(self.trained[name].grad, weights.numel(), name)
                for name, weights in self.weights.items()]

    def without_gradient(self) -> set[str]:
        """Returns the parameters that have none, as they are frozen or forward did not use them."""
        return {name for name, parameter in self.trained.items() if parameter.grad is None}


def shared_module(run: Run, module: torch.nn.Module) -> SharedModule:
    """Returns what the run shares of the module. It is made if other arrays, or another module with
    the same parameters, were synchronized."""
    shared = run._module
    if shared is None or shared.module is not original(module):
        run._module = shared = SharedModule(run, module)
    return shared


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


def _plain_gradient(gradient: Optional[torch.Tensor], size: int, name: str) -> torch.Tensor:
    if gradient is None:
        return torch.empty(0)
    _check_real(gradient, name)
    if gradient.numel() != size:
        raise Refused(f"the gradient of {name} has {gradient.numel()} values, and the run's tensor {size}")
    plain: torch.Tensor = plain_tensor(gradient)
    return plain.to("cpu", torch.float32).contiguous()


def _check_real(gradient: torch.Tensor, name: str) -> None:
    if gradient.is_complex():
        raise Refused(f"the gradient of {name} is complex; a run's tensors are float32")


@torch.no_grad()
def take_gradient(target: torch.Tensor, gradient: Optional[torch.Tensor], name: str) -> None:
    """Copies a gradient to the memory of the values to push."""
    if gradient is None:
        target.zero_()
    else:
        _check_real(gradient, name)
        target.copy_(gradient.to_dense() if gradient.layout != torch.strided else gradient)


class _EarlyGradients:
    """Lets gradients go while backward computes the others, which it does from the last parameter to
    the first, as a rule."""

    def __init__(self, run: Run, shared: SharedModule) -> None:
        self._run = weakref.ref(run)  # torch keeps the hooks with the parameters.
        self._names = list(shared.trained)
        self._shared = shared
        self._begins = [0]
        for name in self._names:
            self._begins.append(self._begins[-1] + shared.trained[name].numel())
        self._taken: dict[int, int] = {}  # The version of each gradient that was taken.
        self._released = self._begins[-1]
        self._next = len(self._names) - 1  # The last parameter that is not ready.
        self._is_open = False
        # torch drops the nodes that accumulate gradients, and the hooks with them, if nobody has them.
        self._kept = [self._watch(number, shared.trained[name])
                      for number, name in enumerate(self._names)]

    def _watch(self, number: int, parameter: torch.nn.Parameter) -> Any:
        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            return parameter.register_post_accumulate_grad_hook(lambda _: self._on_ready(number))
        node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        node.register_hook(lambda *_: self._on_ready(number))
        return node

    def begin(self) -> None:
        """Begins a step: there are no gradients, and backward comes."""
        self._taken.clear()
        self._released = self._begins[-1]
        self._next = len(self._names) - 1
        self._is_open = True
        run = self._run()
        assert run is not None
        run._begin_early()

    def finish(self) -> None:
        """Takes the gradients that backward did not compute. Raises NotReady if one was changed after
        it had been taken."""
        self._is_open = False
        for number, name in enumerate(self._names):
            gradient = self._shared.trained[name].grad
            if number not in self._taken:
                take_gradient(self._shared.values[name], gradient, name)
            elif gradient is None or gradient._version != self._taken[number]:
                raise NotReady(f"the gradient of {name} was changed after backward, by clipping perhaps, "
                               "and with overlap=True it was sent before: set optimizer.clip_norm in "
                               "run.yaml, or leave out overlap=True")

    def _on_ready(self, number: int) -> None:
        run = self._run()
        if not self._is_open or run is None:
            return
        name = self._names[number]
        if number in self._taken:
            raise NotReady(f"the gradient of {name} is being sent, and backward has added to it: with "
                           "overlap=True a step has one backward pass")
        gradient = self._shared.trained[name].grad
        assert gradient is not None
        take_gradient(self._shared.values[name], gradient, name)
        self._taken[number] = gradient._version
        while self._next in self._taken:
            self._next -= 1
        begin = self._begins[self._next + 1]
        if self._released - begin >= _EARLY_VALUES_MIN:
            run._release(begin)
            self._released = begin


class _Group(dict[str, Any]):
    """A group of parameters, which has no rate: it says so instead of ignoring one."""

    def __missing__(self, key: str) -> Any:
        raise Refused(f"param_groups has no {key!r}: {_RATE_REMEDY}")

    def __setitem__(self, key: str, value: Any) -> None:
        if key != "params":
            raise Refused(f"param_groups[…][{key!r}] would have no effect: {_RATE_REMEDY}")
        super().__setitem__(key, value)

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *words: Any, **named: Any) -> None:
        for key, value in dict(*words, **named).items():
            self[key] = value


class Optimizer(torch.optim.Optimizer):
    """The servers' optimizer, for a loop like any other:

        opt = slipstream.Optimizer(run, model)
        for positions in run.batches():
            opt.zero_grad()
            loss = criterion(model(x[positions]), y[positions])
            loss.backward()
            opt.step(loss=loss.item())        # pushes the gradients, and waits for new weights

    run.yaml says which rule the servers apply, and with what learning rate; `param_groups` have
    none, and schedulers of torch.optim are refused. The run's worker.algorithm has to be gradient.

    After `step` the module has the newest weights. A parameter whose `grad` is None is left alone, as
    in torch, unless another worker has a gradient for it in the same round.

    overlap: shortens the step of a large model. Gradients are sent while backward computes the
             others, and `step` returns before the new weights are there; the next forward,
             `zero_grad` or `state_dict` waits for them. Until then parameters must not be read in
             any other way, as an average of weights (EMA) does. A step has one backward pass, and
             gradients must not be changed between `backward` and `step`. On processors alone.
    """

    def __init__(self, run: Run, model: torch.nn.Module, *, overlap: bool = False,
                 **settings: Any) -> None:
        if settings:
            raise Refused(f"slipstream.Optimizer takes no {sorted(settings)[0]}: {_RATE_REMEDY}")
        check_fits(run, "Optimizer")
        self._run = run
        self._shared = shared_module(run, model)
        super().__init__(list(self._shared.trained.values()), {})
        self.param_groups = [_Group(group) for group in self.param_groups]
        if overlap and any(parameter.device.type != "cpu" for parameter in self._shared.trained.values()):
            raise Refused("overlap=True: a parameter is on a GPU, whose gradients are copied in step")
        self._early = _EarlyGradients(run, self._shared) if overlap else None
        self._shared.wait_before_use(run, always=overlap)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Refused: the parameters of a run are those that were synchronized."""
        if self.param_groups:
            raise Refused("add_param_group: the parameters of a run are those that run.synchronize "
                          f"was given, and {_RATE_REMEDY}")
        super().add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """Returns a state without content: the servers have it, and save it by durability.level."""
        return {"state": {}, "param_groups": []}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Takes what `state_dict` of this class returned, and refuses the state of another optimizer."""
        if state_dict.get("state") or state_dict.get("param_groups"):
            raise Refused("load_state_dict: the state of the rule is the servers', which go on from "
                          "durability.directory, or begin with training.start_from")

    @property
    def last(self) -> PushResult:
        """The result of the last step; waits for it."""
        return self._run.last

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients. With overlap=True, waits for the weights of the next step.

        If no work is left, the model has the final weights, and a further `step` raises RunFinished.
        """
        self._run._await_weights()
        self._run._has_begun_step = True
        super().zero_grad(set_to_none)
        if self._early is not None and not self._run.finished:
            self._early.begin()

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None, *,
             examples: Optional[int] = None, loss: Optional[float] = None) -> Any:
        """Pushes the gradients, which are means over the mini-batch, and waits for the answers and for
        the newest weights, which the module has then. With overlap=True it returns at once.

        closure:  as in torch; computes the gradients, and may return the loss.
        examples: as in Run.push. loss: for status and logs; if it is not finite it is left out.
        Raises RunFinished if the run was over before.
        """
        value = None
        if closure is not None:
            with torch.enable_grad():
                value = closure()
            if loss is None and value is not None:
                loss = float(value)
        run = self._run
        run._await_weights()  # Of the first step of a loop without zero_grad and forward.
        if run.finished:
            raise RunFinished("the run is over, and the module has the final weights: end the loop by "
                              "run.finished, or catch slipstream.RunFinished around it")
        self._shared.check()
        if self._early is not None:
            self._early.finish()
        else:
            for name, parameter in self._shared.trained.items():
                take_gradient(self._shared.values[name], parameter.grad, name)
        run._begin_push(None, examples, loss, absent=self._shared.without_gradient())
        if self._early is None:
            run._await_weights()
        return value
