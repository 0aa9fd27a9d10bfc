"""Runs every twin program in a process of its own and writes one JSON file; compare.py reads two of them.

usage: run.py OUTPUT.json [--sim FOLDER] [--small-d2h BYTES] [--only "mlp resnet50"] [--timeout 120]

On a GPU, with a Python that has torch and transformers:
    python bench/twins/run.py real.json
On the simulated H200, in an environment that tests/torch-env.sh FOLDER made (transformers and triton added by pip):
    python3 bench/twins/run.py sim.json --sim FOLDER

A program that fails, or takes longer than --timeout seconds, is a row with its error; the others go on. Exit status 1 says
that there was one.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def simulated(folder, small_d2h_bytes):
    """The Python and the environment of the simulated H200."""
    folder = os.path.abspath(folder)
    return os.path.join(folder, "venv/bin/python"), {
        "LD_LIBRARY_PATH": os.path.join(folder, "lib"),
        "GPUMEM_SIM_DEVICE": "h200",
        "GPUMEM_SIM_SMALL_D2H": str(small_d2h_bytes),
    }


def run(python, environment, name, timeout_s):
    """One program's row: what it printed, or its error."""
    command = [python, os.path.join(HERE, "programs.py"), name]
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        # A session of its own, so that its worker processes end with it.
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=errors, start_new_session=True)
        try:
            status = process.wait(timeout_s)
            failure = f"exit status {status}" if status else None
        except subprocess.TimeoutExpired:
            failure = f"not done after {timeout_s} s"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        errors.seek(0)
        printed = [line for line in output.read().splitlines() if line.startswith("{")]
        said = [line for line in errors.read().splitlines() if line.strip()]
    if printed and failure is None:
        row = json.loads(printed[-1])
    else:
        row = {"name": name, "error": f"{failure or 'printed nothing'}: {said[-1] if said else ''}", "stderr": said[-20:]}
    return {**row, "process_seconds": round(time.perf_counter() - start, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output")
    parser.add_argument("--sim", metavar="FOLDER")
    parser.add_argument("--small-d2h", type=int, default=16, metavar="BYTES")
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=float, default=120)
    options = parser.parse_args()
    python, environment = sys.executable, dict(os.environ)
    # Set for one of the twins alone, it would make them differ.
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        environment.pop(name, None)
    if options.sim:
        python, settings = simulated(options.sim, options.small_d2h)
        environment.update(settings)
    listed = subprocess.run([python, os.path.join(HERE, "programs.py"), "--list"], check=True, capture_output=True, text=True)
    names = options.only.split() or listed.stdout.split()
    rows = []
    for name in names:
        row = run(python, environment, name, options.timeout)
        rows.append(row)
        print(f"{name:28} {row['process_seconds']:7.2f} s  {row.get('error') or row['peak_allocated']}", file=sys.stderr, flush=True)
        # Written each time, so that a run that is stopped leaves what it has.
        with open(options.output, "w") as file:
            json.dump(rows, file, indent=1)
            file.write("\n")
    sys.exit(any("error" in row for row in rows))


if __name__ == "__main__":
    main()
