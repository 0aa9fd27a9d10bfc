"""Runs transformer.py in turns: as it is, under the shim, and with torch's own recorder; prints ratios of step times.

usage: compare.py SHIM [--rounds 5] [--steps 200] [--only "plain; shim"]

Each round runs every kind once, each in a process of its own, so that the machine's drift falls on all alike. The ratio of a
kind is the median over rounds of its median step time over that of the plain run of the same round.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

KINDS = {
    "plain": ([], {}),
    "shim": ([], {"shim": True}),
    "shim, no stacks": ([], {"shim": True, "GPUMEM_MODE": "ledger"}),
    "shim, full native": ([], {"shim": True, "GPUMEM_FULL_NATIVE": "1"}),
    "torch recorder, python": (["--recorder", "python"], {}),
    "torch recorder, all": (["--recorder", "all"], {}),
}


def run(shim, steps, kind, folder):
    arguments, settings = KINDS[kind]
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    environment.update({key: value for key, value in settings.items() if key != "shim"})
    if settings.get("shim"):
        environment.update(LD_PRELOAD=shim, GPUMEM_DIR=folder, GPUMEM_SOCKET=os.path.join(folder, "none"))
    loop = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transformer.py")
    command = [sys.executable, loop, "--steps", str(steps), *arguments]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shim")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    kinds = [kind for kind in KINDS if not options.only or kind in [name.strip() for name in options.only.split(";")]]
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            rounds.append({kind: run(os.path.abspath(options.shim), options.steps, kind, folder) for kind in kinds})
    print(f"{'':26} {'median ms':>10} {'p10 ms':>8} {'ratio':>7}  ratios of the rounds")
    for kind in kinds:
        ratios = [row[kind]["median_ms"] / row["plain"]["median_ms"] for row in rounds]
        median = statistics.median(row[kind]["median_ms"] for row in rounds)
        tenth = statistics.median(row[kind]["p10_ms"] for row in rounds)
        spread = " ".join(f"{ratio:.3f}" for ratio in sorted(ratios))
        print(f"{kind:26} {median:10.2f} {tenth:8.2f} {statistics.median(ratios):7.3f}  {spread}")


if __name__ == "__main__":
    main()
