from __future__ import annotations

from experiments.datasets.reuters import parse_stories, read_modapte, read_topic_names

PAGE = """<!DOCTYPE lewis SYSTEM "lewis.dtd">
<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="1" NEWID="1">
<TOPICS><D>tin</D><D>gold</D></TOPICS>
<TEXT>&#2;<TITLE>Metals &amp; more</TITLE><BODY>Tin rose.
Gold fell.</BODY></TEXT>
</REUTERS>
<REUTERS TOPICS="YES" LEWISSPLIT="TEST" NEWID="2"><TOPICS></TOPICS><TEXT TYPE="BRIEF">Nothing</TEXT></REUTERS>
<REUTERS TOPICS="NO" LEWISSPLIT="TRAIN" NEWID="3"><TOPICS></TOPICS><TEXT>Not indexed</TEXT></REUTERS>
<REUTERS TOPICS="YES" LEWISSPLIT="NOT-USED" NEWID="4"><TOPICS><D>tin</D></TOPICS><TEXT>Unused</TEXT></REUTERS>
"""


def test_only_stories_of_the_split_are_read():
    stories = parse_stories(PAGE)
    assert [(topics, test) for _, topics, test in stories] == [(frozenset({"tin", "gold"}), False), (frozenset(), True)]
    assert stories[0][0].split()[-7:] == ["Metals", "&", "more", "Tin", "rose.", "Gold", "fell."]


def test_the_split_has_the_published_size(real_data):
    stories = read_modapte()
    assert int((~stories.is_test).sum()) == 9603
    assert int(stories.is_test.sum()) == 3299
    assert int(stories.about("earn")[~stories.is_test].sum()) == 2877


def test_topics_have_names_in_words(real_data):
    names = read_topic_names()
    assert names["money-fx"] == "Money/Foreign Exchange"
    assert names["bop"] == "Balance of Payments"
