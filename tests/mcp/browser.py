"""Chromium, driven over a pipe by its DevTools protocol; and a page in it that is a host of MCP Apps.

    with Browser() as browser, browser.host(html, answers) as page:
        page.send("ui/notifications/tool-result", result)
        page.evaluate("document.title")     in the app's own frame

The app runs as hosts run it: in a sandboxed frame without an origin, under a policy that allows no
network. answers has a function for each method that the app may ask for; what it tells is in told.
"""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time

from support.retort import SECONDS

PROGRAM = shutil.which("chromium-headless-shell")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-extensions", "--disable-background-networking", "--disable-component-update",
         "--disable-features=IsolateSandboxedIframes", "--disable-site-isolation-trials",
         "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"]
POLICY = ("default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
          "connect-src 'none'; base-uri 'none'; form-action 'none'")
HOST = """<!doctype html><meta charset="utf-8"><body style="margin:0;background:%(paper)s">
<script>
const seen = [], blocked = [];
addEventListener("message", (event) => seen.push(event.data));
const frame = document.createElement("iframe");
frame.sandbox = "allow-scripts";
frame.style = "border:0;width:100%%;height:900px";
frame.srcdoc = %(html)s;
document.body.append(frame);
const say = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
</script>"""


class Browser:
    def __enter__(self):
        self.place = tempfile.mkdtemp(prefix="retort-test-browser-")
        in_read, self.out = os.pipe()
        self.incoming, in_write = os.pipe()
        # The browser reads commands from 3 and writes to 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec 3<&{in_read} 4>&{in_write}; exec "$@"', "bash", PROGRAM, *FLAGS,
             f"--user-data-dir={self.place}", "about:blank"],
            pass_fds=(in_read, in_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.place}, start_new_session=True)
        os.close(in_read)
        os.close(in_write)
        self.rest, self.last, self.contexts = b"", 0, {}
        return self

    def __exit__(self, *exc):
        os.close(self.out)
        self.process.kill()
        self.process.wait()
        os.close(self.incoming)
        shutil.rmtree(self.place, ignore_errors=True)

    def message(self):
        while b"\0" not in self.rest:
            piece = os.read(self.incoming, 1 << 20)
            assert piece, "the browser has ended"
            self.rest += piece
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def do(self, method, session=None, **params):
        self.last += 1
        command = {"id": self.last, "method": method, "params": params}
        if session:
            command["sessionId"] = session
        os.write(self.out, json.dumps(command).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("method") == "Runtime.executionContextCreated":
                context = message["params"]["context"]
                if context["auxData"].get("isDefault"):
                    self.contexts[context["auxData"]["frameId"]] = context["id"]
            if message.get("id") == self.last:
                assert "result" in message, message
                return message["result"]

    @contextlib.contextmanager
    def host(self, html, answers=None, theme="light", size=(760, 900)):
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        try:
            yield Page(self, session, html, answers or {}, theme, size)
        finally:
            self.do("Target.closeTarget", targetId=target)


class Page:
    def __init__(self, browser, session, html, answers, theme, size):
        self.browser, self.session, self.told, self.at = browser, session, [], 0
        self.answers = {"ui/initialize": lambda params: {
            "protocolVersion": params["protocolVersion"], "hostInfo": {"name": "tests", "version": "1"},
            "hostCapabilities": {"serverResources": {}} if "resources/read" in answers else {},
            "hostContext": {"theme": theme}}, **answers}
        policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        assert "<head>" in html
        self.do("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1,
                mobile=False)
        self.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.do("Runtime.enable")
        self.do("Page.enable")
        tree = self.do("Page.getFrameTree")["frameTree"]
        self.main = tree["frame"]["id"]
        page = HOST % {"paper": "#fff" if theme == "light" else "#111",
                       "html": json.dumps(html.replace("<head>", "<head>" + policy)).replace("</", "<\\/")}
        self.do("Page.setDocumentContent", frameId=self.main, html=page)
        self.wait_told("ui/notifications/initialized")
        (child,) = self.do("Page.getFrameTree")["frameTree"]["childFrames"]
        self.frame = child["frame"]["id"]

    def do(self, method, **params):
        return self.browser.do(method, session=self.session, **params)

    def run(self, expression, frame):
        found = self.do("Runtime.evaluate", expression=expression, contextId=self.browser.contexts[frame],
                        returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def evaluate(self, expression):
        """In the app's frame."""
        return self.run(expression, self.frame)

    def pump(self):
        """Takes what the app has said, and answers what it has asked."""
        for message in self.run(f"seen.slice({self.at})", self.main):
            self.at += 1
            if "id" in message and "method" in message:
                self.run(f"say({json.dumps({'id': message['id'], **self.answer(message)})})", self.main)
            self.told.append(message)

    def answer(self, message):
        try:
            return {"result": self.answers[message["method"]](message.get("params", {}))}
        except Exception as error:  # of the server, or that there is no such answer
            return {"error": {"code": -32603, "message": str(error)}}

    def send(self, method, params):
        self.run(f"say({json.dumps({'method': method, 'params': params})})", self.main)

    def wait(self, what, is_there):
        until = time.monotonic() + SECONDS
        while True:
            self.pump()
            found = is_there()
            if found:
                return found
            assert time.monotonic() < until, f"never came: {what}; told: {self.told[-5:]}"
            time.sleep(0.02)

    def wait_told(self, method):
        return self.wait(method, lambda: [m for m in self.told if m.get("method") == method])

    def wait_for(self, expression):
        """Until it is true in the app's frame."""
        return self.wait(expression, lambda: self.evaluate(f"!!({expression})"))

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.do("Page.captureScreenshot")["data"]))
