"""The harness finds what clusters do wrong, and the proxy changes no bytes. Nothing is started."""
import collections
import contextlib
import io
import json
import pathlib
import unittest

import main
import operator_faults
import tcp_proxy
from durable_cluster import DurableCluster
from programs import scratch
from scenario import SHARDS, Broken, Report, Scenario, Trial
from totals import ALL, totals_of

BATCHES = 3
HEAD = "outcome,worker,incarnation,sequence,batch,examples\n"


class FakeCluster:
    """A run that is over: `logs` has the pushes of each mini-batch, by shard."""
    batches = BATCHES

    def __init__(self, counts, logs=None, generations=(0, 0), rows=(), split_pushes=0):
        once = {str(batch): {("0", "1", str(batch + 1))} for batch in range(BATCHES)}
        self.logs = logs or [once, once]
        self.shards = [{"shard": shard, "generation": generation, "versions_lost": 0,
                        "staleness": {"count": count, "histogram": [count]}}
                       for shard, count, generation in zip(SHARDS, counts, generations)]
        self.rows = list(rows)
        self.workers = [{"worker": 0, "incarnation": "1", "split_pushes": str(split_pushes)}]

    def finish(self):
        return {"shards": self.shards, "workers": self.workers,
                "evaluations": [{"test_accuracy": 0.5}]}

    def pushes_by_batch(self, shard):
        return collections.defaultdict(set, self.logs[shard])

    def push_rows(self, _):
        return self.rows

    def log_texts(self):
        return ""


def row_of(sequence, version, base, staleness):
    return {"outcome": "APPLIED", "worker": "0", "incarnation": "1", "sequence": sequence,
            "examples": "32", "version": version, "base": base, "staleness": staleness}


class JudgementTest(unittest.TestCase):
    def judge(self, live, level="synced", policy="softsync", deaths=0, killed_servers=False):
        trial = Trial(Scenario("test", level, policy, None), 1, 1, "")
        trial.deaths, trial.killed_servers = deaths, killed_servers
        trial.judge(live)
        return trial.report

    def test_a_run_that_counts_everything_once_passes(self):
        report = self.judge(FakeCluster((3, 3)))

        self.assertEqual((report.acknowledged, report.lost, report.doubled), (6, 0, 0))

    def test_under_backup_other_shards_may_differ_by_the_split_pushes(self):
        for counts in (3, 4), (3, 2):
            self.judge(FakeCluster(counts, split_pushes=1), policy="backup")
            with self.assertRaises(Broken):
                self.judge(FakeCluster(counts), policy="backup")
            with self.assertRaises(Broken):
                self.judge(FakeCluster(counts[::-1], split_pushes=1), policy="backup")

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

    def test_a_new_generation_is_a_loss_unless_the_level_is_checkpoint(self):
        with self.assertRaisesRegex(Broken, "shard 1 has begun generation 1"):
            self.judge(FakeCluster((3, 3), generations=(0, 1)))

        report = self.judge(FakeCluster((3, 2), generations=(0, 1)), level="checkpoint")
        self.assertIn("1 gradients missing", report.remarks[0])

    def test_shards_in_step_miss_nothing_even_when_they_return(self):
        with self.assertRaisesRegex(Broken, "1 lost"):
            self.judge(FakeCluster((3, 2), generations=(1, 1)), level="checkpoint", policy="backup")


    def test_a_staleness_that_the_log_does_not_give_is_found(self):
        rows = [row_of(sequence=1, version=1, base=0, staleness=1)]
        with self.assertRaisesRegex(Broken, "staleness is 0"):
            self.judge(FakeCluster((3, 3), rows=rows), killed_servers=True)

    def test_a_staleness_that_the_status_does_not_have_is_found_in_a_log_that_lacks_lines(self):
        rows = [row_of(sequence=1, version=2, base=0, staleness=1)]
        with self.assertRaisesRegex(Broken, "histogram"):
            self.judge(FakeCluster((3, 3), rows=rows), killed_servers=True)

        rows = [row_of(sequence=1, version=1, base=0, staleness=0)]
        report = self.judge(FakeCluster((3, 3), rows=rows), killed_servers=True)
        self.assertIn("which lack 4 pushes", report.remarks[-1])

    def test_the_report_of_a_further_run_counts_for_its_trial(self):
        with scratch() as directory:
            trial = Trial(Scenario("test", "synced", "softsync", None), 1, 1, directory)
            for number in (1, 2):
                with trial.further_run(number) as run:
                    run.note_fault("kills")
                    run.judge(FakeCluster((3, 3)))

        self.assertEqual((trial.report.faults, trial.report.acknowledged), (2, 12))

    def test_a_server_replaced_before_training_loses_nothing(self):
        before = operator_faults.begins_before_replacement
        self.assertFalse(before("server synced\n"))
        self.assertFalse(before("server replaced\nphase=TRAINING\n"))
        self.assertTrue(before("phase=TRAINING\nserver replaced\n"))
        self.assertTrue(before("phase=TRAINING\n"))

    def test_the_data_of_a_run_do_not_grow_with_the_number_of_faults(self):
        def settings(faults):
            return Trial(Scenario("test", "synced", "async", None), 1, faults, "").settings()

        self.assertEqual(settings(500)["data.train_examples"], settings(1)["data.train_examples"])
        self.assertEqual(settings(500)["training.epochs"], 501)


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


class TotalsTest(unittest.TestCase):
    def result(self, outcome, **kinds):
        report = Report(kinds=collections.Counter(kinds), acknowledged=100)
        return main.Result("test", outcome, "again", report)

    def test_each_kind_has_the_faults_of_the_scenarios_that_passed(self):
        totals = totals_of([self.result("passed", kills=2, drains=1),
                            self.result("passed", kills=3), self.result("failed", kills=4),
                            self.result("skipped")])

        kills, drains, everything = totals["kills"], totals["drains"], totals[ALL]
        self.assertEqual((kills.scenarios, kills.failed, kills.survived), (3, 1, 5))
        self.assertEqual((drains.scenarios, drains.survived, drains.acknowledged), (1, 1, 100))
        self.assertEqual((everything.scenarios, everything.survived, everything.acknowledged),
                         (3, 6, 300))
        self.assertEqual(list(totals)[-1], ALL)

    def test_results_have_scenarios_and_totals(self):
        with scratch() as directory:
            path = pathlib.Path(directory) / "results.json"
            main.write_results(path, [self.result("passed", kills=2)])
            written = json.loads(path.read_text(encoding="utf-8"))

        self.assertEqual(written["scenarios"][0]["faults"], {"kills": 2})
        self.assertEqual(written["totals"]["kills"]["survived"], 2)


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
        with scratch() as directory:
            path = pathlib.Path(directory)
            (path / "push-log-1.1.csv").write_text(HEAD + "APPLIED,0,1,1,0,32\nAPPLIED,0,1,2,1,3")
            (path / "push-log-1.csv").write_text(
                HEAD + "BUFFERED,0,1,2,1,32\nDROPPED_LATE,1,2,1,1,32\nAPPLIED,1,2,2,2,0\n")
            live = DurableCluster.__new__(DurableCluster)
            live.directory = path

            self.assertEqual(live.pushes_by_batch(1),
                             {"0": {("0", "1", "1")}, "1": {("0", "1", "2")}})

    def test_of_two_processes_the_later_one_says_what_became_of_a_push(self):
        with scratch() as directory:
            path = pathlib.Path(directory)
            for number, outcome in ((2, "APPLIED"), (10, "BUFFERED")):
                (path / f"push-log-1.{number}.csv").write_text(
                    HEAD + f"{outcome},0,1,{number},0,32\n{outcome},0,1,11,1,32\n")
            (path / "push-log-1.csv").write_text(HEAD + "DROPPED_LATE,0,1,12,1,32\n")
            live = DurableCluster.__new__(DurableCluster)
            live.directory = path

            self.assertEqual([(row["sequence"], row["outcome"]) for row in live.push_rows(1)],
                             [("2", "APPLIED"), ("10", "BUFFERED"), ("11", "BUFFERED"),
                              ("12", "DROPPED_LATE")])


if __name__ == "__main__":
    unittest.main()
