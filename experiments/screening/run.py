"""
Screening: how fast relevant records are found, and how much a start helps.

Six systematic reviews of SYNERGY (De Bruin et al. 2023), and Reuters-21578 as one collection, are replayed in the order
of corank, of a linear SVM with the settings of ASReview 3.0.8's default, and in random order. A file of ASReview's own
results replaces the SVM on the reviews (``python -m experiments screening --asreview FILE``; see `outside`).
"""

from __future__ import annotations

from corank.comparison.report import Report
from experiments.options import ExperimentOptions
from experiments.screening.order import RATIO, C
from experiments.screening.outside import read_outside
from experiments.screening.pool import Pool
from experiments.screening.reviews import METRICS, TITLES, Reviews

STARTS = 10


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: ten starts a review by default; quick runs have two, and few topics in the pool.
    Returns: measures of each order, starts, times, and the pool.
    """
    starts = options.repeats or (2 if options.quick else STARTS)
    outside = {} if options.asreview is None else read_outside(options.asreview, list(TITLES), starts)
    reviews, pool = Reviews(options, starts, outside), Pool(options)
    tables = [reviews.measure_table(measure) for measure in METRICS]
    tables += [reviews.starts_table(), reviews.time_table(), pool.depth_table()]
    return Report(
        "Screening: find nearly all relevant records, read few",
        f"Six systematic reviews of SYNERGY (doi 10.34894/HE6NAQ), {starts} starts each: one relevant and one "
        "irrelevant record. The most likely record is read next, and the model learns from every answer. ATD: mean "
        "position of the relevant records as a share of the records; WSS@95: share of unread records at 95 % recall, "
        "minus 5 %; last: share read when the last relevant record is found. Linear SVM: scikit-learn's, squared "
        f"hinge, C = {C}, all relevant records together weighing {RATIO} times the others, on tf-idf of words and "
        "pairs, as in ASReview 3.0.8's default.",
        (*tables, pool.topic_table()),
        (reviews.finding("ATD", False), reviews.finding("WSS@95", True), *pool.findings()),
    )
