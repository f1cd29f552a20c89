"""
Certificates of a screening: what the stopping rule states, and everything that is needed to compute it again.

A certificate is a JSON object with the rule and its assumptions, the hashes of the files of records and of the logs,
the finds, the random sample with its seed, order and answers, the exact bound, and a hash of itself. `verify` reads the
same files on any machine, computes everything anew and compares it value by value.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from corank import __version__
from corank.data import read_regular
from corank.errors import InputError, suggest_names
from corank_lab.database.journal import parse_lines
from corank_lab.records.duplicates import find_duplicates
from corank_lab.records.records import read_records
from corank_lab.screening.answers import Judges, ScreeningAnswers, ScreeningEntry, combine, find_conflicts
from corank_lab.screening.project import DEFAULT_PLAN, ScreeningPlan
from corank_lab.screening.stopping.forecast import advice_sentence
from corank_lab.screening.stopping.rules import StoppingRule
from corank_lab.screening.stopping.urns import RandomSample, p_by_betting, percent, proof_sentence
from corank_lab.screening.team import read_logs, unique_records

KIND, FORMAT = "corank screening certificate", 2
PARTS = ("rule", "records", "answers", "reading", "sample", "result")
"""Parts that are computed from the files."""

OLD_PARTS = ("records", "answers", "reading")
"""The same of format 1, of version 0.2, whose stopping rules and sequential tests are gone."""

FORM: Mapping[str, Any] = {
    "kind": str, "format": int, "software": str,
    "rule": {"name": str, "target": float, "confidence": float},
    "records": {"files": [{"name": str, "sha256": str}], "n": int, "to_judge": int, "duplicates_joined": bool},
    "answers": [{"judge": str, "bytes": int, "sha256": str}],
    "reading": {}, "sample": {"seed": int}, "result": {"statement": str}, "sha256": str,
}  # fmt: skip
"""Types of the values that are read before everything is computed; other values are compared with those computed."""

NOT_PROVED = (
    "Not proved: who answered, when, whether the answers are right, whether records that were joined as duplicates are "
    "the same work, and that rule, target, confidence, seed and the begin of the sample were chosen before the "
    "reading. A record on which judges disagree counts as relevant until that is settled. Nothing is signed: whoever "
    "has records and logs can change both and write a new certificate that verifies. So register the protocol "
    "beforehand, and keep the hash of this certificate elsewhere."
)
"""What a certificate does not show."""

Values = dict[str, Any]


class SeparateSamplesError(InputError):
    """Several judges have drawn random samples of their own, so that no sample covers all answers."""


def make_certificate(
    records: Sequence[Path],
    answers: Path | Mapping[str, bytes] | None = None,
    *,
    plan: ScreeningPlan = DEFAULT_PLAN,
    keep_duplicates: bool = False,
    judge: str | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> Values:
    """Make the certificate of a screening; the columns of title and text may be named."""
    if answers is None or isinstance(answers, Path):
        logs: dict[str, bytes] = {}
        for name, lines in read_logs(records, read_records(*records, **columns), answers):
            logs.setdefault(name, lines)  # that of a project comes first, and has what was imported of a file
    else:
        logs = dict(answers)
    if judge is not None:
        if judge not in logs:
            raise InputError(f"there are no answers of the judge {judge!r}; {suggest_names(judge, list(logs))}.")
        logs = {judge: logs[judge]}
    parts = _compute(records, logs, plan, keep_duplicates, columns)
    return _sealed({"kind": KIND, "format": FORMAT, "software": f"corank {__version__}", **parts})


def certificate_bytes(certificate: Mapping[str, Any]) -> bytes:
    """Return the content of a certificate file."""
    return (json.dumps(certificate, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def verify(certificate: bytes, records: Sequence[Path], answers: Path | None = None) -> tuple[str, ...]:
    """Compute a certificate anew from records and logs."""
    given = _opened(certificate)
    _require_files(given["records"]["files"], records)
    columns = given["records"].get("columns", {})
    if not _has_form(columns, dict.fromkeys(columns, str)) or not columns.keys() <= {"title", "text"}:
        raise InputError("the certificate was changed after it was made: it is not written as corank writes it.")
    logs = _matching_logs(given["answers"], read_logs(records, read_records(*records, **columns), answers))
    wanted, sample = given["rule"], given["sample"]
    is_old = given["format"] != FORMAT
    rule = ScreeningPlan.rule if is_old else wanted["name"]
    plan = ScreeningPlan(rule, wanted["target"], wanted["confidence"], seed=sample["seed"] if sample else 0)
    result = _compute(records, logs, plan, not given["records"]["duplicates_joined"], columns)
    parts = OLD_PARTS if is_old else PARTS
    both = [{part: values[part] for part in parts} for values in (given, _plain(result))]
    difference = next(iter(_differences(both[0], both[1])), None)
    if difference is not None:
        where, stated, computed = difference
        raise InputError(
            f"the certificate is not confirmed: it states {where} = {_short(stated)}, but records and logs give "
            f"{_short(computed)}."
        )
    return _confirmed(given)


def _sealed(values: Values) -> Values:
    plain: Values = _plain(values)
    return {**plain, "sha256": _hash_of(plain)}


def _hash_of(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(values: Values) -> Any:
    return json.loads(json.dumps(values))


def _opened(content: bytes) -> Values:
    try:
        values = json.loads(content)
        text = certificate_bytes(values)
    except (ValueError, RecursionError):
        raise InputError(
            "the certificate is not valid JSON; pass the .json file that corank screen certify wrote."
        ) from None
    if not isinstance(values, dict) or values.get("kind") != KIND or values.get("format") not in (1, FORMAT):
        raise InputError(
            f"the file is not a {KIND} of format 1 or {FORMAT}; pass the .json file that corank screen certify wrote."
        )
    if values.get("sha256") != _hash_of({key: value for key, value in values.items() if key != "sha256"}):
        raise InputError(
            "the certificate was changed after it was made: its hash does not fit its content; ask for the original."
        )
    if text != content or values.keys() != FORM.keys() or not _has_form(values, FORM):
        raise InputError("the certificate was changed after it was made: it is not written as corank writes it.")
    return values


def _has_form(value: Any, form: Any) -> bool:
    """Whether values have the types of `FORM`, and more of them at most inside; the sample may be None."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return value is None and form is FORM["sample"]
        return all(key in value and _has_form(value[key], form[key]) for key in form)
    if isinstance(form, list):
        return isinstance(value, list) and all(_has_form(item, form[0]) for item in value)
    return type(value) is form and (form is not int or value >= 0)


def _require_files(files: Sequence[Mapping[str, Any]], records: Sequence[Path]) -> None:
    if len(files) != len(records):
        names = ", ".join(file["name"] for file in files)
        raise InputError(f"the certificate is about {len(files)} files ({names}), but {len(records)} were passed.")
    for stated, path in zip(files, records, strict=True):
        if (result := hashlib.sha256(read_regular(path)).hexdigest()) != stated["sha256"]:
            raise InputError(
                f"{path} differs from the records of the certificate: its SHA-256 is {result[:16]}…, expected "
                f"{stated['sha256'][:16]}… ({stated['name']})."
            )


def _matching_logs(stated: Sequence[Mapping[str, Any]], found: Sequence[tuple[str, bytes]]) -> dict[str, bytes]:
    """Return the logs as they were when the certificate was made; lines that were added later are left out."""
    logs = {}
    for log in stated:
        parts = [content[: log["bytes"]] for judge, content in found if judge == log["judge"]]
        same = [part for part in parts if hashlib.sha256(part).hexdigest() == log["sha256"]]
        if not parts:
            raise InputError(f"the log of the judge {log['judge']!r} is missing; pass its folder with --answers.")
        if not same:
            raise InputError(
                f"the log of the judge {log['judge']!r} differs from the log of the certificate in its first "
                f"{log['bytes']:,} bytes; an answer was changed, removed or inserted."
            )
        logs[log["judge"]] = same[0]
    return logs


def _compute(
    paths: Sequence[Path],
    logs: Mapping[str, bytes],
    plan: ScreeningPlan,
    keep_duplicates: bool,
    columns: Mapping[str, str],
) -> Values:
    files = [{"name": path.name, "sha256": hashlib.sha256(read_regular(path)).hexdigest()} for path in paths]
    records = read_records(*paths, **columns)
    entries = {judge: parse_lines(ScreeningEntry, content, Path(f"{judge}.jsonl")) for judge, content in logs.items()}
    entries = {judge: lines for judge, lines in entries.items() if lines}
    if not entries:
        raise InputError(f"there are no answers for {paths[0]} yet; run corank screen {paths[0]} first.")
    everyone = [entry for lines in entries.values() for entry in lines]
    unique = unique_records(records, None if keep_duplicates else find_duplicates(records), everyone)
    judges = {judge: ScreeningAnswers(unique, lines) for judge, lines in entries.items()}
    team = combine(judges) if len(judges) > 1 else next(iter(judges.values()))
    n = len(unique.unique)
    rule = plan.rule_for(n - len(team.beforehand))
    for judge, lines in entries.items() if rule.needs_sample and team.is_sampled else ():
        _require_times(judge, lines)
    sample = sample_part(rule, team, judges, plan.seed)
    return {
        "rule": {
            "name": plan.rule, "target": plan.target, "confidence": rule.confidence, "evidence": rule.evidence,
            "assumes": rule.assumes,
        },
        "records": {
            "files": files, "n": len(records), "to_judge": n, "duplicates_joined": not keep_duplicates,
            **({"columns": dict(columns)} if columns else {}),
        },
        "answers": [
            {
                "judge": judge, "lines": len(entries.get(judge, ())), "bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
            for judge, content in sorted(logs.items())
        ],
        "reading": {
            "read": len(team.relevant), "found": team.n_found, "unread": n - len(team.relevant),
            "known_beforehand": len(team.beforehand), "ranked": len(team.ranked), "finds": list(team.finds),
            "last_answer": max((entry.time for entry in everyone), default=""),
        },
        "sample": sample,
        "result": {**result_part(rule, team, n, sample), "in_conflict": len(find_conflicts(judges))},
    }  # fmt: skip


def sample_part(rule: StoppingRule, team: ScreeningAnswers, judges: Judges, seed: int) -> Values | None:
    """The random sample of a rule that needs one; raise if its answers do not follow the order of the seed."""
    if not rule.needs_sample or not team.is_sampled:
        return None
    ids = team.unique.unique.ids
    sample = RandomSample(team, len(ids), rule, seed)
    _require_order(sample, judges, ids)
    labels = sample.labels
    looks = [size for size in sample.plan.sizes if size <= len(labels)]
    return {
        "seed": seed, "drawn_from": sample.plan.unread, "found_before": sample.plan.found,
        "ids": [ids[number] for number in sample.drawn[: len(labels)]], "relevant": [int(label) for label in labels],
        "tests": [{"size": size, "error": sample.plan.error(look)} for look, size in enumerate(looks)],
        "proved_at": sample.plan.proved_at(labels),
        "bound": round(sample.plan.bound(labels), 6), "elusion": sample.elusion(),
    }  # fmt: skip


def _require_order(sample: RandomSample, judges: Judges, ids: Sequence[str]) -> None:
    """Raise if the sample of all judges together was not answered in its order; say so if each judge drew another."""
    wrong = _out_of_turn(sample)
    if wrong is None:
        return
    sampling = [judge for judge, answers in judges.items() if answers.is_sampled]
    if len(judges) > 1 and all(_out_of_turn(replace(sample, answers=judges[judge])) is None for judge in sampling):
        names = " and ".join(", ".join(sampling).rsplit(", ", 1))
        drew = "drew a random sample" if len(sampling) == 1 else "each drew a random sample"
        raise SeparateSamplesError(
            f"{names} {drew} from the records that this judge alone had not read, so no sample covers the answers of "
            f"all judges; certify one judge (corank screen certify --judge {sampling[0]}), or sample together "
            "(--share)."
        )
    raise InputError(
        f"record {ids[wrong]!r} was answered as part of the sample, but the order of seed {sample.seed} does not draw "
        "it then; pass the seed of the screening, or read the sample in its order."
    )


def _out_of_turn(sample: RandomSample) -> int | None:
    """The first sampled record that was answered out of turn: only the draws before the next test may be answered."""
    done: set[int] = set()
    prefix = 0
    for number, way in sample.answers.chosen_by.items():
        if way != "sample":
            continue
        size = next((size for size in sample.plan.sizes if size > prefix), len(sample.drawn))
        if number not in sample.drawn[:size]:
            return number
        done.add(number)
        while prefix < len(sample.drawn) and sample.drawn[prefix] in done:
            prefix += 1
    return None


def _require_times(judge: str, lines: Sequence[ScreeningEntry]) -> None:
    """Raise if an answer to the sample is older than the reading before it, after which the sample was drawn."""
    last = ""
    for place, entry in enumerate(lines, 1):
        if entry.by == "sample" and entry.time and entry.time < last:
            raise InputError(
                f"{judge}.jsonl, line {place}: the answer to the sample is of {entry.time}, before the reading ended "
                f"({last}); a sample must be drawn before its answers."
            )
        if entry.by in ("start", "model"):
            last = max(last, entry.time)


def result_part(rule: StoppingRule, team: ScreeningAnswers, n: int, sample: Values | None) -> Values:
    """What the rule states, and under which assumptions."""
    unread = n - len(team.relevant)
    finds, read, assumes = team.finds, len(team.ranked), rule.assumes
    p = p_by_betting(finds, read, rule.n, team.n_known, rule.target)
    probability = rule.rates.probability(finds, read, team.n_known, rule.target)
    bound: float | None = None
    if not unread:
        evidence, bound, reached, assumes = "proved", 1.0, True, "Every answer is right."
        says = "Proved: every record to judge was read, so every relevant one is found."
    elif rule.needs_sample:
        reached = sample is not None and sample["proved_at"] is not None
        evidence = rule.evidence if sample is not None and sample["tests"] else "none"
        bound = sample["bound"] if sample is not None else None
        says = "No proof: no random sample was read as far as its first test."
        if sample is not None and sample["tests"]:
            says = proof_sentence(sample["bound"], unread, rule.confidence)
    else:
        since, advice = advice_sentence(rule, finds, read, team.n_known, before=len(team.relevant) - read)
        reached = since is not None
        evidence = rule.evidence if reached else "none"
        verb = "Tested under the assumption below" if evidence == "tested" else "Estimated, not proved"
        claim = f"{verb}: at least {percent(rule.target)} of the relevant records are found. {advice}"
        not_yet = f"The rule '{rule.name}' does not advise to stop: {rule.reason(finds, read, team.n_known)}."
        says = claim if reached else f"Nothing is stated about the recall. {not_yet}"
    return {
        "reached": reached, "evidence": evidence, "bound": bound, "p_missed": round(p, 6),
        "probability_by_model": round(probability, 6), "assumes": assumes, "statement": says,
    }  # fmt: skip


def _confirmed(given: Mapping[str, Any]) -> tuple[str, ...]:
    records, reading, sample = given["records"], given["reading"], given["sample"]
    lines = [
        f"The {records['n']:,} records and the answers of {_n(len(given['answers']), 'judge')} are those of the "
        "certificate, byte for byte.",
        f"{reading['read']:,} of {records['to_judge']:,} records to judge are read, {reading['found']} of them "
        f"relevant; {reading['unread']:,} are unread.",
    ]
    if sample and given["format"] == FORMAT:  # that of format 1 is not computed anew
        lines.append(
            f"The {len(sample['ids'])} records of the random sample are the first of the order that seed "
            f"{sample['seed']} draws from {sample['drawn_from']:,} unread records, and were answered after the "
            "reading, by the times in the logs."
        )
    if given["format"] != FORMAT:
        old = (
            "The certificate is of version 0.2. Records, answers and the order of reading are confirmed; its statement "
            f"by the rule {given['rule']['name']!r} was not computed anew: certify again to have one that is."
        )
        return (*lines, old, NOT_PROVED)
    confirmed = f"Computed anew, with the same result. {given['result']['statement']}"
    return (*lines, confirmed, f"Assumed: {given['result']['assumes']}", NOT_PROVED)


def _differences(stated: Any, found: Any, where: str = "") -> list[tuple[str, Any, Any]]:
    """Places at which two JSON values differ; numbers may differ by rounding of other processors."""
    if isinstance(stated, dict) and isinstance(found, dict) and stated.keys() == found.keys():
        return [
            difference
            for key in stated
            for difference in _differences(stated[key], found[key], f"{where}.{key}".lstrip("."))
        ]
    if isinstance(stated, list) and isinstance(found, list) and len(stated) == len(found):
        pairs = enumerate(zip(stated, found, strict=True), 1)
        return [difference for i, (a, b) in pairs for difference in _differences(a, b, f"{where}[{i}]")]
    both = [value for value in (stated, found) if isinstance(value, float) and not isinstance(value, bool)]
    if both and all(isinstance(value, int | float) for value in (stated, found)) and abs(stated - found) <= 2e-6:
        return []
    return [] if stated == found and type(stated) is type(found) else [(where, stated, found)]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _n(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"
