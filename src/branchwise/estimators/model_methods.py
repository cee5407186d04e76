"""Methods of models that fitted estimators have, too."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sklearn.utils.validation import check_is_fitted

from branchwise.model import Model

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def of_model(
    method: Callable[Concatenate[Any, _Parameters], _Result],
) -> Callable[Concatenate[Any, _Parameters], _Result]:
    """Return a method of estimators that calls this one of their ``model_``."""

    @wraps(method)
    def call(
        self: Any, *args: _Parameters.args, **kwargs: _Parameters.kwargs
    ) -> _Result:
        check_is_fitted(self)
        return method(self.model_, *args, **kwargs)

    return call  # type: ignore[return-value]  # of the name of self


class TreeMethods:
    """What estimators of single trees have from their :class:`~branchwise.Model`.

    Not ``steps``: an estimator that has it is taken for a pipeline.
    """

    rules = of_model(Model.rules)
    generalised_rules = of_model(Model.generalised_rules)
    explain = of_model(Model.explain)
    what_if = of_model(Model.what_if)
    shap = of_model(Model.shap)
    to_text = of_model(Model.to_text)
    to_html = of_model(Model.to_html)
    to_svg = of_model(Model.to_svg)
    to_dot = of_model(Model.to_dot)
    to_mermaid = of_model(Model.to_mermaid)
    export = of_model(Model.export)  # type: ignore[arg-type]
    to_bytes = of_model(Model.to_bytes)
    save = of_model(Model.save)
