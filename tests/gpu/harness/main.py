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

# Each part's title, the head of its table, and the function that runs it.
PARTS = {
    "parity": ("Parity with the processor", ("program", "passed", "failed", "skipped"),
               checks.parity),
    "steps": ("Steps per second", steps.HEAD, steps.measure),
    "cluster": ("A worker in a cluster", training.CLUSTER_HEAD, training.speed),
    "training": ("Training", training.HEAD, training.accuracy),
    **{tool: (f"compute-sanitizer, {tool}", ("program", "cases clean", "cases not"),
              checks.sanitizer(tool)) for tool in checks.OPTIONS},
}


def arguments(argv):
    parser = argparse.ArgumentParser(
        prog="tests/gpu/run.sh", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="""Runs, with the programs of BUNDLE (deploy/bundle.sh --tests), these parts in this order:

  parity      kernels and whole nets against the processor
  steps       steps per second beside PyTorch's
  cluster     a worker in a cluster: its speed, and what of communication is hidden
  training    accuracy under each policy, of four workers that share the GPU and, where there are
              two, of one worker with two GPUs, beside processors
  memcheck, racecheck, synccheck      parity's programs under compute-sanitizer

Needs the driver, cuBLAS, cuDNN, NCCL and Python 3.11; steps PyTorch, the last compute-sanitizer.
OUT holds a file for each part, with what is known so far, the log of all programs, and RESULTS.md,
the page of all parts that lie there: also of earlier calls. The exit status is 1 if something failed,
or was not reached.""")
    parser.add_argument("bundle", metavar="BUNDLE", type=pathlib.Path,
                        help="the .tar.xz file, or the folder that was in it")
    parser.add_argument("--out", metavar="OUT", type=pathlib.Path, default=pathlib.Path("gpu-report"),
                        help="where the report goes (./gpu-report)")
    parser.add_argument("--data", metavar="DIR", type=pathlib.Path,
                        help="Fashion-MNIST's IDX files (default: training on generated examples)")
    parser.add_argument("--only", metavar="PART", action="append", choices=PARTS,
                        help="one of these; may be repeated")
    parser.add_argument("--deadline", metavar="SECONDS", type=float,
                        help="end by then, with what there is (default: none)")
    parser.add_argument("--net", action="append", choices=steps.NETS,
                        help="of steps and cluster; may be repeated (all)")
    parser.add_argument("--batch", action="append", type=int, choices=steps.BATCHES,
                        help="of steps and cluster; may be repeated (all)")
    parser.add_argument("--precision", action="append", choices=steps.OURS,
                        help="of steps; may be repeated (all)")
    parser.add_argument("--epochs", type=int, default=3, help="of each training run (3)")
    parser.add_argument("--seconds", type=float, default=0.5,
                        help="of each measurement of steps (0.5)")
    parser.add_argument("--rounds", type=int, default=3, help="of each comparison of steps (3)")
    options = parser.parse_args(argv)
    if not options.bundle.exists():
        parser.error(f"there is no {options.bundle}")
    if options.data and not options.data.is_dir():
        parser.error(f"{options.data} is no folder")
    return options


def run_part(name, programs, options, facts):
    """Runs one part. Returns whether it succeeded."""
    title, head, run = PARTS[name]
    print(f"=== {name}", flush=True)
    section = report.Section(options.out, name, title, head, facts)
    try:
        run(programs, options, section)
        section.end()
    except bundle.OutOfTime:
        section.fail(f"the {options.deadline:.0f} seconds were over")
    except Exception:  # The other parts are still worth having.
        traceback.print_exc()
        programs.tell(traceback.format_exc())
        section.fail("it did not end: see the log")
    return not section.failed


def main(argv):
    options = arguments(argv)
    gpu = bundle.gpu_facts()
    if gpu is None:
        print("no GPU answers: nvidia-smi says nothing of one", file=sys.stderr)
        return 78
    options.gpus = gpu["count"]
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        programs = bundle.Bundle(options.bundle, pathlib.Path(directory), options.out / "log.txt",
                                 options.deadline)
        facts = report.facts_of(programs, gpu, argv)
        wanted = [name for name in PARTS if name in (options.only or PARTS)]
        went_well = [run_part(name, programs, options, facts) for name in wanted]
    print(f"report: {options.out / 'RESULTS.md'}")
    return 0 if all(went_well) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
