"""`rlhf-run report --serve`: who is answered, what is served, that the page follows a run that is being written, and how it
ends."""

import contextlib
import http.client
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from support import INTERRUPTED, TERMINATED, WRONG_USAGE, Case, run, skip_or_fail, start, wait_for  # noqa: E402


class Served(Case):
    def made_run(self, name="run", iterations=2):
        folder = self.folder / name
        folder.mkdir()
        (folder / "metrics.jsonl").write_text("".join(row(i) for i in range(iterations)))
        (folder / "status.json").write_text(json.dumps({"state": "running", "seconds": 90.0, "iterations": 7,
                                                        "iterations_done": iterations}))
        (folder / "pipeline.toml").write_text('[pipeline]\niterations = 7\n[nodes.samples]\n'
                                              'type = "write_jsonl"\npath = "s.jsonl"\n')
        (folder / "s.jsonl").write_text('{"iteration":0,"response":"first"}\n')
        return folder

    @contextlib.contextmanager
    def served(self, *words):
        """The port of a server, which is ended afterwards."""
        process = start("report", *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline()
            match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\n", line)
            self.assertTrue(match, line or process.stderr.read())
            yield int(match.group(1)), process
        finally:
            process.terminate()
            process.communicate(timeout=60)

    def ask(self, port, method="GET", path="/", host=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.putrequest(method, path, skip_host=True)
        for one in [f"127.0.0.1:{port}"] if host is None else host:
            connection.putheader("Host", one)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        with contextlib.closing(connection):
            reply = connection.getresponse()
            return reply.status, dict(reply.getheaders()), reply.read().decode()

    def runs(self, port, **headers):
        status, _, text = self.ask(port, path="/report.json", **headers)
        return json.loads(text)["runs"] if status == 200 else status


def row(iteration, score=0.5):
    return json.dumps({"iteration": iteration, "reward/score_mean": score}) + "\n"


class Answers(Served):
    def test_get_and_head_are_answered_and_nothing_else(self):
        with self.served(self.made_run(), "--serve") as (port, _):
            status, headers, page = self.ask(port)
            self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
            self.assertIn("<title>run – Sluice</title>", page)
            status, headers, text = self.ask(port, "HEAD")
            self.assertEqual((status, text, headers["Content-Length"]), (200, "", str(len(page.encode()))))
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
                for path in ("/", "/report.json", "/other"):
                    with self.subTest(method=method, path=path):
                        status, headers, _ = self.ask(port, method, path)
                        self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))

    def test_only_who_names_this_address_is_answered(self):
        with self.served(self.made_run(), self.made_run("other"), "--serve") as (port, _):
            self.assertEqual([one["name"] for one in self.runs(port)], ["run", "other"])
            for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
                self.assertEqual(self.ask(port, host=[host])[0], 200, host)
            for hosts in ([], ["evil.example"], [f"evil.example:{port}"], ["127.0.0.1"], ["localhost"], [f"localhost:{port + 1}"],
                          [f"localhost.:{port}"], [""], [f"127.0.0.1:{port}", "evil.example"], [f"127.0.0.1:{port}@evil.example"],
                          [f"0.0.0.0:{port}"]):
                for path in ("/", "/report.json"):
                    status, _, text = self.ask(port, path=path, host=hosts)
                    self.assertIn(status, (400, 403), hosts)
                    self.assertNotIn("reward/score_mean", text)

    def test_no_file_is_served(self):
        folder = self.made_run()
        with self.served(folder, "--serve") as (port, _):
            for path in ("/metrics.jsonl", "/pipeline.toml", "/../pipeline.toml", "/%2e%2e/etc/passwd", "//etc/passwd",
                         "/report.json/../metrics.jsonl", "/favicon.ico"):
                status, _, text = self.ask(port, path=path)
                self.assertEqual((status, text), (404, "nothing is here\n"), path)

    def test_other_pages_may_not_read_frame_or_feed_it(self):
        with self.served(self.made_run(), "--serve") as (port, _):
            for path in ("/", "/report.json"):
                _, headers, _ = self.ask(port, path=path, Origin="https://evil.example")
                self.assertEqual([name for name in headers if name.startswith("Access-Control")], [])
                self.assertEqual((headers["Cross-Origin-Resource-Policy"], headers["X-Content-Type-Options"]),
                                 ("same-origin", "nosniff"))
                policy = headers["Content-Security-Policy"]
                self.assertIn("default-src 'none'", policy)
                self.assertIn("connect-src 'self'", policy)
                self.assertIn("frame-ancestors 'none'", policy)
                self.assertNotIn("unsafe", policy)

    def test_it_listens_on_loopback_alone(self):
        with self.served(self.made_run(), "--serve") as (port, process):
            listening = set()
            for table in ("tcp", "tcp6"):
                for line in pathlib.Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]:
                    _, local, _, state, *_ = line.split()
                    if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                        listening.add(local.rpartition(":")[0])
            self.assertEqual(listening, {"0100007F"})

    def test_connections_on_which_nothing_is_asked_keep_nobody_waiting_and_are_closed(self):
        folder = self.made_run()
        with self.served(folder, "--serve") as (port, _), contextlib.ExitStack() as connections:
            idle = [connections.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60)) for _ in range(300)]
            idle[-1].sendall(b"GET / HTTP/1.1\r\nHost:")  # and no more
            for _ in range(2):
                asked = time.monotonic()
                self.assertEqual(self.ask(port)[0], 200)
                self.assertLess(time.monotonic() - asked, 10)
            ended = idle[290:]
            wait_for("their ends", lambda: all(self.is_closed(one) for one in ended))

    @staticmethod
    def is_closed(connection):
        connection.setblocking(False)
        try:
            while connection.recv(1 << 16):
                pass
            return True
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True


class Follows(Served):
    def test_what_a_run_appends_is_shown_and_what_has_not_changed_is_not_sent_again(self):
        folder = self.made_run()
        with self.served(folder, "--serve") as (port, _):
            _, headers, _ = self.ask(port, path="/report.json")
            wait_for("a state that lasts",
                     lambda: self.runs(port, If_None_Match=self.ask(port, path="/report.json")[1]["ETag"]) == 304)
            with open(folder / "metrics.jsonl", "a") as file:
                file.write(row(2, 0.75))
            with open(folder / "s.jsonl", "a") as file:
                file.write('{"iteration":2,"response":"second"}\n')
            wait_for("the third iteration", lambda: self.runs(port)[0]["series"]["reward/score_mean"]["y"] == [0.5, 0.5, 0.75])
            wait_for("the second sample",
                     lambda: [one["response"] for one in self.runs(port)[0]["samples"]] == ["first", "second"])
            self.assertEqual(self.runs(port)[0]["name"], "run")

    def test_half_a_line_is_harmless_and_shown_when_it_is_whole(self):
        folder = self.made_run()
        with self.served(folder, "--serve") as (port, _), open(folder / "metrics.jsonl", "a") as file:
            text = row(2, 0.75)
            for piece in (text[:9], text[9:30]):
                file.write(piece)
                file.flush()
                self.assertEqual(self.runs(port)[0]["series"]["reward/score_mean"]["x"], [0, 1])
            file.write(text[30:])
            file.flush()
            wait_for("the line", lambda: self.runs(port)[0]["series"]["reward/score_mean"]["x"] == [0, 1, 2])

    def test_a_run_that_goes_on_from_a_checkpoint_has_its_files_cut(self):
        folder = self.made_run(iterations=5)
        with self.served(folder, "--serve") as (port, _):
            self.assertEqual(self.runs(port)[0]["series"]["reward/score_mean"]["x"], [0, 1, 2, 3, 4])
            (folder / "metrics.jsonl").write_text(row(0) + row(1) + row(2, 0.25) + row(3) + row(4) + row(5, 0.75))
            wait_for("the other iterations",
                     lambda: self.runs(port)[0]["series"]["reward/score_mean"]["y"] == [0.5, 0.5, 0.25, 0.5, 0.5, 0.75])
            (folder / "metrics.jsonl").write_text(row(0))
            wait_for("the only iteration", lambda: self.runs(port)[0]["series"]["reward/score_mean"]["x"] == [0])

    def test_a_run_that_has_not_done_an_iteration_can_be_waited_for(self):
        folder = self.made_run()
        (folder / "metrics.jsonl").unlink()
        with self.served(folder, "--serve") as (port, _):
            self.assertEqual(self.runs(port)[0]["series"], {})
            (folder / "metrics.jsonl").write_text(row(0))
            wait_for("the first iteration", lambda: self.runs(port)[0]["series"].get("reward/score_mean", {}).get("x") == [0])

    def test_files_that_cannot_be_read_are_told_until_they_can(self):
        folder = self.made_run()
        with self.served(folder, "--serve") as (port, _):
            pipeline, whole = folder / "pipeline.toml", (folder / "pipeline.toml").read_text()
            pipeline.write_text(whole + "#" * (1 << 20))
            wait_for("the refusal", lambda: self.runs(port) == 503)
            self.assertIn("pipeline.toml", self.ask(port, path="/report.json")[2])
            self.assertIn("reward/score_mean", self.ask(port)[2])  # the page has what was last known
            pipeline.write_text(whole)
            wait_for("the mended run", lambda: self.runs(port) != 503)
            self.assertEqual(self.runs(port)[0]["series"]["reward/score_mean"]["x"], [0, 1])


class Ends(Served):
    def test_signals_end_it_with_their_codes(self):
        folder = self.made_run()
        for number, code in ((signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)):
            with self.served(folder, "--serve") as (_, process):
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=60), code)

    def test_a_port_can_be_chosen_and_one_in_use_is_an_error_that_says_so(self):
        folder = self.made_run()
        with self.served(folder, "--serve") as (port, _):
            for words in (("--serve", port), (f"--serve={port}",)):
                self.assert_refused(run("report", folder, *words), f"port {port} of 127.0.0.1 is in use", "--serve alone")
        with self.served(folder, "--serve", port) as (again, _):  # it is free at once
            self.assertEqual(again, port)
        with self.served(folder, "--serve", 0) as (some, _):
            self.assertGreater(some, 0)

    def test_what_makes_no_sense_is_refused(self):
        folder = self.made_run()
        for words in (("--serve", "65536"), ("--serve", "some"), ("--serve", "8080", "-o", "page.html")):
            self.assert_refused(run("report", folder, *words), "--serve", code=WRONG_USAGE)
        self.assert_refused(run("report", self.folder, "--serve"), "is not the folder of a run")


class InABrowser(Served):
    def browser(self):
        found = shutil.which("chromium") or shutil.which("google-chrome")
        if found is None:
            skip_or_fail("there is no chromium")
        return found

    def test_the_page_follows_the_run_keeps_what_was_opened_and_says_when_the_server_is_gone(self):
        folder = self.made_run()
        with (self.served(folder, "--serve") as (port, process),
              Tab(self.browser(), self.folder / "browser", f"http://127.0.0.1:{port}/") as tab):
            wait_for("the page", lambda: tab.value("document.querySelector('.plot .last')?.textContent") == "0.5")
            # the policy lets our style in
            self.assertEqual(tab.value("getComputedStyle(document.querySelector('.plot path')).fill"), "none")
            tab.value("document.querySelector('.plot details').open = true; document.querySelector('.plot svg').focus();"
                      "document.getElementById('sample-find').value = 'first'; document.documentElement.style.scrollBehavior = "
                      "'auto'; scrollTo(0, 200);document.querySelector('.plot svg').marked = true")
            with open(folder / "metrics.jsonl", "a") as file:
                file.write(row(2, 0.75))
            wait_for("the new iteration", lambda: tab.value("document.querySelector('.plot .last').textContent") == "0.75")
            self.assertEqual(tab.value("[scrollY, document.activeElement.marked, document.querySelector('.plot "
                                       "details').open,document.getElementById('sample-find').value, "
                                       "document.querySelectorAll('.plot tbody tr').length]"), [200, True, True, "first", 3])
            self.assertTrue(tab.value("document.getElementById('live').textContent").startswith("live, last change"))
            keys = ("ArrowLeft", "ArrowLeft", "ArrowRight", "Home", "End")
            read = [tab.value(f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}})); "
                              "document.querySelector('.readout').textContent.replace(/ +/g, ' ').trim()") for key in keys]
            self.assertEqual(read, ["iteration 0: 0.5", "iteration 0: 0.5", "iteration 1: 0.5", "iteration 0: 0.5",
                                    "iteration 2: 0.75"])
            process.terminate()
            process.wait(timeout=60)
            wait_for("the word", lambda: "The server is gone" in tab.value("document.getElementById('live').textContent"))
            with self.served(folder, "--serve", port):
                wait_for("its return", lambda: tab.value("document.getElementById('live').textContent").startswith("live"))

    def test_a_selected_text_stays_selected(self):
        folder = self.made_run()
        with (self.served(folder, "--serve") as (port, _),
              Tab(self.browser(), self.folder / "browser", f"http://127.0.0.1:{port}/") as tab):
            wait_for("the page", lambda: tab.value("document.querySelector('.samples .text')?.textContent") == "first")
            tab.value("getSelection().selectAllChildren(document.querySelector('.samples .text')); 1")
            (folder / "s.jsonl").write_text('{"iteration":0,"response":"other"}\n')
            with open(folder / "metrics.jsonl", "a") as file:
                file.write(row(2, 0.75))
            wait_for("the new iteration", lambda: tab.value("document.querySelector('.plot .last').textContent") == "0.75")
            self.assertEqual(tab.value("getSelection().toString().trim()"), "first")
            tab.value("getSelection().removeAllRanges(); 1")
            wait_for("the new sample", lambda: tab.value("document.querySelector('.samples .text').textContent") == "other")


class Tab:
    """A page in a browser, and its script: the DevTools protocol, over a socket of this machine."""

    def __init__(self, browser, folder, address):
        self.process = subprocess.Popen([browser, "--headless", "--no-sandbox", "--disable-gpu",
                                         f"--user-data-dir={folder}", "--remote-debugging-port=0", address],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        told = folder / "DevToolsActivePort"
        wait_for("the browser", lambda: told.exists() and len(told.read_text().splitlines()) == 2)
        port = int(told.read_text().splitlines()[0])
        wait_for("the tab", lambda: self.pages(port, address))
        place = self.pages(port, address)[0]["webSocketDebuggerUrl"].partition(f":{port}")[2]
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.sendall(f"GET {place} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.input = self.socket.makefile("rb")
        while self.input.readline().strip():
            pass
        self.asked = 0

    @staticmethod
    def pages(port, address):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as reply:
            return [one for one in json.load(reply) if one["type"] == "page" and one["url"] == address]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.input.close()
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=60)

    def value(self, expression):
        """Of a JavaScript expression."""
        self.asked += 1
        self.send(json.dumps({"id": self.asked, "method": "Runtime.evaluate",
                              "params": {"expression": expression, "returnByValue": True}}).encode())
        while (reply := json.loads(self.receive())).get("id") != self.asked:
            pass
        if "error" in reply:  # the page is only being opened
            return None
        if "exceptionDetails" in reply["result"]:
            raise AssertionError(reply["result"]["exceptionDetails"])
        return reply["result"]["result"].get("value")

    def send(self, content):
        size = bytes([0x80 | len(content)]) if len(content) < 126 else bytes([0x80 | 126]) + len(content).to_bytes(2, "big")
        self.socket.sendall(b"\x81" + size + bytes(4) + content)  # masked with zeros

    def receive(self):
        _, size = self.input.read(2)
        if size >= 126:
            size = int.from_bytes(self.input.read(2 if size == 126 else 8), "big")
        return self.input.read(size)


if __name__ == "__main__":
    unittest.main()
