#!/usr/bin/env python3
"""Real PyTorch jobs under the real `gpumem run` and under plain LD_PRELOAD, on a GPU or on the simulated device.

usage: tests/gpu/run.py [--gpumem target/release/gpumem] [--python python3 | --sim FOLDER] [NAME...]

FOLDER is what `tests/torch-env.sh` made. Without it, and without an NVIDIA GPU or PyTorch, tests are skipped and say why.
The closing line reads: N passed, N failed, N skipped
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
JOBS = os.path.join(HERE, "jobs")
TIMEOUT_S = 300
EXPANDABLE = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}


class Skipped(Exception):
    """A test that cannot run here."""


class Bench:
    """Where the programs are, and how a job is run and judged."""

    def __init__(self, gpumem, python):
        self.gpumem = os.path.abspath(gpumem)
        self.python = python
        self.shim = os.path.join(os.path.dirname(self.gpumem), "libgpumemshim.so")

    def need_torch(self):
        probe = "import torch; raise SystemExit(not torch.cuda.is_available())"
        if subprocess.run([self.python, "-c", probe], capture_output=True).returncode:
            raise Skipped(f"{self.python} has no PyTorch that sees a GPU")

    def leaks(self, source):
        done = subprocess.run([self.gpumem, "leaks", source, "--json"], capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["processes"]

    def recorded(self, command, settings=(), preload=False):
        """Runs a job; gives what it printed and the rows of `gpumem leaks`."""
        environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"} | dict(settings)
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "job.gpumem")
            if preload:
                source = folder
                environment |= {"LD_PRELOAD": self.shim, "GPUMEM_DIR": folder, "GPUMEM_SOCKET": f"{folder}/none"}
            else:
                command = [self.gpumem, "run", "-o", source, "--", *command]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
            assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-500:]}"
            return done.stdout, self.leaks(source)


def totals(bench, settings):
    """Torch's own totals equal our sums at every event of a loop of 200 steps, nothing is lost, nothing is accused."""
    bench.need_torch()
    _, rows = bench.recorded([bench.python, os.path.join(JOBS, "train.py")], settings)
    (row,) = [row for row in rows if row["torch_totals"]]
    live, reserved = row["torch_totals"]["live"], row["torch_totals"]["reserved"]
    assert live["events"] > 50_000 and live["differing"] == 0, live
    assert reserved["events"] == live["events"] and reserved["differing"] == 0, reserved
    assert row["clock"]["kind"] == "optimizer-step" and row["clock"]["steps"] == 200, row["clock"]
    assert row["lost_events"] == 0 and row["leaks"] == [], row["leaks"]


def test_totals_of_the_default_allocator(bench):
    totals(bench, {})


def test_totals_with_expandable_segments(bench):
    totals(bench, EXPANDABLE)


def held(bench, settings, layer):
    """Where torch counts nothing itself: what we say is alive is what the script holds, to the byte."""
    bench.need_torch()
    said, rows = bench.recorded([bench.python, os.path.join(JOBS, "held.py")], settings)
    (row,) = [row for row in rows if row["device"] == 0]
    assert row["live_at_exit_bytes"] == json.loads(said.splitlines()[-1])["held_bytes"] > 10 << 20, row["live_at_exit_bytes"]
    assert row["lost_events"] == 0 and row["torch_totals"] is None, row["torch_totals"]
    assert {other["layer"] for other in row["not_leaks"] if other["layer"]} <= {layer}, row["not_leaks"]


def test_bytes_of_the_asynchronous_backend(bench):
    held(bench, {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"}, "pool")


def test_bytes_without_a_cache(bench):
    held(bench, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}, "device")


def named(bench, settings=(), preload=False):
    """A kept tensor is named by its line and its bytes a step."""
    bench.need_torch()
    said, rows = bench.recorded([bench.python, os.path.join(JOBS, "leak.py")], settings, preload)
    truth = json.loads(said.splitlines()[-1])
    (leak,) = [leak for row in rows for leak in row["leaks"]]
    assert os.path.basename(leak["site"]["file"]) == truth["file"] and leak["site"]["line"] == truth["line"], leak["site"]
    assert leak["bytes_per_step"] == truth["bytes_per_step"], leak["bytes_per_step"]
    assert leak["kind"] == "growing" and leak["still_growing"] and leak["layer"] == "torch-block", leak


def test_a_leak_is_named_under_run(bench):
    named(bench)


def test_a_leak_in_expandable_segments_is_named(bench):
    named(bench, EXPANDABLE)


def test_a_leak_is_named_under_plain_preload(bench):
    named(bench, preload=True)


def test_the_demo_program(bench):
    """Symbols bound at link time, dlsym and cuGetProcAddress of the driver."""
    job = os.path.join(os.path.dirname(bench.gpumem), "gpumem-demo-job")
    said, rows = bench.recorded([job, "--truth"])
    truth = json.loads(said.splitlines()[-1])
    (leak,) = [leak for row in rows for leak in row["leaks"]]
    assert leak["site"]["line"] == truth["leak_line"], leak["site"]
    assert truth["leak_function"] in leak["site"]["function"], leak["site"]
    assert leak["bytes_per_step"] == truth["leak_bytes_per_step"], leak["bytes_per_step"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpumem", default=os.path.join(HERE, "../../target/release/gpumem"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--sim", metavar="FOLDER")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.sim:
        os.environ["LD_LIBRARY_PATH"] = os.path.abspath(os.path.join(options.sim, "lib"))
        options.python = os.path.abspath(os.path.join(options.sim, "venv/bin/python"))
    bench = Bench(options.gpumem, options.python)
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    has_gpu = options.sim or shutil.which("nvidia-smi") and not subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode
    for name, test in tests.items():
        if options.names and name not in options.names:
            continue
        result, why = "passed", ""
        try:
            if not has_gpu:
                raise Skipped("no NVIDIA GPU on this machine")
            test(bench)
        except Skipped as reason:
            result, why = "skipped", str(reason)
        except (AssertionError, ValueError, KeyError, OSError, subprocess.SubprocessError) as error:
            result, why = "failed", f"{type(error).__name__}: {error}"
        counts[result] += 1
        print(f"{name} ... {result} {why}".rstrip(), flush=True)
    print(", ".join(f"{count} {result}" for result, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
