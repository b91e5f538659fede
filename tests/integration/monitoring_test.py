"""Prometheus scrapes a live run: the board's queries find data there, and faults raise the alerts."""
import json
import pathlib
import re
import shutil
import socket
import subprocess
import unittest
import urllib.error
import urllib.parse
import urllib.request

import cluster
from durable_cluster import CONFIG

MONITORING = pathlib.Path("deploy/monitoring")
WORKERS = 3
# A run that trains until it is stopped, slowly enough for other processes beside it.
SETTINGS = {"cluster.workers": WORKERS, "cluster.lease": cluster.LEASE, "training.epochs": 10000,
            "testing.push_delay_max": "50ms", "durability.level": "synced",
            "durability.interval": "1s", "consistency.max_staleness.bound": 16,
            "consistency.max_staleness.action": "scale"}


def get(url):
    """Returns the status and the text of what is answered."""
    try:
        with urllib.request.urlopen(url, timeout=cluster.DEADLINE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Monitored(cluster.Cluster):
    """A run, and a Prometheus that scrapes its servers twice a second. Its alert rules are those of
    deploy/monitoring with shorter times."""

    def __init__(self, directory, **settings):
        directory = pathlib.Path(directory)
        self.prometheus = None
        super().__init__(CONFIG, {**SETTINGS, "durability.directory": directory / "state", **settings},
                         directory, workers=WORKERS)
        try:
            self.wait_for(lambda status: status["phase"] == "TRAINING" and int(status["updates"]) > 0
                          and len(status["shards"]) == 2, "training")
            self.urls = [shard["http_address"] for shard in self.status()["shards"]]
            self.start_prometheus()
        except BaseException:
            self.stop()
            raise

    def start_prometheus(self):
        rules = (MONITORING / "alerts.yml").read_text(encoding="utf-8")
        rules = re.sub(r"for: \w+", "for: 1s", rules)
        rules = rules.replace("[5m]", "[10s]").replace("[1m]", "[5s]")
        (self.directory / "alerts.yml").write_text(rules, encoding="utf-8")
        config = {"global": {"scrape_interval": "500ms", "scrape_timeout": "500ms",
                             "evaluation_interval": "500ms"},
                  "rule_files": ["alerts.yml"],
                  "scrape_configs": [{"job_name": "slipstream", "static_configs": [
                      {"targets": [url.removeprefix("http://") for url in self.urls]}]}]}
        # JSON is YAML.
        (self.directory / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
        with socket.create_server(("localhost", 0)) as free:
            address = f"localhost:{free.getsockname()[1]}"
        self.api = f"http://{address}/api/v1"
        log = open(self.directory / "prometheus.log", "ab")
        self.logs.append(log)
        self.prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={self.directory / 'prometheus.yml'}",
             f"--storage.tsdb.path={self.directory / 'series'}", f"--web.listen-address={address}"],
            stdout=log, stderr=log)

    def stop(self):
        if self.prometheus is not None:
            self.prometheus.terminate()
            self.prometheus.wait()
        super().stop()

    def ask(self, path, **parameters):
        try:
            code, text = get(f"{self.api}/{path}?{urllib.parse.urlencode(parameters)}")
        except OSError:  # It does not listen yet.
            return {}
        if code == 400:
            raise AssertionError(f"Prometheus refuses {parameters}: {text}")
        return json.loads(text)["data"] if code == 200 else {}

    def wait_for_data(self, query):
        cluster.wait_until(lambda: self.ask("query", query=query).get("result"), f"data of {query}")

    def wait_for_alert(self, name):
        def fires():
            return any(alert["labels"]["alertname"] == name and alert["state"] == "firing"
                       for alert in self.ask("alerts").get("alerts", []))
        cluster.wait_until(fires, f"the alert {name}")


@unittest.skipUnless(shutil.which("prometheus"), "Prometheus is not installed: deploy/setup.sh --dev")
class MonitoringTest(unittest.TestCase):
    def test_a_scrape_is_well_formed_and_the_board_finds_data(self):
        with cluster.scratch() as directory, Monitored(directory) as live:
            run_id = live.status()["run"]
            for url in live.urls:
                code, text = get(f"{url}/metrics")
                self.assertEqual(code, 200)
                checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                                         capture_output=True, check=False)
                self.assertEqual(checked.returncode, 0, checked.stderr)
                self.assertEqual(get(f"{url}/readyz")[0], 200)
            self.assertEqual(json.loads(get(f"{live.urls[0]}/status.json")[1])["run"], run_id)
            self.assertEqual(get(f"{live.urls[1]}/status.json")[0], 404)

            board = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
            queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
            self.assertGreater(len(queries), 20)
            for query in queries:
                query = query.replace("$run_id", run_id).replace("$run", "small")
                live.wait_for_data(query.replace("[1m]", "[10s]"))
            for annotation in board["annotations"]["list"]:  # Mostly of what has not happened.
                live.ask("query", query=annotation["expr"].replace("$run_id", run_id))

    def test_faults_raise_alerts(self):
        with cluster.scratch() as directory, Monitored(directory) as live:
            live.wait_for_data("slipstream_worker_losses_total")
            live.kill_worker(2)
            live.wait_for_alert("SlipstreamWorkerLost")
            live.kill_server(1)
            live.wait_for_alert("SlipstreamServerDown")
            live.wait_for_alert("SlipstreamMembersMissing")

    def test_a_run_that_fails_raises_an_alert_and_is_not_ready(self):
        with cluster.scratch() as directory, \
                Monitored(directory, **{"cluster.start_timeout": "10s"}) as live:
            for worker in range(WORKERS):
                live.kill_worker(worker)
            live.wait_for_alert("SlipstreamRunFailed")
            code, text = get(f"{live.urls[0]}/readyz?verbose")
            self.assertEqual(code, 503)
            self.assertIn("[-]run: it has failed", text)


class BoardTest(unittest.TestCase):
    def test_the_file_is_what_its_program_writes(self):
        written = subprocess.run(["python3", MONITORING / "make_dashboard.py", "--print"], text=True,
                                 capture_output=True, check=True).stdout
        self.assertEqual((MONITORING / "dashboard.json").read_text(encoding="utf-8"), written,
                         "run deploy/monitoring/make_dashboard.py")

    @unittest.skipUnless(shutil.which("promtool"), "Prometheus is not installed: deploy/setup.sh --dev")
    def test_each_alert_rule_does_what_it_says(self):
        done = subprocess.run(["promtool", "test", "rules", "alerts_test.yml"], cwd=MONITORING,
                              text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
