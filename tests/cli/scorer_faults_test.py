"""Scorers and environments that are other programs, and go wrong at some call: the run ends soon, names the node, leaks nothing,
leaves no process after and goes on from its last checkpoint once the fault is gone."""

import http.server
import json
import pathlib
import threading
import time
import unittest

from fault_case import PATIENT_SECONDS, FaultCase
from support import PPO, sets

# A program that goes wrong at its call number AT, as long as there is a file `fault` beside it that says how.
PROGRAM = '''
import json, os, pathlib, signal, sys, time
folder = pathlib.Path(__file__).parent
calls = 0

def fault():
    """What to do now; "" is to work."""
    global calls
    calls += 1
    (folder / f"pid-{os.getpid()}").touch()
    return (folder / "fault").read_text() if calls > AT and (folder / "fault").exists() else ""

def go_wrong(kind):
    if kind == "throws":
        raise ValueError("a fault, as asked")
    if kind == "hangs":
        time.sleep(1000)
    if kind == "exits":
        os._exit(7)
    if kind == "is_killed":
        os.kill(os.getpid(), signal.SIGKILL)
'''

SCORER = PROGRAM + '''
def score(queries, prompts, labels):
    kind = fault()
    go_wrong(kind)
    wrong = {"too_few": [0.0] * (len(queries) - 1), "text": ["good"] * len(queries), "nan": [float("nan")] * len(queries)}
    return wrong.get(kind, [float(query.endswith("=" + label)) for query, label in zip(queries, labels)])
'''

ENVIRONMENT = PROGRAM + '''
for line in sys.stdin:
    kind = fault()
    go_wrong(kind)
    of_turn = '{"id": %d, ' % json.loads(line)["id"]
    print({"nonsense": "no JSON", "wrong_reply": of_turn + '"reward": "much"}'}.get(kind, of_turn + '"done": true}'), flush=True)
'''

GENERAL = {"throws": "ValueError: a fault, as asked", "hangs": "did not answer within 1.0 s", "exits": "exited with code 7",
           "is_killed": "was killed by signal 9 (KILL)"}


def limit(kind):
    """Seconds for an answer. Those that a hang takes are too few for one that comes, where the machine has much else to do."""
    return 1.0 if kind == "hangs" else PATIENT_SECONDS


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class OtherPrograms(FaultCase):
    def assert_ends_well_and_goes_on(self, kind, path, node, said, of_limit):
        fault = self.write("fault", kind)
        result, folder, seconds = self.run_faulty(path)
        self.assert_ends_well(result, folder, seconds, node, said)
        self.assertRegex(result.stderr, r"iteration [1-4]\b")
        for mark in self.folder.glob("pid-*"):
            self.assertFalse(alive(int(mark.name.removeprefix("pid-"))), "a process was left behind")
            mark.unlink()
        fault.unlink()
        self.assert_goes_on(result, folder, *sets(**{of_limit: PATIENT_SECONDS}))

    def test_a_python_scorer(self):
        self.write("reward.py", SCORER.replace("AT", "13"))
        for kind, said in (GENERAL |
                           {"too_few": "7 scores for 8 samples", "text": "type str instead of a number", "nan": "nan"}).items():
            with self.subTest(kind):
                path = self.write(f"scorer-{kind}.toml", f"""extends = "{PPO}"
[nodes.score]
type = "python_scorer"
file = "reward.py"
timeout_seconds = {limit(kind)}
""")
                self.assert_ends_well_and_goes_on(kind, path, "score", said, "nodes.score.timeout_seconds")

    def test_an_environment(self):
        self.write("env.py", ENVIRONMENT.replace("AT", "100"))
        for kind, said in (GENERAL | {"throws": "exited with code 1", "hangs": "did not reply within 1.0 s",
                                       "nonsense": "its reply is no JSON", "wrong_reply": '"reward" = "much"'}).items():
            with self.subTest(kind):
                path = self.write(f"environment-{kind}.toml", f"""extends = "{PPO}"
[nodes.generate]
max_turns = 2
environment = {{ type = "process", command = ["python3", "env.py"], folder = "{self.folder}", timeout_seconds = {limit(kind)} }}
""")
                self.assert_ends_well_and_goes_on(kind, path, "generate", said, "nodes.generate.environment.timeout_seconds")

    def test_a_server(self):
        with Server() as server:
            for kind, said in {"error": "answered 500", "hangs": "timed out", "nonsense": "which is not JSON",
                               "too_few": "7 rewards for 8 samples", "closes": "Empty reply from server",
                               "cut": "10 bytes remaining"}.items():
                with self.subTest(kind):
                    server.fault, server.calls = kind, 0
                    path = self.write(f"server-{kind}.toml", f"""extends = "{PPO}"
[nodes.score]
type = "http_scorer"
urls = ["http://127.0.0.1:{server.server_address[1]}/score"]
timeout_seconds = {limit(kind)}
retries = 1
retry_seconds = 0.1
""")
                    result, folder, seconds = self.run_faulty(path)
                    self.assert_ends_well(result, folder, seconds, "score", said)
                    server.fault = ""
                    self.assert_goes_on(result, folder, *sets(**{"nodes.score.timeout_seconds": PATIENT_SECONDS}))


class Server(http.server.ThreadingHTTPServer):
    """Scores with zeros, until its fault at the 14th call."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.fault, self.calls = "", 0

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["query"]
        self.server.calls += 1
        kind = self.server.fault if self.server.calls > 13 else ""
        if kind == "hangs":
            time.sleep(3)
        if kind in ("hangs", "closes"):
            return
        body = json.dumps({"rewards": [0.5] * (len(query) - (kind == "too_few"))}).encode() if kind != "nonsense" else b"no JSON"
        self.send_response(500 if kind == "error" else 200)
        self.send_header("Content-Length", str(len(body) + (10 if kind == "cut" else 0)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    unittest.main()
