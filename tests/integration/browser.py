"""Chromium without a window, by the WebDriver protocol of Debian's chromium-driver."""
import base64
import json
import pathlib
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

import cluster

# Where deploy/setup.sh --dev puts the packages of tests/requirements.txt.
PACKAGES = ".cache/slipstream/python/lib/python3*/site-packages"


def missing():
    """Returns what is missing for tests in a browser; empty if nothing is."""
    lacks = [program for program in ("chromium", "chromedriver") if shutil.which(program) is None]
    return f"{' and '.join(lacks)} not installed: deploy/setup.sh --dev" if lacks else ""


def axe_source():
    """Returns the JavaScript of axe-core, which finds what keeps people from using a page; None if it
    is not installed."""
    found = sorted(pathlib.Path.home().glob(f"{PACKAGES}/axe_core_python/axe.min.js"))
    return found[0].read_text(encoding="utf-8") if found else None


class Browser:
    """A browser with one page. `directory` gets its log."""

    def __init__(self, directory):
        with socket.create_server(("localhost", 0)) as free:
            self.url = f"http://localhost:{free.getsockname()[1]}"
        self.log = open(pathlib.Path(directory) / "chromedriver.log", "ab")
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.url.rsplit(':', 1)[1]}"],
                                       stdout=self.log, stderr=self.log)
        self.session = None
        try:
            cluster.wait_until(self._is_ready, "chromedriver")
            options = {"args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                                f"--user-data-dir={pathlib.Path(directory) / 'profile'}"]}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                      "goog:loggingPrefs": {"browser": "ALL"}}
            made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.session = f"/session/{made['sessionId']}"
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.session is not None:
            self._call("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait()
        self.log.close()

    def _is_ready(self):
        try:
            return self._call("GET", "/status")["ready"]
        except OSError:
            return False

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"},
                                         method=method)
        try:
            with urllib.request.urlopen(request, timeout=cluster.DEADLINE_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"the browser refuses {path}: {error.read().decode()}") from error

    def open(self, url):
        self._call("POST", f"{self.session}/url", {"url": url})

    def run(self, script, *arguments):
        """Returns what the body of a function in JavaScript returns; of a promise, what it becomes."""
        return self._call("POST", f"{self.session}/execute/sync", {"script": script, "args": arguments})

    def text(self, selector):
        """Returns the visible text of an element."""
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def command(self, name, **parameters):
        """Sends a command of Chromium's own protocol."""
        return self._call("POST", f"{self.session}/goog/cdp/execute", {"cmd": name, "params": parameters})

    def look(self, theme, width, height=900):
        """Shows the page in a theme ("light" or "dark"), so many pixels wide."""
        self.command("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": theme}])
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=width < 500)

    def screenshot(self, path):
        """Writes a picture of the whole page."""
        taken = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        pathlib.Path(path).write_bytes(base64.b64decode(taken["data"]))

    def complaints(self):
        """Returns what the browser has complained of, such as breaches of the page's policy."""
        return [line["message"] for line in self._call("POST", f"{self.session}/se/log", {"type": "browser"})]
