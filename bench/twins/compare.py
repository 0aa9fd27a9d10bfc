"""Compares what run.py wrote on a GPU and on the simulated device; prints a Markdown table of bytes and ratios.

usage: compare.py REAL.json SIMULATED.json

Exit status 1: a program's peak allocated bytes differ by more than 1 %, its peak reserved bytes by more than 3 %, or it
failed or is missing on one side.
"""
import json
import sys

PEAK_ALLOCATED_WITHIN = 0.01
PEAK_RESERVED_WITHIN = 0.03


def read(path):
    with open(path) as file:
        return {row["name"]: row for row in json.load(file)}


def versions(rows, key):
    return ", ".join(sorted({row[key] for row in rows.values() if row.get(key)})) or "-"


def ratio(real, simulated, key):
    return simulated[key] / real[key] if real[key] else float(simulated[key] == 0)


def judged(real, simulated):
    """The table's cells of a program, and what is wrong with it, or nothing."""
    for side, row in (("GPU", real), ("simulated device", simulated)):
        if row is None or "error" in row:
            return ["-"] * 6, f"{side}: {row['error'] if row else 'not run'}"
    cells, wrong = [], []
    for key, within in (("peak_allocated", PEAK_ALLOCATED_WITHIN), ("peak_reserved", PEAK_RESERVED_WITHIN)):
        part = ratio(real, simulated, key)
        cells += [f"{simulated[key]:,} / {real[key]:,}", f"{part:.4f}"]
        if abs(part - 1) > within:
            wrong.append(f"{key.replace('_', ' ')} is off by {abs(part - 1):.1%}")
    for key in ("device_allocations", "retries"):
        cells.append(f"{simulated[key]} / {real[key]}")
    for key in ("torch", "steps", "largest_batch"):
        if simulated.get(key) != real.get(key):
            wrong.append(f"{key.replace('_', ' ')}: {simulated.get(key)} / {real.get(key)}")
    return cells, "; ".join(wrong)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    real, simulated = read(sys.argv[1]), read(sys.argv[2])
    for key in ("device", "torch", "transformers"):
        print(f"{key}: {versions(simulated, key)} / {versions(real, key)}  ")
    print("\nSimulated / real, bytes.\n")
    print("| program | peak allocated | ratio | peak reserved | ratio | device allocations | retries | |")
    print("|---|---|---|---|---|---|---|---|")
    failed = False
    for name in [*real, *(name for name in simulated if name not in real)]:
        cells, wrong = judged(real.get(name), simulated.get(name))
        failed |= bool(wrong)
        print(f"| {name} | {' | '.join(cells)} | {wrong} |")
    sys.exit(failed)


if __name__ == "__main__":
    main()
