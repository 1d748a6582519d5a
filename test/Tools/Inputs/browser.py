"""Chromium, driven by the protocol of its driver."""

import base64
import json
import socket
import subprocess
import time
import urllib.request
from pathlib import Path


class Browser:
    def __init__(self, folder=None):
        """Screenshots go to the folder, if there is one."""
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.call("GET", "/status")
                break
            except OSError:
                time.sleep(0.05)
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, address):
        self.call("POST", f"{self.session}/url", {"url": address})

    def dark(self, is_dark=True):
        self.develop("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])

    def complaints(self):
        """What is in the console."""
        return self.call("POST", f"{self.session}/se/log", {"type": "browser"})

    def run(self, script, *arguments):
        return self.call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def develop(self, command, **parameters):
        self.call("POST", f"{self.session}/chromium/send_command", {"cmd": command, "params": parameters})

    def wait(self, script):
        for _ in range(400):
            if self.run(script):
                return
            time.sleep(0.05)
        raise AssertionError(f"expected in 20 s: {script}")

    def size(self, width, height):
        self.develop("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def press(self, key):
        self.run("dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0] }))", key)

    def keep(self, name):
        if self.folder:
            time.sleep(0.3)
            Path(self.folder, name).write_bytes(base64.b64decode(self.call("GET", f"{self.session}/screenshot")))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait()
