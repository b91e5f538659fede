"""Lets contenders take turns: every round each of them once, so that what disturbs, disturbs all."""
import dataclasses
import sys

from contender import Turn
from contender_process import ContenderFailed
from machine_load import LoadWatch

WARM_EXCHANGES = 2
EXCHANGES_MAX = 100_000


@dataclasses.dataclass
class Series:
    """All that was measured of one contender."""
    contender: object
    exchanges: int = 0                                # Of each worker in a turn.
    turns: list[Turn] = dataclasses.field(default_factory=list)
    failure: str = ""                                 # It has no turns then.

    @property
    def rates(self):
        """Gigabytes per second, by round."""
        moved = self.contender.bytes_moved(self.exchanges)
        return [moved / turn.seconds / 1e9 for turn in self.turns]

    @property
    def exchange_seconds(self):
        return [turn.exchange for turn in self.turns]


@dataclasses.dataclass
class Comparison:
    series: list[Series]
    cores_of_others: list[float]  # By round.


def say(text):
    print(text, file=sys.stderr, flush=True)


def warm(contender, seconds):
    """The exchanges that take about so long, or one."""
    contender.run(WARM_EXCHANGES)
    pace = contender.run(WARM_EXCHANGES).seconds / WARM_EXCHANGES
    if pace * 10 < seconds:  # So few of so short ones say little.
        count = max(1, int(seconds / 10 / pace))
        pace = contender.run(count).seconds / count
    return max(1, min(EXCHANGES_MAX, round(seconds / pace)))


class Field:
    """The contenders of one comparison, from their start to their end."""

    def __init__(self, contenders):
        self.series = [Series(contender) for contender in contenders]

    def live(self):
        return [series for series in self.series if not series.failure]

    def attempt(self, series, work):
        """What `work` returns; a contender that fails is out, and the others go on."""
        try:
            return work()
        except (ContenderFailed, AssertionError, OSError) as failure:
            series.failure = str(failure) or type(failure).__name__
            series.turns.clear()
            say(f"  {series.contender.name} failed: {series.failure}")
            self.stop(series)
            return None

    def stop(self, series):
        try:
            series.contender.stop()
        except OSError as failure:
            say(f"  {series.contender.name}: {failure}")

    def start(self, series, seconds):
        series.contender.start()
        series.contender.await_workers()
        series.exchanges = warm(series.contender, seconds)

    def measure(self, rounds, seconds):
        """So many rounds, in which each contender runs for about so long."""
        cores_of_others = []
        try:
            for series in self.live():
                self.attempt(series, lambda s=series: self.start(s, seconds))
            for number in range(rounds):
                watch = LoadWatch()
                self.take_turns(number)
                cores_of_others.append(watch.cores_of_others())
        finally:
            for series in self.live():
                self.stop(series)
        return Comparison(self.series, cores_of_others)

    def take_turns(self, number):
        live = self.live()
        # Another one begins each round: whoever follows a hungry one finds the caches its.
        first = number % max(1, len(live))
        for series in live[first:] + live[:first]:
            turn = self.attempt(series, lambda s=series: s.contender.run(s.exchanges))
            if turn is not None:
                series.turns.append(turn)
