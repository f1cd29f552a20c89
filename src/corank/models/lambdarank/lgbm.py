"""`LGBMRanker`: a script for LightGBM's class of that name runs with another import."""

from __future__ import annotations

from typing import Any

from corank.errors import InputError
from corank.models.lambdarank.lambdarank import LambdaRank
from corank.parameters import rules_of

# their values that change nothing here
_SAME = {"objective": ("lambdarank",), "boosting_type": ("gbdt",), "importance_type": ("gain",)}
_METRICS = {"ndcg": None, "lambdarank": None, "map": "AP"}


def LGBMRanker(
    n_estimators: int | None = None, *, metric: str | None = None, verbose: int = -1, **parameters: Any
) -> LambdaRank:
    """
    Return `LambdaRank` with boosted trees, from parameters of `lightgbm.LGBMRanker`.

    Parameters that are not given have corank's defaults: trees for few judgements. Parameters of trees, such as
    `min_child_samples`, become `tree_params`. ``fit`` takes `group`, `eval_set`, `eval_group`, `eval_at`, `callbacks`.

    Parameters
    ----------
    n_estimators : int, optional
        Number of trees.
    metric : str, optional
        Metric on `eval_set`: "ndcg", "map", or a name of corank's.
    verbose : int
        Above 0, `fit` shows a progress bar.
    **parameters
        `learning_rate`, `num_leaves`, `n_jobs`, `random_state`, and LightGBM's parameters of trees.

    Returns
    -------
    LambdaRank
        The ranker.

    Examples
    --------
    >>> from corank.models import LGBMRanker
    >>> LGBMRanker(50, learning_rate=0.1, min_child_samples=5).tree_params
    {'min_child_samples': 5}
    """
    for name, allowed in _SAME.items():
        if (value := parameters.pop(name, allowed[0])) not in allowed:
            raise InputError(f"{name} is {value!r}; corank's trees have {name}={allowed[0]!r}, so leave it out.")
    if "scorer" in parameters:
        raise InputError("scorer was given, but LGBMRanker has trees; pass it to LambdaRank.")
    own = {name: parameters.pop(name) for name in set(rules_of(LambdaRank)) & set(parameters)}
    return LambdaRank(
        scorer="trees", n_estimators=n_estimators, metric=_METRICS.get(str(metric), metric),
        verbose=bool(verbose and verbose > 0), tree_params=parameters or None, **own,
    )  # fmt: skip
