"""Text search: corpus, index, BM25, and LinkLearn, a similarity of texts learnt from links."""

from corank.text.bm25 import BM25, TunedBM25, tune_bm25
from corank.text.corpus import Corpus
from corank.text.files import (
    add_documents,
    open_corpus,
    read_corpus,
    read_documents,
    read_pairs,
    read_texts,
    save_corpus,
)
from corank.text.index import Index, SearchResult
from corank.text.link_learn import LinkLearn
from corank.text.links import Links, split_links
from corank.text.words import Words

__all__ = [
    "BM25", "Corpus", "Index", "LinkLearn", "Links", "SearchResult", "TunedBM25", "Words", "add_documents",
    "open_corpus", "read_corpus", "read_documents", "read_pairs", "read_texts", "save_corpus", "split_links",
    "tune_bm25",
]  # fmt: skip
