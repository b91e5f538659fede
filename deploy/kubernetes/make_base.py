#!/usr/bin/env python3
"""Writes the objects of the Kustomize bases, which are those of the chart with its defaults.

    make_base.py [--helm PROGRAM] [--name NAME] [--print MODE]

NAME is what the run is called (demo). With --print training or --print serving, the objects of that mode are
printed instead.
"""
import argparse
import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent
HEAD = "# Written by deploy/kubernetes/make_base.py from the chart: change that, or patch this.\n"


def objects(helm, name, mode):
    done = subprocess.run([helm, "template", name, HERE / "chart", "--set", f"mode={mode}"],
                          check=True, text=True, stdout=subprocess.PIPE)
    return HEAD + "".join(line for line in done.stdout.splitlines(keepends=True)
                          if not line.startswith("# Source: ") and line.strip() != "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--helm", default="helm", metavar="PROGRAM")
    parser.add_argument("--name", default="demo")
    parser.add_argument("--print", choices=("training", "serving"), dest="printed", metavar="MODE")
    arguments = parser.parse_args()
    if arguments.printed:
        print(objects(arguments.helm, arguments.name, arguments.printed), end="")
        return
    for mode in ("training", "serving"):
        text = objects(arguments.helm, arguments.name, mode)
        (HERE / "base" / mode / "objects.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
