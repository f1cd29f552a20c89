from corank.text.bm25 import BM25 as BM25
from corank.text.bm25 import TunedBM25 as TunedBM25
from corank.text.bm25 import tune_bm25 as tune_bm25
from corank.text.corpus import Corpus as Corpus
from corank.text.corpus import Index as Index
from corank.text.corpus import SearchResult as SearchResult
from corank.text.corpus import as_matrix as as_matrix
from corank.text.files import add_documents as add_documents
from corank.text.files import open_corpus as open_corpus
from corank.text.files import read_corpus as read_corpus
from corank.text.files import read_document_fields as read_document_fields
from corank.text.files import read_documents as read_documents
from corank.text.files import read_pairs as read_pairs
from corank.text.files import read_texts as read_texts
from corank.text.files import save_corpus as save_corpus
from corank.text.link_learn import LinkLearn as LinkLearn
from corank.text.links import Links as Links
from corank.text.links import split_links as split_links
from corank.text.vectors import Vectors as Vectors
from corank.text.vectors import embed_texts as embed_texts
from corank.text.vectors import read_vectors as read_vectors
from corank.text.vectors import write_vectors as write_vectors
from corank.text.words import Words as Words
from corank.text.words import split_words as split_words

__all__: list[str]
