"""A worker lives and does nothing, as where its loader gives no batch: it is named, and those that wait
for it are not."""
import array
import os
import subprocess
import sys
import unittest

import cluster
import python_package

python_package.use_package()

import slipstream

CONFIG = f"""
name: stalled
model: {{from: workers}}
training: {{work: own, batch_size: 8}}
consistency: {{policy: hardsync}}
optimizer: {{kind: sgd, learning_rate: 0.01}}
cluster: {{servers: [localhost:7070, localhost:7071], workers: 2, lease: {cluster.LEASE}}}
"""
# A worker that pushes until the run ends.
PROGRAM = """
import array
import slipstream
with slipstream.connect() as run:
    run.synchronize({"weights": array.array("f", bytes(4 * 1000))})
    while run.fetch():
        run.push().result()
    run.finish()
"""


def stalled(status):
    return [line["worker"] for line in status["workers"] if line["is_stalled"]]


class StalledWorkerTest(unittest.TestCase):
    def test_it_is_named_until_it_goes_on_and_who_waits_for_it_is_not(self):
        with cluster.scratch() as directory:
            config = cluster.write_config(directory, CONFIG)
            with cluster.Cluster(config, {}, directory, workers=0) as live:
                environment = {**os.environ, "SLIPSTREAM_COORDINATOR": live.coordinator,
                               "SLIPSTREAM_WORKER": "0"}
                other = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment)
                self.addCleanup(other.kill)
                self.hang_and_go_on(live)
                self.assertEqual(other.wait(timeout=cluster.DEADLINE_S), 0)
                log = live.log_text("server-0")
        self.assertEqual(log.count("worker stalled: it lives, and neither fetches nor pushes worker=1"),
                         1, log)
        self.assertEqual(log.count("worker goes on after it was stalled worker=1"), 1, log)

    def hang_and_go_on(self, live):
        with slipstream.connect(live.coordinator, worker=1) as run:
            run.synchronize({"weights": array.array("f", bytes(4 * 1000))})
            for _ in range(3):
                self.assertTrue(run.fetch())
                run.push().result()
            status = live.wait_for(stalled, "the worker that does nothing to be named")
            self.assertEqual(stalled(status), [1])
            line = status["workers"][1]
            self.assertEqual(line["state"], "live")
            self.assertGreaterEqual(line["idle_seconds"], 6 * cluster.LEASE_S)
            outlooks = [waiting["outlook"] for waiting in status["waiting_rounds"]]
            self.assertIn("closes when worker 1 pushes; worker 1 is stalled: it lives", outlooks[0])
            page = cluster.psctl("status", "--coordinator", live.coordinator).stdout
            self.assertIn("worker 1 is stalled: it lives, and has neither fetched nor pushed for", page)
            self.assertIn("STALLED", page)

            self.assertTrue(run.fetch())
            run.push().result()
            live.wait_for(lambda status: not stalled(status), "the worker to count as at work again")
            run.stop()
            while run.fetch():
                run.push().result()
            run.finish()


if __name__ == "__main__":
    unittest.main()
