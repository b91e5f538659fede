"""Lets contenders take turns: each of them runs once per round, so that disturbances affect all
alike."""
import dataclasses
import subprocess
import sys

from contender import Turn, other_name
from contender_process import ContenderFailed
from machine_load import LoadWatch

WARM_EXCHANGES = 2
EXCHANGES_MAX = 100_000
WARM_TURNS_MAX = 12
LONGER_AT_MOST = 3   # A turn is at most this many times as long as the last warm-up turn.
LONGER_AT_ONCE = 20  # A warm-up turn has at most this many times the exchanges of the last.


@dataclasses.dataclass
class Series:
    """All measurements of one contender."""
    contender: object
    exchanges: int = 0                                # Exchanges of each worker in a turn.
    turns: list[Turn] = dataclasses.field(default_factory=list)
    failure: str = ""                                 # If set, there are no turns.

    @property
    def rates(self):
        """Returns the amount of work done per second, by round."""
        amount = self.contender.amount(self.exchanges)
        return [amount / turn.seconds for turn in self.turns]

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
    """Returns the number of exchanges that take about `seconds`, at least one. A turn may have a
    start that takes longer than many exchanges, so the number is found by turns that get longer."""
    contender.run(WARM_EXCHANGES)
    count = 1
    for _ in range(WARM_TURNS_MAX):
        taken = contender.run(count).seconds
        wanted = max(1, min(EXCHANGES_MAX, round(count * seconds / taken)))
        if taken * LONGER_AT_MOST > seconds or wanted <= count:
            return wanted
        count = min(wanted, count * LONGER_AT_ONCE)
    return count


def in_turn(items, number):
    """Returns the order of a round. Each round begins with another contender, and every second
    round goes backwards. A contender that uses much memory leaves its data in the caches for the
    next one, so of two neighbours each follows the other equally often."""
    first = number % max(1, len(items))
    order = items[first:] + items[:first]
    return order if number % 2 == 0 else order[:1] + order[:0:-1]


class Field:
    """The contenders of one comparison, from their start to their end."""

    def __init__(self, contenders):
        self.series = [Series(contender) for contender in contenders]

    def live(self):
        return [series for series in self.series if not series.failure]

    def attempt(self, series, work):
        """Returns the result of `work`. A contender that fails is out, and the others go on."""
        try:
            return work()
        except (ContenderFailed, AssertionError, OSError, subprocess.SubprocessError) as failure:
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

    def start_again(self, series, number):
        series.contender.stop()
        series.contender.directory = series.contender.first_directory / f"round-{number}"
        series.contender.directory.mkdir(exist_ok=True)
        series.contender.start()
        series.contender.await_workers()
        series.contender.run(WARM_EXCHANGES)

    def share_counts(self):
        """Lets two builds of a contender do equal work, so that the start of a turn costs both the
        same share of it."""
        series_of = {series.contender.name: series for series in self.live()}
        for name, own in series_of.items():
            other = series_of.get(other_name(name))
            if other is not None:
                own.exchanges = other.exchanges = max(own.exchanges, other.exchanges)

    def measure(self, rounds, seconds, anew=False):
        """Runs `rounds` rounds, in each of which each contender runs for about `seconds`. With
        `anew` each begins every round with new processes. One start of a program is faster than the
        next for as long as it runs, because of where its memory lies; so rounds of a single start
        say nothing about a small difference."""
        cores_of_others = []
        try:
            for series in self.live():
                self.attempt(series, lambda s=series: self.start(s, seconds))
            self.share_counts()
            for number in range(rounds):
                if anew and number > 0:
                    for series in self.live():
                        self.attempt(series, lambda s=series: self.start_again(s, number))
                watch = LoadWatch()
                self.take_turns(number)
                cores_of_others.append(watch.cores_of_others())
        finally:
            for series in self.live():
                self.stop(series)
        return Comparison(self.series, cores_of_others)

    def take_turns(self, number):
        for series in in_turn(self.live(), number):
            turn = self.attempt(series, lambda s=series: s.contender.run(s.exchanges))
            if turn is not None:
                series.turns.append(turn)
