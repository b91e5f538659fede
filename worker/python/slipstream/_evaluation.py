"""What a program's own function says of weights that it measured."""
from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional

from ._arrays import as_loaded
from ._errors import Refused
from ._pending import wait

if TYPE_CHECKING:
    from ._run import Run

# Measures the weights in a mapping of names to arrays, and returns what `measures_of` takes.
EvaluationFunction = Callable[[Mapping[str, Any]], Any]


def evaluate(run: Run) -> None:
    """Makes the evaluation that a run has ordered from this worker, which has a function for it."""
    assert run._evaluation is not None
    directory = os.environ.get("SLIPSTREAM_RUN_DIR", "")
    try:
        weights = as_loaded(run._views(wait(run._worker.begin_evaluation())))
        state = run._state_with(weights)
        run._is_evaluating = True
        measures = measures_by(run._evaluation, state)
        wait(run._worker.end_evaluation(*measures, directory, run._beside(state, weights)))
    except Exception as error:
        run._go(f"evaluation: {type(error).__name__}: {error}")
        raise
    finally:
        run._is_evaluating = False


def measures_by(function: EvaluationFunction, weights: Mapping[str, Any]) -> tuple[float, Optional[float], int]:
    """Calls an evaluation function, with PyTorch's gradients on, whoever waits. Returns what
    `measures_of` does."""
    torch = sys.modules.get("torch")
    with contextlib.nullcontext() if torch is None else torch.enable_grad():
        return measures_of(function(weights))


def measures_of(result: Any) -> tuple[float, Optional[float], int]:
    """Returns the loss, the accuracy (None if it is unknown) and the number of examples (0 if it is
    unknown) that an evaluation function has returned: a loss, or a mapping."""
    measures = result if isinstance(result, Mapping) else {"loss": result}
    odd = sorted(set(measures) - {"loss", "accuracy", "examples"})
    if odd or measures.get("loss") is None:
        what = f"{odd[0]!r}" if odd else "no loss"
        raise Refused(f"the evaluation function returned {what}: it returns the loss, or a mapping "
                      'with "loss" and, if they are known, "accuracy" and "examples"')
    accuracy = measures.get("accuracy")
    examples = int(measures.get("examples") or 0)
    if accuracy is not None and not 0 <= accuracy <= 1:
        raise Refused(f"the evaluation function returned the accuracy {accuracy}: it is a share of the "
                      "examples, from 0 to 1")
    if examples < 0:
        raise Refused(f"the evaluation function returned {examples} examples")
    return float(measures["loss"]), None if accuracy is None else float(accuracy), examples
