"""What we are measured against, on the same machine in the same run: a Jupyter kernel driven by
jupyter_client, bubblewrap around python3, and python3 alone. Times in microseconds."""

import os
import subprocess
import sys
import time

# Else the debugger that a kernel brings along complains on our stderr.
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"

from jupyter_client.manager import KernelManager

import machine

READY_SECONDS = 60
BWRAP = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
         "--tmpfs", "/tmp"]


def _us_since(begun):
    return (time.perf_counter() - begun) * 1e6


class Jupyter:
    """One kernel. start_us: from the request until it answers kernel_info."""

    def __init__(self):
        begun = time.perf_counter()
        self.begun = begun
        self.manager = KernelManager(kernel_name="python3")
        # Not what a kernel spec found on this machine says, but the Python we measure with.
        self.manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f",
                                         "{connection_file}"]
        self.manager.start_kernel(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = self.manager.client()
        self.client.start_channels()
        # wait_for_ready() would do, but ends with a wait of its own of 0.2 s.
        self._answer(self.client.kernel_info())
        self.start_us = _us_since(begun)
        # The subscription to output may come up a moment after; a lost first message would
        # count against nobody but us.
        while not self._is_heard():
            pass

    def _answer(self, message):
        while True:
            reply = self.client.get_shell_msg(timeout=READY_SECONDS)
            if reply["parent_header"].get("msg_id") == message:
                return reply

    def _is_heard(self):
        message = self.client.kernel_info()
        self._answer(message)
        try:
            while True:
                said = self.client.get_iopub_msg(timeout=0.2)
                if said["parent_header"].get("msg_id") == message:
                    return True
        except Exception:  # queue.Empty: nothing came
            return False

    def run(self, code, expect=""):
        """Until the reply is there and all output is: microseconds. Raises if it went wrong."""
        begun = time.perf_counter()
        message = self.client.execute(code)
        text = ""
        while True:
            said = self.client.get_iopub_msg(timeout=READY_SECONDS)
            if said["parent_header"].get("msg_id") != message:
                continue
            content = said["content"]
            text += content.get("text", "") + content.get("data", {}).get("text/plain", "")
            if said["msg_type"] == "status" and content["execution_state"] == "idle":
                break
        reply = self._answer(message)
        took = _us_since(begun)
        if reply["content"]["status"] != "ok" or expect not in text:
            raise RuntimeError("the Jupyter kernel did not run %r" % code)
        return took

    def since_begun_us(self):
        return _us_since(self.begun)

    def memory(self):
        pid = self.manager.provisioner.pid
        return machine.rollup([pid] + machine.below(pid))

    def stop(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def python(code, around=()):
    """A fresh interpreter, start to exit."""
    begun = time.perf_counter()
    subprocess.run([*around, sys.executable, "-c", code], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.PIPE)
    return _us_since(begun)
