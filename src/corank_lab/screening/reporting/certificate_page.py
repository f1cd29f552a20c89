"""The page of a screening certificate."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from corank.comparison import page, section
from corank_lab.screening.reporting.certificate import NOT_PROVED

WORDS = {
    "proved": "Proved",
    "tested": "Tested, under an assumption about the order",
    "estimated": "Estimated by a model; this proves nothing",
    "none": "No evidence yet",
}
"""What each kind of evidence amounts to."""


def certificate_page(certificate: Mapping[str, Any], name: str) -> str:
    """Return a certificate as an HTML page."""
    rule, records, reading, sample, result = (
        certificate[part] for part in ("rule", "records", "reading", "sample", "result")
    )
    files = " ".join(record["name"] for record in records["files"])
    parts = [
        ("result", "What is known", _lead(result, rule), _pairs({
            "Evidence": WORDS[result["evidence"]],
            "Assumed": rule["assumes"],
            "Rule, target, confidence": f"{rule['name']}, {rule['target']:g}, {rule['confidence']:g}",
            "Proved lower bound of the recall": "none" if result["bound"] is None else f"{result['bound']:.4f}",
            "Probability of the target by the model": f"{result['probability_by_model']:.4f}",
            "p of a missed target, sequential test": f"{result['p_missed']:.4f}",
        })),
        ("reading", "What was read", _pairs({
            "Records": f"{records['n']:,}, {records['to_judge']:,} of them to judge",
            "Read": f"{reading['read']:,}, {reading['known_beforehand']:,} of them known beforehand",
            "Relevant": f"{reading['found']:,}",
            "Unread": f"{reading['unread']:,}",
            "Last answer": reading["last_answer"] or "no time in the log",
            "Software": certificate["software"],
        })),
        ("sample", "The random sample", _sample(sample) if sample else ""),
        ("files", "Files", _hashes(certificate)),
        ("verify", "Verify it", f"<pre>corank screen verify {escape(name)} {escape(files)} --answers FOLDER</pre>"
         "<p>The command computes everything on this page anew from records and logs, and names what differs.</p>"),
        ("limits", "What is not proved", f"<p>{escape(NOT_PROVED)}</p>"),
    ]  # fmt: skip
    body = "\n".join(section(anchor, title, *blocks) for anchor, title, *blocks in parts)
    links = [(anchor, title) for anchor, title, *blocks in parts if any(blocks)]
    return page("Certificate of a screening", body, links)


def _lead(result: Mapping[str, Any], rule: Mapping[str, Any]) -> str:
    missed = "" if result["reached"] else f" The target of {rule['target']:g} is not reached by this rule."
    return f'<p class="verdict">{escape(result["statement"])}{escape(missed)}</p>'


def _pairs(values: Mapping[str, str]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>' for name, text in values.items()
    )
    return f'<div class="wide"><table><tbody>{rows}</tbody></table></div>'


def _sample(sample: Mapping[str, Any]) -> str:
    pairs = zip(sample["ids"], sample["relevant"], strict=True)
    answers = ("not relevant", "relevant")
    rows = "".join(
        f'<tr><th scope="row">{place}</th><td>{escape(name)}</td><td>{answers[bool(hit)]}</td></tr>'
        for place, (name, hit) in enumerate(pairs, 1)
    )
    tests = "; ".join(f"{item['size']} draws at error {item['error']:.4g}" for item in sample["tests"]) or "none yet"
    facts = _pairs({
        "Drawn from": f"{sample['drawn_from']:,} unread records, by seed {sample['seed']}",
        "Read": f"{len(sample['ids']):,}, {sum(sample['relevant'])} of them relevant",
        "Relevant records found before": f"{sample['found_before']:,}",
        "Tests": tests,
    })  # fmt: skip
    head = '<tr><th scope="col">draw</th><th scope="col">record</th><th scope="col">answer</th></tr>'
    table = f'<div class="wide"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'
    return f"{facts}<details><summary>All draws in their order</summary>{table}</details>"


def _hashes(certificate: Mapping[str, Any]) -> str:
    files = [(item["name"], "records", item["sha256"]) for item in certificate["records"]["files"]]
    files += [
        (f"{item['judge']}.jsonl", f"log, {item['lines']} lines", item["sha256"]) for item in certificate["answers"]
    ]
    files.append(("this certificate", "without this hash", certificate["sha256"]))
    head = "".join(f'<th scope="col">{name}</th>' for name in ("file", "content", "SHA-256"))
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(what)}</td><td><code>{_breakable(value)}</code></td></tr>'
        for name, what, value in files
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _breakable(value: str) -> str:
    """A hash in groups of sixteen digits, between which a line may end."""
    return "<wbr>".join(escape(value[i : i + 16]) for i in range(0, len(value), 16))
