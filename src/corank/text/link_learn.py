"""
LinkLearn (Grangier and Bengio, 2005): a similarity of texts, learnt from links between documents.

    sim(a, b) = Σ over words t of f(tf_ta, df_t, l_a) · f(tf_tb, df_t, l_b),    f(tf, df, l) = f₁(tf) f₂(df) f₃(l)
    minimise the mean over texts d, their linked l⁺ and unlinked l⁻ of |1 − sim(d, l⁺) + sim(d, l⁻)|₊

No word has its own parameter: a model of one corpus applies to any other, and search is as fast as with BM25. The three
networks are evaluated once per distinct value; a text costs a forward and a backward pass through the postings of its
words, and O(N log links) for its links · N constraints (`corank.core.text.links`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from corank.core.threads import n_threads
from corank.errors import InputError
from corank.estimator.contract import Learner, check_parameters, install
from corank.estimator.docs import shared_parameters
from corank.parameters import Rules, boolean, integer, none, number, rng_of, seed
from corank.text.corpus import Corpus
from corank.text.index import Index
from corank.text.links import Links
from corank.text.network import Network
from corank.text.training import Networks, Schedule, SimilarityForm, index_of, train


@shared_parameters
class LinkLearn(Learner):
    """
    A similarity of texts, learnt from links between documents, that applies to any other corpus.

    Parameters
    ----------
    n_hidden : int
        Number of hidden units of each of the three networks.
    b : float
        Length normalisation of tf, tf/(1 − b + b · length/mean length), from 0 to 1. With 0, as in the paper, the input
        of f₁ is the plain count; above 0, BM25 is one of the functions that can be learnt.
    symmetric : bool
        Whether queries are weighted like documents, as in the paper. Otherwise their words have the weight count · f₂,
        as in BM25.
    use_length : bool
        Whether to use f₃; without it, only `b` accounts for lengths.
    at_top : bool
        Whether errors near the top of the list count more, see `corank.core.text.links.link_hinge`; otherwise all pairs
        have equal weight, as in the paper.
    n_steps : int
        Largest number of steps; with validation, training may stop earlier.
    batch : int
        Number of texts per step.
    eta0 : float
        Initial learning rate of Adam; it falls linearly to zero at `n_steps`.
    n_iter_no_change : int
        Number of epochs without a better average precision on the validation links, after which training
        stops.
    {n_jobs}
    {random_state}
    {verbose}

    Attributes
    ----------
    networks_ : tuple of 3 Network
        f₁ of log tf, f₂ of log(N/df) and f₃ of log(length/mean length).
    n_iter_ : int
        Number of steps of the networks that were kept.
    objective_trace_ : array
        Mean loss of each pass.
    validation_errors_ : array
        1 − average precision on the validation links, before training and after each pass.

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
        "n_steps": integer(0),
        "batch": integer(1),
        "eta0": number(0, inside="()"),
        "n_iter_no_change": integer(1),
        "n_jobs": integer() | none,
        "random_state": seed,
        "verbose": boolean,
    }

    networks_: Networks
    n_iter_: int
    objective_trace_: NDArray[np.float64]
    validation_errors_: NDArray[np.float64]

    def __init__(
        self,
        n_hidden: int = 10,
        *,
        b: float = 0.75,
        symmetric: bool = True,
        use_length: bool = True,
        at_top: bool = False,
        n_steps: int = 1000,
        batch: int = 16,
        eta0: float = 0.01,
        n_iter_no_change: int = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_hidden = n_hidden
        self.b = b
        self.symmetric = symmetric
        self.use_length = use_length
        self.at_top = at_top
        self.n_steps = n_steps
        self.batch = batch
        self.eta0 = eta0
        self.n_iter_no_change = n_iter_no_change
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, links: Links, validation: Links | None = None) -> LinkLearn:
        """
        Learn from links.

        Parameters
        ----------
        links : Links
            Texts and the documents each is linked with.
        validation : Links, optional
            Links of other documents: the networks of the best pass are kept, and training stops when passes no longer
            improve. None takes all steps.

        Returns
        -------
        self
            The fitted model.
        """
        check_parameters(self)
        for name, value in (("links", links), ("validation", validation)):
            if not isinstance(value, Links) and not (value is None and name == "validation"):
                raise InputError(f"{name} is a {type(value).__name__}; pass Links.of(corpus, pairs).")
        jobs = 1 if self.n_jobs is None else n_threads(self.n_jobs)
        schedule = Schedule(self.n_steps, self.batch, self.eta0, self.n_iter_no_change, jobs, bool(self.verbose))
        return install(self, train(links, validation, self._form, schedule, rng_of(self.random_state)), {})

    def to_index(self, corpus: Corpus) -> Index:
        """
        Compute the weights of the words of documents, for any number of queries.

        Parameters
        ----------
        corpus : Corpus
            The documents, of the training corpus or of any other.

        Returns
        -------
        Index
            The index.
        """
        check_is_fitted(self)
        return index_of(self.networks_, corpus, self._form)

    @property
    def _form(self) -> SimilarityForm:
        return SimilarityForm(self.n_hidden, self.b, self.symmetric, self.use_length, self.at_top)

    def _check_state(self) -> None:
        """Raise if a loaded model does not have three networks."""
        if len(self.networks_) != 3 or not all(isinstance(network, Network) for network in self.networks_):
            raise InputError("networks_ must hold three networks")
