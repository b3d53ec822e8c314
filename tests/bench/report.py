"""Statistics of samples and what is printed of them: a table for people, one
for the README, and everything as JSON. Knows nothing of servers. A timing
decides no test: `short` in a table is a finding, never an exit status.
"""

import datetime
import json
import math
import os
import platform
import subprocess


def quantile(samples, q):
    """The q-quantile, interpolated between neighbours; None of nothing."""
    if not samples:
        return None
    ordered = sorted(samples)
    at = (len(ordered) - 1) * q
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(samples):
    return quantile(samples, 0.5)


STATS = {
    "median": median,
    "p99": lambda samples: quantile(samples, 0.99),
}


def ratio(ours, theirs):
    """Ours over theirs, None if there is nothing to divide by."""
    if ours is None or not theirs:
        return None
    return ours / theirs


class Row:
    """One line of the table: which metric of which measure, and its aim.

    `better` is "higher" or "lower". An aim is a bound of the ratio ("x") or of
    the value itself (the row's unit); None is a number without one.
    """

    def __init__(self, measure, metric, name, unit, better, aim=None,
                 aim_is_ratio=True, stat="median"):
        assert better in ("higher", "lower") and stat in STATS
        self.measure, self.metric, self.name = measure, metric, name
        self.unit, self.better, self.stat = unit, better, stat
        self.aim, self.aim_is_ratio = aim, aim_is_ratio

    @property
    def key(self):
        return f"{self.measure}.{self.metric}"

    def value(self, samples):
        return STATS[self.stat](samples)

    def aim_text(self):
        if self.aim is None:
            return ""
        sign = ">=" if self.better == "higher" else "<="
        return f"{sign} {self.aim:g} {'x' if self.aim_is_ratio else self.unit}"

    def verdict(self, ours, theirs):
        """"ok", "short", or "" when there is no aim or no number."""
        seen = ratio(ours, theirs) if self.aim_is_ratio else ours
        if self.aim is None or seen is None:
            return ""
        is_met = (seen >= self.aim if self.better == "higher"
                  else seen <= self.aim)
        return "ok" if is_met else "short"


def number(value):
    """Three significant digits, or the whole part of a large number."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}"


HEAD = ("", "unit", "berth", "OpenSSH", "ratio", "aim", "")


def lines(rows, samples):
    """The cells of every row that has a number. samples: key -> side -> []"""
    found = []
    for row in rows:
        sides = samples.get(row.key, {})
        ours = row.value(sides.get("berth", []))
        theirs = row.value(sides.get("openssh", []))
        if ours is None and theirs is None:
            continue
        r = ratio(ours, theirs)
        found.append((
            row.name, row.unit, number(ours), number(theirs),
            "-" if r is None else f"{r:.2f}", row.aim_text(),
            row.verdict(ours, theirs),
        ))
    return found


def text_table(rows, samples):
    table = [HEAD, *lines(rows, samples)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEAD))]
    # names, units and verdicts to the left, numbers to the right
    aligned = [
        "  ".join(
            cell.rjust(width) if 2 <= i <= 4 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in table
    ]
    return "\n".join(aligned)


def markdown_table(rows, samples):
    table = [HEAD, ("---",) * len(HEAD), *lines(rows, samples)]
    return "\n".join(
        "|" + "|".join(f" {cell} " if cell else " " for cell in line) + "|"
        for line in table
    )


def output_of(*args):
    """The first line that a program says about itself."""
    try:
        done = subprocess.run(args, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = done.stdout.decode("utf-8", "replace").splitlines()
    return said[0].strip() if said else ""


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def machine():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "memory_mib": memory >> 20,
        "kernel": platform.release(),
    }


def heading(about):
    m, v = about["machine"], about["versions"]
    return (
        f"{about['date']}, {m['cpus']} x {m['cpu']}, Linux {m['kernel']},"
        f" {v['openssh']}, {v['libssh'] or 'libssh'}; medians of"
        f" {about['rounds']} interleaved rounds"
    )


def about(rounds, versions):
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "date": now.strftime("%Y-%m-%d"),
        "time": now.isoformat(timespec="seconds"),
        "rounds": rounds,
        "machine": machine(),
        "versions": versions,
    }


def document(rows, samples, info):
    """What build/bench.json holds: samples too, for another look later."""
    result = []
    for row in rows:
        sides = samples.get(row.key)
        if not sides:
            continue
        ours = row.value(sides.get("berth", []))
        theirs = row.value(sides.get("openssh", []))
        result.append({
            "key": row.key, "name": row.name, "unit": row.unit,
            "better": row.better, "stat": row.stat,
            "berth": ours, "openssh": theirs, "ratio": ratio(ours, theirs),
            "aim": row.aim_text(), "verdict": row.verdict(ours, theirs),
            "samples": sides,
        })
    return {**info, "rows": result}


def save(path, content):
    """Replaces the file whole."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(content, indent=1) + "\n")
    new.rename(path)
