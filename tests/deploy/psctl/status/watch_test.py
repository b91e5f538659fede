"""psctl status --watch and psctl events --follow: they redraw or go on, survive an absence, and end with the run
or with Ctrl-C."""
import fcntl
import json
import os
import pathlib
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
import unittest

sys.path.append(str(pathlib.Path(__file__).absolute().parents[3] / "support"))
from programs import DEADLINE_S, program, scratch, wait_until


class StatusWatchTest(unittest.TestCase):
    def setUp(self):
        folder = scratch()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.finished = self.folder / "finished"
        self.away = self.folder / "finished.away"
        self.stdout = self.folder / "stdout"
        self.stderr = self.folder / "stderr"
        port_file = self.folder / "port"
        self.start([program("tests/deploy/psctl/fake_coordinator"), str(port_file),
                    str(self.finished)])
        wait_until(port_file.exists, "the coordinator to listen")
        self.address = port_file.read_text().strip()

    def start(self, command, **files):
        process = subprocess.Popen(command, **files)

        def stop():
            process.kill()
            process.wait()

        self.addCleanup(stop)
        return process

    def watch(self, *arguments, stdout=None, ask=("status", "--watch", "--interval", "100ms")):
        command = [program("deploy/psctl/psctl"), *ask, "--coordinator", self.address, *arguments]
        with open(self.stdout, "wb") as out, open(self.stderr, "wb") as err:
            return self.start(command, stdout=stdout or out, stderr=err)

    def wait_for_text(self, path, text):
        wait_until(lambda: text in path.read_text(), f"{text!r} in {path.name}")

    def test_prints_one_object_per_line_until_the_run_is_over(self):
        watch = self.watch("-o", "json")
        wait_until(lambda: self.stdout.read_text().count("\n") >= 2, "two statuses")

        self.finished.touch()

        self.assertEqual(watch.wait(timeout=DEADLINE_S), 0, self.stderr.read_text())
        statuses = [json.loads(line) for line in self.stdout.read_text().splitlines()]
        self.assertGreaterEqual(len(statuses), 3)
        self.assertEqual(statuses[0]["phase"], "TRAINING")
        self.assertEqual([s["phase"] for s in statuses].count("FINISHED"), 1)
        self.assertEqual(statuses[-1]["weights_sha256"], "ab12")
        self.assertEqual(statuses[-1]["updates"], 100)

    def test_prints_plain_blocks_where_there_is_no_terminal(self):
        watch = self.watch()
        self.wait_for_text(self.stdout, "\n\nrun            demo\n")

        self.finished.touch()

        self.assertEqual(watch.wait(timeout=DEADLINE_S), 0, self.stderr.read_text())
        self.assertNotIn("\x1b", self.stdout.read_text())
        self.assertEqual(len(re.findall(r"^state +finished$", self.stdout.read_text(), re.M)), 1)

    def test_waits_for_a_coordinator_that_is_away_for_a_moment(self):
        watch = self.watch("-o", "json")
        self.wait_for_text(self.stdout, "\n")

        self.away.touch()
        self.wait_for_text(self.stderr, f"no coordinator answers at {self.address}: it is away; "
                                        "waiting for it until ")
        told = self.stdout.read_text().count("\n")
        self.away.unlink()
        self.wait_for_text(self.stderr, "psctl: the coordinator is there again\n")
        wait_until(lambda: self.stdout.read_text().count("\n") > told, "another status")
        self.finished.touch()

        self.assertEqual(watch.wait(timeout=DEADLINE_S), 0)
        self.assertEqual(self.stderr.read_text().count("waiting for it"), 1)

    def test_waits_for_a_coordinator_that_starts_later(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.address = f"127.0.0.1:{taken.getsockname()[1]}"
        watch = self.watch("-o", "json")
        self.wait_for_text(self.stderr, f"psctl: no coordinator answers at {self.address}: ")
        self.assertRegex(self.stderr.read_text(),
                         r"; waiting for it until \d\d:\d\d:\d\d \((1m00s|59\.\d s)\)\n$")

        self.start([program("tests/deploy/psctl/fake_coordinator"), str(self.folder / "later"),
                    str(self.finished), self.address])
        self.wait_for_text(self.stderr, "psctl: the coordinator is there\n")
        self.finished.touch()

        self.assertEqual(watch.wait(timeout=DEADLINE_S), 0, self.stderr.read_text())
        self.assertEqual(self.stderr.read_text().count("waiting for it"), 1)

    def test_gives_up_on_a_coordinator_that_does_not_come(self):
        self.away.touch()

        watch = self.watch("--wait", "300ms")

        self.assertEqual(watch.wait(timeout=DEADLINE_S), 69)
        self.assertRegex(self.stderr.read_text(), r"it is away; waiting for it until .*\n")
        self.assertTrue(self.stderr.read_text().endswith(
            f"\npsctl: error: no coordinator answers at {self.address} within 300 ms: it is away; "
            "psctl doctor finds out why\n"), self.stderr.read_text())

    def test_ends_with_the_number_of_the_signal(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            watch = self.watch()
            self.wait_for_text(self.stdout, "run            demo")

            watch.send_signal(number)

            self.assertEqual(watch.wait(timeout=DEADLINE_S), 128 + number)
            self.assertEqual(self.stderr.read_text(), "")

    def show_on_a_terminal(self, rows, columns, **environment):
        """Returns the output of a plain status on a terminal of this size."""
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        known = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        status = self.start([program("deploy/psctl/psctl"), "status", "--coordinator",
                             self.address], stdout=end,
                            env={**known, "TERM": "xterm", **environment})
        os.close(end)
        self.assertEqual(status.wait(timeout=DEADLINE_S), 0)
        shown = b""
        try:
            while True:
                shown += os.read(terminal, 65536)
        except OSError:  # The other end is closed.
            pass
        return shown.decode()

    def test_fits_the_terminal_and_shows_what_it_cuts(self):
        for rows, columns in ((24, 80), (24, 40), (10, 60)):
            with self.subTest(rows=rows, columns=columns):
                shown = self.show_on_a_terminal(rows, columns, NO_COLOR="1")

                lines = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown).split("\r\n")
                self.assertLess(len(lines), rows + 1)
                self.assertLess(max(map(len, lines)), columns)
                self.assertRegex(shown, r"state +training 25\.0% .* left")
                if (rows, columns) != (24, 80):
                    self.assertIn("…", shown)

    def test_has_colours_on_a_terminal_unless_they_are_not_wanted(self):
        bold = "\x1b[1mworker  state"
        self.assertIn(bold, self.show_on_a_terminal(50, 100))
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            with self.subTest(environment):
                self.assertNotIn("\x1b[1m", self.show_on_a_terminal(50, 100, **environment))

    def test_prints_everything_uncut_where_there_is_no_terminal(self):
        done = subprocess.run([program("deploy/psctl/psctl"), "status", "--coordinator",
                               self.address], stdout=subprocess.PIPE, text=True, check=True,
                              timeout=DEADLINE_S, env={**os.environ, "TERM": "xterm"})

        self.assertNotIn("\x1b", done.stdout)
        self.assertNotIn("…", done.stdout)
        self.assertIn("hidden of that", done.stdout)
        self.assertIn("staleness  gradients  share", done.stdout)

    def test_redraws_on_a_terminal(self):
        terminal, end = pty.openpty()
        self.addCleanup(os.close, terminal)
        watch = self.watch(stdout=end)
        os.close(end)
        shown = b""
        while shown.count(b"A\r") < 2:  # The cursor has moved up twice.
            shown += os.read(terminal, 65536)

        self.finished.touch()
        while b"finished" not in shown:
            shown += os.read(terminal, 65536)
        try:
            while True:
                shown += os.read(terminal, 65536)
        except OSError:  # The other end is closed.
            pass

        self.assertEqual(watch.wait(timeout=DEADLINE_S), 0, self.stderr.read_text())
        self.assertIn(b"\x1b[K", shown)
        self.assertIn(b"\x1b[J", shown)

    def test_events_are_printed_once_each_until_the_run_is_over(self):
        (self.folder / "finished.events").touch()
        watch = self.watch(ask=("events", "--follow"))
        self.wait_for_text(self.stdout, "worker died")

        self.away.touch()
        self.wait_for_text(self.stderr, "it is away; waiting for it until ")
        self.finished.touch()
        self.away.unlink()

        self.assertEqual(watch.wait(timeout=DEADLINE_S), 0, self.stderr.read_text())
        self.assertRegex(
            self.stdout.read_text(),
            r"\A\.\.\. 2 events that are not kept any more\n"
            r"[-\d]{10} [:\d]{8}  worker      ! worker died worker=1\n"
            r"\.\.\. 1 event that is not kept any more\n"
            r"[-\d]{10} [:\d]{8}  phase       the run's phase changes phase=finished\n\Z")

    def test_events_so_far_are_printed_as_json(self):
        (self.folder / "finished.events").touch()
        events = self.watch("-o", "json", ask=("events",))

        self.assertEqual(events.wait(timeout=DEADLINE_S), 0, self.stderr.read_text())
        self.assertEqual(
            [json.loads(line) for line in self.stdout.read_text().splitlines()],
            [{"missed": 2},
             {"number": 3, "time_ms": 1700000000250, "kind": "worker", "is_warning": True,
              "text": "worker died worker=1", "worker": None, "shard": None}])

    def test_follow_ends_with_ctrl_c(self):
        events = self.watch("-o", "json", ask=("events", "--follow"))
        (self.folder / "finished.events").touch()
        self.wait_for_text(self.stdout, "worker died")

        events.send_signal(signal.SIGINT)

        self.assertEqual(events.wait(timeout=DEADLINE_S), 128 + signal.SIGINT)


if __name__ == "__main__":
    unittest.main()
