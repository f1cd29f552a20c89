"""
Engine: what runs pure tasks, and in which tree their results meet; three methods, so that another engine is one file.

A task is a function of a module and small arguments, or results of other tasks. It may run twice, on any machine and
at any time: nothing that it returns depends on that. Results are handles until they are gathered; they meet in a
binary tree by number, never in the order in which they were done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from corank.progress import progress

Task = Callable[..., Any]
FAN = 8
"""Results that meet in one task of a tree."""


class Engine(ABC):
    """
    Runs tasks; `Here` and `corank.distributed.Dask` are engines.

    Attributes
    ----------
    keeps : bool
        Whether results may be as large as rows, because they stay in the memory of many machines until gathered.
    """

    keeps: ClassVar[bool]

    @abstractmethod
    def map(self, function: Task, *columns: Sequence[Any], name: str) -> list[Any]:
        """
        Run a task for each row of arguments.

        Parameters
        ----------
        function : callable
            A function of a module.
        *columns : sequences
            Its arguments, one sequence each; an argument may be a handle, or a list of handles, and a lazy object
            (of Dask's) is computed first.
        name : str
            What is done, for messages and progress.

        Returns
        -------
        list
            A handle for each row.
        """

    @abstractmethod
    def reduce(self, function: Task, handles: Sequence[Any], name: str) -> Any:
        """
        Let results meet in a tree by number.

        Parameters
        ----------
        function : callable
            Takes a list of results, in order, and returns one.
        handles : sequence
            One or more handles.
        name : str
            What is done.

        Returns
        -------
        object
            A handle.
        """

    @abstractmethod
    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """
        Wait for results and bring them here.

        Parameters
        ----------
        handles : sequence
            Handles.

        Returns
        -------
        list
            Their results.
        """


@dataclass(frozen=True)
class Here(Engine):
    """
    This machine, task after task: memory holds one part at a time, and what was summed.

    Parameters
    ----------
    verbose : bool
        Whether to show how far it has come, on a terminal or in a notebook.
    """

    verbose: bool = False
    keeps: ClassVar[bool] = False

    def map(self, function: Task, *columns: Sequence[Any], name: str) -> list[Any]:
        """Run the tasks, one after the other."""
        done = []
        with progress(len(columns[0]), name, self.verbose) as advance:
            for row in zip(*columns, strict=True):
                done.append(function(*map(_computed, row)))
                advance(1)
        return done

    def reduce(self, function: Task, handles: Sequence[Any], name: str) -> Any:
        """Let results meet."""
        while len(handles) > 1:
            handles = [function(handles[at : at + FAN]) for at in range(0, len(handles), FAN)]
        return handles[0]

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """Return the results, which are here."""
        return list(handles)


def _computed(argument: Any) -> Any:
    """What a lazy object of Dask's stands for; anything else is itself."""
    return argument.compute(scheduler="synchronous") if hasattr(argument, "__dask_graph__") else argument
