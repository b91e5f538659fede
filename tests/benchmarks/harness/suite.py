"""The state that all parts of the benchmark share: options, the logs' directory, and what was left
out."""
import argparse
import dataclasses
import pathlib

from programs import OWN_BUILD
from rounds import Field, say


@dataclasses.dataclass
class Suite:
    options: argparse.Namespace
    directory: pathlib.Path                           # The directory of all processes' logs.
    builds: tuple = (OWN_BUILD,)                      # With --against also the other build.
    skipped: dict[str, set[str]] = dataclasses.field(default_factory=dict)  # Reasons by name.
    failed: list[str] = dataclasses.field(default_factory=list)

    def skip(self, name, reason):
        self.skipped.setdefault(name, set()).add(reason)

    def present(self, contenders):
        """Yields the contenders that can take part, and notes why the others cannot."""
        for contender in contenders:
            reason = contender.missing()
            if reason:
                self.skip(contender.name, reason)
            else:
                yield contender

    def compare(self, title, contenders, rounds=None, seconds=None):
        """Runs rounds of the contenders that can take part. Notes which cannot or fail."""
        field = Field(list(self.present(contenders)))
        say(f"{title}: {', '.join(series.contender.name for series in field.series)}")
        comparison = field.measure(rounds or self.options.rounds, seconds or self.options.seconds,
                                   anew=len(self.builds) > 1)
        for series in comparison.series:
            if series.failure:
                self.failed.append(f"{title}: {series.failure}")
        return comparison
