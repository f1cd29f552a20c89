"""Ranking problems, and the files they are read from and written to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank._lazy import lazy

if TYPE_CHECKING:
    # the names below for editors and type checkers; a test compares the two lists
    # isort: off
    from corank.data.io.click_files import read_clicks as read_clicks, write_clicks as write_clicks
    from corank.data.io.click_log import ClickLog as ClickLog
    from corank.data.io.frames import read_csv as read_csv, read_parquet as read_parquet
    from corank.data.io.items import Items as Items, read_items as read_items
    from corank.data.io.read import read as read
    from corank.data.io.run_objects import (
        as_dict as as_dict,
        as_frame as as_frame,
        qrels_of as qrels_of,
        run_of as run_of,
    )
    from corank.data.io.search_responses import SearchResponse as SearchResponse, read_responses as read_responses
    from corank.data.io.trec import (
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
    from corank.data.io.judgements.writing import write_judgements as write_judgements
    from corank.data.io.letor.reader import read_letor as read_letor
    from corank.data.io.letor.writer import write_letor as write_letor
    from corank.data.collection import Collection as Collection
    from corank.data.splits import presumed_negatives as presumed_negatives
    from corank.data.ranking import RankingData as RankingData
    from corank.data.query_splits import QueryKFold as QueryKFold, QueryShuffleSplit as QueryShuffleSplit
    from corank.data.splits import mask_scores as mask_scores, keep_scores as keep_scores
    from corank.data.synthetic import SyntheticRanking as SyntheticRanking, make_ranking as make_ranking
    from corank_lab.records.records import Records as Records, load_review as load_review, read_records as read_records
    from corank.data.io.store.store import (
        Store as Store,
        open_store as open_store,
        store_letor as store_letor,
        write_store as write_store,
    )
    # isort: on

# each public name and the module that defines it, which is imported when the name is first used
_HOMES = {
    "ClickLog": "corank.data.io.click_log",
    "Collection": "corank.data.collection",
    "Items": "corank.data.io.items",
    "JudgedRun": "corank.data.io.trec",
    "Qrels": "corank.data.io.trec",
    "QueryKFold": "corank.data.query_splits",
    "QueryShuffleSplit": "corank.data.query_splits",
    "RankingData": "corank.data.ranking",
    "Records": "corank_lab.records.records",
    "Run": "corank.data.io.trec",
    "SearchResponse": "corank.data.io.search_responses",
    "Store": "corank.data.io.store.store",
    "SyntheticRanking": "corank.data.synthetic",
    "as_dict": "corank.data.io.run_objects",
    "as_frame": "corank.data.io.run_objects",
    "join_run": "corank.data.io.trec",
    "keep_scores": "corank.data.splits",
    "load_review": "corank_lab.records.records",
    "make_ranking": "corank.data.synthetic",
    "mask_scores": "corank.data.splits",
    "open_store": "corank.data.io.store.store",
    "presumed_negatives": "corank.data.splits",
    "qrels_of": "corank.data.io.run_objects",
    "read": "corank.data.io.read",
    "read_clicks": "corank.data.io.click_files",
    "read_csv": "corank.data.io.frames",
    "read_items": "corank.data.io.items",
    "read_letor": "corank.data.io.letor.reader",
    "read_parquet": "corank.data.io.frames",
    "read_qrels": "corank.data.io.trec",
    "read_records": "corank_lab.records.records",
    "read_responses": "corank.data.io.search_responses",
    "read_run": "corank.data.io.trec",
    "read_scores": "corank.data.io.trec",
    "run_of": "corank.data.io.run_objects",
    "store_letor": "corank.data.io.store.store",
    "write_clicks": "corank.data.io.click_files",
    "write_judgements": "corank.data.io.judgements.writing",
    "write_letor": "corank.data.io.letor.writer",
    "write_qrels": "corank.data.io.trec",
    "write_run": "corank.data.io.trec",
    "write_store": "corank.data.io.store.store",
}

__all__ = [*_HOMES]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES)
