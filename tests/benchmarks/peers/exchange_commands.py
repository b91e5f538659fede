"""The commands of tests/benchmarks/exchange_commands.h, for contenders in Python."""
import statistics
import sys
import time


def timed(exchange, count):
    """Runs `count` exchanges. Returns the seconds of each, and of all."""
    seconds = []
    begin = time.perf_counter()
    for _ in range(count):
        begun = time.perf_counter()
        exchange()
        seconds.append(time.perf_counter() - begun)
    return seconds, time.perf_counter() - begin


def serve(exchange):
    """Serves commands to the end of stdin."""
    print("ready", flush=True)
    for line in sys.stdin:
        seconds, total = timed(exchange, int(line.split()[1]))
        print("done", total, statistics.median(seconds), flush=True)
