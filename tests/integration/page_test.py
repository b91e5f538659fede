"""The page of a live run in Chromium: it shows the run and its faults, to everybody.

PAGE_SCREENSHOTS=DIRECTORY keeps pictures of it.
"""
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading
import unittest
import urllib.request

import browser
import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
WORKERS = 3
SETTINGS = {"cluster.workers": WORKERS, "cluster.lease": cluster.LEASE, "training.epochs": 10000,
            "testing.push_delay_max": "50ms", "durability.level": "synced", "durability.interval": "1s"}
HEADINGS = ["Training", "Last steps of each worker", "Workers", "Shards", "Rounds that wait", "Readers",
            "Events", "Settings", "What an operator may do"]
FORGED = "<img src=x onerror=alert(1)>"
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


def forged(value):
    """Returns a status whose texts are HTML, but for those that the page knows."""
    if isinstance(value, dict):
        return {key: forged(one) if key not in ("phase", "state") else one for key, one in value.items()}
    if isinstance(value, list):
        return [forged(one) for one in value]
    return FORGED if isinstance(value, str) else value


def serve(page, events):
    """Serves a page and its stream. Returns the server, whose thread ends with it."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            is_page = self.path == "/"
            self.send_header("Content-Type", "text/html" if is_page else "text/event-stream")
            self.end_headers()
            self.wfile.write(page if is_page else events)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@unittest.skipIf(browser.missing(), browser.missing())
class PageTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(cluster.scratch()))
        settings = {**SETTINGS, "durability.directory": self.directory / "state"}
        self.live = self.enterContext(cluster.Cluster(CONFIG, settings, self.directory, workers=WORKERS))
        self.live.wait_for(lambda status: status["updates"] > 0 and len(status["shards"]) == 2, "training")
        self.url = self.live.status()["shards"][0]["http_address"]
        self.page = self.enterContext(browser.Browser(self.directory))
        self.page.open(self.url)

    def wait_for_text(self, selector, text):
        cluster.wait_until(lambda: text in self.page.text(selector), f"{text!r} in {selector}")

    def check_for_everybody(self):
        """Nothing keeps people out, whatever the theme and the width, and nothing is cut off."""
        axe = browser.axe_source()
        for theme in ("light", "dark"):
            for width in (360, 1400):
                self.page.look(theme, width)
                cluster.wait_until(lambda: self.page.run(OVERFLOW) == 0, f"to fit {width} pixels")
                if axe is not None:
                    found = self.page.run(axe + "; return axe.run()")["violations"]
                    self.assertEqual([(one["id"], [node["html"] for node in one["nodes"]])
                                      for one in found], [], theme)
                if "PAGE_SCREENSHOTS" in os.environ:
                    self.page.screenshot(f"{os.environ['PAGE_SCREENSHOTS']}/{theme}-{width}.png")
        with self.subTest("axe-core"):
            if axe is None:
                self.skipTest("axe-core is not installed: deploy/setup.sh --dev")

    def test_shows_a_run_the_loss_of_a_worker_and_a_restart(self):
        self.wait_for_text("#connection", "live")
        self.wait_for_text("#state", "The run trains")
        self.assertEqual(self.page.text("h1"), "small")
        headings = self.page.run("return [...document.querySelectorAll('h2')].map(h => h.textContent)")
        self.assertEqual(headings[1:], HEADINGS)
        cluster.wait_until(lambda: len(self.page.run(
            "return [...document.querySelectorAll('#timeline path')].filter(p => p.getAttribute('d'))")) > 3,
            "steps in the timeline")

        self.live.kill_worker(2)
        self.wait_for_text("#alarms", "worker 2")
        self.wait_for_text("#workers tbody tr:nth-child(3)", "dead")
        self.wait_for_text("#events tbody", "worker died worker=2")
        self.check_for_everybody()
        self.assertEqual(self.page.complaints(), [])

        self.live.kill_server(0)
        self.wait_for_text("#connection", "does not answer")
        self.live.restart_server(0, {"http.listen": self.url.removeprefix("http://")})
        self.wait_for_text("#connection", "live")
        self.wait_for_text("#events tbody", "coordinator")
        self.wait_for_text("#state", "The run trains")

    def test_texts_of_strangers_are_shown_as_text(self):
        with urllib.request.urlopen(self.url) as answer:
            page = answer.read()
        alarms = [{"level": "alarm", "text": FORGED}]
        events = (f"event: alarms\ndata: {json.dumps(alarms)}\n\n"
                  f"data: {json.dumps(forged(self.live.status()))}\n\n")
        server = serve(page, events.encode())
        try:
            self.page.open(f"http://localhost:{server.server_port}")
            for selector in ("h1", "#alarms", "#workers", "#shards", "#events", "#settings"):
                self.wait_for_text(selector, FORGED)
            self.assertEqual(self.page.run("return document.images.length"), 0)
        finally:
            server.shutdown()
            server.server_close()


class TypesTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("tsc"), "no TypeScript: deploy/setup.sh --dev")
    def test_the_sources_have_no_errors_of_types(self):
        done = subprocess.run(["tsc", "-p", "server/http/page"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
