"""A program that trains by itself publishes its weights, and three readers follow them. One of them is
killed, and comes back:

    psctl run publish.yaml -- python3 publish.py

Each version's values are its number, so a reader can tell whether it got one version, and all of it."""
import array
import subprocess
import sys
import time

import slipstream

VERSIONS = 60


def follow(name):
    taken = lag = 0
    with slipstream.subscribe(name=name, max_lag=4) as reader:
        for weights in reader:
            values = set(weights.tensors["weights"].tolist())
            assert values == {float(weights.version)}, f"a mixture: {values}"
            taken, lag = taken + 1, max(lag, weights.lag)
    print(f"{name}: {taken} versions, {lag} behind at most, the last {weights.version}", flush=True)


def begin(name):
    return subprocess.Popen([sys.executable, __file__, name])


def publish():
    readers = {name: begin(name) for name in ("first", "second", "third")}
    with slipstream.connect() as run:
        for version in range(1, VERSIONS + 1):
            time.sleep(0.05)  # This is where a trainer would take its steps.
            run.publish({"weights": array.array("f", [version]) * 100_000}, version=version)
            if version == VERSIONS // 3:
                readers["second"].kill()
            if version == VERSIONS // 2:
                readers["second"].wait()
                readers["second"] = begin("second")
        run.stop()
        run.finish()
    failed = [name for name, reader in readers.items() if reader.wait(timeout=60) != 0]
    assert not failed, failed


if len(sys.argv) > 1:
    follow(sys.argv[1])
else:
    publish()
