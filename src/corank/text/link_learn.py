"""
LinkLearn (Grangier and Bengio, 2005): a similarity of texts, learnt from links between documents.

    sim(a, b) = Σ over words t of f(tf_ta, df_t, l_a) · f(tf_tb, df_t, l_b),    f(tf, df, l) = f₁(tf) f₂(df) f₃(l)
    minimise the mean over texts d, their linked l⁺ and unlinked l⁻ of |1 − sim(d, l⁺) + sim(d, l⁻)|₊

The mean over texts of the means over their constraints, by Adam; or, as in the paper, the sum over all constraints, by
stochastic gradient descent (`solver`). The three functions are positive and begin near BM25; or, as in the paper, they
are perceptrons with linear outputs that begin at random (`positive`).

No word has its own parameter: a model of one corpus applies to any other, and search is as fast as with BM25. The three
networks are evaluated once per distinct value; a text costs a forward and a backward pass through the postings of its
words, and O(N log links) for its links · N constraints (`corank.core.text.links`).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from corank.base.contract import Estimator, check_parameters, install
from corank.base.docs import shared_parameters
from corank.errors import InputError
from corank.fitted import Predictions
from corank.parameters import Rules, boolean, integer, none, number, rng_of, seed
from corank.text.corpus import Corpus, Index, tiny_corpus
from corank.text.links import Links
from corank.text.network import LinearNetwork, Network
from corank.text.training import Networks, index_of, train


@shared_parameters
@dataclass(eq=False, repr=False)
class LinkLearn(Estimator):
    """
    A similarity of texts, learnt from links between documents, that applies to any other corpus.

    Parameters
    ----------
    n_hidden : int
        Number of hidden units of each of the three networks.
    b : float
        Length normalisation of tf, tf/(1 − b + b · length/mean length), from 0 to 1. With 0, as in the paper, tf is not
        normalised; above 0, BM25 is one of the functions that can be learnt.
    symmetric : bool
        Whether queries are weighted like documents, as in the paper. Otherwise their words have the weight count · f₂,
        as in BM25.
    use_length : bool
        Whether to use f₃; without it, only `b` accounts for lengths.
    at_top : bool
        Whether errors near the top of the list count more, see `corank.core.text.links.link_hinge`; otherwise all pairs
        have equal weight, as in the paper.
    positive : bool
        Whether the functions are exp(MLP(x)) of the logarithms of tf and of length/mean length, and begin near BM25.
        With False, as in the paper, they are MLP(x) of tf and of length, of any sign, and begin at random. The input of
        f₂ is log(N/df) in both.
    solver : {'adam', 'sgd'}
        'adam' gives equal weights to texts; its learning rate falls linearly to zero at `n_steps`. 'sgd', as in the
        paper, gives equal weights to constraints, so that texts with many links count more: it subtracts `eta0` times
        the gradient of the sum over the constraints of a text (mean over the texts of a batch), divided by the mean
        number of constraints of a text.
    n_steps : int
        Largest number of steps; with validation, training may stop earlier.
    batch : int
        Number of texts per step; 1 in the paper.
    eta0 : float
        Learning rate: the initial one of 'adam', the constant one of 'sgd'. The paper chooses it by validation links.
    n_iter_no_change : int
        Number of checks without a better average precision on the validation links, after which training
        stops.
    checks_per_pass : int
        Number of checks of the validation links in each pass through the texts.
    {n_jobs}
    {random_state}
    {verbose}

    Attributes
    ----------
    networks_ : tuple of 3 Network
        f₁ of log tf, f₂ of log(N/df) and f₃ of log(length/mean length); f₁ of tf and f₃ of length if not `positive`.
    n_iter_ : int
        Number of steps of the networks that were kept.
    objective_trace_ : array
        Mean loss of the steps before each check.
    validation_errors_ : array
        1 − average precision on the validation links, before training and at each check.

    Examples
    --------
    >>> from corank.text import Corpus, LinkLearn, Links
    >>> corpus = Corpus.of(["tin mines", "tin trade", "corn fields", "corn and mines"], language=None)
    >>> model = LinkLearn(n_hidden=3, n_steps=20, random_state=0).fit(Links.of(corpus, [("0", "1"), ("2", "3")]))
    >>> other = Corpus.of(["gold coins", "gold mines of Peru", "silver coins"], language=None)
    >>> model.to_index(other).search("gold mines", k=2).documents.tolist()
    [[1, 0]]
    """

    _rules: ClassVar[Rules] = {
        "n_hidden": integer(1),
        "b": number(0, 1),
        "symmetric": boolean,
        "use_length": boolean,
        "at_top": boolean,
        "positive": boolean,
        "n_steps": integer(0),
        "batch": integer(1),
        "eta0": number(0, inside="()"),
        "n_iter_no_change": integer(1),
        "checks_per_pass": integer(1),
        "n_jobs": integer() | none,
        "random_state": seed,
        "verbose": boolean,
    }
    _has_columns = False
    _predictions: ClassVar[Predictions] = {
        "to_index": lambda model, X: model.to_index(tiny_corpus()).weights,
    }

    networks_: Networks = field(init=False)
    n_iter_: int = field(init=False)
    objective_trace_: NDArray[np.float64] = field(init=False)
    validation_errors_: NDArray[np.float64] = field(init=False)

    n_hidden: int = 10
    _: KW_ONLY
    b: float = 0.75
    symmetric: bool = True
    use_length: bool = True
    at_top: bool = False
    positive: bool = True
    solver: Literal["adam", "sgd"] = "adam"
    n_steps: int = 1000
    batch: int = 16
    eta0: float = 0.01
    n_iter_no_change: int = 5
    checks_per_pass: int = 1
    n_jobs: int | None = None
    random_state: Any = None
    verbose: bool = False

    def fit(self, links: Links, validation: Links | None = None) -> LinkLearn:
        """
        Learn from links.

        validation: links of other documents: the networks of the best check are kept, and training stops when checks no
            longer improve. None takes all steps.
        """
        check_parameters(self)
        for name, value in (("links", links), ("validation", validation)):
            if not isinstance(value, Links) and not (value is None and name == "validation"):
                raise InputError(f"{name} is a {type(value).__name__}; pass Links.of(corpus, pairs).")
        return install(self, train(self, links, validation, rng_of(self.random_state)), {})

    def to_index(self, corpus: Corpus) -> Index:
        """Compute the weights of the words of documents, of the training corpus or of any other."""
        check_is_fitted(self)
        return index_of(self.networks_, corpus, self)

    def _check_state(self) -> None:
        """Raise if a loaded model does not have three networks."""
        kind = Network if self.positive else LinearNetwork
        if len(self.networks_) != 3 or not all(type(network) is kind for network in self.networks_):
            raise InputError(f"networks_ must hold three networks of the class {kind.__name__}")
