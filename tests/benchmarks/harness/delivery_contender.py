"""A contender whose source gives each of its states to several readers."""
import statistics

from contender import Contender, Turn
from contender_process import EXCHANGES_S, ContenderFailed


class DeliveryContender(Contender):
    """A subclass starts the readers as `workers`, and as the last of `servers` the source. An exchange
    is one state: published, and taken by all readers. The processes take the commands of
    ../peers/delivery_commands.py.

    Of a turn, `seconds` are those from the end of each publication until the last reader had the state,
    and `exchange` is the median from the begin of a publication.
    """

    @property
    def source(self):
        return self.servers[-1]

    def amount(self, count):
        """Returns the bytes that all readers take of `count` states."""
        return self.setting.bytes * self.setting.workers * count

    def announce(self):
        """Tells the readers of a state that was published, if nobody else does."""

    def deliver(self):
        """Has one state published, and waits for all readers. Returns when the publication began, when
        it ended, and when the last reader had the state."""
        self.source.ask("publish")
        published = self.source.answer("published", EXCHANGES_S)
        self.announce()
        taken = [reader.answer("taken", EXCHANGES_S) for reader in self.workers]
        try:
            number, begun, ended = published
            if any(number != taken_number for taken_number, _ in taken):
                raise ContenderFailed(f"{self.name}: state {number} was published, and taken: {taken}")
            return float(begun), float(ended), max(float(moment) for _, moment in taken)
        except ValueError:
            raise ContenderFailed(f"{self.name}: no moments: {published}, {taken}") from None

    def run(self, count):
        states = [self.deliver() for _ in range(count)]
        seconds = sum(had - ended for _, ended, had in states)
        if seconds <= 0:
            raise ContenderFailed(f"{self.name}: readers had the states before publications ended; "
                                  "larger ones are needed")
        return Turn(seconds, statistics.median(had - begun for begun, _, had in states))
