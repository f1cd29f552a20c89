"""One example for each verb, which its help ends with and a test runs."""

from __future__ import annotations

EXAMPLES = {
    "fit": "corank fit train.txt --model lcra --unscored -1 --output model.safetensors",
    "rank": "corank rank model.safetensors test.txt --output scores.txt",
    "evaluate": "corank evaluate test.txt scores.txt --metric nDCG@10 --metric AP",
    "compare": "corank compare train.txt --quick --unscored -1 --output study",
    "explain": "corank explain model.safetensors test.txt --pair 1 2",
    "suggest": "corank suggest model.safetensors train.txt --unscored -1 --number 20",
    "check-lambda": "corank check-lambda ndcg@10 --labels 2,1,0",
    "screen": "corank screen records.csv --topic 'heat pumps in old houses'",
    "ask": "corank ask items.csv --simulate grade",
    "index": "corank index articles --output articles.index",
    "search": "corank search articles.index 'heat pump'",
    "learn-links": "corank learn-links articles.index links.tsv --output links.safetensors",
    "simulate-clicks": "corank simulate-clicks test.txt --model pdgd --user navigational",
    "learn-clicks": "corank learn-clicks rows.csv clicks.csv --bias 1 --output clicks.safetensors",
    "convert": "corank convert train.txt train.store --unscored -1",
    "demo": "corank demo --output out/demo",
}
"""A command for each verb."""


def epilog_of(function: str) -> str | None:
    """
    Return what the help of a verb ends with.

    function: name of the function that is the verb.
    """
    example = EXAMPLES.get(function.replace("_", "-"))
    return None if example is None else f"\b\nExample:\n  {example}"  # \b keeps the lines as they are
