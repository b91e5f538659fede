#!/usr/bin/env python3
"""Writes the data of regression.yaml: train.csv and test.csv in the directory named.

Friedman's first problem: ten numbers in [-1, 1), of which five matter, and a value that depends on
them in curves, with noise of variance 0.04. The same bytes on every machine.
"""
import math
import pathlib
import random
import sys

FEATURES = 10
NOISE = 0.2


def value(x, noise):
    u = [(number + 1) / 2 for number in x]
    return (10 * math.sin(math.pi * u[0] * u[1]) + 20 * (u[2] - 0.5) ** 2 + 10 * u[3] + 5 * u[4]
            - 14.4) / 5 + noise


def write_table(path, rows, chance):
    with open(path, "w", encoding="ascii") as table:
        print(*(f"x{i + 1}" for i in range(FEATURES)), "y", sep=",", file=table)
        for _ in range(rows):
            x = [round(2 * chance.random() - 1, 6) for _ in range(FEATURES)]
            # A sum of uniform numbers instead of gauss(), whose bits have changed between versions.
            noise = NOISE * (sum(chance.random() for _ in range(12)) - 6)
            print(*x, f"{value(x, noise):.6f}", sep=",", file=table)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_regression.py DIRECTORY")
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    chance = random.Random(1991)
    write_table(directory / "train.csv", 6400, chance)
    write_table(directory / "test.csv", 1000, chance)


if __name__ == "__main__":
    main()
