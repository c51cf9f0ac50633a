"""Debian's Prometheus and Alertmanager on free ports, with the files of deploy/prometheus, and a webhook to be told.

What differs from the files is where things are, and how long is waited: a test must not wait for hours. It holds no
expectation of its own.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"
START_SECONDS = 60.0
WAIT_SECONDS = 90.0

FAST_WINDOW = "20s"
"""In the place of each window, from minutes to days."""

FAST_FOR = "2s"
"""In the place of each time for which a condition must hold."""

FAST_KEEP = "10s"
"""In the place of each time for which an alert goes on after its condition; longer than the other, as there."""


def tool(name: str) -> str:
    """Give the path of a program of Debian's."""
    path = shutil.which(name)
    assert path is not None, f"{name} is missing: run make test-tools, which installs it"
    return path


def promtool(*words: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool, and give what it says."""
    return subprocess.run([tool("promtool"), *map(str, words)], capture_output=True, text=True, check=False, cwd=folder)


def free_port() -> int:
    """Give a port that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def fast(rules: str) -> str:
    """Shorten all durations of a file of rules, and change nothing else."""
    rules = re.sub(r"\[\d+[smhd]\]", f"[{FAST_WINDOW}]", rules)
    rules = re.sub(r"\boffset \d+[smhd]", f"offset {FAST_WINDOW}", rules)
    rules = re.sub(r"^( +keep_firing_for:) \d+[smhd]$", rf"\1 {FAST_KEEP}", rules, flags=re.MULTILINE)
    return re.sub(r"^( +for:) \d+[smhd]$", rf"\1 {FAST_FOR}", rules, flags=re.MULTILINE)


def get(url: str) -> Any:
    """Ask for JSON."""
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own
        return json.loads(answer.read())


def patient(condition: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
    """Wait until a condition gives something that is true, and give that."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}: did not come about within {seconds:.0f} s"
        time.sleep(0.25)
    return found


class Server:
    """A program that serves HTTP, until the end of a `with`.

    Args:
        folder: where its log goes.
        ready: path of the page that answers once it is there.
        command: program and arguments, of which one has `PORT` for its port.
    """

    def __init__(self, folder: Path, ready: str, *command: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._ready = ready
        self._command = [word.replace("PORT", str(self.port)) for word in command]
        self._log = folder / f"{Path(command[0]).name}.log"

    def __enter__(self) -> Self:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        try:
            patient(self._answers, self._command[0], START_SECONDS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _answers(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        try:
            urllib.request.urlopen(self.url + self._ready, timeout=10).close()  # noqa: S310 - our own
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)


class Alertmanager(Server):
    """An Alertmanager that tells a webhook at once.

    Args:
        folder: where its files go.
        webhook: address of the webhook; what is a page or a ticket differs by path, as in the file.
    """

    def __init__(self, folder: Path, webhook: str) -> None:
        config = yaml.safe_load((FOLDER / "alertmanager.yaml").read_text())
        config["route"] |= {"group_wait": "1s", "group_interval": "1s"}
        for receiver in config["receivers"]:
            for each in receiver.get("webhook_configs", ()):
                each["url"] = webhook + urllib.parse.urlparse(each["url"]).path
        file = folder / "alertmanager.yaml"
        file.write_text(yaml.safe_dump(config))
        super().__init__(
            folder,
            "/-/ready",
            tool("prometheus-alertmanager"),
            f"--config.file={file}",
            f"--storage.path={folder / 'alertmanager'}",
            "--web.listen-address=127.0.0.1:PORT",
            "--cluster.listen-address=",
        )


class Prometheus(Server):
    """A Prometheus that scrapes processes of ours.

    Args:
        folder: where its files go.
        targets: addresses of pages, as host:port, by the job of prometheus.yaml.
        fleets: the label of targets that have one, by address.
        interval: seconds between two scrapes, and between two evaluations of rules.
        rules: what becomes of the text of the rules.
        alertmanager: address of the Alertmanager, as host:port; none without.
    """

    def __init__(
        self,
        folder: Path,
        targets: Mapping[str, Sequence[str]],
        *,
        fleets: Mapping[str, str] | None = None,
        interval: int = 1,
        rules: Callable[[str], str] = fast,
        alertmanager: str | None = None,
    ) -> None:
        config = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
        (folder / "rules.yaml").write_text(rules((FOLDER / "rules.yaml").read_text()))

        def of(address: str) -> dict[str, Any]:
            fleet = (fleets or {}).get(address)
            return {"targets": [address], "labels": {"fleet": fleet} if fleet else {}}

        config["global"] = {"scrape_interval": f"{interval}s", "evaluation_interval": f"{interval}s"}
        managers = [{"static_configs": [{"targets": [alertmanager]}]}] if alertmanager else []
        config["alerting"]["alertmanagers"] = managers
        config["scrape_configs"] = [
            {"job_name": job["job_name"], "static_configs": [of(each) for each in targets[job["job_name"]]]}
            for job in config["scrape_configs"]
            if job["job_name"] in targets
        ]
        assert len(config["scrape_configs"]) == len(targets), "a job that prometheus.yaml does not have"
        file = folder / "prometheus.yaml"
        file.write_text(yaml.safe_dump(config))
        super().__init__(
            folder,
            "/-/ready",
            tool("prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--web.listen-address=127.0.0.1:PORT",
            "--log.level=warn",
        )

    def query(self, text: str, **more: str) -> list[dict[str, Any]]:
        """Ask for the result of an instant query, with further parameters of the API, such as its time."""
        answer = get(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': text, **more})}")
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def firing(self) -> set[str]:
        """Give the names of the alerts that fire."""
        return {each["metric"]["alertname"] for each in self.query('ALERTS{alertstate="firing"}')}


class Webhook:
    """A server that keeps what Alertmanager sends to it, by path, until the end of a `with`."""

    def __init__(self) -> None:
        told = self.told = list[tuple[str, dict[str, Any]]]()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                told.extend((self.path, alert) for alert in body["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def of(self, alertname: str, status: str = "firing", fleet: str | None = None) -> list[tuple[str, dict[str, Any]]]:
        """Give what came of one alert, with the path it came to; of one fleet, or of those without a name."""
        return [
            (path, each)
            for path, each in self.told
            if (each["labels"]["alertname"], each["status"], each["labels"].get("fleet")) == (alertname, status, fleet)
        ]
