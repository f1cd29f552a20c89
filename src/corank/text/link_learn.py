"""
LinkLearn (Grangier and Bengio, 2005): a similarity of texts, learnt from links between documents.

    sim(a, b) = Σ over words t of f(tf_ta, df_t, l_a) · f(tf_tb, df_t, l_b),    f(tf, df, l) = f₁(tf) f₂(df) f₃(l)
    minimise the mean over texts d, their linked l⁺ and unlinked l⁻ of |1 − sim(d, l⁺) + sim(d, l⁻)|₊

No word has a parameter of its own: what is learnt from one corpus weighs the words of any other, and search is as fast
as with BM25. The three networks are evaluated once for each different value; a text costs one pass over the postings of
its words each way and O(N log links) for its links · N constraints (`corank.core.text.links`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from corank.core.threads import n_threads
from corank.errors import InputError
from corank.estimator.contract import Learner, check_parameters, install
from corank.parameters import Rules, boolean, none, number, rng_of, seed, whole
from corank.progress import progress
from corank.text.corpus import Corpus
from corank.text.index import Index
from corank.text.links import Links
from corank.text.network import Network
from corank.text.training import Form, Networks, Schedule, index_of, train


class LinkLearn(Learner):
    """
    A similarity of texts, learnt from links between documents, for texts of any other corpus.

    Parameters
    ----------
    n_hidden : int
        Hidden units of each of the three networks.
    b : float
        How much tf is held against the length of its text before f₁ sees it, tf/(1 − b + b · length/mean length), from
        0 to 1. With 0, as in the paper, f₁ sees plain counts; above it BM25 is one of the functions that can be learnt.
    symmetric : bool
        Whether texts that are searched for are weighed as documents are, as in the paper. Otherwise their words weigh
        count · f₂, as queries of BM25 do.
    use_length : bool
        Whether there is an f₃; without it, lengths count by `b` only.
    at_top : bool
        Whether what stands above a linked document counts more the nearer that is to the top of the list, see
        `corank.core.text.links.link_hinge`; otherwise all pairs count the same, as in the paper.
    n_steps : int
        Most steps; with validation, learning stops earlier.
    batch : int
        Texts whose links make up a step.
    eta0 : float
        Rate of the first step (of Adam); it falls in a straight line to nothing at `n_steps`.
    n_iter_no_change : int
        Passes over all texts without a better average precision on the validation links, after which learning stops.
    n_jobs : int, optional
        Threads; None is one, −1 every processor. The result is the same.
    random_state : int, numpy Generator, numpy RandomState or None
        Seed of the first networks and of the order of texts.
    verbose : bool
        Whether to show a progress bar.

    Attributes
    ----------
    networks_ : tuple of 3 Network
        f₁ of log tf, f₂ of log(N/df) and f₃ of log(length/mean length).
    n_iter_ : int
        Steps after which the networks were kept.
    objective_trace_ : array
        Mean loss in each pass.
    validation_errors_ : array
        1 − average precision on the validation links, before learning and after each pass.

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
        "n_hidden": whole(1),
        "b": number(0, 1),
        "symmetric": boolean,
        "use_length": boolean,
        "at_top": boolean,
        "n_steps": whole(0),
        "batch": whole(1),
        "eta0": number(0, inside="()"),
        "n_iter_no_change": whole(1),
        "n_jobs": whole() | none,
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
            Links of other documents: the networks of the best pass are kept, and learning stops when passes bring
            nothing more. None takes every step.

        Returns
        -------
        self
            The fitted model.
        """
        check_parameters(self)
        for name, given in (("links", links), ("validation", validation)):
            if not isinstance(given, Links) and not (given is None and name == "validation"):
                raise InputError(f"{name} is a {type(given).__name__}; pass Links.of(corpus, pairs).")
        jobs = 1 if self.n_jobs is None else n_threads(self.n_jobs)
        schedule = Schedule(self.n_steps, self.batch, self.eta0, self.n_iter_no_change, jobs)
        with progress(self.n_steps, "steps", self.verbose) as advance:
            learnt = train(links, validation, self._form, schedule, rng_of(self.random_state), advance)
        return install(self, learnt, {})

    def to_index(self, corpus: Corpus) -> Index:
        """
        Weigh the words of documents once, for all queries; nothing is learnt from them but how they are distributed.

        Parameters
        ----------
        corpus : Corpus
            The documents, of the corpus that was learnt from or of any other.

        Returns
        -------
        Index
            Ready to be searched.
        """
        check_is_fitted(self)
        return index_of(self.networks_, corpus, self._form)

    @property
    def _form(self) -> Form:
        return Form(self.n_hidden, self.b, self.symmetric, self.use_length, self.at_top)

    def _check_state(self) -> None:
        """Raise where a file set other networks than three."""
        if len(self.networks_) != 3 or not all(isinstance(network, Network) for network in self.networks_):
            raise InputError("networks_ is not of three networks")
