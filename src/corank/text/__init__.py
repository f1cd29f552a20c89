"""Learn a similarity of texts from links between them; an index to search, and BM25 beside it."""

from corank.text.bm25 import BM25
from corank.text.corpus import Corpus
from corank.text.files import open_corpus, save_corpus
from corank.text.index import Found, Index
from corank.text.link_learn import LinkLearn
from corank.text.links import Links, split_links
from corank.text.reading import add_documents, read_corpus, read_documents, read_pairs, read_texts
from corank.text.tuning import Tuned, tune_bm25
from corank.text.words import Words

__all__ = [
    "BM25", "Corpus", "Found", "Index", "LinkLearn", "Links", "Tuned", "Words", "add_documents", "open_corpus",
    "read_corpus", "read_documents", "read_pairs", "read_texts", "save_corpus", "split_links", "tune_bm25",
]  # fmt: skip
