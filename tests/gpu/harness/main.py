#!/usr/bin/env python3
"""Tests and measures a bundle on a machine with a GPU, and writes one report; run.sh starts it."""
import argparse
import pathlib
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bundle
import checks
import report
import steps
import training

RESULTS = pathlib.Path(__file__).resolve().parent.parent / "RESULTS.md"
PARTS = {
    "parity": checks.parity,
    "sanitizer": checks.sanitizer,
    "training": training.measure,
    "steps": steps.measure,
}


def arguments(argv):
    parser = argparse.ArgumentParser(
        prog="tests/gpu/run.sh",
        description="Runs, with the programs of BUNDLE (deploy/bundle.sh --tests): parity with the "
        "processor, compute-sanitizer, a training run under each policy by four workers and one by a "
        "worker with two GPUs where there are two, and steps per second beside PyTorch's. Needs the "
        "driver, cuBLAS, cuDNN and NCCL; for the last PyTorch, for the second compute-sanitizer. The "
        "exit status is 1 if something failed.")
    parser.add_argument("bundle", metavar="BUNDLE", type=pathlib.Path,
                        help="the .tar.xz file, or the folder that was in it")
    parser.add_argument("--report", metavar="FILE", type=pathlib.Path, default=RESULTS,
                        help="where the report goes (default: tests/gpu/RESULTS.md)")
    parser.add_argument("--data", metavar="DIR", type=pathlib.Path,
                        help="Fashion-MNIST's IDX files (default: training on generated examples)")
    parser.add_argument("--only", metavar="PART", action="append", choices=PARTS,
                        help="one of: " + ", ".join(PARTS) + "; may be repeated")
    parser.add_argument("--epochs", type=int, default=3, help="of each training run (3)")
    parser.add_argument("--seconds", type=float, default=0.5,
                        help="of each measurement (0.5)")
    parser.add_argument("--rounds", type=int, default=5, help="of each comparison (5)")
    options = parser.parse_args(argv)
    if not options.bundle.exists():
        parser.error(f"there is no {options.bundle}")
    if options.data and not options.data.is_dir():
        parser.error(f"{options.data} is no folder")
    return options


def main(argv):
    options = arguments(argv)
    with tempfile.TemporaryDirectory() as directory:
        programs = bundle.Bundle(options.bundle, pathlib.Path(directory))
        gpu = bundle.gpu_facts()
        if gpu is None:
            print("no GPU answers: nvidia-smi says nothing of one", file=sys.stderr)
            return 78
        options.gpus = gpu["count"]
        sections = []
        for name in options.only or PARTS:
            print(f"=== {name}", flush=True)
            try:
                sections.append(PARTS[name](programs, options))
            except Exception:  # pylint: disable=broad-except  # The other parts are worth having.
                traceback.print_exc()
                sections.append(report.Section(name, ["It did not end: see the log."], failed=True))
            print("\n".join(sections[-1].lines), flush=True)
            # What follows may not end.
            options.report.write_text(report.text(programs, gpu, argv, sections), encoding="utf-8")
    print(f"report: {options.report}")
    return 1 if any(section.failed for section in sections) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
