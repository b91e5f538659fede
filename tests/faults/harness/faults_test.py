"""The harness finds what clusters do wrong, and the proxy changes no bytes. Nothing is started."""
import collections
import contextlib
import io
import pathlib
import unittest

import main
import tcp_proxy
from durable_cluster import DurableCluster
from programs import scratch
from scenario import SHARDS, Broken, Scenario, Trial

BATCHES = 3


class FakeCluster:
    """A run that is over: `logs` has the pushes of each mini-batch, by shard."""
    batches = BATCHES

    def __init__(self, counts, logs=None, lives=(0, 0)):
        once = {str(batch): {("0", "1", str(batch + 1))} for batch in range(BATCHES)}
        self.logs = logs or [once, once]
        self.shards = [{"shard": shard, "life": life, "versions_lost": 0,
                        "staleness": {"count": count}}
                       for shard, count, life in zip(SHARDS, counts, lives)]

    def finish(self):
        return {"shards": self.shards, "evaluations": [{"test_accuracy": 0.5}]}

    def pushes_by_batch(self, shard):
        return collections.defaultdict(set, self.logs[shard])

    def log_texts(self):
        return ""


class JudgementTest(unittest.TestCase):
    def judge(self, live, level="synced", policy="softsync", deaths=0, killed_servers=False):
        trial = Trial(Scenario("test", level, policy, None), 1, 1, "")
        trial.deaths, trial.killed_servers = deaths, killed_servers
        trial.judge(live)
        return trial.report

    def test_a_run_that_counts_everything_once_passes(self):
        report = self.judge(FakeCluster((3, 3)))

        self.assertEqual((report.acknowledged, report.lost, report.doubled), (6, 0, 0))

    def test_a_lost_push_is_found(self):
        with self.assertRaisesRegex(Broken, "1 lost"):
            self.judge(FakeCluster((3, 2)), killed_servers=True)

    def test_a_push_that_counts_twice_is_found_by_the_count(self):
        with self.assertRaisesRegex(Broken, "1 counted twice"):
            self.judge(FakeCluster((4, 3)))

    def test_a_loss_that_hides_a_push_that_counts_twice_is_found_in_the_logs(self):
        log = {"0": {("0", "1", "1"), ("1", "2", "1")}, "1": {("0", "1", "2")}}
        with self.assertRaisesRegex(Broken, "1 lost, 2 counted twice"):
            self.judge(FakeCluster((3, 3), [log, log]))

    def test_a_worker_that_died_may_have_reached_one_shard_of_two(self):
        self.assertEqual(self.judge(FakeCluster((3, 2)), deaths=1).lost, 0)

    def test_what_is_handed_out_again_after_a_death_is_no_push_that_counts_twice(self):
        again = {"0": {("0", "1", "1"), ("1", "2", "1")}, "1": {("0", "1", "2")}, "2": {("0", "1", "3")}}
        self.assertEqual(self.judge(FakeCluster((4, 4), [again, again]), deaths=1).doubled, 0)

        with self.assertRaisesRegex(Broken, "1 counted twice"):
            self.judge(FakeCluster((5, 4), [again, again]), deaths=1)

    def test_a_new_life_is_a_loss_unless_the_level_is_checkpoint(self):
        with self.assertRaisesRegex(Broken, "shard 1 has begun life 1"):
            self.judge(FakeCluster((3, 3), lives=(0, 1)))

        report = self.judge(FakeCluster((3, 2), lives=(0, 1)), level="checkpoint")
        self.assertIn("1 gradients missing", report.remarks[0])

    def test_shards_in_step_miss_nothing_even_when_they_return(self):
        with self.assertRaisesRegex(Broken, "1 lost"):
            self.judge(FakeCluster((3, 2), lives=(1, 1)), level="checkpoint", policy="backup")


class ArgumentsTest(unittest.TestCase):
    def test_plans_name_scenarios_that_exist(self):
        self.assertLessEqual(set(main.QUICK), set(main.SCENARIOS))
        self.assertLessEqual(set(main.LONG), set(main.SCENARIOS))

    def test_the_quick_plan_has_ten_kills_of_servers_five_partitions_and_five_drains(self):
        def faults(beginning):
            return sum(count for name, count in main.QUICK.items() if name.startswith(beginning))

        self.assertEqual([faults("kills-"), faults("partitions-"), faults("drains-")], [10, 5, 5])

    def test_scenarios_are_chosen_by_patterns(self):
        options = main.parse_arguments(["--only", "kills-memory-*,disk-full-synced",
                                        "--kills", "2"])

        self.assertEqual(options.plan, {"kills-memory-softsync": 2, "disk-full-synced": 2})

    def test_an_unknown_scenario_is_refused(self):
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            main.parse_arguments(["--only", "no-such"])
        self.assertIn("no scenario is called no-such", said.getvalue())


class RunTest(unittest.TestCase):
    def run_one(self, scenario):
        main.SCENARIOS["test"] = scenario
        self.addCleanup(main.SCENARIOS.pop, "test")
        with contextlib.redirect_stdout(io.StringIO()) as said, \
                contextlib.redirect_stderr(io.StringIO()):
            result = main.run_one("test", 5, 2)
            main.print_table([result])
        return result.outcome, said.getvalue()

    def test_a_failure_is_counted_with_the_command_that_repeats_it(self):
        def fail(_):
            raise Broken("lost")

        outcome, said = self.run_one(Scenario("test", "synced", "async", fail))

        self.assertEqual(outcome, "failed")
        self.assertIn("again: tests/faults/run.sh --only test --seed 5 --kills 2", said)
        self.assertTrue(said.endswith("0 scenarios passed, 1 failed\n"))

    def test_what_a_machine_lacks_is_named_and_counts_as_skipped(self):
        outcome, said = self.run_one(
            Scenario("test", "synced", "async", None, missing=lambda: "there is no root"))

        self.assertEqual(outcome, "skipped")
        self.assertIn("test: skipped: there is no root", said)
        self.assertTrue(said.endswith("0 scenarios passed, 0 failed, 1 skipped\n"))


class ProxyTest(unittest.TestCase):
    def test_a_connection_passes_on_all_bytes_in_order(self):
        data = bytes(range(256)) * 40
        for number in range(50):
            pieces = list(tcp_proxy.Conduct(1, number).pieces(data))
            self.assertEqual(b"".join(pieces), data)

    def test_the_seed_decides_how_a_connection_behaves(self):
        def conducts(seed):
            return [(each.delay_s, each.dribbles, each.ending, each.life_bytes)
                    for each in (tcp_proxy.Conduct(seed, number) for number in range(50))]

        self.assertEqual(conducts(1), conducts(1))
        self.assertNotEqual(conducts(1), conducts(2))
        self.assertEqual({ending for _, _, ending, _ in conducts(1)},
                         {"", "close", "reset", "silence"})


class DirectoryTest(unittest.TestCase):
    def test_push_logs_of_all_processes_are_evidence(self):
        head = "outcome,worker,incarnation,sequence,batch,examples\n"
        with scratch() as directory:
            path = pathlib.Path(directory)
            (path / "push-log-1.1.csv").write_text(head + "APPLIED,0,1,1,0,32\nAPPLIED,0,1,2,1,3")
            (path / "push-log-1.csv").write_text(
                head + "BUFFERED,0,1,2,1,32\nDROPPED_LATE,1,2,1,1,32\nAPPLIED,1,2,2,2,0\n")
            live = DurableCluster.__new__(DurableCluster)
            live.directory = path

            self.assertEqual(live.pushes_by_batch(1),
                             {"0": {("0", "1", "1")}, "1": {("0", "1", "2")}})


if __name__ == "__main__":
    unittest.main()
