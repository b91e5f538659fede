"""What every part of the benchmark shares: options, where logs go, and what was left out."""
import argparse
import dataclasses
import pathlib

from programs import OWN_BUILD
from rounds import Field, say


@dataclasses.dataclass
class Suite:
    options: argparse.Namespace
    directory: pathlib.Path                           # Of all processes' logs.
    builds: tuple = (OWN_BUILD,)                      # With --against also the other one.
    skipped: dict[str, set[str]] = dataclasses.field(default_factory=dict)  # Reasons by name.
    failed: list[str] = dataclasses.field(default_factory=list)

    def skip(self, name, reason):
        self.skipped.setdefault(name, set()).add(reason)

    def present(self, contenders):
        """Those that can take part."""
        for contender in contenders:
            reason = contender.missing()
            if reason:
                self.skip(contender.name, reason)
            else:
                yield contender

    def compare(self, title, contenders, rounds=None, seconds=None):
        """Rounds of those that can take part, and notes of those that cannot or fail."""
        field = Field(list(self.present(contenders)))
        say(f"{title}: {', '.join(series.contender.name for series in field.series)}")
        comparison = field.measure(rounds or self.options.rounds, seconds or self.options.seconds,
                                   anew=len(self.builds) > 1)
        for series in comparison.series:
            if series.failure:
                self.failed.append(f"{title}: {series.failure}")
        return comparison
