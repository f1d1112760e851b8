"""Sums the test counts of JUnit files into one line: `N passed, N failed, N skipped`; fails when a file is missing."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
missing = [name for name in sys.argv[1:] if not Path(name).is_file()]
for name in set(sys.argv[1:]) - set(missing):
    for suite in ET.parse(name).getroot().iter("testsuite"):  # noqa: S314 - written by our own pytest run
        for key in counts:
            counts[key] += int(suite.get(key, 0))
bad = counts["failures"] + counts["errors"]
print(*(f"{name} is missing: its run did not get so far" for name in missing), sep="\n")
print(f"{counts['tests'] - bad - counts['skipped']} passed, {bad + len(missing)} failed, {counts['skipped']} skipped")
sys.exit(1 if bad or missing or not counts["tests"] else 0)
