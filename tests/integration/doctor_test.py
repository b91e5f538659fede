"""Runs psctl doctor on set-ups that are each broken in one way: it names the step that fails, what
is wrong, and what to do. Prints its answers."""
import contextlib
import http.server
import json
import pathlib
import re
import shutil
import signal
import socket
import threading
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"


@contextlib.contextmanager
def web_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class DoctorTest(unittest.TestCase):
    def setUp(self):
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.certs = self.directory / "certs"
        for shard in (0, 1):
            cluster.make_certificate(self.certs, f"server-{shard}", f"server/{shard}", "localhost", "127.0.0.1")
        cluster.make_certificate(self.certs, "operator", "operator")
        self.ca = str(self.certs / "ca.crt")

    def start(self, is_encrypted=True, servers=1, **settings):
        if is_encrypted:
            settings = {"security.mtls.ca": self.ca, **settings}
        live = cluster.Cluster(CONFIG, {"cluster.servers": cluster.TWO_SERVERS, **settings},
                               self.directory, workers=0, servers=servers)
        self.addCleanup(live.stop)
        return live

    def ask(self, address, *arguments):
        return cluster.psctl("doctor", "--coordinator", address, *arguments, check=False)

    def finds(self, step, wrong, remedy, address, *arguments):
        """Checks that the steps before `step` are all right, and that `step` fails with these
        words."""
        done = self.ask(address, *arguments, "-o", "json")
        found = json.loads(done.stdout)
        print(f"{self._testMethodName}: {step}: {found[-1]['found']}\n    -> {found[-1]['remedy']}")
        self.assertEqual([line["ok"] for line in found], [True] * (len(found) - 1) + [False], found)
        self.assertEqual(found[-1]["step"], step, found)
        self.assertRegex(found[-1]["found"], wrong)
        self.assertRegex(found[-1]["remedy"], remedy)
        self.assertIn(done.returncode, (69, 74, 75, 78), found)
        shown = self.ask(address, *arguments)
        self.assertRegex(shown.stdout, f"(?m)^WRONG {step} ")
        self.assertEqual(shown.returncode, done.returncode)

    def test_all_is_well(self):
        for is_encrypted, arguments in ((False, ()), (True, ("--ca", self.ca))):
            live = self.start(is_encrypted, servers=2)
            live.wait_for(lambda status: len(status["shards"]) == 2, "both servers to report")
            done = self.ask(live.coordinator, *arguments)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertNotIn("WRONG", done.stdout)
            self.assertEqual(len(re.findall("(?m)^ok ", done.stdout)), 13 if is_encrypted else 9,
                             done.stdout)
            live.stop()
            for port_file in self.directory.glob("*.port"):
                port_file.unlink()

    # The connection to the server.

    def test_a_host_that_nobody_knows(self):
        self.finds("name", "no-such-host.invalid is not known", "spelling", "no-such-host.invalid:7070")

    def test_a_port_where_nothing_listens(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        self.finds("tcp", "Connection refused", "start the server", f"127.0.0.1:{port}")

    def test_another_program(self):
        with web_server() as address:
            self.finds("encryption", "does not speak HTTP/2|ends connections", ".", address)
            self.finds("encryption", "no TLS handshake", "does not encrypt", address, "--ca", self.ca)

    def test_a_server_that_is_stopped(self):
        live = self.start()
        live.servers[0].send_signal(signal.SIGSTOP)
        self.finds("encryption", "in time", "log", live.coordinator, "--ca", self.ca)
        self.finds("encryption", "says nothing", "be stopped", live.coordinator)

    def test_a_client_without_encryption(self):
        self.finds("encryption", "not encrypted", "give --ca", self.start().coordinator)

    def test_a_server_without_encryption(self):
        self.finds("encryption", "wrong version number", "set security.mtls",
                   self.start(is_encrypted=False).coordinator, "--ca", self.ca)

    # The client's files.

    def test_files_that_are_not_there(self):
        self.finds("files", "cannot read /nowhere/ca.crt", "certs init", "localhost:1", "--ca",
                   "/nowhere/ca.crt")
        (self.certs / "operator.key").unlink()
        self.finds("files", "operator.key: No such file", "certs init", "localhost:1", "--ca", self.ca)

    def test_a_certificate_that_has_expired(self):
        cluster.make_certificate(self.certs, "operator", "operator", begins=-2, ends=-1)
        self.finds("files", "expired", "renew", "localhost:1", "--ca", self.ca)

    def test_a_key_of_another_certificate(self):
        shutil.copy(self.certs / "server-0.key", self.certs / "operator.key")
        self.finds("files", "the key is another certificate's", "certs show", "localhost:1", "--ca",
                   self.ca)

    # The server's certificate.

    def test_a_server_of_another_authority(self):
        others = self.directory / "others"
        cluster.make_certificate(others, "operator", "operator")
        self.finds("server certificate", "not valid: (unable|self)", "signed by the authority",
                   self.start().coordinator, "--ca", str(others / "ca.crt"))

    def test_a_server_whose_certificate_has_expired(self):
        cluster.make_certificate(self.certs, "server-0", "server/0", "127.0.0.1", begins=-1, ends=0.001)
        live = self.start()
        cluster.wait_until(lambda: "expired" in self.ask(live.coordinator, "--ca", self.ca).stdout,
                           "the server's certificate to expire")
        self.finds("server certificate", "expired", "psctl certs renew", live.coordinator, "--ca",
                   self.ca)

    def test_a_server_that_is_called_by_a_name_not_its_own(self):
        cluster.make_certificate(self.certs, "server-0", "server/0", "127.0.0.1", "10.0.0.5")
        port = self.start().coordinator.rsplit(":", 1)[1]
        self.finds("server host", "is for 127.0.0.1, 10.0.0.5, and not for localhost", "--hosts",
                   f"localhost:{port}", "--ca", self.ca)

    def test_a_server_of_another_run(self):
        cluster.make_certificate(self.certs, "operator", "operator", run="other")
        self.finds("server role", "run/small/server/0, and this is slipstream://run/other/operator",
                   "certificates of that run", self.start().coordinator, "--ca", self.ca)

    def test_a_server_that_is_not_the_first(self):
        self.start(servers=2)
        port = (self.directory / "server-1.port").read_text().strip()
        self.finds("server role", "server/1, and the coordinator is in", "server 0", port, "--ca", self.ca)

    # The server's authentication of the client.

    def test_a_client_of_another_authority(self):
        others = self.directory / "others"
        cluster.make_certificate(others, "operator", "operator")
        both = self.directory / "both.crt"
        both.write_text((self.certs / "ca.crt").read_text() + (others / "ca.crt").read_text())
        self.finds("own certificate", "refuses it", "trusts another authority",
                   self.start().coordinator, "--ca", str(both), "--certificate",
                   str(others / "operator.crt"), "--key", str(others / "operator.key"))

    def test_a_client_with_a_wrong_token(self):
        for name, text in (("token", "the-token-of-the-run\n"), ("stale", "the-token-of-another\n")):
            (self.certs / name).write_text(text)
        live = self.start(**{"security.token": str(self.certs / "token")})
        self.finds("call", "the token is not one of the run's", "--token", live.coordinator, "--ca",
                   self.ca, "--token", str(self.certs / "stale"))

    def test_a_token_for_a_server_that_takes_none(self):
        (self.certs / "token").write_text("the-token-of-the-run\n")
        self.finds("own certificate", "refuses it", "takes no tokens", self.start().coordinator,
                   "--ca", self.ca, "--token", str(self.certs / "token"))

    # The other servers.

    def test_a_shard_that_cannot_be_reached(self):
        live = self.start(servers=2)
        live.wait_for(lambda status: len(status["shards"]) == 2, "both servers to report")
        live.servers[1].kill()
        live.servers[1].wait()
        self.finds("shards", "server of shard 1 at .* refused", "every server", live.coordinator,
                   "--ca", self.ca)

    def test_a_shard_with_a_certificate_of_another(self):
        live = self.start(servers=2)
        live.wait_for(lambda status: len(status["shards"]) == 2, "both servers to report")
        cluster.make_certificate(self.certs, "server-1", "server/2", "localhost", "127.0.0.1")
        cluster.wait_until(lambda: "not for slipstream" in self.ask(live.coordinator, "--ca", self.ca).stdout,
                           "the server to take the other certificate")
        self.finds("shards", "server/2, and not for slipstream://run/small/server/1", "every server",
                   live.coordinator, "--ca", self.ca)
        cluster.wait_until(lambda: "new connections fail" in live.log_text("server-1"),
                           "the server to say that its certificate is wrong")

    def test_a_run_that_waits_for_a_server(self):
        self.finds("shards", "waits for servers", "start those", self.start().coordinator, "--ca",
                   self.ca)


if __name__ == "__main__":
    unittest.main()
