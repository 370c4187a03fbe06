"""What `fit` and `evaluate` refuse at the call: in the run's thread it would be met later, and in other words."""

from __future__ import annotations

from lab.config import STATE
from lab.errors import ArgumentError, LabError, RunError
from lab.nn import Module
from lab.optim import Optimizer
from lab.words import shown

OPTIMIZER = "optimizer=Adam(model.parameters(), learning_rate=1e-3), from lab.optim"


def refuse_what_cannot_be_trained(model: object, loss: object, optimizer: object, name: object, on: object) -> None:
    """Refuse arguments of another kind, and those that do not belong together.

    Raises:
        ArgumentError: so it is.
        RunError: gradients are switched off here.
    """
    arguments = _of_model(model, optimizer), _of_loss(loss), _of_optimizer(optimizer, model), _of_name(name), _of_on(on)
    for why in (*arguments, _of_mode()):
        if why is not None:
            raise why


def refuse_what_cannot_be_evaluated(model: object, loss: object) -> None:
    """The same for `evaluate`, which takes any function as a model.

    Raises:
        ArgumentError: so it is.
    """
    if not callable(model) or isinstance(model, type):
        hint = "mlp(64, 32, 10) from lab.nn makes one; so does a function of a tensor"
        raise ArgumentError("a model is a Module or a function", given=_named(model), hint=hint)
    if why := _of_loss(loss):
        raise why


def _of_model(model: object, optimizer: object) -> LabError | None:
    if isinstance(model, Module) or (callable(model) and not isinstance(model, type) and optimizer is not None):
        return None  # an optimiser knows the parameters of what is a function
    hint = "mlp(64, 32, 10) from lab.nn makes one; a function goes into the forward of a class of yours"
    return ArgumentError("fit trains a Module", given=_named(model), hint=hint)


def _of_loss(loss: object) -> LabError | None:
    if callable(loss) and not isinstance(loss, type):
        return None
    hint = "loss=lab.cross_entropy for classes, loss=lab.nn.mse for numbers"
    return ArgumentError("a loss is a function (prediction, targets) -> scalar tensor", given=_named(loss), hint=hint)


def _of_optimizer(optimizer: object, model: object) -> LabError | None:
    if optimizer is None:
        return None
    if not isinstance(optimizer, Optimizer):
        return ArgumentError("the optimizer is none", given=_named(optimizer), hint=OPTIMIZER)
    if not isinstance(model, Module) or {id(p) for p in model.parameters()} & {id(p) for p in optimizer.parameters}:
        return None
    given = f"{optimizer!r} of {len(optimizer.parameters)} parameters, none of them in this model"
    return ArgumentError("the optimizer was made for another model", given=given, hint=OPTIMIZER)


def _of_name(name: object) -> LabError | None:
    if isinstance(name, str):
        return None
    return ArgumentError("the name of a run is text", given=f"name={shown(name)}", hint='for example name="digits"')


def _of_on(on: object) -> LabError | None:
    if on is None or (callable(getattr(on, "job", None)) and not isinstance(on, type)):
        return None
    hint = "on=DataParallel(cluster) or on=Pipeline(cluster), from lab.parallel"
    return ArgumentError("on= says where to train", given=_named(on), hint=hint)


def _of_mode() -> LabError | None:
    if STATE.get().frozen < 0:
        return None
    hint = "start the run outside of `with lab.no_grad()`"
    return RunError("training needs gradients", given="fit was called where no_grad switches them off", hint=hint)


def _named(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value):
        return f"the function {getattr(value, '__name__', type(value).__name__)}"
    return repr(value)[:60]
