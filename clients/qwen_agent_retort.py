"""Qwen-Agent's code_interpreter, run by retort in place of a container of Docker's.

Import this module, and `function_list=['code_interpreter']` means the tool in it. Files of the
conversation are uploaded under their names; images and files that the code makes come back into the
tool's work_dir. It needs qwen-agent and Python's own modules.

    import qwen_agent_retort
    bot = Assistant(llm=..., function_list=[{'name': 'code_interpreter', 'url': 'http://localhost:8000'}])

Settings, beside `name`: url (or RETORT_URL), key (or RETORT_KEY), instance, timeout (seconds),
work_dir (or M6_CODE_INTERPRETER_WORK_DIR). M6_CODE_INTERPRETER_STATIC_URL begins the links to images.
"""

import json
import mimetypes
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import uuid

from qwen_agent.tools.base import BaseToolWithFileAccess, register_tool
from qwen_agent.utils.utils import get_basename_from_url, save_url_to_local_work_dir

PIECE = 1 << 20
IMAGE = re.compile(r"(!\[fig-\d+\]\()([^)\s]+)(\))")


@register_tool("code_interpreter", allow_overwrite=True)
class CodeInterpreter(BaseToolWithFileAccess):
    description = "Python code sandbox, which can be used to execute Python code."
    parameters = {
        "type": "object",
        "properties": {"code": {"description": "The python code.", "type": "string"}},
        "required": ["code"],
    }

    def __init__(self, cfg=None):
        super().__init__(cfg)
        self.work_dir = (self.cfg.get("work_dir") or os.getenv("M6_CODE_INTERPRETER_WORK_DIR")
                         or self.work_dir)
        self.url = (self.cfg.get("url") or os.getenv("RETORT_URL") or "http://127.0.0.1:8000").rstrip("/")
        self.key = self.cfg.get("key") or os.getenv("RETORT_KEY")
        self.instance = self.cfg.get("instance") or uuid.uuid4().hex
        self._sent = {}  # what was uploaded: source to the state it was in

    @property
    def args_format(self):
        return self.cfg.get("args_format") or (
            "Enclose the code within triple backticks (`) at the beginning and end of the code.")

    def call(self, params, files=None, timeout=None, **kwargs):
        notes = self._upload(files or [])
        seconds = float(timeout or self.cfg.get("timeout") or 30)
        body = params if isinstance(params, str) else json.dumps(params)
        with self._ask("/qwen/code_interpreter", body.encode(), timeout=seconds,
                       headers={"Content-Type": "text/plain", "Accept": "application/json"}) as answer:
            said = json.load(answer)
        if "text" not in said:  # an error of the server's own
            raise RuntimeError(said.get("error", {}).get("message") or json.dumps(said))
        text = IMAGE.sub(self._bring_image, said["text"])
        for file in said["files"]:
            if file["change"] != "deleted":
                self._bring_file(file["path"])
        return "\n\n".join([*notes, text]) if text else text

    # --- to the server ---

    def _ask(self, path, body=None, headers=None, timeout=None):
        query = f"?timeout={timeout}" if timeout else ""
        request = urllib.request.Request(self.url + path + query, data=body, headers=headers or {})
        request.add_header("X-Qwen-Instance", self.instance)
        if self.key:
            request.add_header("Authorization", "Bearer " + self.key)
        try:
            return urllib.request.urlopen(request, timeout=(timeout or 180) + 120)
        except urllib.error.HTTPError as error:
            return error  # its body says why
        except urllib.error.URLError as error:
            raise RuntimeError(f"retort cannot be reached at {self.url}: {error.reason}") from error

    def _upload(self, files):
        """Sends what is new or has changed; a note for each that could not be had."""
        notes = []
        for file in files:
            try:
                state = self._state(file)
                if self._sent.get(file) != state:
                    self._send(file)
                    self._sent[file] = state
            except Exception as error:
                notes.append(f"Note: the file {file[:200]} is not there: {error}.")
        return notes

    @staticmethod
    def _local(file):
        """The path of a file of this machine, or None."""
        if file.startswith("file://"):
            file = urllib.parse.unquote(file[7:])
        return None if re.match(r"(https?|data):", file) else file

    def _state(self, file):
        """What changes with the bytes of the file. A URL is taken to be always the same."""
        path = self._local(file)
        if path is None:
            return "url"
        stat = os.stat(path)
        return stat.st_mtime_ns, stat.st_size

    def _send(self, file):
        path = self._local(file)
        if path is not None:
            self._send_path(path, os.path.basename(path))
        elif file.startswith("data:"):
            with tempfile.NamedTemporaryFile() as copy, urllib.request.urlopen(file) as data:
                shutil.copyfileobj(data, copy)
                copy.flush()
                kind = mimetypes.guess_extension(data.headers.get_content_type()) or ""
                self._send_path(copy.name, f"file-{len(self._sent) + 1}{kind}")
        else:
            with tempfile.TemporaryDirectory() as folder:
                self._send_path(save_url_to_local_work_dir(file, folder), get_basename_from_url(file))

    def _send_path(self, path, name):
        """One file as a form, piece by piece: it may be larger than memory."""
        mark = uuid.uuid4().hex
        shown = name.replace("\\", "_").replace('"', "_").replace("\r", "_").replace("\n", "_")
        head = (f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{shown}"\r\n'
                "Content-Type: application/octet-stream\r\n\r\n").encode()
        tail = f"\r\n--{mark}--\r\n".encode()
        with open(path, "rb") as source:
            size = os.fstat(source.fileno()).st_size

            def pieces():
                yield head
                while piece := source.read(PIECE):
                    yield piece
                yield tail

            headers = {"Content-Type": f"multipart/form-data; boundary={mark}",
                       "Content-Length": str(len(head) + size + len(tail))}
            with self._ask("/qwen/files", body=pieces(), headers=headers) as answer:
                said = json.load(answer)
        if "files" not in said:
            raise RuntimeError(said.get("error", {}).get("message") or "the server refused it")

    # --- and back ---

    def _bring_image(self, found):
        before, link, after = found.groups()
        if "/qwen/static/" not in link:
            return found.group()
        name = urllib.parse.urlsplit(link).path.rpartition("/")[2]
        name = uuid.uuid4().hex + os.path.splitext(name)[1]
        path = urllib.parse.urlsplit(link).path
        with self._ask(path[path.index("/qwen/static/"):]) as answer:
            if answer.status != 200:
                return found.group()
            self._keep(name, answer)
        static = os.getenv("M6_CODE_INTERPRETER_STATIC_URL")
        place = f"{static}/{name}" if static else os.path.join(os.path.abspath(self.work_dir), name)
        return before + place + after

    def _bring_file(self, path):
        with self._ask("/qwen/files/" + urllib.parse.quote(path)) as answer:
            if answer.status == 200:
                self._keep(path, answer)

    def _keep(self, path, source):
        """Into the work_dir, and never beside it: the code chose the name."""
        root = os.path.realpath(self.work_dir)
        target = os.path.realpath(os.path.join(root, path))
        if os.path.commonpath([root, target]) != root or target == root:
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as copy:
            shutil.copyfileobj(source, copy)
