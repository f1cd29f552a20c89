"""Print the slowest files and folders of a run of pytest: python tests/slowest_files.py report.xml."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter


def seconds_by_file(report: str) -> Counter[str]:
    """Return the seconds of each test file in a report that ``pytest --junit-xml`` wrote."""
    seconds: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):
        seconds[case.get("classname", "").replace(".", "/")] += float(case.get("time", 0))
    return seconds


if __name__ == "__main__":
    files = seconds_by_file(sys.argv[1])
    folders: Counter[str] = Counter()
    for name, spent in files.items():
        folders["/".join(name.split("/")[:3])] += spent
    for table in (folders, files):
        print(*(f"{spent:8.1f} s  {name}" for name, spent in table.most_common(25)), sep="\n", end="\n\n")
