"""Learn a similarity of texts from links between them; an index to search, and BM25 beside it."""

from corank.linklearn.bm25 import BM25
from corank.linklearn.corpus import Corpus
from corank.linklearn.files import open_corpus, save_corpus
from corank.linklearn.index import Found, Index
from corank.linklearn.link_learn import LinkLearn
from corank.linklearn.links import Links, split_links
from corank.linklearn.reading import add_documents, read_corpus, read_documents, read_pairs, read_texts
from corank.linklearn.tuning import Tuned, tune_bm25
from corank.linklearn.words import Words

__all__ = [
    "BM25", "Corpus", "Found", "Index", "LinkLearn", "Links", "Tuned", "Words", "add_documents", "open_corpus",
    "read_corpus", "read_documents", "read_pairs", "read_texts", "save_corpus", "split_links", "tune_bm25",
]  # fmt: skip
