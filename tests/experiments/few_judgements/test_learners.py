from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from experiments.few_judgements.learners import RANKRLS, STRONGER, Classified, learners


def test_a_classifier_sees_judged_rows_only_and_scores_by_its_decision(pool):
    y = np.full(300, np.nan)
    y[:40] = pool.about["tin"][:40]
    model = Classified(LogisticRegression()).fit(pool.text, y)
    direct = LogisticRegression().fit(pool.text[:40], y[:40])
    np.testing.assert_allclose(model.predict(pool.text), direct.decision_function(pool.text))


def test_the_cosine_kernel_is_the_linear_one_with_another_alpha(pool):
    y = np.where(np.arange(300) < 40, pool.about["tin"], np.nan)
    strong = learners()[STRONGER][1].fit(pool.text, y)
    same = learners()[RANKRLS][1].set_params(alpha=strong.alpha_).fit(pool.text, y)
    np.testing.assert_allclose(strong.predict(pool.text), same.predict(pool.text), atol=1e-10)
