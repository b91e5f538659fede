"""How the programs, and their units for systemd, are hardened against an attacker inside a
server."""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).absolute().parents[1] / "support"))
from programs import DEADLINE_S, program, scratch, wait_until

PROGRAMS = ("server/ps_server", "worker/ps_worker", "deploy/psctl/psctl")
UNITS = sorted(pathlib.Path("deploy/systemd").glob("*.service"))
RUN = """version: 1
model: {preset: mlp}
data: {format: synthetic, train_examples: 640, test_examples: 100}
cluster: {servers: ["localhost:7070"], workers: 1}
"""
CAP_DAC_OVERRIDE, CAP_NET_BIND_SERVICE = 1, 10


def output_of(*command):
    return subprocess.run(command, text=True, check=True, stdout=subprocess.PIPE,
                          timeout=DEADLINE_S).stdout


class ProgramsTest(unittest.TestCase):
    def test_are_hardened_at_build(self):
        for name in PROGRAMS:
            with self.subTest(name):
                header = output_of("readelf", "-hW", program(name))
                segments = output_of("readelf", "-lW", program(name))
                dynamic = output_of("readelf", "-dW", program(name))
                symbols = output_of("readelf", "--dyn-syms", "-W", program(name))
                self.assertRegex(header, r"Type: +DYN")  # It is loaded at a random address.
                self.assertIn("GNU_RELRO", segments)
                self.assertIn("BIND_NOW", dynamic)
                self.assertRegex(segments, r"GNU_STACK +\S+ \S+ \S+ \S+ \S+ RW +")
                self.assertIn("__stack_chk_fail", symbols)
                self.assertRegex(symbols, r"__\w+_chk@")  # Fortified calls of the C library.

    def test_the_server_gives_up_rights(self):
        with scratch() as directory:
            config = pathlib.Path(directory) / "run.yaml"
            config.write_text(RUN)
            port_file = pathlib.Path(directory) / "port"
            server = subprocess.Popen([program("server/ps_server"), "--config", config, "--shard", "0",
                                       "--listen", "127.0.0.1:0", "--port-file", port_file],
                                      stderr=subprocess.DEVNULL)
            try:
                wait_until(port_file.exists, "the server to listen")
                status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
            finally:
                server.terminate()
                server.wait(timeout=DEADLINE_S)
        self.assertIn("NoNewPrivs:\t1", status)
        for line in re.findall(r"Cap(?:Inh|Prm|Eff):\t([0-9a-f]+)", status):
            self.assertEqual(int(line, 16) & ~(1 << CAP_DAC_OVERRIDE | 1 << CAP_NET_BIND_SERVICE), 0,
                             status)


@unittest.skipIf(shutil.which("systemd-analyze") is None, "systemd is not installed")
class UnitsTest(unittest.TestCase):
    def test_expose_little(self):
        self.assertEqual(len(UNITS), 3)
        for unit in UNITS:
            with self.subTest(unit.name):
                judged = output_of("systemd-analyze", "security", "--offline=yes", "--no-pager", unit)
                score = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", judged)[1])
                print(f"{unit.name}: exposure {score} of 10")
                self.assertLessEqual(score, 1.5, judged)

    def test_have_no_line_that_systemd_does_not_know(self):
        for unit in UNITS:
            done = subprocess.run(["systemd-analyze", "verify", unit], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=DEADLINE_S)
            about = [line for line in done.stdout.splitlines()
                     if unit.name.split(".")[0].rstrip("@") in line
                     and "is not executable" not in line]
            self.assertEqual(about, [])


if __name__ == "__main__":
    unittest.main()
