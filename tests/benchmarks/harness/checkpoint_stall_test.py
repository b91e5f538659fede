"""What saves cost is found from the times of updates alone; nothing here is timed."""
import importlib
import unittest

importlib.import_module("main")  # main adds the folders of other tests' modules to the path.
from checkpoint_stall import Span, Updates, stall_of

INTERVAL_S = 10
GAP_S = 0.125


def history(pairs, pause_s=0.0, rate_with=1.0):
    """Returns the times of updates, and spans. An update takes GAP_S, and 1/rate_with times as long
    in spans with a save, which begin with a pause."""
    times, spans, now = [0.0], [], 0.0
    for pair in range(pairs):
        for saves in ((True, False) if pair % 2 == 0 else (False, True)):
            span = Span(now, now + INTERVAL_S, saves)
            moment = now + (pause_s if saves else 0)
            while moment < span.end:
                moment += GAP_S / (rate_with if saves else 1)
                times.append(moment)
            now = times[-1]
            spans.append(Span(span.begin, now, saves))
    return times, spans


class StallTest(unittest.TestCase):
    def test_saves_that_cost_nothing_have_no_share(self):
        stall = stall_of(*history(pairs=4))

        self.assertEqual(stall["pairs"], 4)
        self.assertAlmostEqual(stall["updates_per_second_without"], 1 / GAP_S)
        for figure in ("lost_share", "lost_share_high", "pause_share", "pause_share_without"):
            self.assertAlmostEqual(stall[figure], 0)

    def test_a_pause_is_lost_time(self):
        stall = stall_of(*history(pairs=4, pause_s=1.0))

        self.assertAlmostEqual(stall["lost_share"], 0.1, delta=0.01)
        self.assertAlmostEqual(stall["pause_share"], 0.1, delta=0.01)
        self.assertEqual(stall["pause_share_without"], 0)
        self.assertAlmostEqual(stall["longest_gap_ms"], 1125)
        self.assertAlmostEqual(stall["longest_gap_ms_without"], 125)

    def test_training_that_slows_down_has_lost_updates_without_a_pause(self):
        stall = stall_of(*history(pairs=3, rate_with=0.8))

        self.assertAlmostEqual(stall["lost_share"], 0.2, delta=0.01)
        self.assertEqual(stall["pause_share"], 0)

    def test_the_rate_of_a_span_counts_parts_of_updates(self):
        updates = Updates([0.0, 1.0, 2.0, 3.0])

        self.assertAlmostEqual(updates.rate(Span(0.5, 1.75, False)), 1)


if __name__ == "__main__":
    unittest.main()
