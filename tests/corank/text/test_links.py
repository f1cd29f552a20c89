"""Links and LinkLearn: the counting gradient against explicit pairs, and the slopes against finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import corank
from corank.core.text.links import Tables, add_links, link_hinge, similarities
from corank.errors import InputError
from corank.text import Corpus, LinkLearn, Links, split_links
from corank.text.network import LinearNetwork, Network
from corank.text.training import LinkObjective, check_steps


def some_links(n=30, seed=0, of_queries=False):
    rng = np.random.default_rng(seed)
    words = [f"w{n}" for n in range(40)]
    topics = rng.integers(0, 4, n)
    texts = [
        " ".join(rng.choice(words, rng.integers(1, 25), p=np.roll(np.linspace(1, 0, 40), 10 * topic) / 20))
        for topic in topics
    ]
    pairs = [(str(i), str(j)) for i in range(n) for j in range(i) if topics[i] == topics[j] and rng.random() < 0.3]
    corpus = Corpus.of(texts, language=None)
    if of_queries:
        queries = {f"q{i}": " ".join(text.split()[:3]) for i, text in enumerate(texts)}
        return Links.of_queries(corpus, queries, [(f"q{a}", b) for a, b in pairs])
    return Links.of(corpus, pairs)


@pytest.mark.parametrize("at_top", [False, True])
@pytest.mark.parametrize("own", [-1, 5])
@pytest.mark.parametrize("n_linked", [0, 1, 4, 11, 12])
def test_the_hinge_by_counting_is_that_over_pairs(own, n_linked, at_top):
    rng = np.random.default_rng(n_linked)
    for _ in range(20):
        s = rng.integers(-4, 5, 12) / 2  # ties, and margins of exactly 1
        linked = rng.permutation([j for j in range(12) if j != own])[:n_linked].astype(np.uint32)
        slope, wanted, loss = np.empty(12), np.zeros(12), 0.0
        unlinked = sorted(set(range(12)) - set(linked.tolist()) - {own})
        for p in linked:
            violating = [j for j in unlinked if 1 - s[p] + s[j] > 0]
            weight = 1 / max(len(linked) * len(unlinked), 1)
            if at_top and violating:
                weight = sum(1 / n for n in range(1, len(violating) + 1)) / len(violating) / len(linked)
            for j in violating:
                loss += weight * (1 - s[p] + s[j])
                wanted[p] -= weight
                wanted[j] += weight
        found = link_hinge(s, linked, own, at_top, slope)
        tolerance = 0.02 if at_top else 1e-12  # the harmonic numbers are approximate
        assert found == pytest.approx(loss, rel=tolerance)
        np.testing.assert_allclose(slope, wanted, rtol=tolerance, atol=1e-15)


def networks(seed=0):
    rng = np.random.default_rng(seed)
    return tuple(Network(0.1, 1.3, rng.normal(0, 0.4, 13)) for _ in range(3))


def form(b=0.0, symmetric=True, **how):
    return LinkLearn(4, b=b, symmetric=symmetric, **how)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("b", [0.0, 0.75])
@pytest.mark.parametrize("of_queries", [False, True])
def test_similarities_are_sums_over_words(of_queries, b, symmetric):
    links, nets = some_links(of_queries=of_queries), networks()
    corpus = links.corpus
    X, task = corpus.counts.toarray(), LinkObjective(links, form(b, symmetric))
    df = (X > 0).sum(axis=0)

    def weights(counts):
        length = counts.sum()
        held = 1 - b + b * length / corpus.mean_length
        parts = nets[0](np.log(np.maximum(counts, 1) / held)), nets[1](np.log(len(X) / df))
        return (counts > 0) * parts[0] * parts[1] * nets[2](np.log(np.array([max(length, 1) / corpus.mean_length])))

    def asked(counts):
        return weights(counts) if symmetric else counts * nets[1](np.log(len(X) / df))

    s = np.empty(len(X))
    for q in range(len(links)):
        part = slice(int(links.texts.starts[q]), int(links.texts.starts[q + 1]))
        counts = np.zeros(X.shape[1])
        counts[links.texts.terms[part]] = links.texts.values[part]
        similarities(task.problem, task.tables(nets), np.uint64(q), s)
        np.testing.assert_allclose(s, [asked(counts) @ weights(row) for row in X], rtol=0.05 if b else 1e-12)
    model = LinkLearn(b=b, symmetric=symmetric)
    model.networks_ = nets
    bags = links.texts
    np.testing.assert_allclose(model.to_index(corpus).scores(bags)[-1], s, rtol=0.05 if b else 1e-5)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("of_queries", [False, True])
def test_slopes_are_finite_differences(of_queries, symmetric):
    task, nets = LinkObjective(some_links(of_queries=of_queries), form(0.5, symmetric)), networks()
    texts = task.texts[:7]
    _, slopes = task.loss(nets, texts)
    for at in range(3):
        for i in range(13):
            step = np.zeros(13)
            step[i] = 1e-6
            moved = []
            for sign in (1, -1):
                there = [replace(n, theta=n.theta + sign * step) if k == at else n for k, n in enumerate(nets)]
                moved.append(task.loss(there, texts))
            assert slopes[at][i] == pytest.approx((moved[0][0] - moved[1][0]) / 2e-6, rel=1e-4, abs=1e-7)


def cost_of_the_paper(theta, scaling, links):
    """
    Equations 3, 6 and 7 of Grangier and Bengio, constraint by constraint.

    theta (3, 13): w, u, v, v0 of three perceptrons of tf, log(N/df) and length, whose inputs are scaled.
    """
    X = links.corpus.counts.toarray()
    df, length = (X > 0).sum(axis=0), np.maximum(X.sum(axis=1), 1)

    def mlp(at, x):
        w, u, v, v0 = *theta[at][:12].reshape(3, 4), theta[at][12]
        z = (np.asarray(x, float) - scaling[at][0]) / scaling[at][1]
        return np.tanh(z[..., None] * w + u) @ v + v0

    F = (X > 0) * mlp(0, X) * mlp(1, np.log(len(X) / df)) * mlp(2, length)[:, None]
    cost = 0.0
    for q, grades in zip(links.own.tolist(), links.grades(), strict=True):
        linked, unlinked = np.flatnonzero(grades == 1), np.flatnonzero(grades == 0)
        cost += sum(max(1 - F[q] @ F[p] + F[q] @ F[n], 0.0) for p in linked for n in unlinked)
    return cost


def test_the_cost_of_the_paper_and_its_gradient_are_those_written_out():
    links, rng = some_links(18), np.random.default_rng(0)
    task = LinkObjective(links, form(positive=False, solver="sgd"))
    theta, scaling = rng.normal(0, 0.6, (3, 13)), [(3.0, 2.0), (1.0, 1.5), (10.0, 6.0)]
    nets = tuple(LinearNetwork(*s, t) for s, t in zip(scaling, theta, strict=True))
    assert any((net(x) < 0).any() for net, x in zip(nets, task.encoded.inputs, strict=True))  # of any sign
    # the loss is the mean over texts, in units of their mean number of constraints
    unit = links.n_constraints
    loss, gradient = task.loss(nets, np.arange(len(links)))
    assert loss * unit == pytest.approx(cost_of_the_paper(theta, scaling, links))
    for at, i in ((0, 0), (0, 12), (1, 3), (1, 9), (2, 5), (2, 8), (2, 12)):
        moved = [theta.copy(), theta.copy()]
        moved[0][at, i] += 1e-6
        moved[1][at, i] -= 1e-6
        up, down = (cost_of_the_paper(each, scaling, links) for each in moved)
        assert gradient[at][i] * unit == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-3)


def test_a_step_of_the_paper_follows_the_gradient_of_one_document():
    links = some_links(18)
    how = {"n_hidden": 4, "b": 0.0, "positive": False, "solver": "sgd", "batch": 1, "eta0": 0.05, "random_state": 3}
    start, after = (LinkLearn(n_steps=n, **how).fit(links).networks_ for n in (0, 1))
    task = LinkObjective(links, form(positive=False, solver="sgd"))
    steps = [task.loss(start, np.array([q]))[1] for q in range(len(links))]
    moved = np.concatenate([a.theta - b.theta for a, b in zip(after, start, strict=True)])
    assert np.abs(moved).max() > 1e-6
    assert sum(np.allclose(moved, -0.05 * np.concatenate(step), atol=1e-12) for step in steps) == 1
    # perceptrons begin at random, and their scaling is that of the inputs
    other = LinkLearn(n_steps=0, **{**how, "random_state": 4}).fit(links).networks_
    assert all(type(net) is LinearNetwork for net in start)
    assert not any(np.allclose(a.theta, b.theta) for a, b in zip(start, other, strict=True))
    counts = links.corpus.postings.values
    assert [start[0].mean, start[0].scale] == pytest.approx([counts.mean(), counts.std()], rel=1e-4)


def test_a_function_may_be_zero_somewhere():
    task, nets = LinkObjective(some_links(), form(positive=False)), networks()
    tables = task.tables(nets)
    tables.length[::2] = 0.0

    def loss():
        slopes = Tables(*map(np.zeros_like, tables))
        return add_links(task.problem, tables, task.texts, 0, len(task.texts), False, slopes), slopes

    _, found = loss()
    for at in range(6):
        losses = []
        for sign in (1, -1):
            tables.length[at] += sign * 1e-6
            losses.append(loss()[0])
            tables.length[at] -= sign * 1e-6
        assert found.length[at] == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    ("n_steps", "n_batches", "per_pass", "wanted"),
    [(25, 10, 1, [10, 20, 25]), (20, 10, 2, [5, 10, 15, 20]), (4, 3, 9, [1, 2, 3, 4]), (0, 10, 1, []), (3, 10, 1, [3])],
)
def test_checks_divide_passes(n_steps, n_batches, per_pass, wanted):
    assert check_steps(n_steps, n_batches, per_pass) == wanted


def misleading(seed):
    """Links follow words that many documents share; rare ones, which BM25 trusts, stand anywhere."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(0, 6, 120)
    texts = [
        " ".join([*(f"topic{t}x{j}" for j in rng.permutation(8)[:4]), *(f"rare{j}" for j in rng.integers(0, 150, 12))])
        for t in topics
    ]
    pairs = [(i, j) for i in range(120) for j in range(i) if topics[i] == topics[j] and rng.random() < 0.5]
    return Links.of(Corpus.of(texts, language=None), pairs)


def test_learning_brings_linked_documents_nearer():
    training, validation = misleading(1), misleading(2)
    model = LinkLearn(4, n_steps=60, batch=8, random_state=0).fit(training, validation)
    assert model.validation_errors_.min() < model.validation_errors_[0]
    assert 0 < model.n_iter_ <= 60
    without = LinkLearn(4, n_steps=60, batch=8, random_state=0).fit(training)
    assert without.objective_trace_[-1] < without.objective_trace_[0]
    assert not hasattr(without, "validation_errors_")
    threads = LinkLearn(4, n_steps=60, batch=8, random_state=0, n_jobs=2).fit(training)
    for one, other in zip(without.networks_, threads.networks_, strict=True):
        np.testing.assert_array_equal(one.theta, other.theta)


def test_the_mean_of_all_texts_is_the_sum_of_their_parts():
    task, nets = LinkObjective(some_links(), form()), networks()
    tables = task.tables(nets)
    sums = Tables(*map(np.zeros_like, tables))
    total = add_links(task.problem, tables, task.texts, 0, len(task.texts), False, sums)
    assert task.loss(nets, task.texts, 2)[0] == pytest.approx(total / len(task.texts))


def test_links_to_themselves_and_to_what_is_missing_are_counted():
    corpus = Corpus.of(["tin", "iron", "", "gold"], ids=["a", "b", "c", "d"], language=None)
    links = Links.of(corpus, [("a", "b"), ("b", "a"), ("a", "a"), ("c", "a"), ("c", "x"), ("y", "c")])
    assert (links.n_own, links.n_missing, len(links)) == (1, 2, 3)
    assert links.n_constraints == 2 * 1 + 1 * 2 + 1 * 2
    grades = links.grades()
    np.testing.assert_array_equal(grades, [[np.nan, 1, 1, 0], [1, np.nan, 0, 0], [1, 0, np.nan, 0]])
    some = links.take(np.array([2, 0]))
    np.testing.assert_array_equal(some.grades(), grades[[2, 0]])
    assert [some.texts.terms.tolist(), some.lengths.tolist()] == [[0], [0, 1]]
    LinkLearn(2, n_steps=3).fit(links)


def test_splitting_keeps_links_inside_parts():
    links = some_links(40)
    corpus = links.corpus
    pairs = [(a, b) for a in corpus.ids[:20] for b in corpus.ids[15:30]]
    parts = split_links(corpus, pairs, 0.5, random_state=0)
    inside = [set(part.corpus.ids) for part in parts]
    assert inside[0] | inside[1] == set(corpus.ids)
    assert not inside[0] & inside[1]
    for part, names in zip(parts, inside, strict=True):
        wanted = {frozenset(p) for p in pairs if set(p) <= names and p[0] != p[1]}
        assert len(part.linked) == 2 * len(wanted)


def test_it_is_saved(tmp_path):
    links = some_links()
    model = LinkLearn(3, n_steps=5, random_state=0).fit(links, links)
    corank.save(model, tmp_path / "model.safetensors")
    again = corank.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(
        again.to_index(links.corpus).scores(["w1 w2"]), model.to_index(links.corpus).scores(["w1 w2"])
    )


def test_the_form_of_the_paper_learns_and_is_saved(tmp_path):
    training, validation = misleading(1), misleading(2)
    how = {"b": 0.0, "positive": False, "solver": "sgd", "batch": 1, "n_steps": 600, "checks_per_pass": 2}
    model = LinkLearn(4, eta0=0.1, random_state=0, n_iter_no_change=99, **how).fit(training, validation)
    assert model.validation_errors_.min() < model.validation_errors_[0] - 0.05
    assert len(model.validation_errors_) == 1 + 2 * 5
    corank.save(model, tmp_path / "model.safetensors")
    again = corank.load(tmp_path / "model.safetensors")
    scores = [one.to_index(training.corpus).scores(["topic1x1 rare3"]) for one in (model, again)]
    np.testing.assert_array_equal(*scores)
    with pytest.raises(InputError, match=r"training diverged after .* steps with eta0=1e.06"):
        LinkLearn(4, eta0=1e6, random_state=0, **how).fit(training)


def test_lengths_may_count_by_b_only():
    plain = LinkLearn(3, n_steps=20, use_length=False, positive=False, random_state=0).fit(some_links())
    np.testing.assert_array_equal(plain.networks_[2](np.linspace(1, 20, 9)), 1.0)
    model = LinkLearn(3, n_steps=20, use_length=False, symmetric=False, at_top=True, random_state=0).fit(some_links())
    np.testing.assert_allclose(model.networks_[2](np.linspace(-2, 2, 9)), 1.0)


def test_no_steps_is_a_model_too():
    model = LinkLearn(3, n_steps=0, random_state=0).fit(some_links(), some_links(seed=3))
    assert model.n_iter_ == 0
    assert len(model.validation_errors_) == 1


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda c: Links.of(c, [("0", "x")]), "none of the 1 links is between existing documents"),
        (lambda c: Links.of(c, ["ab"]), "a link is 'ab'; pass pairs"),
        (lambda c: Links.of(c, [("0",)]), "pass pairs"),
        (lambda c: LinkLearn().fit([("0", "1")]), r"links is a list; pass Links.of\(corpus, pairs\)"),
        (lambda c: LinkLearn(0).fit(Links.of(c, [("0", "1")])), "n_hidden"),
        (lambda c: LinkLearn().fit(Links.of(c, [("0", "1")])), "every document is linked with all others"),
    ],
)
def test_what_is_wrong_is_said(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call(Corpus.of(["tin", "iron"], language=None))


def test_parts_tell_of_links_that_are_not_there():
    corpus = Corpus.of([f"iron ore {k}" for k in range(20)], ids=[f"d{k}" for k in range(20)], language=None)
    pairs = [(f"d{k}", f"d{k + 1}") for k in range(19)] + [("d0", "nope"), ("nope", "d1")]
    training, _ = split_links(corpus, pairs, 0.5, random_state=0)
    assert training.n_missing == 2
    with pytest.raises(InputError, match="none of the 1 links is between existing"):
        split_links(corpus, [("x", "y")])
    with pytest.raises(InputError, match="contains none of the 1 links"):
        split_links(corpus, [("d0", "d4")], random_state=0)
    with pytest.raises(InputError, match="fraction"):
        split_links(corpus, pairs, 1.5)


@pytest.mark.parametrize("name", ["", "a\nb", "a\tb", "\ud800"])
def test_documents_are_called_by_what_fits_in_a_line(name):
    with pytest.raises(InputError, match="a document has the id"):
        Corpus.of(["iron"], ids=[name])
