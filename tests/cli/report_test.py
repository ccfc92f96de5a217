"""`rlhf-run report`: what the page holds, that it stays text whatever a run has written, its size, and its colours."""

import base64
import html.parser
import json
import re
import shutil
import subprocess
import unittest

from support import DONE, MODEL, PROGRAM, ROOT, Case, on_terminal, run, skip_or_fail

MOST_BYTES = 5_000_000
HOSTILE = ['</script><script>document.title = "broken out"</script>', "<!--<script>",
           "<img src=x onerror='document.title = \"broken out\"'>", "]]>\u2028&amp;\"'`${1}", "{{TITLE}} {{SCRIPT}}"]


class Page(html.parser.HTMLParser):
    """The elements of a page, and the texts of its scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.scripts, self.addresses = [], set(), [], []
        self.style, self.title, self.policy, self.inside = "", "", "", None
        self.feed(text)
        self.close()
        self.runs = json.loads(self.scripts[0])["runs"]

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append(tag)
        self.inside = tag
        self.ids |= {attributes["id"]} if "id" in attributes else set()
        self.addresses += [value for name, value in attributes.items() if name in ("src", "href", "srcset", "action")]
        self.policy += attributes.get("content", "") if attributes.get("http-equiv") == "Content-Security-Policy" else ""
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "script":
            self.scripts[-1] += data
        elif self.inside == "style":
            self.style += data
        elif self.inside == "title":
            self.title += data


class Report(Case):
    def report(self, *folders):
        file = self.folder / "report.html"
        done = run("report", *folders, "-o", file)
        self.assertEqual((done.returncode, done.stdout), (DONE, ""), done.stderr)
        self.text = file.read_text()
        self.assertLess(len(self.text), MOST_BYTES)
        return Page(self.text)

    def in_a_browser(self, folder):
        """The elements that a browser, in a window with room for most of it, makes of the report."""
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        if browser is None:
            skip_or_fail("there is no chromium")
        self.report(folder)
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1240,3000",
                               f"--user-data-dir={self.folder}/browser", "--virtual-time-budget=4000", "--dump-dom",
                               f"file://{self.folder}/report.html"], capture_output=True, text=True, timeout=120)
        return done.stdout

    def made_run(self, name="run", rows=({"iteration": 0, "policy/loss": 0.5},), samples=(), state="done"):
        """A run folder by hand, with what a report reads."""
        folder = self.folder / name
        folder.mkdir()
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "status.json").write_text(json.dumps({"state": state, "seconds": 90.0, "iterations": 7,
                                                        "iterations_done": len(rows)}))
        (folder / "pipeline.dot").write_text('digraph { a -> b [label="<script>"] }')
        (folder / "pipeline.toml").write_text('[pipeline]\niterations = 7\n[nodes.samples]\n'
                                              'type = "write_jsonl"\npath = "s.jsonl"\n')
        (folder / "s.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
        return folder


class Content(Report):
    def test_all_of_a_run_is_there(self):
        finished = self.run_ppo(pipeline=self.saving_pipeline())
        page = self.report(finished.folder)
        self.assertEqual(page.title, "run – Sluice")
        self.assertLessEqual({"curves", "samples", "graph", "memory", "notes", "pipeline"}, page.ids)
        (shown,) = page.runs
        self.assertEqual((shown["state"], shown["iterations"], shown["iterations_done"]), ("done", 2, 2))
        self.assertEqual(shown["pipeline"], (finished.folder / "pipeline.toml").read_text())
        self.assertEqual(shown["memory"], json.loads((finished.folder / "memory.json").read_text()))
        for name, value in finished.metrics[1].items():
            if name != "iteration":
                self.assertEqual(shown["series"][name]["x"][-1], 1)
                self.assertAlmostEqual(shown["series"][name]["y"][-1], value, delta=1e-5 * abs(value))
        written = [(s["prompt"], s["response"], s["score"]) for s in finished.samples]
        self.assertTrue(shown["samples"])
        for sample in shown["samples"]:
            self.assertIn((sample["prompt"], sample["response"], sample["score"]), written)
        self.assertEqual(shown["notes"], [])

    def test_the_graph_is_drawn_where_dot_is_there_and_else_written(self):
        folder = self.made_run()
        graph = self.report(folder).runs[0]["graph"]
        if shutil.which("dot"):
            self.assertIn(b"<svg", base64.b64decode(graph["svg"]))
        self.assertEqual(run("report", folder, "-o", self.folder / "r.html", env={"PATH": ""}).returncode, DONE)
        self.assertEqual(Page((self.folder / "r.html").read_text()).runs[0]["graph"],
                         {"dot": (folder / "pipeline.dot").read_text()})

    def test_runs_are_compared(self):
        page = self.report(self.made_run("one"), self.made_run("two"))
        self.assertEqual([one["name"] for one in page.runs], ["one", "two"])
        self.assertEqual(page.title, "one, two – Sluice")

    def test_runs_of_one_name_are_told_apart_by_their_folders(self):
        (self.folder / "a").mkdir()
        folders = [self.made_run("a/run"), self.made_run("run")]
        self.assertEqual([one["name"] for one in self.report(*folders).runs], [str(folder) for folder in folders])

    def test_tokens_have_all_that_they_may_be_coloured_by(self):
        pipeline = self.write("p.toml", f'extends = "{ROOT}/pipelines/ppo.toml"\n'
                              '[nodes.samples]\ntype = "write_jsonl"\ninputs = ["advantages"]\n'
                              'fields = ["response", "tokens", "advantages", "rollout_logprobs", "reference_logprobs"]\n')
        finished = self.run_ppo(pipeline=pipeline)
        for sample in self.report(finished.folder).runs[0]["samples"]:
            (written,) = [s for s in finished.samples if all(s[key] == sample[key] for key in ("iteration", "group", "sample"))]
            self.assertEqual(sample["pieces_by"]["advantage"], written["advantages"])
            self.assertEqual(sample["pieces_by"]["probability"], written["rollout_logprobs"])
            self.assertEqual(sample["pieces_by"]["kl"],
                             [a - b for a, b in zip(written["rollout_logprobs"], written["reference_logprobs"])])
            self.assertTrue("".join(sample["pieces"]).startswith(written["response"]))

    def test_a_run_that_did_not_end_is_said_to(self):
        (note,) = [one for one in self.report(self.made_run(state="running")).runs[0]["notes"]
                   if "has not come to its end" in one["text"]]
        self.assertEqual(note["severity"], "warning")

    def test_problems_of_the_pipeline_are_told(self):
        self.assertTrue(any(one["severity"] == "error" and "[budget]" in one["text"]
                            for one in self.report(self.made_run()).runs[0]["notes"]))

    def test_a_line_that_is_being_written_is_left_out(self):
        folder = self.made_run(samples=[{"response": "a"}])
        for name in ("metrics.jsonl", "s.jsonl"):
            with open(folder / name, "a") as file:
                file.write('{"iteration": 1, "resp')
        (shown,) = self.report(folder).runs
        self.assertEqual((shown["series"]["policy/loss"]["x"], len(shown["samples"])), ([0], 1))

    def test_of_a_copied_folder_only_the_metrics_need_be_there(self):
        folder = self.made_run()
        for path in list(folder.iterdir()):
            if path.name != "metrics.jsonl":
                path.unlink()
        self.assertEqual(self.report(folder).runs[0]["series"]["policy/loss"]["y"], [0.5])

    def test_what_is_no_run_is_refused(self):
        self.assert_refused(run("report", self.folder), f"{self.folder} is not the folder of a run")

    def test_what_is_damaged_is_left_out_and_told(self):
        folder = self.made_run(samples=[{"iteration": 0, "response": "a"}, {"iteration": 0, "response": "b"}])
        with open(folder / "metrics.jsonl", "a") as file:
            file.write('[1]\n["iteration": 1}\n{"iteration": 2, "policy/loss": 0.25}\n' + "x\n" * 20)
        (folder / "s.jsonl").write_text('{"iteration": 0, "response": "a"}\n{"iteration": 0, "resp\n')
        for name in ("status.json", "memory.json"):
            (folder / name).write_text("{")
        (shown,) = self.report(folder).runs
        self.assertEqual((shown["series"]["policy/loss"]["x"], [sample["response"] for sample in shown["samples"]]),
                         ([0, 2], ["a"]))
        told = " ".join(note["text"] for note in shown["notes"] if note["severity"] == "error")
        for part in ("status.json: invalid JSON", "metrics.jsonl, line 2 is no metrics", "metrics.jsonl, line 3: invalid JSON",
                     "more lines or files"):
            self.assertIn(part, told)

    def test_what_has_another_type_is_left_out_and_told(self):
        folder = self.made_run()
        (folder / "status.json").write_text('{"state": 5, "seconds": null, "iterations": 1e300, "iterations_done": 2}')
        (folder / "memory.json").write_text('{"planned_bytes": "x"}')
        (shown,) = self.report(folder).runs
        self.assertEqual((shown["state"], shown["seconds"], shown["iterations_done"], shown["memory"]), ("not known", 0, 2, None))
        told = [note["text"] for note in shown["notes"] if note["severity"] == "error"]
        for part in ("status.json: state is no text", "status.json: seconds is no number",
                     "memory.json: planned_bytes is no number"):
            self.assertTrue(any(part in text for text in told), told)

    def test_another_file_is_not_overwritten(self):
        folder, page = self.made_run(), self.folder / "page.html"
        for _ in range(2):  # a report is
            self.assertEqual(run("report", folder, "-o", page).returncode, 0)
        pipeline = folder / "pipeline.toml"
        before = pipeline.read_text()
        self.assert_refused(run("report", folder, "-o", pipeline), f"{pipeline} exists, and is no report")
        self.assert_refused(run("report", folder, "-o", self.folder), f"{self.folder} is a folder", "-o FILE.html")
        self.assertEqual(pipeline.read_text(), before)

    def test_on_a_terminal_it_is_a_file_called_after_the_run(self):
        folder = self.made_run()
        code, screen = on_terminal("report", f"{folder.name}/", cwd=folder.parent)
        self.assertEqual((code, screen), (DONE, f"{folder.name}.html is the page, for a browser; -o names another file, and "
                                          "--serve follows the run\n"))
        self.assertEqual((folder.parent / f"{folder.name}.html").read_text(),
                         self.run_in_folder("report", f"{folder.name}/").stdout)

    def test_a_dash_is_standard_output_for_whatever_writes_a_file(self):
        folder = self.made_run()
        for words in (("report", folder), ("schema",),
                      ("init", "grpo", "--model", MODEL, "--data", ROOT / "pipelines/data/arithmetic_train.jsonl")):
            piped, dashed = self.run_in_folder(*words), self.run_in_folder(*words, "-o", "-")
            self.assertEqual((dashed.returncode, dashed.stdout), (DONE, piped.stdout), dashed.stderr)
        self.assertFalse((self.folder / "-").exists())

    def test_what_cannot_be_written_is_told(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "report", self.made_run()], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output cannot be written", done.stderr)


class Hostile(Report):
    def test_what_a_run_has_written_stays_text(self):
        samples = [{"iteration": 0, "prompt": text, "response": text, text: text} for text in HOSTILE]
        folder = self.made_run("<b>&\"'", rows=[{"iteration": 0, text: 1.0} | {"policy/loss": 1.0} for text in HOSTILE],
                               samples=samples)
        page = self.report(folder)
        self.assertEqual(page.tags.count("script"), 2)
        self.assertNotIn("b", page.tags)
        self.assertEqual(page.title, "<b>&\"' – Sluice")
        self.assertEqual([sample["response"] for sample in page.runs[0]["samples"]], HOSTILE)
        self.assertLessEqual(set(HOSTILE), page.runs[0]["series"].keys())
        self.assertNotRegex(page.scripts[0], "[<>&\u2028]")

    def test_no_password_of_a_url_is_shown(self):
        folder = self.run_ppo().folder
        with open(folder / "pipeline.toml", "a") as file:
            file.write("# http://alice:s3cret@judge:80/v1 and http://judge/a@b, https://t0ken@host\n")
        shown = self.report(folder).runs[0]["pipeline"]
        self.assertTrue(shown.endswith("# http://***@judge:80/v1 and http://judge/a@b, https://***@host\n"), shown[-200:])

    def test_samples_are_read_from_the_run_folder_alone(self):
        secret = self.write("secret.jsonl", '{"response": "secret"}\n')
        for path in ("../secret.jsonl", str(secret), "link.jsonl", "linked/secret.jsonl"):
            with self.subTest(path):
                folder = self.made_run(f"run_{len(path)}")
                (folder / "pipeline.toml").write_text(f'[nodes.samples]\ntype = "write_jsonl"\npath = "{path}"\n')
                (folder / "link.jsonl").symlink_to(secret)
                (folder / "linked").symlink_to(self.folder)
                self.assertEqual(self.report(folder).runs[0]["samples"], [])
        for name in ("pipeline.toml", "pipeline.dot", "memory.json"):
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(secret)
        self.report(folder)
        self.assertNotIn("secret", self.text.replace("secret.jsonl", ""))

    def test_bytes_that_are_no_text_do_no_harm(self):
        folder = self.made_run()
        (folder / "s.jsonl").write_bytes(b'{"response": "' + "é".encode() * 3000 + b'"}\n')  # is cut within a character
        self.assertTrue(self.report(folder).runs[0]["samples"][0]["response"].startswith("é"))

    def test_nothing_is_loaded(self):
        page = self.report(self.made_run())
        self.assertEqual([address for address in page.addresses if not address.startswith("#")], [])
        self.assertIn("default-src 'none'", page.policy)
        self.assertNotRegex(page.style + page.scripts[1].replace("http://www.w3.org/2000/svg", ""),
                            r"https?://|@import|url\(|fetch\(|innerHTML|eval\(")

    def test_a_browser_shows_it_as_text(self):
        shown = self.in_a_browser(self.made_run(samples=[{"iteration": 0, "prompt": "p", "response": text} for text in HOSTILE]))
        self.assertIn("&lt;img src=x onerror=", shown)
        self.assertIn("policy/</", shown.replace("<wbr>", "</"))  # a plot has its name
        self.assertNotIn("<title>broken out", shown)
        self.assertIn("<title>run – Sluice</title>", shown)


class Sizes(Report):
    def test_a_thousand_iterations_are_thinned_out_and_keep_their_spikes(self):
        names = [f"group/metric_{i}" for i in range(100)]
        rows = [{"iteration": i} | {name: 1.0 / 3 + i * k for k, name in enumerate(names)} | {"spike": 1e6 if i == 537 else 0.25}
                for i in range(1000)]
        samples = [{"iteration": i // 20, "prompt": "word " * 2000, "response": "text " * 2000, "score": 1.0}
                   for i in range(2000)]
        (shown,) = self.report(self.made_run(rows=rows, samples=samples)).runs
        for name in (*names, "spike"):
            self.assertLessEqual(len(shown["series"][name]["x"]), 400)
        spike = shown["series"]["spike"]
        self.assertEqual(spike["y"][spike["x"].index(537)], 1e6)
        self.assertEqual(shown["samples"][-1]["iteration"], 99)
        self.assertEqual(shown["samples"][0]["iteration"], 0)

    def test_tokens_are_coloured_when_they_come_into_view(self):
        samples = [{"iteration": i, "response": "1" * 600, "tokens": [19] * 601, "advantages": [0.5] * 600} for i in range(200)]
        folder = self.made_run(samples=samples)
        with open(folder / "pipeline.toml", "a") as file:
            file.write(f'[models.actor]\ncheckpoint = "{MODEL}"\n')
        painted = self.in_a_browser(folder).count('title="advantage 0.5"')
        self.assertGreaterEqual(painted, 600)
        self.assertLess(painted, 30 * 600)  # of 160 samples that the page has

    def test_of_long_samples_there_are_fewer(self):
        samples = [{"iteration": i} | {f"field_{k}": "漢字" * 1000 for k in range(8)} for i in range(400)]
        shown = self.report(self.made_run(samples=samples)).runs[0]["samples"]  # which looks at the size of the page
        self.assertGreater(len(shown), 20)
        self.assertEqual(shown[-1]["iteration"], 399)


class Colours(unittest.TestCase):
    def test_text_and_curves_stand_out_in_light_and_dark(self):
        style = (ROOT / "cli/report/page.css").read_text()
        light, dark = (dict(re.findall(r"--([\w-]+): (#\w{6})", block))
                       for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL))
        for theme in (light, dark):
            for name in ("ink", "quiet", "accent", "better", "worse", *(f"run-{i}" for i in range(6))):
                for ground in ("page", "card"):
                    self.assertGreaterEqual(contrast(theme[name], theme[ground]), 4.5,
                                            f"{name} on {ground}: {theme[name]} on {theme[ground]}")
            self.assertGreaterEqual(contrast(theme["ink"], theme["mark"]), 4.5)

    def test_text_stands_out_on_coloured_tokens(self):
        style = (ROOT / "cli/report/page.css").read_text()
        for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL):
            theme = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
            for name, tone in re.findall(r"--(plus|minus): ([\d, ]+);", block):
                # The strongest that the script paints.
                mixed = ("#" + "".join(f"{round(int(part) / 2 + int(theme['card'][i:i + 2], 16) / 2):02x}"
                                       for part, i in zip(tone.split(","), (1, 3, 5))))
                self.assertGreaterEqual(contrast(theme["ink"], mixed), 4.5, f"{name}: {theme['ink']} on {mixed}")


def contrast(one, other):
    """Of WCAG 2.1."""
    def luminance(color):
        parts = [int(color[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        return sum(weight * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4)
                   for weight, part in zip((0.2126, 0.7152, 0.0722), parts))
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


if __name__ == "__main__":
    unittest.main()
