"""Estimators that use many resources, in a module that worker processes can import."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
from sklearn.base import BaseEstimator


class Greedy(BaseEstimator):
    """Takes much memory or processor time, or ends its own process."""

    def __init__(self, megabytes=0, seconds=0.0, dies=False):
        self.megabytes = megabytes
        self.seconds = seconds
        self.dies = dies

    def fit(self, X, y):
        if self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        until = time.process_time() + self.seconds
        while time.process_time() < until:
            pass
        self.total_ = float(np.ones(self.megabytes * 125_000).sum())
        return self

    def predict(self, X):
        return X[:, 0]


class Sleeper(BaseEstimator):
    """Learns for ten minutes."""

    def fit(self, X, y):
        time.sleep(600)
        return self

    def predict(self, X):
        return X[:, 0]
