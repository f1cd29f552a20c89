"""
Screening: how soon relevant records are found, when one may stop, and what a start is worth.

Six systematic reviews of SYNERGY (De Bruin et al. 2023), and Reuters-21578 as one pool, read in the order of corank, of
a linear SVM with the settings of ASReview 3.0.8's default, and at random. Where a file says what ASReview itself found
in the reviews, it takes the SVM's place there (``python -m experiments screening --asreview FILE``; see `outside`).
"""

from __future__ import annotations

from corank.evaluation.report import Report
from experiments.options import ExperimentOptions
from experiments.screening.order import RATIO, C
from experiments.screening.outside import read_outside
from experiments.screening.pool import Pool
from experiments.screening.reviews import MEASURES, TITLES, Reviews

STARTS = 10


def run(options: ExperimentOptions) -> Report:
    """
    Run the experiment.

    options: ten starts a review by default; quick runs have two, and few topics in the pool.
    Returns: measures of each order, stopping rules, starts, times, and the pool.
    """
    starts = options.repeats or (2 if options.quick else STARTS)
    outside = {} if options.asreview is None else read_outside(options.asreview, list(TITLES), starts)
    reviews, pool = Reviews(options, starts, outside), Pool(options)
    tables = [reviews.measure_table(measure) for measure in MEASURES]
    tables += [reviews.stopping_table(), reviews.starts_table(), reviews.time_table(), pool.depth_table()]
    return Report(
        "Screening: nearly all relevant records, few of them read",
        f"Six systematic reviews of SYNERGY (doi 10.34894/HE6NAQ), {starts} starts each: one relevant and one other "
        "record; the rest is read most likely first, and every answer learnt. ATD: mean place of the relevant records "
        "as a share of the reading; WSS@95: share saved at 95 % recall, less 5 %; last: share read when the last one "
        f"is found. Linear SVM: scikit-learn's, squared hinge, C = {C}, all relevant records together weighing "
        f"{RATIO} times the others, on tf-idf of words and pairs, as ASReview 3.0.8 has it by default.",
        (*tables, pool.topic_table()),
        (reviews.finding("ATD", False), reviews.finding("WSS@95", True), *pool.findings()),
    )
