"""A worker's part in a run."""
from __future__ import annotations

import array
import logging
import os
import types
from typing import TYPE_CHECKING, Any, Collection, Iterable, Iterator, Mapping, Optional, Sequence, TypeVar, Union

from . import _core, _models
from ._arrays import as_loaded, clear, copy, numpy, views_of
from ._errors import NotReady, Refused, RunFinished
from ._evaluation import EvaluationFunction, evaluate
from ._pending import Pending, pass_on_log_lines, wait
from ._results import Pulled, PushResult, result_of
from ._settings import Settings

if TYPE_CHECKING:
    from ._torch import SharedModule

T = TypeVar("T")

_logger = logging.getLogger("slipstream")


class Run:
    """This process's part in a run, as a worker. `connect` makes it.

    Use it as a context manager: leaving the block leaves the run. Inside, the model is synchronized
    once, and then weights are fetched and values pushed in turn. `Optimizer`, `LocalSteps`,
    `Downpour` and `EASGD` do that for a PyTorch model; `fetch` and `push` are for everything else.

    One thread at a time may use it. Every wait ends with Ctrl-C.
    """

    def __init__(self, worker: _core.Worker) -> None:
        self._worker = worker
        self._settings: Optional[Settings] = None
        self._tensors: list[tuple[str, tuple[int, ...]]] = []
        self._work: Optional[list[tuple[int, int]]] = None
        self._examples = 0  # Of the mini-batches that were given out for the work at hand.
        self._is_pushed = False  # A push was begun whose result nobody has taken.
        self._last: Optional[PushResult] = None
        self._is_over = False
        self._is_finished = False
        self._published = 0
        self._evaluation: Optional[EvaluationFunction] = None
        self._has_center = False  # It was fetched for the work at hand.
        self._module: Optional["SharedModule"] = None  # What was synchronized, if it is a module.
        self._given: Optional[list[tuple[int, int]]] = None  # The work that `batches` gives out.
        self._has_begun_step = False  # Since the mini-batch was given out.
        self._stepped_by = ""  # The class inside whose `with` block the program is.
        self._is_evaluating = False
        self._has_left = False
        self._process = os.getpid()

    # What the run is.

    @property
    def settings(self) -> Settings:
        """The run's settings."""
        if self._settings is None:
            facts = self._worker.settings()
            facts["servers"] = tuple(facts["servers"])
            self._settings = Settings(**facts)
        return self._settings

    @property
    def worker(self) -> int:
        """This worker's id, in status and logs."""
        return self._worker.identity()[0]

    @property
    def finished(self) -> bool:
        """Whether the run is over, and the weights are the final ones."""
        return self._is_finished

    # The model.

    def synchronize(self, model: Any, *, examples: int = 0) -> None:
        """Agrees with the other workers on the model, and takes the run's weights.

        model:    a torch.nn.Module, whose parameters that need gradients take part, or a mapping of
                  names to arrays of 32-bit floats (numpy, or the buffer protocol). The weights of
                  the worker that comes first count; all others get them.
        examples: the number of examples in the training set, the same for all workers; needed where
                  the servers hand out work and run.yaml has no data.examples.

        A module's parameters then lie in this worker's memory for the run, so that weights arrive
        where forward reads them; under easgd and eamsgd and with worker.fragments, they do so once the
        local steps begin. Parameters on a GPU are copied.
        Arrays are filled with the run's weights once, and `weights` has the later ones. Parameters
        that need no gradients must be equal for all workers. Buffers, such as BatchNorm's means, are
        not shared: each worker has its own.
        Raises Refused, naming the first difference, if other workers have another model.
        """
        if not self.settings.own_work and examples < 0:
            raise Refused(f"examples={examples}: a training set has at least one")
        tensors = _models.tensors_of(model)
        first = _models.flat_copy(tensors)
        shapes = [(name, list(shape)) for name, shape, _ in tensors]
        wait(self._worker.synchronize(shapes, 0 if self.settings.own_work else examples, first,
                                      _models.frozen_digests(model)))
        self._tensors = [(name, tuple(shape)) for name, shape, _ in tensors]
        _models.adopt(model, self)

    @property
    def weights(self) -> Mapping[str, Any]:
        """The weights by name: views of the memory that `fetch` fills. numpy arrays where numpy is
        installed, else memoryviews, float32, in the tensors' shapes."""
        return self._views(self._worker.weights())

    @property
    def values(self) -> Mapping[str, Any]:
        """The memory of the values to push, by name, as `weights`."""
        return self._views(self._worker.values())

    def _views(self, arena: _core.Arena) -> dict[str, Any]:
        if not self._tensors:
            raise NotReady("the model is not synchronized yet")
        return views_of(arena, self._tensors)

    # Steps.

    def fetch(self) -> bool:
        """Waits for the answers to the last push, and for weights to compute from; `weights` then
        has them. Returns False if no work is left: this worker's loop is over. Without a push in
        between, it returns at once. If this worker is to measure the weights, it does so first."""
        if self._work is not None:
            return True
        if self._is_over:
            return False
        self._check_evaluation()
        work = wait(self._worker.next())
        if work is not None and self.settings.measured and self._worker.is_ordered():
            evaluate(self)
            work = wait(self._worker.next())  # Brings newer weights.
        self._work = work
        self._take_result()
        self._has_center = False
        self._examples = 0
        self._is_over = self._work is None
        self._tell_of_weights()
        return not self._is_over

    def fetch_center(self) -> bool:
        """Fetches the servers' newest weights, the center, to `weights`: just before a push, under
        easgd and eamsgd, where each worker keeps weights of its own. Returns False if the push is not
        wanted any more; go on with `fetch`."""
        if not self.settings.keeps_weights:
            raise Refused(f"worker.algorithm is {self.settings.algorithm}: there is no center beside "
                          "the weights that `fetch` brings")
        self._check_caller()
        return self._fetch_center()

    def _fetch_center(self) -> bool:
        if self._work is None:
            raise NotReady("the center is fetched for a push, and there is no work at hand: call fetch")
        self._has_center = wait(self._worker.fetch_for_push())
        if not self._has_center:
            self._work = None
        return self._has_center

    def _await_weights(self) -> None:
        """Waits for weights to compute from, or at the end of the run for the final ones."""
        if self._work is None and not (self._is_finished or self._is_evaluating or self._has_left):
            if not self.fetch():
                self.finish()

    def _tell_of_weights(self) -> None:
        if self._module is not None:
            self._module.take(self._is_finished)

    def mini_batches_at_hand(self) -> int:
        """Returns how many mini-batches the next push stands for; 0 before the fetch."""
        return 0 if self._work is None else sum(count for _, count in self._work)

    def push(self, values: Optional[Mapping[str, Any]] = None, *, examples: Optional[int] = None,
             loss: Optional[float] = None) -> Pending[PushResult]:
        """Pushes values that were computed from the weights of the last `fetch`. What they mean
        depends on the run's worker.algorithm (`settings.algorithm`):

        gradient: the mean gradient of the mini-batch.
        local_sgd, diloco, fedbuff: `weights` as they were fetched, less those that local steps have
                  led to, one step for each of the `mini_batches_at_hand`.
        downpour: the sum of the mean gradients of these mini-batches, each clipped by clip_value and
                  clip_norm of `settings`. Local steps change `weights` in place. With fetch_every
                  above push_every, not every `fetch` brings others; the steps then go on from these.
        easgd, eamsgd: e = moving_rate * (weights - x), for weights x of the worker's own, in memory of
                  its own. They start as a copy of the first `weights`. When the last gradient of the
                  mini-batches is computed, call `fetch_center`, make e and x += e, and take the step.
                  The next `fetch` leaves in `values` what had no effect, as a rule 0: x -= values.
                  After an outcome "NONFINITE", start again from `weights`.
        publish:  whole weights; call `publish`.

        values:   arrays of float32 by name, which are copied; none if `values` of the run has them.
                  None for a tensor says that there is no gradient for it, which is not 0: if no
                  push of the round has one, the rule leaves it and its state alone.
        examples: the number of examples of the mini-batches; by default those of the mini-batches
                  that `batches` gave out, or else training.batch_size.
        loss:     for status and logs.

        Returns at once. The result is there when all shards have answered; `fetch` waits for it, too.
        """
        self._begin_push(values, examples, loss)
        return Pending(self._worker.settle(), result_of)

    def exchange(self, values: Optional[Mapping[str, Any]] = None, *,
                 examples: Optional[int] = None, loss: Optional[float] = None) -> PushResult:
        """Pushes, and waits for the answer and for the next weights."""
        self._begin_push(values, examples, loss)
        self.fetch()
        assert self._last is not None
        return self._last

    def _check_caller(self, stepped_by: str = "") -> None:
        """Raises NotReady inside the `with` block of a class whose steps push, unless that calls."""
        if self._stepped_by != stepped_by:
            raise NotReady(f"inside `with {self._stepped_by}(...)` the optimizer's steps exchange with the "
                           "servers by themselves: leave the block first")

    def _check_given(self) -> None:
        if self._given is not None and self._work is not self._given:
            raise NotReady("this push would use up a mini-batch that run.batches() has not given out yet: push "
                           "once for each, or choose your own with training.work: own")

    def _begin_push(self, values: Optional[Mapping[str, Any]], examples: Optional[int],
                    loss: Optional[float], label: int = 0, absent: Collection[str] = (),
                    stepped_by: str = "") -> None:
        self._check_caller(stepped_by)
        if self._work is None:
            raise RunFinished("no work is left in this run") if self._is_over else NotReady(
                "a push follows a fetch, each time: there are no weights that it was computed from")
        self._check_given()
        if self.settings.keeps_weights and not self._has_center:
            raise NotReady("the values are relative to the servers' newest weights: call fetch_center "
                           "before each push")
        if values is not None:
            own = self.values
            if set(values) != set(own):
                odd = sorted(set(values) ^ set(own))[0]
                raise Refused(f"values: {odd!r} is missing, or is none of the model's tensors")
            absent = [name for name, array_of_name in values.items() if array_of_name is None]
            for name, array_of_name in values.items():
                if array_of_name is None:
                    clear(own[name], name)
                else:
                    copy(array_of_name, own[name], name)
        examples = self._examples_at_hand() if examples is None else examples
        most = self.mini_batches_at_hand() * self.settings.batch_size
        if not hasattr(examples, "__index__") or not 1 <= examples <= most:
            raise Refused(f"examples={examples!r}: a push of {self.mini_batches_at_hand()} "
                          f"mini-batch(es) stands for 1 to {most} examples (training.batch_size)")
        places = [place for place, (name, _) in enumerate(self._tensors) if name in absent] if absent else []
        self._worker.push(int(examples), None if loss is None else float(loss), label, places)
        self._is_pushed = True
        self._work = None

    def skip(self) -> None:
        """Leaves out the work of the last `fetch`: nothing is pushed for it, and nobody waits for it.
        Too many in a row (training.nonfinite_max) raise an Error."""
        if self._work is None:
            raise NotReady("there is no work at hand to leave out")
        self._work = None
        wait(self._worker.skip())

    def _examples_at_hand(self) -> int:
        return self._examples or self.mini_batches_at_hand() * self.settings.batch_size

    def _begin_early(self) -> None:
        """Begins the next push, so that `_release` may let parts of it go."""
        self._worker.begin_push(self._examples_at_hand())

    def _release(self, begin: int) -> None:
        """Says that the values are final from this one on, in the order of the tensors."""
        self._worker.release(begin)

    def _settle(self) -> PushResult:
        """Takes over the result of the last push, waiting for it if need be."""
        if self._is_pushed:
            self._last = result_of(wait(self._worker.settle()))
            self._is_pushed = False
        if self._last is None:
            raise NotReady("nothing was pushed yet")
        return self._last

    def _take_result(self) -> None:
        """Takes over the result of the last push, whose answers have all come."""
        if self._is_pushed:
            self._last = result_of(self._worker.result())
            self._is_pushed = False

    @property
    def last(self) -> PushResult:
        """The result of the last push; waits for it. A push whose values are not finite is left out,
        with the outcome "NONFINITE"."""
        return self._settle()

    def batches(self) -> Iterator[Sequence[int]]:
        """Yields the mini-batches that the servers hand out to this worker, as positions in the
        training set, until the run is over. In every epoch each example is handed out once.

        Between two of them, the loop has to push; the steps of `Optimizer`, `LocalSteps`, `Downpour`
        and `EASGD` do. A mini-batch after whose `zero_grad` no step was taken, as GradScaler leaves
        out the first ones, is skipped (see `skip`). At the end the final weights are fetched.
        """
        if self.settings.own_work:
            raise Refused("training.work is own: this run's workers choose their examples; iterate "
                          "over run.steps(your_loader)")
        while self.fetch():
            assert self._work is not None
            self._given = work = self._work
            self._examples = 0
            for first, count in work:
                for batch in range(first, first + count):
                    positions = self._positions(batch)
                    self._examples += len(positions)
                    self._has_begun_step = False
                    yield positions
            if self._work is work and self._has_begun_step:
                self.skip()
            elif self._work is work:
                raise NotReady("the last mini-batch was not pushed: call the optimizer's step, run.push or "
                               "run.skip before the next one. What loads examples ahead, as a DataLoader "
                               "with num_workers does, asks for it too early")
        self.finish()

    def _positions(self, batch: int) -> Sequence[int]:
        data = self._worker.examples_of(batch)
        if numpy is not None:
            listed: list[int] = numpy.frombuffer(data, dtype=numpy.uint32).tolist()
            return listed
        return array.array("I", data)

    def steps(self, batches: Iterable[T]) -> Iterator[T]:
        """Yields from your own iterable, such as a DataLoader, as long as the run wants work from
        this worker. If the run ends first, the final weights are fetched, and `finished` is true.
        Raises Refused if there is no batch at all, as at the second pass of an iterator."""
        number = 0
        for number, batch in enumerate(batches, start=1):
            self._await_weights()
            if self._is_finished:
                return
            yield batch
        if number == 0 and not self._is_finished:
            raise Refused(f"{type(batches).__name__} gave no batch: it is empty (drop_last, and fewer examples "
                          "than a batch?), or an iterator that was used up: pass what can be iterated again")

    def pull(self, into: Optional[Mapping[str, Any]] = None) -> "Pulled":
        """Reads the newest weights, once the last push is answered. `weights` stay as they are.

        into: arrays of float32 by name to copy them to. By default they lie in memory that is used again
              once nothing refers to them, which spares the copy.
        """
        if into is not None and set(into) != {name for name, _ in self._tensors}:
            raise Refused("into: one array is needed for each of the model's tensors, by name")
        versions, memory = wait(self._worker.read())
        tensors = self._views(memory)
        if into is not None:
            for name, values in tensors.items():
                copy(values, into[name], name)
            tensors = dict(into)
        return Pulled(tuple(versions), tensors)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Reads the newest weights, once the last push is answered, and writes them to a safetensors
        file, whole or not at all. With a module, its other parameters and its buffers, as this worker
        has them, are in the file, too."""
        memory = wait(self._worker.read())[1]
        weights = as_loaded(self._views(memory))
        wait(self._worker.save(os.fspath(path), memory, self._beside(self._state_with(weights), weights)))

    def _state_with(self, weights: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the whole state of the model with these weights of the run's tensors."""
        return weights if self._module is None else _models.state_with(self._module.module, weights)

    def _beside(self, state: Mapping[str, Any], weights: Mapping[str, Any]) -> list[_models.StoredTensor]:
        return [] if self._module is None else _models.beside(state, weights)

    def publish(self, weights: Any, version: int) -> Pending[PushResult]:
        """Publishes whole weights, which a program has trained by itself: they are the run's next
        version, and readers (`subscribe`) take it. For runs with worker.algorithm publish.

        weights: a torch.nn.Module, or a mapping of names to arrays, as its state_dict() returns: of any
                 type whose values float32 holds, as bfloat16. The first call decides on the names and
                 the shapes for the run.
        version: your own number for it, such as a step; readers see it. It does not fall.

        Returns once the values are copied. The result is there when all servers have the version; the
        next call waits for it, too. Raises RunFinished once training was ended.
        """
        if not self.settings.publishes:
            raise Refused(f"worker.algorithm is {self.settings.algorithm}: whole weights are for runs "
                          "with publish")
        if not hasattr(version, "__index__") or not self._published <= version < 2**64:
            raise Refused(f"version={version!r}: a whole number is expected, not below that of the "
                          f"last call, {self._published}")
        tensors = _models.published(weights, is_first=not self._tensors)
        if not self._tensors:
            named = [(name, _models.shape_of(values), values) for name, values in tensors.items()]
            shapes = [(name, list(shape)) for name, shape, _ in named]
            wait(self._worker.synchronize(shapes, 0, _models.flat_copy(named), []))
            self._tensors = [(name, tuple(shape)) for name, shape, _ in named]
        if not self.fetch():
            raise RunFinished("training was ended, so that nothing more can be published")
        self._begin_push(tensors, 1, None, int(version))
        self._published = int(version)
        return Pending(self._worker.settle(), result_of)

    # Evaluation.

    def evaluate_by(self, function: EvaluationFunction) -> None:
        """Has `function` measure the weights whenever the servers order that from this worker: after
        epochs and at the end, as run.yaml's `evaluation` says. Where evaluation.by is workers, each
        worker needs a function before its first fetch, as any may be the one that is asked.

        The function is called inside fetch, finish and whatever calls these, on the same thread; this
        worker's training waits. It gets the weights as a mapping of names to arrays, which stay as
        they are: PyTorch's tensors if the program has imported it, else as in `pull`. Of a module, it
        has all that load_state_dict takes, with this worker's buffers. It returns the
        loss, or a mapping with "loss" and, if they are known, "accuracy" (a share from 0 to 1) and
        "examples" (their number). If it raises, the worker leaves the run with that failure. A model
        that trains must not be given these weights: its parameters are the run's.

        Another worker is asked, or the run fails, if the final weights take longer than
        cluster.start_timeout without a call of `measured`.

        The mapping is saved to the directory in SLIPSTREAM_RUN_DIR, which psctl run sets to its own.
        """
        if not self.settings.measured:
            _logger.warning("evaluate_by: nobody will call the function, and no model is saved, as "
                            "evaluation.by is nobody; set it to workers")
        self._evaluation = function

    def measured(self, examples: int) -> None:
        """Tells, inside an evaluation function, how many examples it has measured so far. A long one
        calls it now and then: as long as the number grows, the servers wait."""
        self._worker.on_measured(examples)

    def _check_evaluation(self) -> None:
        if self.settings.measured and self._evaluation is None:
            raise Refused("evaluation.by is workers, and this worker has no function that measures the "
                          "weights: call run.evaluate_by(function) before the first fetch, or set "
                          "evaluation.by to nobody")

    # The end.

    def stop(self) -> None:
        """Ends training for all workers. Each still pushes what it is at. Returns when the servers
        know it."""
        wait(self._worker.end_training())

    def finish(self) -> None:
        """Waits until the run is over, and fetches the final weights. `batches` and `steps` call it
        when no work is left. Before that, call `stop` first: others may wait for this worker's work."""
        if self._is_finished:
            return
        self._check_evaluation()
        if self._is_pushed and self._work is None:
            self.fetch()  # Perhaps no work is left after that push.
        while not wait(self._worker.finish()):
            evaluate(self)
        self._take_result()
        self._is_over = self._is_finished = True
        self._tell_of_weights()

    def leave(self, failure: str = "") -> None:
        """Leaves the run; the others go on. `failure` says why, for people. Without one, the last
        push is waited for."""
        try:
            if not failure and self._is_pushed:
                self._settle()
        except BaseException as error:
            failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._go(failure)

    def _go(self, failure: str) -> None:
        self._has_left = True
        self._worker.leave(failure)
        self._work = None
        pass_on_log_lines()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException],
                 _: Optional[types.TracebackType]) -> None:
        is_end = isinstance(error, RunFinished)
        is_exit = isinstance(error, SystemExit) and error.code in (None, 0)
        if error is None or is_end or is_exit:
            self.leave()
        else:
            self._go(f"{type(error).__name__}: {error}")

    def __del__(self) -> None:
        # As when a notebook's cell runs again: others would wait for this worker as long as it lives.
        if not self._has_left and os.getpid() == self._process:
            self._worker.leave("" if self._is_finished else "the program dropped its run without leaving it")
