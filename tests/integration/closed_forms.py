"""Measures the mean time between updates of live clusters beside its closed form.

With λ workers whose steps take the random time X, an update of softsync comes every c·E[X]/λ, and
one of backup and hardsync every E[X_(K:λ)], the mean of the K-th smallest of λ such times. Here X is
a short step and a delay drawn evenly from 0 to DELAY; E[X] is measured with one worker. The form
of backup is of workers that begin each round together: here a late one finishes its step first, so
updates take longer (1.11 and 1.29 times the form with one and two of four spare).

Times depend on the machine, so this is no test: start it on a quiet one, from the folder of the
repository, whose programs are built."""
import pathlib

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
WORKERS = 4
DELAY_S = 0.04
STEPS = 2400
QUIET = {"evaluation.every_epochs": 0, "training.epochs": 100, "training.max_steps": STEPS,
         "testing.push_delay_max": f"{round(1000 * DELAY_S)}ms"}


def interval(workers, **settings):
    """Returns the mean time between updates, in seconds."""
    settings = {f"consistency.{key}": value for key, value in settings.items()}
    done = cluster.run(CONFIG, {**QUIET, **settings, "cluster.workers": workers})
    return done["seconds"] / done["updates"]


def smallest(k, mean):
    """Returns the mean of the k-th smallest time. That of delays even in [0, d] is d·k/(λ + 1)."""
    return mean - DELAY_S / 2 + DELAY_S * k / (WORKERS + 1)


def main():
    mean = interval(1, policy="async")
    print(f"E[X] = {1000 * mean:.2f} ms, of which {500 * DELAY_S:.0f} ms are delay; λ = {WORKERS}")
    cases = [(f"softsync, c = {c}", {"policy": "softsync", "n": WORKERS // c}, c * mean / WORKERS)
             for c in (1, 2, 4)]
    cases += [(f"backup, {b} of {WORKERS} spare", {"policy": "backup", "backups": b},
               smallest(WORKERS - b, mean)) for b in (1, 2)]
    cases.append(("hardsync", {"policy": "hardsync"}, smallest(WORKERS, mean)))
    for name, settings, expected in cases:
        measured = interval(WORKERS, **settings)
        print(f"{name}: {1000 * measured:.2f} ms between updates, expected {1000 * expected:.2f}, "
              f"ratio {measured / expected:.3f}")


if __name__ == "__main__":
    main()
