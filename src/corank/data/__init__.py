"""Ranking problems, and the files they are read from and written to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank._lazy import lazy

if TYPE_CHECKING:
    # the names below for editors and type checkers; a test compares the two lists
    # isort: off
    from corank.data.formats.click_files import read_clicks as read_clicks, write_clicks as write_clicks
    from corank.data.formats.click_log import ClickLog as ClickLog
    from corank.data.formats.frames import read_csv as read_csv, read_parquet as read_parquet
    from corank.data.formats.items import Items as Items, read_items as read_items
    from corank.data.formats.read import read as read
    from corank.data.formats.run_objects import (
        as_dict as as_dict,
        as_frame as as_frame,
        qrels_of as qrels_of,
        run_of as run_of,
    )
    from corank.data.formats.search_responses import SearchResponse as SearchResponse, read_responses as read_responses
    from corank.data.formats.trec import (
        JudgedRun as JudgedRun,
        Qrels as Qrels,
        Run as Run,
        join_run as join_run,
        read_qrels as read_qrels,
        read_run as read_run,
        read_scores as read_scores,
        write_qrels as write_qrels,
        write_run as write_run,
    )
    from corank.data.judgements.writing import write_judgements as write_judgements
    from corank.data.letor.reader import read_letor as read_letor
    from corank.data.letor.writer import write_letor as write_letor
    from corank.data.problem.collection import Collection as Collection
    from corank.data.problem.splits import presumed_negatives as presumed_negatives
    from corank.data.problem.ranking import RankingData as RankingData
    from corank.data.problem.query_splits import QueryKFold as QueryKFold, QueryShuffleSplit as QueryShuffleSplit
    from corank.data.problem.splits import mask_scores as mask_scores, keep_scores as keep_scores
    from corank.data.problem.synthetic import SyntheticRanking as SyntheticRanking, make_ranking as make_ranking
    from corank.data.records.records import Records as Records, load_review as load_review, read_records as read_records
    from corank.data.store.store import (
        Store as Store,
        open_store as open_store,
        store_letor as store_letor,
        write_store as write_store,
    )
    # isort: on

# each public name and the module that defines it, which is imported when the name is first used
_HOMES = {
    "ClickLog": "corank.data.formats.click_log",
    "Collection": "corank.data.problem.collection",
    "Items": "corank.data.formats.items",
    "JudgedRun": "corank.data.formats.trec",
    "Qrels": "corank.data.formats.trec",
    "QueryKFold": "corank.data.problem.query_splits",
    "QueryShuffleSplit": "corank.data.problem.query_splits",
    "RankingData": "corank.data.problem.ranking",
    "Records": "corank.data.records.records",
    "Run": "corank.data.formats.trec",
    "SearchResponse": "corank.data.formats.search_responses",
    "Store": "corank.data.store.store",
    "SyntheticRanking": "corank.data.problem.synthetic",
    "as_dict": "corank.data.formats.run_objects",
    "as_frame": "corank.data.formats.run_objects",
    "join_run": "corank.data.formats.trec",
    "keep_scores": "corank.data.problem.splits",
    "load_review": "corank.data.records.records",
    "make_ranking": "corank.data.problem.synthetic",
    "mask_scores": "corank.data.problem.splits",
    "open_store": "corank.data.store.store",
    "presumed_negatives": "corank.data.problem.splits",
    "qrels_of": "corank.data.formats.run_objects",
    "read": "corank.data.formats.read",
    "read_clicks": "corank.data.formats.click_files",
    "read_csv": "corank.data.formats.frames",
    "read_items": "corank.data.formats.items",
    "read_letor": "corank.data.letor.reader",
    "read_parquet": "corank.data.formats.frames",
    "read_qrels": "corank.data.formats.trec",
    "read_records": "corank.data.records.records",
    "read_responses": "corank.data.formats.search_responses",
    "read_run": "corank.data.formats.trec",
    "read_scores": "corank.data.formats.trec",
    "run_of": "corank.data.formats.run_objects",
    "store_letor": "corank.data.store.store",
    "write_clicks": "corank.data.formats.click_files",
    "write_judgements": "corank.data.judgements.writing",
    "write_letor": "corank.data.letor.writer",
    "write_qrels": "corank.data.formats.trec",
    "write_run": "corank.data.formats.trec",
    "write_store": "corank.data.store.store",
}

__all__ = [*_HOMES]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES)
