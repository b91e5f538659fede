"""Who may call which method: calls each method of a server that requires certificates with right
and wrong certificates of every kind, and with right and wrong tokens. Prints the matrix."""
import collections
import pathlib
import socket
import subprocess
import unittest

import cluster
from hostile_peers import first_chunk
from wire_messages import blob, fixed64, number

try:
    import grpc
except ImportError:
    grpc = None

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
COORDINATOR, SHARD = "/slipstream.v1.Coordinator/", "/slipstream.v1.Shard/"
DRAIN = "/slipstream.v1.Operation/Drain"
IDENTITY = fixed64(1, 1) + number(2, 3) + number(3, 1)
WORKER_3 = blob(1, IDENTITY)
PUSH = first_chunk(IDENTITY, 1, 1, bytes(4))
# A push of one value that combines one of worker 3.
COMPOSITE = (blob(1, blob(1, fixed64(1, 1)) + fixed64(3, 1) + number(5, 1) + number(6, 1)
                  + blob(20, number(1, 3) + number(2, 1) + number(3, 1) + number(6, 1))) + blob(15, bytes(4)))

# A method, the message it is sent, and the roles that may call it with this message: s the server
# of shard 1, a the aggregator of worker 3's group for shard 0, w worker 3, o an operator, v a viewer,
# r a reader, t the holder of a token.
Call = collections.namedtuple("Call", ["method", "message", "roles"])
CALLS = {
    "SyncServer": Call(COORDINATOR + "SyncServer", number(1, 1), "s"),
    "Register": Call(COORDINATOR + "Register", number(1, 3), "wt"),
    "PrepareModel": Call(COORDINATOR + "PrepareModel", WORKER_3, "wt"),
    "FinishInitialization": Call(COORDINATOR + "FinishInitialization", WORKER_3, "wt"),
    "Meet": Call(COORDINATOR + "Meet", WORKER_3, "wt"),
    "Heartbeat": Call(COORDINATOR + "Heartbeat", WORKER_3, "wt"),
    "GetWork": Call(COORDINATOR + "GetWork", WORKER_3, "wt"),
    "Report": Call(COORDINATOR + "Report", WORKER_3, "wt"),
    "Leave": Call(COORDINATOR + "Leave", WORKER_3, "wt"),
    "EndTraining": Call(COORDINATOR + "EndTraining", b"", "ot"),
    "ChangeRun": Call(COORDINATOR + "ChangeRun", b"", "ot"),
    "SaveCheckpoint": Call(COORDINATOR + "SaveCheckpoint", b"", "ot"),
    "GetStatus": Call(COORDINATOR + "GetStatus", b"", "swovrt"),
    "WatchStatus": Call(COORDINATOR + "WatchStatus", number(1, 100), "swovrt"),
    "GetTransports": Call(SHARD + "GetTransports", WORKER_3, "wt"),
    "GetTransports (server)": Call(SHARD + "GetTransports", number(2, 1), "s"),
    "Initialize": Call(SHARD + "Initialize", blob(1, WORKER_3), "wt"),
    "Pull": Call(SHARD + "Pull", WORKER_3, "awt"),
    "Pull (trains)": Call(SHARD + "Pull", WORKER_3 + number(4, 1) + number(6, 1), "wt"),
    "Pull (reader)": Call(SHARD + "Pull", b"", "sSawWort"),
    "Push": Call(SHARD + "Push", PUSH, "wt"),
    "Exchange": Call(SHARD + "Exchange", PUSH, "wt"),
    "Exchange (aggregator)": Call(SHARD + "Exchange", COMPOSITE, "a"),
    "method of ours unknown": Call(SHARD + "Nothing", b"", ""),
    "service unknown": Call("/no.such.Service/Method", b"", "swovrt"),
    "health": Call("/grpc.health.v1.Health/Check", b"", "swovrt"),
    "reflection": Call("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", b"", "swovrt"),
}

NO_HANDSHAKE, WHO, NOT_YOU, SERVED = "no handshake", "who?", "refused", "served"


def without_role(directory):
    """Makes a certificate of the run's authority that names no role."""
    key, request = directory / "plain.key", directory / "plain.csr"
    for command in (
            f"req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=plain "
            f"-keyout {key} -out {request}",
            f"x509 -req -in {request} -CA {directory}/ca.crt -CAkey {directory}/ca.key -days 1 "
            f"-out {directory}/plain.crt"):
        subprocess.run(["openssl", *command.split()], check=True, stderr=subprocess.DEVNULL)


def outcome(channel, call):
    """Makes one call with one message. Returns SERVED if the call reached a service, even if the
    service then refused the message."""
    made = channel.stream_stream(call.method)(iter([call.message]), timeout=cluster.DEADLINE_S)
    try:
        for _ in made:
            break
        made.cancel()
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNAVAILABLE and "connect" in error.details():
            return NO_HANDSHAKE
        return {grpc.StatusCode.UNAUTHENTICATED: WHO,
                grpc.StatusCode.PERMISSION_DENIED: NOT_YOU}.get(error.code(), SERVED)
    return SERVED


@unittest.skipIf(grpc is None, "python3-grpcio is not installed: deploy/setup.sh --dev")
class AccessMatrixTest(unittest.TestCase):
    def setUp(self):
        scratch = cluster.scratch()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.certs = self.directory / "certs"
        for stem, member in (("server-0", "server/0"), ("server-1", "server/1"),
                             ("server-2", "server/2"), ("server-4", "server/4"),
                             ("worker-2", "worker/2"),
                             ("worker-3", "worker/3"), ("any-worker", "worker/*"),
                             ("operator", "operator"), ("viewer", "viewer"), ("reader", "reader")):
            cluster.make_certificate(self.certs, stem, member, "localhost", "127.0.0.1")

    def start(self, **settings):
        settings = {"cluster.servers": cluster.TWO_SERVERS, "cluster.workers": 4,
                    "cluster.tree.fanout": 2,
                    "security.mtls.ca": str(self.certs / "ca.crt"), **settings}
        live = cluster.Cluster(CONFIG, settings, self.directory, workers=0, servers=1)
        self.addCleanup(live.stop)
        return live

    def channel(self, live, stem, token=None, directory=None):
        directory = directory or self.certs
        ca = (self.certs / "ca.crt").read_bytes()
        if stem is None:
            credentials = grpc.ssl_channel_credentials(ca)
        else:
            credentials = grpc.ssl_channel_credentials(
                ca, (directory / f"{stem}.key").read_bytes(), (directory / f"{stem}.crt").read_bytes())
        if token is not None:
            credentials = grpc.composite_channel_credentials(
                credentials, grpc.access_token_call_credentials(token))
        channel = grpc.secure_channel(live.coordinator, credentials,
                                      options=[("grpc.use_local_subchannel_pool", 1)])
        self.addCleanup(channel.close)
        return channel

    def check(self, channels, expected):
        """Calls every method through `channels`, a dict by name, and compares each outcome with
        expected(name, call)."""
        wrong = []
        width = max(len(name) for name in channels)
        for method, call in CALLS.items():
            found = {name: outcome(channel, call) for name, channel in channels.items()}
            print(f"{method:24}", *(f"{found[name]:{width}}" for name in channels))
            wrong += [f"{method} by {name}: {found[name]} and not {expected(name, call)}"
                      for name in channels if found[name] != expected(name, call)]
        self.assertEqual(wrong, [])

    def test_every_method_with_every_kind_of_certificate(self):
        live = self.start()
        cluster.make_certificate(self.certs, "expired", "worker/3", begins=-2, ends=-1)
        cluster.make_certificate(self.certs, "future", "worker/3", begins=1, ends=2)
        cluster.make_certificate(self.certs, "other-run", "worker/3", run="other")
        without_role(self.certs)
        others = self.directory / "others"
        cluster.make_certificate(others, "worker-3", "worker/3")
        channels = {
            "plaintext": grpc.insecure_channel(live.coordinator),
            "none": self.channel(live, None),
            "other authority": self.channel(live, "worker-3", directory=others),
            "expired": self.channel(live, "expired"), "future": self.channel(live, "future"),
            "without role": self.channel(live, "plain"), "other run": self.channel(live, "other-run"),
            "server 1": self.channel(live, "server-1"), "server 2": self.channel(live, "server-2"),
            "aggregator": self.channel(live, "server-4"),
            "worker 3": self.channel(live, "worker-3"), "worker 2": self.channel(live, "worker-2"),
            "any worker": self.channel(live, "any-worker"),
            "operator": self.channel(live, "operator"), "viewer": self.channel(live, "viewer"),
            "reader": self.channel(live, "reader")}
        self.addCleanup(channels["plaintext"].close)
        roles = {"server 1": "s", "server 2": "S", "aggregator": "a", "worker 3": "w", "worker 2": "W",
                 "any worker": "w", "operator": "o", "viewer": "v", "reader": "r"}

        def expected(name, call):
            if name in ("plaintext", "none", "other authority", "expired", "future"):
                return NO_HANDSHAKE
            if name == "without role":
                return WHO
            if name == "other run":
                return NOT_YOU
            # Capitals stand for members other than the one that the messages name.
            role = roles[name]
            is_for_all = len(call.roles) == 6
            return SERVED if is_for_all or role in call.roles else NOT_YOU

        print(f"{'':24}", *(f"{name:15}" for name in channels))
        self.check(channels, expected)
        self.assertIn("audit event=refused identity=slipstream://run/small/viewer",
                      live.log_text("server-0"))

    def test_every_method_with_every_kind_of_token(self):
        token = self.certs / "token"
        token.write_text("the-token-of-today\nthe-token-of-yesterday\n")
        live = self.start(**{"security.token": str(token)})
        channels = {"none": self.channel(live, None),
                    "wrong": self.channel(live, None, "the-token-of-another"),
                    "today's": self.channel(live, None, "the-token-of-today"),
                    "yesterday's": self.channel(live, None, "the-token-of-yesterday"),
                    "worker 3": self.channel(live, "worker-3"),
                    "viewer with one": self.channel(live, "viewer", "the-token-of-today")}

        def expected(name, call):
            role = {"worker 3": "w", "viewer with one": "v"}.get(name, "t")
            if name in ("none", "wrong"):
                return WHO
            return SERVED if role in call.roles else NOT_YOU

        self.check(channels, expected)
        token.write_text("the-token-of-today\n")
        status = CALLS["GetStatus"]
        cluster.wait_until(lambda: outcome(channels["yesterday's"], status) == WHO,
                           "the stale token to be refused")
        self.assertEqual(outcome(channels["today's"], status), SERVED)
        for name in ("server-0.log",):
            self.assertNotIn("the-token-of", (self.directory / name).read_text())

    def test_a_server_drains_for_an_operator_alone(self):
        live = self.start()
        call = Call(DRAIN, b"", "o")
        for stem in ("server-1", "worker-3", "any-worker", "viewer", "reader"):
            self.assertEqual(outcome(self.channel(live, stem), call), NOT_YOU, stem)
        self.assertEqual(outcome(self.channel(live, None), call), NO_HANDSHAKE)

        self.assertEqual(outcome(self.channel(live, "operator"), call), SERVED)

        self.assertEqual(live.servers[0].wait(timeout=cluster.DEADLINE_S), 0)
        self.assertIn("audit event=\"drains the server\"", live.log_text("server-0"))

    def test_a_server_that_speaks_tls_says_nothing_in_plaintext(self):
        live = self.start()
        host, port = live.coordinator.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=cluster.DEADLINE_S) as peer:
            peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
            # The server may send a TLS alert, which is seven bytes.
            said = b""
            while data := peer.recv(100):
                said += data
        self.assertLessEqual(len(said), 7)


if __name__ == "__main__":
    unittest.main()
