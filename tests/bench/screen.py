"""The terminal engine by itself, without a server: what it takes in a second and
what it remembers. The other side, in OpenSSH's column, is libtsm.
"""

import json
import subprocess

import servers

PROGRAM = servers.ROOT / "build" / "bench" / "screen_bench"
SIDES = {"berth": "engine", "openssh": "tsm"}


def screen(bench, side):
    """Every stream once."""
    done = subprocess.run(
        [str(PROGRAM), "-m", str(bench.sizes.screen_mb), SIDES[side.name]],
        stdout=subprocess.PIPE, check=True, timeout=600)
    return json.loads(done.stdout)


MEASURES = {"screen": screen}
