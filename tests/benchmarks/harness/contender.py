"""What takes part in a comparison: processes that exchange a model's worth of values on command."""
import dataclasses
import statistics

from contender_process import EXCHANGES_S, START_S, ContenderFailed
from programs import OWN_BUILD


@dataclasses.dataclass(frozen=True)
class Setting:
    """What all contenders of one comparison have to do."""
    bytes: int
    workers: int = 1
    servers: int = 1
    rule: str = "sgd"
    policy: str = "async"

    @property
    def shape(self):
        return f"{self.workers}x{self.servers}"


@dataclasses.dataclass(frozen=True)
class Turn:
    """One contender's part of a round."""
    seconds: float   # Of the slowest worker, for all its exchanges.
    exchange: float  # The median of one.


def other_name(name):
    """The name of the same contender where it starts the other build's programs."""
    return f"{name} (other)"


def name_in(build, name):
    return name if build is OWN_BUILD else other_name(name)


class Contender:
    """A subclass says in `missing` why it cannot take part, and starts its processes in `start`.

    Those in `workers` take commands, a line each: `run N`, answered with `done SECONDS MEDIAN`. All
    others are in `servers`, and end with the contender.
    """
    name = ""
    # Roles as they are told in a row, where they are not the setting's.
    row_roles = None
    # The name of the contender that has nothing but the same transport; empty if there is none.
    limit = ""

    def __init__(self, setting, directory, build=OWN_BUILD):
        self.setting = setting
        self.first_directory = self.directory = directory  # Of its first start, and of this one.
        self.build = build  # The programs that are started.
        self.workers = []
        self.servers = []

    def missing(self):
        """Why it is left out; empty if it is not."""
        return ""

    def start(self):
        raise NotImplementedError

    def amount(self, count):
        """What `count` exchanges of each worker are worth: bytes of gradients there and of weights
        back."""
        return 2 * self.setting.bytes * self.setting.workers * count

    def await_workers(self):
        for worker in self.workers:
            worker.answer("ready", START_S)

    def run(self, count):
        for worker in self.workers:
            worker.ask(f"run {count}")
        done = [worker.answer("done", EXCHANGES_S) for worker in self.workers]
        try:
            return Turn(max(float(words[0]) for words in done),
                        statistics.median(float(words[1]) for words in done))
        except (ValueError, IndexError):
            raise ContenderFailed(f"{self.name}: not two numbers: {done}") from None

    def stop(self):
        """Ends all processes. It can be started again, in another directory: what they left in this one,
        as files that name a port, would deceive the next."""
        for process in [*self.workers, *self.servers]:
            process.end()
        self.workers, self.servers = [], []
