"""A small review of our own as a RIS file: some records are about bees and pesticides, the others are not."""

from __future__ import annotations

from itertools import cycle

RELEVANT = ("Pollen residues of neonicotinoids in honey bee colonies", "Pesticides and foraging of bumble bees",
            "Sublethal insecticide doses and the memory of bees")  # fmt: skip
OTHERS = ("Freezing of concrete in bridges", "A survey of medieval tax rolls", "Glacier melt and river discharge",
          "Tuning of violin strings", "Sorting networks of small depth")  # fmt: skip


def bees(n, every=4):
    """Return a RIS file of n records; each `every`-th is relevant, and the second is a duplicate of the last."""
    relevant, others = cycle(RELEVANT), cycle(OTHERS)
    records = []
    for number in range(n):
        is_relevant = number % every == 0
        title = f"{next(relevant if is_relevant else others)}: study {number}"
        about = "bees exposed to pesticide in pollen" if is_relevant else "a material or a text that nobody eats"
        records.append(_record(number, title, f"We report on {about}, with {number + 3} samples.\nResults vary."))
    return "\n".join(records)


def with_duplicate(n):
    """Return a RIS file whose first record comes twice."""
    return bees(n) + "\n" + _record(0, f"{RELEVANT[0]}: study 0.", "").replace("ID  - b0", "ID  - again")


def _record(number, title, abstract):
    lines = [
        "TY  - JOUR", f"ID  - b{number}", f"TI  - {title}", f"AU  - Roe, Ann {number}", "AU  - Doe, Ben", "PY  - 2019",
        "JO  - Journal of Small Studies", f"DO  - 10.1000/bees.{number}", "KW  - field study", "KW  - bees & flies",
        f"UR  - https://studies.example/{number}", *([f"AB  - {abstract}"] if abstract else []), "ER  - ", "",
    ]  # fmt: skip
    return "\n".join(lines)
