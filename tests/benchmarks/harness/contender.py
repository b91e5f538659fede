"""A contender takes part in a comparison: its processes exchange a model's worth of values on
command."""
import dataclasses
import statistics

from contender_process import EXCHANGES_S, START_S, ContenderFailed
from programs import OWN_BUILD


@dataclasses.dataclass(frozen=True)
class Setting:
    """The task of all contenders of one comparison."""
    bytes: int
    workers: int = 1
    servers: int = 1
    rule: str = "sgd"
    policy: str = "async"
    operation: str = "exchange"  # Or "push" or "pull" alone.
    checks_values: bool = False  # That all are finite, before each push, as programs that train do.

    @property
    def shape(self):
        return f"{self.workers}x{self.servers}"


@dataclasses.dataclass(frozen=True)
class Turn:
    """The result of one contender in one round."""
    seconds: float   # The time of the slowest worker for all its exchanges.
    exchange: float  # The median time of one exchange.


def other_name(name):
    """Returns the name of the same contender when it starts the other build's programs."""
    return f"{name} (other)"


def name_in(build, name):
    return name if build is OWN_BUILD else other_name(name)


class Contender:
    """A subclass says in `missing` why it cannot take part, and starts its processes in `start`.

    The processes in `workers` take commands, one per line: `run N`, answered with `done SECONDS
    MEDIAN`. All other processes are in `servers`, and end with the contender.
    """
    name = ""
    # The roles as a row shows them, if they differ from the setting's.
    row_roles = None
    # The name of the contender that has only the same transport; empty if there is none.
    limit = ""

    def __init__(self, setting, directory, build=OWN_BUILD):
        self.setting = setting
        self.first_directory = self.directory = directory  # The directories of the first and of the current start.
        self.build = build  # The build whose programs are started.
        self.workers = []
        self.servers = []

    def missing(self):
        """Returns why the contender is left out; empty if it takes part."""
        return ""

    def start(self):
        raise NotImplementedError

    def amount(self, count):
        """Returns the amount of work in `count` exchanges of each worker: bytes of gradients sent
        and of weights received."""
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
        """Ends all processes. The contender can be started again, but in another directory: files
        left in this one, such as those that name a port, would mislead the next start."""
        for process in [*self.workers, *self.servers]:
            process.end()
        self.workers, self.servers = [], []
