"""Measures how much of the time of training the saving of checkpoints takes.

Within one run, spans with a save and spans without one take turns. All are as long as an interval
between checkpoints, so that a span with its save costs what saving at this interval costs. Spans
without one begin with a call of psctl, too.
"""
import bisect
import dataclasses
import statistics
import threading
import time

import cluster

PAUSE_MEDIANS = 3  # A longer gap between two updates is a pause.
UPDATES_BEFORE = 20


@dataclasses.dataclass(frozen=True)
class Span:
    begin: float
    end: float
    saves: bool

    @property
    def seconds(self):
        return self.end - self.begin


class Updates:
    """The times of the updates of a run, in order."""

    def __init__(self, times):
        self.times = times

    def place(self, moment):
        """Returns how many updates were made until then, and the share of the next one, as if it
        were made evenly. So the rate of a span with few updates is exact, too."""
        after = bisect.bisect_right(self.times, moment)
        if after == 0 or after == len(self.times):
            return after
        before, next_one = self.times[after - 1], self.times[after]
        return after + (moment - before) / (next_one - before)

    def rate(self, span):
        return (self.place(span.end) - self.place(span.begin)) / span.seconds

    def gaps(self, spans):
        """Returns the gaps between two updates that begin within the spans."""
        gaps = []
        for span in spans:
            first = bisect.bisect_left(self.times, span.begin)
            within = self.times[first:bisect.bisect_left(self.times, span.end) + 1]
            gaps += [later - sooner for sooner, later in zip(within, within[1:])]
        return gaps


def pause_share(gaps, usual, spans):
    """Returns the share of the spans in which no update was made though one was due: the length of
    all pauses, each less the usual gap."""
    lost = sum(gap - usual for gap in gaps if gap > PAUSE_MEDIANS * usual)
    return lost / sum(span.seconds for span in spans)


def stall_of(times, spans):
    """Returns what saves have cost, given the times of all updates and the spans, which come in
    pairs. A share is that of the time, or of the updates that the time would have had."""
    updates = Updates(times)
    pairs = [sorted(pair, key=lambda span: span.saves) for pair in zip(spans[::2], spans[1::2])]
    shares = [1 - updates.rate(saves) / updates.rate(rests) for rests, saves in pairs]
    rests, saves = ([pair[place] for pair in pairs] for place in (0, 1))
    gaps_of_rests, gaps_of_saves = updates.gaps(rests), updates.gaps(saves)
    usual = statistics.median(gaps_of_rests)
    low, middle, high = (statistics.quantiles(shares, n=4, method="inclusive") if len(shares) > 1
                         else shares * 3)
    return {"pairs": len(pairs),
            "updates_per_second_without": round(statistics.median(map(updates.rate, rests)), 2),
            "lost_share": round(middle, 4), "lost_share_low": round(low, 4),
            "lost_share_high": round(high, 4),
            "pause_share": round(pause_share(gaps_of_saves, usual, saves), 4),
            "pause_share_without": round(pause_share(gaps_of_rests, usual, rests), 4),
            "longest_gap_ms": round(1e3 * max(gaps_of_saves), 2),
            "longest_gap_ms_without": round(1e3 * max(gaps_of_rests), 2)}


def spend(live, interval_s, saves):
    """Lets the run go on for an interval, or until the save is complete if that takes longer."""
    begin = time.time()
    command = ("checkpoint", "save") if saves else ("status",)
    cluster.psctl(*command, "--coordinator", live.coordinator, build=live.build)
    threading.Event().wait(max(0, begin + interval_s - time.time()))
    return Span(begin, time.time(), saves)


def measure(live, intervals):
    """Returns the spans of a run, by interval in seconds. `intervals` has the number of pairs for
    each. Pairs begin with a save and without one in turn, as a span may feel what the one before it
    has left to the disk."""
    live.wait_for(lambda status: status["shards"][0].get("checkpoint")
                  and int(status["updates"]) >= UPDATES_BEFORE, "a checkpoint")
    return {interval_s: [spend(live, interval_s, saves) for pair in range(pairs)
                         for saves in ((True, False) if pair % 2 == 0 else (False, True))]
            for interval_s, pairs in intervals.items()}
