"""How the benchmark handles its arguments and measurements; nothing here is timed."""
import contextlib
import io
import json
import pathlib
import sys
import unittest

import main
from programs import OWN_BUILD, Build, scratch

import build_plan
import builds_report
import contenders
import figures
import kernel_suite
import machine_load
import rounds
import table
import torch_contenders
import training_contenders
import training_suite
import transport_suite
from contender import Contender, Setting, Turn
from contender_process import ContenderFailed, ContenderProcess
from rounds import Comparison, Field, Series
from suite import Suite

# Behaves like a contender: each exchange takes half a second, and `run 13` fails.
SCRIPT = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    count = int(line.split()[1])
    if count == 13:
        sys.exit("thirteen is too many")
    print("done", 0.5 * count, 0.5, flush=True)
"""


class ScriptContender(Contender):
    def __init__(self, name, setting, directory):
        super().__init__(setting, directory)
        self.name = name

    def start(self):
        for worker in range(self.setting.workers):
            self.workers.append(ContenderProcess(f"{self.name}-{worker}",
                                                 [sys.executable, "-c", SCRIPT], self.directory))


class FailingContender(ScriptContender):
    def run(self, count):
        return super().run(13)


def make_checkout(root, labels):
    """Makes a directory that looks like a checkout whose BUILD files have these targets."""
    (root / "WORKSPACE").write_text("")
    for label in labels:
        package, _, name = label[len("//"):].partition(":")
        (root / package).mkdir(parents=True, exist_ok=True)
        with open(root / package / "BUILD", "a", encoding="utf-8") as file:
            file.write(f'cc_binary(\n    name = "{name or pathlib.Path(package).name}",\n)\n')


def make_program(path, script):
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)


def series(name, seconds, setting=Setting(bytes=1000), count=2):
    contender = Contender(setting, None)
    contender.name = name
    return Series(contender, count, [Turn(second, second / count) for second in seconds])


class ArgumentsTest(unittest.TestCase):
    def test_without_any_all_parts_are_measured_at_length(self):
        options = main.parse_arguments([])

        self.assertEqual(options.only, list(main.SUITES))
        self.assertGreater(options.rounds, main.parse_arguments(["--quick"]).rounds)

    def test_refuses_what_it_does_not_know(self):
        for arguments in (["--only", "cooking"], ["--rounds", "0"], ["--seconds", "x"], ["more"],
                          ["--json", "/no/such/directory/rows.json"]):
            with self.subTest(arguments), contextlib.redirect_stderr(io.StringIO()), \
                    self.assertRaises(SystemExit) as caught:
                main.parse_arguments(arguments)
            self.assertEqual(caught.exception.code, 2)

    def test_names_what_has_to_be_built_for_the_parts_chosen(self):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self.assertEqual(main.main(["--targets", "--only", "transport"]), 0)

        self.assertIn("//tests/benchmarks:exchange_driver", output.getvalue().split())

    def test_quick_covers_one_size_at_three_shapes(self):
        settings = list(transport_suite.settings(quick=True))

        self.assertEqual([setting.shape for setting in settings], ["1x1", "2x1", "2x2"])
        self.assertEqual({setting.bytes for setting in settings}, {64 << 20})

    def test_no_shard_gets_less_than_it_can_hold(self):
        smallest = [s for s in transport_suite.settings(quick=False) if s.bytes == 64]

        self.assertEqual({setting.servers for setting in smallest}, {1})


class AgainstTest(unittest.TestCase):
    def refusal(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as output, \
                self.assertRaises(SystemExit) as caught:
            main.parse_arguments(arguments)
        self.assertEqual(caught.exception.code, 2)
        return output.getvalue()

    def test_a_directory_that_is_no_checkout_is_refused_before_anything_is_built(self):
        with scratch() as directory:
            self.assertIn(f"{pathlib.Path(directory).resolve()} is no checkout of Slipstream",
                          self.refusal("--against", directory))

    def test_a_checkout_without_a_target_is_refused_with_the_part_that_needs_it(self):
        with scratch() as directory:
            make_checkout(pathlib.Path(directory), ["//server:ps_server", "//deploy/psctl"])

            text = self.refusal("--against", directory, "--only", "training", "--only", "latency")

        self.assertIn("has no target //tests/benchmarks:exchange_driver, //worker:ps_worker;", text)
        self.assertIn("leave training, latency out", text)

    def test_one_round_is_too_few(self):
        with scratch() as directory:
            make_checkout(pathlib.Path(directory), build_plan.SLIPSTREAM_TARGETS["training"])

            self.assertIn("one round has no spread", self.refusal(
                "--against", directory, "--only", "training", "--rounds", "1"))

    def test_only_programs_of_slipstream_are_built_in_the_other_checkout(self):
        with scratch() as directory, contextlib.redirect_stdout(io.StringIO()) as output:
            make_checkout(pathlib.Path(directory), build_plan.SLIPSTREAM_TARGETS["latency"])
            root = pathlib.Path(directory).resolve()

            main.main(["--targets", "--only", "latency", "--against", directory])

        own, other = (line.split("\t") for line in output.getvalue().splitlines())
        self.assertEqual((own[0], other[0]), (str(main.ROOT), str(root)))
        self.assertEqual(set(own[1].split()) - set(other[1].split()), set(build_plan.RAW_PROBES))
        self.assertEqual(other[1].split(), sorted(build_plan.SLIPSTREAM_TARGETS["latency"]))

    def test_builds_of_a_contender_are_neighbours_and_peers_stay_out(self):
        builds = (OWN_BUILD, Build("other"))
        with scratch() as directory:
            chosen = [contender.name for contender in contenders.exchange_contenders(
                Setting(bytes=64), pathlib.Path(directory), builds)]

        self.assertEqual(chosen, ["slipstream-tcp", "slipstream-tcp (other)", "slipstream-unix",
                                  "slipstream-unix (other)", "slipstream-shm",
                                  "slipstream-shm (other)", "slipstream-mtls",
                                  "slipstream-mtls (other)", "raw-tcp", "raw-unix", "raw-shm"])
        self.assertEqual([make.func for make in training_suite.contenders(builds)],
                         [training_contenders.SlipstreamTraining] * 4)

    def test_a_run_takes_the_programs_of_its_build_and_no_others(self):
        setting = training_contenders.TrainingSetting(bytes=64, workers=2, net="mlp", batch=50)
        with scratch() as directory:
            root = pathlib.Path(directory)
            programs = [root / "bazel-bin" / name for name in
                        ("server/ps_server", "worker/ps_worker", "deploy/psctl/psctl")]
            for program in programs[:2]:
                make_program(program, "")
            make_program(programs[2], f'[ "$PS_SERVER_BINARY $PS_WORKER_BINARY" = '
                                      f'"{programs[0]} {programs[1]}" ] && '
                                      'echo \'{"seconds": 3}\'\n')
            other = training_contenders.SlipstreamTraining("async", setting, root, Build(root))
            other.start()

            turn = other.run(6)

        self.assertEqual((other.name, turn), ("slipstream-async (other)", Turn(3, 0.5)))


class BuildsReportTest(unittest.TestCase):
    def row(self, ratio, spread):
        return {"ratio_to_other": ratio, "ratio_spread": spread}

    def test_names_each_ratio_that_differs_by_more_than_its_spread(self):
        text = builds_report.text("/before", [("latency a", self.row(0.9, 0.05)),
                                              ("latency b", self.row(1.1, 0.2))])

        self.assertIn("against that of /before", text)
        self.assertEqual(text.splitlines()[-2:],
                         ["BEYOND ITS SPREAD: latency a: 0.900 times (spread 5.0 %)",
                          "1 of 2 ratios lie beyond their spread."])

    def test_says_that_no_ratio_does(self):
        lines = builds_report.text("/before", [("latency a", self.row(1.04, 0.05))]).splitlines()

        self.assertEqual(lines[-1], "No ratio lies beyond its spread (1 compared).")
        self.assertIn(["latency", "a", "1.040", "5.0", "%", "-"], [line.split() for line in lines])

    def test_says_that_nothing_was_measured(self):
        self.assertIn("nothing was measured of both", builds_report.text("/before", []))


class FiguresTest(unittest.TestCase):
    def test_ratios_are_taken_round_by_round(self):
        # The contender is twice as slow in every round; the machine gets slower by the round.
        comparison = Comparison([series("raw-tcp", [1, 2, 8]), series("other", [2, 4, 16])],
                                [0.0, 0.0, 1.0])

        raw, other = figures.rows_of("transport", comparison)

        self.assertEqual(raw["ratio_to_raw_tcp"], 1.0)
        self.assertEqual(other["ratio_to_raw_tcp"], 0.5)
        self.assertEqual(other["gigabytes_per_second"], 2 * 1000 * 2 / 4 / 1e9)
        self.assertEqual((other["busy_rounds"], other["rounds"]), (1, 3))

    def test_a_build_is_compared_with_the_other_round_by_round(self):
        comparison = Comparison([series("slipstream-tcp", [1, 1, 1]),
                                 series("slipstream-tcp (other)", [1.5, 2, 2.5]),
                                 series("slipstream-shm", [1, 1, 1])], [0.0] * 3)

        own, other, alone = figures.rows_of("transport", comparison)

        self.assertEqual((own["ratio_to_other"], own["ratio_spread"]), (2.0, 0.25))
        self.assertEqual(other["contender"], "slipstream-tcp (other)")
        self.assertNotIn("ratio_to_other", other)
        self.assertNotIn("ratio_to_other", alone)

    def test_a_transport_stands_beside_its_own_limit(self):
        ours = series("slipstream-shm", [2, 4])
        ours.contender.limit = "raw-shm"

        row, limit = figures.rows_of("transport", Comparison([ours, series("raw-shm", [1, 2])],
                                                             [0.0, 0.0]))

        self.assertEqual((row["ratio_to_limit"], row["ratio_to_raw_tcp"]), (0.5, None))
        self.assertIsNone(limit["ratio_to_limit"])
        self.assertEqual([line.split() for line in table.limit_table([row], ["1x1"]).splitlines()],
                         [["workers", "x", "servers", "1x1"], ["slipstream-shm", "0.50"]])

    def test_a_row_says_what_was_measured(self):
        setting = Setting(bytes=64, workers=2, servers=1, rule="momentum")

        row, = figures.rows_of("transport", Comparison([series("grpc-bytes", [1], setting)], [0.0]))

        self.assertEqual({key: row[key] for key in ("benchmark", "contender", "bytes", "workers",
                                                    "servers", "rule", "ratio_to_raw_tcp")},
                         {"benchmark": "transport", "contender": "grpc-bytes", "bytes": 64,
                          "workers": 2, "servers": 1, "rule": "momentum", "ratio_to_raw_tcp": None})

    def test_an_all_reduce_of_two_ranks_counts_a_model_there_and_one_back(self):
        one = series("gloo-allreduce", [1])
        one.contender = torch_contenders.GlooContender(one.contender.setting, None)

        row, = figures.rows_of("transport", Comparison([one], [0.0]))

        self.assertEqual((row["workers"], row["servers"], row["shape"]), (2, 0, "1x1"))
        self.assertEqual(row["gigabytes_per_second"], 2 * 1000 * 2 / 1e9)

    def test_spread_is_the_distance_of_the_quartiles(self):
        self.assertEqual(figures.spread([1, 2, 3, 4, 5]), 2 / 3)
        self.assertEqual(figures.spread([7]), 0.0)

    def test_a_contender_that_failed_has_no_row(self):
        failed = Series(Contender(Setting(bytes=64), None), failure="it is gone")

        self.assertEqual(list(figures.rows_of("transport", Comparison([failed], []))), [])


class TableTest(unittest.TestCase):
    def test_shows_contenders_by_shape(self):
        rows = list(figures.rows_of("transport", Comparison(
            [series("raw-tcp", [1e-6, 1e-6]), series("slipstream-tcp", [2e-6, 2e-6])], [0.0, 0.0])))

        lines = table.exchange_table(rows, ["1x1", "2x1"]).splitlines()

        self.assertEqual([line.split() for line in lines],
                         [["workers", "x", "servers", "1x1"],
                          ["raw-tcp", "1.00", "[4,", "0", "%]"],
                          ["slipstream-tcp", "0.50", "[2,", "0", "%]"]])

    def test_says_when_others_used_the_machine(self):
        quiet = {"rounds": 4, "busy_rounds": 0, "cores_of_others": 0.0}
        busy = {"rounds": 4, "busy_rounds": 2, "cores_of_others": 0.8}

        self.assertIn("quiet", table.load_line([quiet]))
        self.assertIn("BUSY in 25 %", table.load_line([quiet, busy]))

    def test_names_sizes_in_the_largest_unit_that_fits(self):
        self.assertEqual([table.bytes_text(size) for size in (64, 1 << 20, 246824)],
                         ["64 B", "1 MiB", "246824 B"])


class MachineLoadTest(unittest.TestCase):
    def test_leaves_interrupts_out_and_counts_steal(self):
        self.assertEqual(machine_load.parse_total("cpu  1 2 4 800 16 32 64 128 0 0\ncpu0 1"),
                         (1 + 2 + 4 + 128, 1 + 2 + 4 + 800 + 16 + 32 + 64 + 128))

    def test_reads_a_process_whatever_its_name(self):
        stat = "7 (a) b ( c) S 3 0 0 0 0 0 0 0 0 0 10 20 30 40 0 0"

        self.assertEqual(machine_load.parse_process(stat), (7, 3, 100))

    def test_counts_a_process_and_all_below_it(self):
        processes = [(1, 0, 5), (2, 1, 10), (3, 2, 20), (4, 1, 40), (5, 4, 80)]

        self.assertEqual(machine_load.ticks_of_tree(processes, 2), 30)


class StartingContender(Contender):
    """A turn takes a second before the first exchange, and each exchange takes a hundredth."""

    def run(self, count):
        return Turn(1 + 0.01 * count, 0.01)


class RoundsTest(unittest.TestCase):
    def test_turns_are_as_long_as_wanted_also_where_a_turn_has_a_long_start(self):
        contender = StartingContender(Setting(bytes=64), None)

        seconds = contender.run(rounds.warm(contender, seconds=6)).seconds

        self.assertGreater(seconds, 3)
        self.assertLess(seconds, 12)

    def measure(self, contenders):
        with contextlib.redirect_stderr(io.StringIO()):
            return Field(contenders).measure(rounds=3, seconds=1)

    def test_every_contender_has_a_turn_in_every_round(self):
        with scratch() as directory:
            path = pathlib.Path(directory)
            setting = Setting(bytes=1000, workers=2)
            comparison = self.measure([ScriptContender(name, setting, path) for name in "ab"])

        for one in comparison.series:
            self.assertEqual((one.exchanges, len(one.turns)), (2, 3))  # Each takes half a second.
            self.assertEqual(one.rates, [2 * 1000 * 2 * 2] * 3)
        self.assertEqual(len(comparison.cores_of_others), 3)

    def test_with_two_builds_every_round_begins_with_new_processes(self):
        class CountedContender(ScriptContender):
            starts = 0

            def start(self):
                self.starts += 1
                super().start()

        with scratch() as directory, contextlib.redirect_stderr(io.StringIO()):
            contender = CountedContender("a", Setting(bytes=1000, workers=2), pathlib.Path(directory))
            Field([contender]).measure(rounds=3, seconds=1, anew=True)

        self.assertEqual(contender.starts, 3)
        self.assertEqual(contender.workers, [])

    def test_another_one_begins_each_round_and_neighbours_take_turns_in_going_first(self):
        orders = ["".join(rounds.in_turn(list("abcd"), number)) for number in range(4)]

        self.assertEqual(orders, ["abcd", "badc", "cdab", "dcba"])
        self.assertEqual([rounds.in_turn([1, 2], number) for number in range(2)], [[1, 2], [2, 1]])
        self.assertEqual(rounds.in_turn([], 1), [])

    def test_two_builds_of_a_contender_do_equal_work(self):
        field = Field([series(name, []).contender for name in ("a", "a (other)", "b")])
        for one, count in zip(field.series, (5, 7, 3)):
            one.exchanges = count

        field.share_counts()

        self.assertEqual([one.exchanges for one in field.series], [7, 7, 3])

    def test_one_that_fails_is_named_with_its_log_and_the_others_go_on(self):
        with scratch() as directory:
            path = pathlib.Path(directory)
            bad, good = self.measure([FailingContender("bad", Setting(bytes=1000), path),
                                      ScriptContender("good", Setting(bytes=1000), path)]).series

        self.assertIn(f"bad-0 has ended (log: {path}/bad-0.log); thirteen is too many", bad.failure)
        self.assertEqual(bad.turns, [])
        self.assertEqual(len(good.turns), 3)

    def test_one_that_says_nothing_is_given_up(self):
        with scratch() as directory:
            process = ContenderProcess("mute", ["cat"], pathlib.Path(directory))
            with self.assertRaisesRegex(ContenderFailed, "said nothing for 0.01 s"):
                process.answer("ready", timeout=0.01)
            process.end()

    def test_one_that_cannot_take_part_is_skipped_with_its_reason(self):
        class Missing(ScriptContender):
            def missing(self):
                return "not installed"

        suite = Suite(main.parse_arguments([]), None)

        self.assertEqual(list(suite.present([Missing("m", Setting(bytes=64), None)])), [])
        self.assertEqual(suite.skipped, {"m": {"not installed"}})


class KernelsTest(unittest.TestCase):
    def report(self, rates):
        return {"benchmarks": [{"name": f"{name}/repeats:2", "run_type": "iteration",
                                "bytes_per_second": rate} for name, rate in rates] +
                              [{"name": f"{rates[0][0]}_median", "run_type": "aggregate"}]}

    def test_a_kernel_is_compared_with_the_memcpy_that_moves_as_many_bytes(self):
        rates = kernel_suite.parse(self.report(
            [("sgd-single/cut/1024", 8e9), ("memcpy:3/-/1024", 10e9), ("memcpy:6/-/1024", 1e9),
             ("sgd-single/cut/1024", 10e9), ("memcpy:3/-/1024", 10e9)]))

        rows = {row["contender"]: row for row in kernel_suite.rows_of(rates, {"rounds": 2})}

        self.assertEqual(rows["sgd-single"]["ratio_to_memcpy"], 0.9)
        self.assertEqual((rows["sgd-single"]["gradient"], rows["sgd-single"]["bytes"]), ("cut", 1024))
        self.assertNotIn("ratio_to_memcpy", rows["memcpy:3"])

    def test_lines_of_the_table_are_in_the_order_of_kernels(self):
        names = [("memcpy:3", "-"), ("sgd-single (other)", "cut"), ("sgd-single", "cut"),
                 ("finite", "cut"), ("sgd-single", "aligned")]

        self.assertEqual(sorted(names, key=kernel_suite.place),
                         [("finite", "cut"), ("sgd-single", "aligned"), ("sgd-single", "cut"),
                          ("sgd-single (other)", "cut"), ("memcpy:3", "-")])

    def turns(self, builds):
        """Returns the build and the repetitions of each turn, in order, and the rates."""
        taken = []

        def measure_turn(build, _, repetitions, __):
            taken.append((build, repetitions))
            return {("finite", "cut", 1024): [len(taken)] * repetitions}

        suite = Suite(main.parse_arguments(["--rounds", "3"]), None, builds)
        return taken, kernel_suite.measure(suite, None, measure_turn)

    def test_one_build_has_all_its_rounds_in_one_process(self):
        taken, rates_of = self.turns((OWN_BUILD,))

        self.assertEqual(taken, [(OWN_BUILD, 3)])
        self.assertEqual(rates_of[OWN_BUILD], {("finite", "cut", 1024): [1, 1, 1]})

    def test_two_builds_take_turns_round_by_round(self):
        other = Build("other")

        taken, rates_of = self.turns((OWN_BUILD, other))

        self.assertEqual(taken, [(build, 1) for build in
                                 (OWN_BUILD, other, other, OWN_BUILD, OWN_BUILD, other)])
        self.assertEqual(rates_of[OWN_BUILD], {("finite", "cut", 1024): [1, 4, 5]})
        self.assertEqual(rates_of[other], {("finite", "cut", 1024): [2, 3, 6]})

    def test_a_kernel_is_compared_with_that_of_the_other_build(self):
        own = {("finite", "cut", 1024): [2e9, 4e9, 6e9], ("memcpy:1", "-", 1024): [1e9]}
        other = {("finite", "cut", 1024): [1e9, 2e9, 3e9], ("memcpy:1", "-", 1024): [1e9]}

        row, memcpy = kernel_suite.rows_of(own, {"rounds": 3}, OWN_BUILD, other)
        row_of_other, _ = kernel_suite.rows_of(other, {"rounds": 3}, Build("other"))

        self.assertEqual((row["ratio_to_other"], row["ratio_spread"]), (2.0, 0.0))
        self.assertNotIn("ratio_to_other", memcpy)  # memcpy is the same in both builds.
        self.assertEqual(row_of_other["contender"], "finite (other)")
        self.assertNotIn("ratio_to_other", row_of_other)


class TrainingTest(unittest.TestCase):
    def series(self, contender, seconds):
        return Series(contender, 10, [Turn(second, second / 10) for second in seconds])

    def test_slipstream_is_compared_with_the_better_of_the_peer_s_settings(self):
        setting = training_contenders.TrainingSetting(bytes=64, workers=2, net="mlp", batch=50)
        ours = training_contenders.SlipstreamTraining("async", setting, None)
        peers = [training_contenders.DdpTraining(tuned, setting, None) for tuned in (False, True)]

        rows = list(training_suite.rows_of(Comparison(
            [self.series(ours, [1, 1]), self.series(peers[0], [4, 4]),
             self.series(peers[1], [2, 2])], [0.0, 0.0])))

        self.assertEqual([(row["contender"], row["policy"], row["ratio_to_ddp"]) for row in rows],
                         [("slipstream-async", "async", 2.0), ("torch-ddp", "", 0.5),
                          ("torch-ddp-tuned", "", 1.0)])
        self.assertEqual(rows[0]["examples_per_second"], 2 * 50 * 10)


class JsonTest(unittest.TestCase):
    def test_rows_are_written_as_a_list(self):
        rows = list(figures.rows_of("transport", Comparison([series("raw-tcp", [1])], [0.0])))
        with scratch() as directory:
            path = pathlib.Path(directory) / "rows.json"
            main.write_json(path, rows)

            self.assertEqual(json.loads(path.read_text(encoding="utf-8")), rows)
            self.assertEqual([entry.name for entry in path.parent.iterdir()], ["rows.json"])


if __name__ == "__main__":
    unittest.main()
