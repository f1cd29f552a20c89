"""Describe fitted models: rankers and pipelines as scorers with named features, or one sentence why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from corank.base import Calibrated, ColumnMean, Landmarks, QueryScaler, Ranker, ResidualRanker
from corank.base.kernels import (
    ChiSquareKernel,
    CosineKernel,
    GaussianKernel,
    Kernel,
    LaplacianKernel,
    LinearKernel,
    PolynomialKernel,
    SumKernel,
)
from corank.base.kernels.basis import Basis
from corank.base.kernels.radial import ARDKernel
from corank.clicks.ranker import OnlineRanker
from corank.data.column_roles import column_name
from corank.deploy.export.folding import fold_columns
from corank.deploy.export.scorers import (
    CalibratedScorer,
    KernelScorer,
    LinearScorer,
    PerceptronScorer,
    Scorer,
    TreeScorer,
    add,
)
from corank.errors import InputError, suggest_names, warn
from corank.models.auto import AutoRanker
from corank.models.gp.process import ProcessMixture, ProcessRanker
from corank.models.lambdarank import LambdaRank
from corank.models.linear.base import LinearDescent
from corank.models.linear.ranksvm import RankSVM
from corank.models.pursuit import CoRankingPursuit, RankingPursuit
from corank.models.pursuit.path import sum_terms
from corank.models.rls import CoRankRLS, RankRLS

Floats = NDArray[np.float64]

# numbers of basis rows that an export may contain
_MAX_NUMBERS = 50_000_000


@dataclass(frozen=True, eq=False)
class Description:
    """
    A fitted model as a scorer of named features.

    names: Names of the features, in the order of the model's columns.
    scorer: The model as arrays, see `corank.deploy.export.scorers`; ``scorer.score(rows)`` computes its scores.
    is_named: Whether the model was fitted with column names; otherwise names are f1, f2, ...
    """

    names: tuple[str, ...]
    scorer: Scorer
    is_named: bool = True

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.names)

    def renamed(self, names: Mapping[str, str]) -> Description:
        """Rename features."""
        for old in names:
            if old not in self.names:
                raise InputError(f"the model has no feature {old!r}; {suggest_names(old, self.names)}.")
        new = tuple(names.get(name, name) for name in self.names)
        twice = next((name for i, name in enumerate(new) if name in new[:i]), None)
        if twice is not None:
            raise InputError(f"two features would be called {twice!r}; give each feature its own name.")
        return replace(self, names=new, is_named=True)


def describe(model: Any, *, calibrated: bool = True) -> Description:
    """
    Describe a fitted model as a scorer.

    >>> from corank import SPD
    >>> describe(SPD("squared", alpha=1e-9).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [0, 1, 3])).names
    ('f1', 'f2')
    """
    if isinstance(model, list | tuple):
        if not model:
            raise InputError("the list of models is empty; pass at least one fitted model.")
        each = [describe(item, calibrated=calibrated) for item in model]
        if any(item.names != each[0].names for item in each):
            raise InputError("the models were fitted on different columns; fit all of them on the same columns.")
        return replace(each[0], scorer=add([(1.0 / len(each), item.scorer) for item in each]))
    model = _best(model)
    first = model.steps[0][1] if isinstance(model, Pipeline) and model.steps else model
    scorer = _scorer(model, calibrated)
    n_features = getattr(first, "n_features_in_", None) or _n_features(model)
    given = getattr(model, "feature_names_in_", None)
    names = tuple(column_name(j, given) for j in range(n_features))
    return Description(names, scorer, given is not None)


def _best(model: Any) -> Any:
    return _best(model.best_estimator_) if hasattr(model, "best_estimator_") else model


def _scorer(model: Any, calibrated: bool, has_prior: bool = False) -> Scorer:
    model = _best(model)
    if isinstance(model, Pipeline):
        return _pipeline(model, calibrated)
    if not isinstance(model, Ranker):
        raise _unsupported(model)
    check_is_fitted(model)
    if model.has_prior_ and not has_prior:
        raise InputError(
            f"this {type(model).__name__} was fitted with a prior, whose scores an engine does not have; make the "
            "prior a feature and fit without prior."
        )
    if hasattr(model, "missing_means_") and not hasattr(model, "trees_"):
        raise InputError(
            f"this {type(model).__name__} was fitted with missing values, which it fills before scoring and an engine "
            "does not; fill them in X before fit, or export LambdaRank(scorer='trees')."
        )
    if isinstance(model, Calibrated):
        return _calibrated(model, calibrated)
    if isinstance(model, ResidualRanker):
        correction = _scorer(model.ranker_, calibrated, has_prior=True)
        return add([(model.slope_, _scorer(model.prior_ranker_, calibrated)), (1.0, correction)])
    if isinstance(model, AutoRanker):
        reads_ranks = getattr(model, "reads_ranks_", np.zeros(len(model.members_), dtype=bool))
        if reads_ranks.all():
            raise _by_query("an AutoRanker whose members all see ranks", "AutoRanker(deploy=...)")
        if reads_ranks.any():
            warn(
                "members of this AutoRanker that see ranks of columns inside the query are left out, as an engine does "
                "not compute them; fit again with deploy set to the target."
            )
        factors = zip(model.weights_ / model.scales_, model.members_, reads_ranks, strict=True)
        return add([(float(c), _scorer(member, calibrated, has_prior=True)) for c, member, by in factors if not by])
    if isinstance(model, ColumnMean):
        return _column_mean(model)
    if isinstance(model, LambdaRank):
        return _lambdarank(model)
    if isinstance(model, RankingPursuit):
        return _pursuit(model)
    if isinstance(model, CoRankRLS | CoRankingPursuit):
        bases = model.view_bases_
        coefs = model.view_coefs_ if isinstance(model, CoRankRLS) else [
            sum_terms(basis.numbers, model.terms_[:, v], model.term_coefs_[:, v]) for v, basis in enumerate(bases)
        ]  # fmt: skip
        return add([(1.0 / len(bases), _view(model, *view)) for view in zip(bases, coefs, strict=True)])
    if isinstance(model, ProcessRanker):
        return _process(model)
    if isinstance(model, LinearDescent | RankSVM | RankRLS | OnlineRanker):
        if hasattr(model, "basis_"):
            return _view(model, model.basis_, model.dual_coef_)
        return LinearScorer(_floats(model.coef_), float(getattr(model, "intercept_", 0.0)))
    raise _unsupported(model)


def _unsupported(model: Any) -> InputError:
    return InputError(
        f"a {type(model).__name__} cannot be exported; export a linear or kernel ranker, a pursuit or LambdaRank "
        "(trees, perceptron), alone, in a pipeline with column scaling, or in Calibrated."
    )


def _floats(values: Any) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _scale(model: Any, n_features: int) -> Floats:
    return _floats(getattr(model, "column_scale_", np.ones(n_features)))


def _calibrated(model: Calibrated, calibrated: bool) -> Scorer:
    inner = _scorer(model.ranker_, calibrated, has_prior=model.has_prior_)
    if not calibrated:
        return inner
    if hasattr(model, "levels_"):
        return CalibratedScorer(inner, _floats(model.scores_), _floats(model.levels_))
    return CalibratedScorer(
        inner, slope=float(model.slope_), offset=float(model.offset_), low=model.low_, high=model.high_
    )


def _column_mean(model: ColumnMean) -> Scorer:
    if hasattr(model, "scaler_"):
        raise _by_query(f"ColumnMean(method={model.method!r})", "ColumnMean(method=None)")
    weights = np.zeros(model.n_features_in_)
    np.add.at(weights, model.columns_, model.signs_ / len(model.signs_))
    return LinearScorer(weights)


def _by_query(step: str, instead: str) -> InputError:
    return InputError(
        f"{step} scales features by the other rows of a query, which an engine does not see; fit with {instead}, or "
        "store features that are already scaled."
    )


def _lambdarank(model: LambdaRank) -> Scorer:
    if hasattr(model, "trees_"):
        if model.trees_.groups is not None:
            raise InputError(
                "the trees split columns of categories into sets, which no target has; fit with "
                "tree_params={'categorical_feature': ''}, which splits one category at a time."
            )
        return TreeScorer(model.trees_)
    if hasattr(model, "layer_coefs_"):
        return PerceptronScorer(
            _scale(model, model.n_features_in_),
            -_floats(model.column_mean_),
            tuple(map(_floats, model.layer_coefs_)),
            tuple(map(_floats, model.layer_intercepts_)),
        )
    return LinearScorer(_floats(model.coef_), float(model.intercept_))


def _pursuit(model: RankingPursuit) -> Scorer:
    if hasattr(model, "basis_"):
        coefs = sum_terms(model.basis_.numbers, model.terms_, model.term_coefs_)
        parts: list[tuple[float, Scorer]] = [(1.0, _view(model, model.basis_, coefs))]
    else:
        weights = sum_terms(np.arange(model.n_features_in_), model.terms_, model.term_coefs_)
        parts = [(1.0, LinearScorer(_floats(weights)))]
    return add([*parts, (1.0, _constant(model, model.intercept_))])


def _process(model: ProcessRanker) -> Scorer:
    process = model.process_
    means = process._means() if isinstance(process, ProcessMixture) else [process]
    parts: list[tuple[float, Scorer]] = []
    for mean in means:
        assert mean.phi.basis is not None
        coefs = model._amplitude * (np.asarray(mean.phi.T) @ mean.mu)
        parts.append((1.0, _view(model, mean.phi.basis, coefs)))
    return add([*parts, (1.0, _constant(model, model._from_f(np.zeros(1))[0]))])


def _constant(model: Any, value: float) -> Scorer:
    return LinearScorer(np.zeros(_n_features(model)), float(value))


def _n_features(model: Any) -> int:
    result = getattr(model, "n_features_in_", None)
    if result is None:
        raise InputError(
            f"this {type(model).__name__} compares objects by a function, which no export contains; fit a model on "
            "columns of numbers."
        )
    return int(result)


def _view(model: Any, basis: Basis | None, coefs: Any) -> Scorer:
    """Return the scorer of basis rows, or of the weights of columns as given."""
    coefs = _floats(coefs)
    if basis is None:
        return LinearScorer(coefs)
    n = _n_features(model)
    columns = np.arange(n) if basis.view.columns is None else np.asarray(basis.view.columns)
    rows = basis.rows
    if np.prod(np.shape(rows), dtype=np.float64) > _MAX_NUMBERS:
        raise InputError(
            f"the model has {np.shape(rows)[0]} basis rows of {np.shape(rows)[1]} columns, too many for an export; fit "
            "with a smaller n_basis, or a linear kernel."
        )
    rows = rows.toarray() if sparse.issparse(rows) else rows
    return _expansion(basis.view.kernel, columns, _scale(model, n)[columns], rows, coefs, n)


def _expansion(kernel: Kernel, columns: Any, scale: Floats, rows: Any, coefs: Floats, n: int) -> Scorer:
    if isinstance(kernel, SumKernel):
        parts = kernel.columns or [None] * len(kernel.kernels)
        chosen = [np.arange(len(columns)) if part is None else np.array(part) for part in parts]
        terms = zip(kernel.kernels, kernel.weights, chosen, strict=True)
        return add(
            [(c, _expansion(item, columns[own], scale[own], rows[:, own], coefs, n)) for item, c, own in terms if c > 0]
        )
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.dtype.kind != "f" or kernel.is_precomputed:
        raise _no_formula(kernel)
    rows = _floats(rows)
    if isinstance(kernel, LinearKernel):
        weights = np.zeros(n)
        weights[columns] = scale * (rows.T @ coefs)
        return LinearScorer(weights)
    plain = KernelScorer("gaussian", np.asarray(columns, dtype=np.int64), scale, np.zeros(len(columns)), rows, coefs)
    if isinstance(kernel, ARDKernel):
        size = np.sqrt(_floats(kernel.gammas))
        return replace(plain, scale=scale * size, rows=rows * size)
    if isinstance(kernel, GaussianKernel):
        return replace(plain, gamma=float(kernel.gamma))
    if isinstance(kernel, LaplacianKernel):
        return replace(plain, kernel="laplacian", gamma=float(kernel.gamma))
    if isinstance(kernel, ChiSquareKernel):
        return replace(plain, kernel="chi-square", gamma=float(kernel.gamma))
    if isinstance(kernel, PolynomialKernel):
        return replace(
            plain, kernel="polynomial", gamma=float(kernel.gamma), degree=int(kernel.degree), coef0=float(kernel.coef0)
        )
    if isinstance(kernel, CosineKernel):
        return replace(plain, kernel="cosine")
    raise _no_formula(kernel)


def _no_formula(kernel: Kernel) -> InputError:
    return InputError(
        f"the similarities of a {type(kernel).__name__} have no formula that an export can contain; fit with a "
        "linear, polynomial, gaussian, laplacian, chi-square or cosine kernel."
    )


def _pipeline(pipeline: Pipeline, calibrated: bool) -> Scorer:
    steps = [step for _, step in pipeline.steps if step is not None and step != "passthrough"]
    if not steps:
        raise InputError("the pipeline has no steps; add a ranker and fit it.")
    scorer = _scorer(steps[-1], calibrated)
    for step in reversed(steps[:-1]):
        if isinstance(step, QueryScaler):
            raise _by_query("QueryScaler", "StandardScaler or no scaler")
        if isinstance(step, Landmarks):
            scorer = _on_landmarks(step, scorer)
        elif isinstance(step, StandardScaler | MinMaxScaler | MaxAbsScaler):
            scorer = fold_columns(step, scorer)
        else:
            raise InputError(
                f"the step {type(step).__name__} cannot be exported; use StandardScaler, MinMaxScaler, MaxAbsScaler or "
                "Landmarks before the ranker."
            )
    return scorer


def _on_landmarks(step: Landmarks, scorer: Scorer) -> Scorer:
    if not isinstance(scorer, LinearScorer):
        raise InputError("only a linear ranker can be exported after Landmarks; use SPD, CRR, LCRA or RankRLS there.")
    return add([(1.0, _view(step, step.basis_, scorer.weights)), (1.0, _constant(step, scorer.intercept))])
