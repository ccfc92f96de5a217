"""`rlhf-run sweep`: each run is the run of that command line alone; it is gone on with; its table; its children end with it."""

import csv
import functools
import io
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import unittest

from report_test import Page
from support import (DONE, FAILED, INTERRUPTED, PPO, SMALL, WRONG_USAGE, Case, metrics_so_far, repeatable, run, sets,
                     skip_or_fail, start, wait_for, wait_for_iteration, with_roles)

RATE = "models.actor.optimizer.learning_rate"

# Scores every response alike by its text, and waits after the first iteration while there is a file "hold". BAD raises there
# instead.
SCORER = """
import os, time
asked = 0
def score(response):
    global asked
    asked += 1
    while asked > 64 and os.path.exists(os.path.join(os.path.dirname(__file__), "hold")):
        time.sleep(0.01)
    return float(sum(map(ord, response)) % 3)
"""
BAD = "def score(response):\n    raise ValueError('no score')\n"


def is_alive(pid):
    """It is there, and not only left to be waited for."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@functools.cache
def finished_sweep():
    """Its pipeline, its command without -o, its folder, and what the program printed."""
    world = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
    unittest.addModuleCleanup(shutil.rmtree, world, ignore_errors=True)
    small = world / "small.toml"
    small.write_text("\n".join([f'extends = "{PPO}"', *(f"{key} = {json.dumps(value)}" for key, value in SMALL.items())]))
    words = ["sweep", small, "--set", f"{RATE}=1e-4,1e-3", "--set", "pipeline.iterations=12", "--seeds", "3..4"]
    return small, words, world / "sweep", run(*words, "-o", world / "sweep")


class Finished(Case):
    """One sweep of two values and two seeds that is finished, which nobody changes."""

    def setUp(self):
        super().setUp()
        self.small, self.words, self.sweep, self.done = finished_sweep()
        self.assertEqual(self.done.returncode, DONE, self.done.stderr)
        self.rows = {path.name: metrics_so_far(path) for path in self.sweep.iterdir() if path.is_dir()}

    def table(self, *words, form="json"):
        done = run("sweep", "--table", self.sweep, "--format", form, *words)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return json.loads(done.stdout) if form == "json" else done.stdout

    def values(self, rate, metric):
        """Of the run of each seed, the mean of the last ten iterations."""
        return [statistics.fmean(row[metric] for row in self.rows[f"learning_rate={rate},seed={seed}"][-10:]) for seed in (3, 4)]


class Runs(Finished):
    def test_there_is_one_for_each_combination_and_seed(self):
        self.assertEqual(sorted(self.rows), [f"learning_rate={rate},seed={seed}" for rate in ("1e-3", "1e-4") for seed in (3, 4)])
        self.assertEqual([len(rows) for rows in self.rows.values()], [12] * 4)
        self.assertTrue(self.done.stdout.startswith(f"4 runs in {self.sweep}: 2 combinations, 2 seeds\n"), self.done.stdout)

    def test_each_is_what_run_makes_of_its_settings(self):
        alone = self.folder / "alone"
        done = run("run", self.small, "--run-dir", alone, "--set", "pipeline.iterations=12", "--set", f"{RATE}=1e-3", "--set",
                   "pipeline.seed=4")
        self.assertEqual(done.returncode, DONE, done.stderr)
        swept = self.sweep / "learning_rate=1e-3,seed=4"
        self.assertEqual([json.dumps(row) for row in repeatable(metrics_so_far(swept))],
                         [json.dumps(row) for row in repeatable(metrics_so_far(alone))])
        self.assertEqual({path.name for path in swept.iterdir() if not path.name.startswith("events")},
                         {path.name for path in alone.iterdir() if not path.name.startswith("events")})
        self.assertEqual((swept / "pipeline.toml").read_bytes(), (alone / "pipeline.toml").read_bytes())
        self.assertEqual((swept / "checkpoint/actor/model.safetensors").read_bytes(),
                         (alone / "checkpoint/actor/model.safetensors").read_bytes())

    def test_the_file_says_what_the_sweep_is(self):
        file = json.loads((self.sweep / "sweep.json").read_text())
        self.assertEqual((file["pipeline"], file["set"], file["seeds"]), (str(self.small), ["pipeline.iterations=12"], [3, 4]))
        self.assertEqual(file["keys"], [{"key": RATE, "values": ["1e-4", "1e-3"]}])
        self.assertEqual([one["folder"] for one in file["runs"]][0], "learning_rate=1e-4,seed=3")
        self.assertEqual(file["differs"][3], {"pipeline": {"seed": "4"}, "models.actor": {"optimizer.learning_rate": "0.001"}})

    def test_finished_ones_are_left_alone(self):
        before = {path: path.stat().st_mtime_ns for path in self.sweep.glob("*/*")}
        for words in ([*self.words, "-o", self.sweep], ["sweep", "--resume", self.sweep]):
            done = run(*words)
            self.assertEqual((done.returncode, done.stderr), (DONE, ""))
            self.assertIn("4 runs in", done.stdout)
            self.assertIn("; 4 are finished\n", done.stdout)
        self.assertEqual({path: path.stat().st_mtime_ns for path in self.sweep.glob("*/*")}, before)

    def test_one_that_somebody_has_go_on_stays_what_it_is_for_the_sweep(self):
        before = self.table()["combinations"]
        sweep = shutil.copytree(self.sweep, self.folder / "sweep", symlinks=True)
        longer = sweep / "learning_rate=1e-3,seed=4"
        done = run("resume", longer, "--set", "pipeline.iterations=14")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.sweep, status = sweep, json.loads((longer / "status.json").read_text())
        for state, iterations_done in (("done", 14), ("interrupted", 13)):
            (longer / "status.json").write_text(json.dumps(status | {"state": state, "iterations_done": iterations_done}))
            self.assertIn("; 4 are finished\n", run("sweep", "--resume", sweep, "--dry-run").stdout)
            self.assertEqual([row["metrics"] for row in self.table()["combinations"]], [row["metrics"] for row in before])

    def test_what_would_be_run_is_printed(self):
        done = run(*self.words, "-o", self.folder / "other", "--dry-run")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(done.stdout.splitlines()[1:],
                         [f"  learning_rate={rate},seed={seed}" for rate in ("1e-4", "1e-3") for seed in (3, 4)])
        self.assertFalse((self.folder / "other").exists())
        self.assertEqual(run(*self.words, "-o", self.sweep, "--dry-run").stdout.count("(finished)"), 4)

    def test_another_grid_is_refused(self):
        words = [word.replace("1e-4,1e-3", "1e-4,1e-2") if isinstance(word, str) else word for word in self.words]
        self.assert_refused(run(*words[:-1], "3..5", "-o", self.sweep), "is another one", f"{RATE}: 1e-4,1e-3 -> 1e-4,1e-2",
                            "seeds: 3,4 -> 3,4,5")

    def test_another_pipeline_is_refused_unless_accepted(self):
        changed = self.folder / "small.toml"
        changed.write_text(self.small.read_text() + "\nnodes.train.objective = { type = \"ppo_clip\", clip_low = 0.1 }\n"
                           "runtime.grace_seconds = 7\n")
        words = ["sweep", changed, *self.words[2:], "-o", self.sweep]
        self.assert_refused(run(*words), "[nodes.train] objective.clip_low: 0.2 -> 0.1", "--accept-changes")
        self.assert_refused(run(*[word if word != "pipeline.iterations=12" else "pipeline.iterations=13" for word in self.words],
                                "-o", self.sweep), "[pipeline] iterations: 12 -> 13")
        done = run(*words, "--accept-changes", "--dry-run")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertRegex(done.stdout,
                         r"going on with \[nodes.train\] objective.clip_low: 0.2 -> 0.1 \(accepted: results change\)\n")
        self.assertIn("going on with [runtime] grace_seconds: 20.0 -> 7.0\n", done.stdout)


class Table(Finished):
    def test_has_mean_and_standard_deviation_of_the_metrics_that_matter(self):
        table = self.table()
        self.assertEqual((table["best_by"], table["best"]), ("reward/score_mean", "highest"))
        for row, rate in zip(table["combinations"], ("1e-4", "1e-3"), strict=True):
            self.assertEqual((row["name"], row["set"]), (f"learning_rate={rate}", {RATE: rate}))
            self.assertEqual(list(row["metrics"]), ["reward/score_mean", "held_out/reward/score_mean", "reference/kl_mean"])
            for metric in ("reward/score_mean", "reference/kl_mean"):
                values = self.values(rate, metric)
                self.assertAlmostEqual(row["metrics"][metric]["mean"], statistics.fmean(values), delta=1e-12)
                self.assertAlmostEqual(row["metrics"][metric]["standard_deviation"], statistics.stdev(values), delta=1e-12)
                self.assertEqual(row["metrics"][metric]["runs"], 2)
                self.assertEqual([one["seed"] for one in row["runs"]], [3, 4])
                for one, value in zip(row["runs"], values, strict=True):
                    self.assertAlmostEqual(one["metrics"][metric], value, delta=1e-12)
        scores = [statistics.fmean(self.values(rate, "reward/score_mean")) for rate in ("1e-4", "1e-3")]
        self.assertEqual([row["best"] for row in table["combinations"]], [score == max(scores) for score in scores])

    def test_takes_of_what_is_measured_now_and_then_what_the_last_iterations_have(self):
        name = "held_out/reward/score_mean"
        for row, rate in zip(self.table()["combinations"], ("1e-4", "1e-3"), strict=True):
            for one, seed in zip(row["runs"], (3, 4), strict=True):
                rows = self.rows[f"learning_rate={rate},seed={seed}"]
                there = [line[name] for line in rows if name in line]
                latest = [line[name] for line in rows[-10:] if name in line] or there[-1:]
                self.assertLess(len(latest), len(there))
                self.assertAlmostEqual(one["metrics"][name], statistics.fmean(latest), delta=1e-12)

    def test_of_another_metric_is_chosen_by_it(self):
        table = self.table("--metric", "policy/loss", "--metric", "policy/kl_mean")
        self.assertEqual((table["best_by"], table["best"]), ("policy/loss", "lowest"))
        means = [row["metrics"]["policy/loss"]["mean"] for row in table["combinations"]]
        self.assertEqual([row["best"] for row in table["combinations"]], [mean == min(means) for mean in means])
        self.assertEqual([row["best"] for row in self.table("--metric", "policy/loss", "--best", "highest")["combinations"]],
                         [mean == max(means) for mean in means])
        self.assert_refused(run("sweep", "--table", self.sweep, "--metric", "policy/los", "--metric", "x"),
                            'no finished run of the sweep has the metric "policy/los"', "did you mean policy/loss?", problems=2)

    def test_for_programs_is_csv(self):
        (head, *rows) = csv.reader(io.StringIO(self.table(form="csv")))
        self.assertEqual(head[:6],
                         [RATE, "runs", "finished", "best", "reward/score_mean", "reward/score_mean standard deviation"])
        values = self.values("1e-3", "reward/score_mean")
        self.assertEqual(rows[1][:3], ["1e-3", "2", "2"])
        self.assertAlmostEqual(float(rows[1][4]), statistics.fmean(values), delta=1e-12)
        self.assertAlmostEqual(float(rows[1][5]), statistics.stdev(values), delta=1e-12)

    def test_for_people_stands_at_the_end_of_the_sweep(self):
        text = self.table(form="text")
        self.assertTrue(self.done.stdout.endswith("\n" + text), self.done.stdout)
        (best,) = [line for line in text.splitlines() if line.endswith("best")]
        self.assertRegex(best, r"^  learning_rate=1e-\d +0\.\d+ (±|\+-) \S+ .* 2/2   best$")


class Report(Finished):
    def report(self, *folders):
        file = self.folder / "report.html"
        self.assertEqual(run("report", *folders, "-o", file).returncode, DONE)
        return file

    def test_has_all_runs_with_their_combinations(self):
        page = Page(self.report(self.sweep).read_text())
        self.assertEqual(page.title, "sweep – Sluice")
        self.assertEqual([(one["name"], one["combination"]) for one in page.runs],
                         [(f"learning_rate={rate},seed={seed}", f"learning_rate={rate}") for rate in ("1e-4", "1e-3")
                          for seed in (3, 4)])
        for one in page.runs:
            self.assertEqual(one["series"]["reward/score_mean"]["x"], list(range(12)))

    def test_compares_with_other_runs(self):
        shown = Page(self.report(self.sweep, self.sweep / "learning_rate=1e-4,seed=3").read_text()).runs
        self.assertEqual([one.get("combination") for one in shown],
                         [f"{self.sweep}: learning_rate={rate}" for rate in ("1e-4", "1e-4", "1e-3", "1e-3")] + [None])

    def shown(self, file):
        """What a browser makes of the page, and the part of it that is the legend."""
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        if browser is None:
            skip_or_fail("there is no chromium")
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/browser",
                               "--virtual-time-budget=4000", "--dump-dom", f"file://{file}"],
                              capture_output=True, text=True, timeout=120)
        (legend,) = re.findall(r'<div class="legend" id="legend">(.*?)</div>', done.stdout)
        return done.stdout, legend

    def test_a_combination_has_one_colour_and_the_mean_of_its_seeds(self):
        page, legend = self.shown(self.report(self.sweep))
        self.assertEqual(re.findall(r"</svg>([^<]*)</span>", legend), ["learning_rate=1e-4", "learning_rate=1e-3"])
        (plot,) = re.findall(r'<article class="card plot" data-metric="reward/score_mean">(.*?)</article>', page)
        self.assertEqual(re.findall(r'<path class="seed"[^>]*stroke="([^"]*)"', plot),
                         ["var(--run-0)"] * 2 + ["var(--run-1)"] * 2)
        firsts = [statistics.fmean(self.rows[f"learning_rate={rate},seed={seed}"][0]["reward/score_mean"] for seed in (3, 4))
                  for rate in ("1e-4", "1e-3")]
        told = re.findall(r"learning_rate=\S+: from (\S+) to", plot)
        self.assertEqual([float(value) for value in told], [float(f"{value:.4g}") for value in firsts])

    def test_many_combinations_are_a_table_and_are_told_apart(self):
        sweep, values = self.folder / "many", [str(i) for i in range(15)]
        for value in values:
            for seed in (1, 2):
                (sweep / f"a={value},seed={seed}").mkdir(parents=True)
                (sweep / f"a={value},seed={seed}/metrics.jsonl").write_text("".join(
                    json.dumps({"iteration": i, "reward/score_mean": int(value) + seed * (i > 1)}) + "\n" for i in range(12)))
        (sweep / "sweep.json").write_text(json.dumps({"pipeline": "p.toml", "set": [], "keys": [{"key": "x.a", "values": values}],
                                                      "seeds": [1, 2], "runs": [], "effective": {}, "differs": [{}] * 30}))
        page, legend = self.shown(self.report(sweep))
        self.assertEqual(len(set(re.findall(r'stroke="[^"]*" stroke-dasharray="[^"]*"', legend))), 15)
        (heads,) = re.findall(r'<div id="heads">(.*?)</div>\s*<nav', page, re.DOTALL)
        self.assertEqual(re.findall(r'</svg> ([^<]*)</td><td class="number">([^<]*)<', heads),
                         [(f"a={value}", f"{int(value) + 1.5:g} ± 0.71") for value in values])


class Refused(Case):
    def test_all_problems_of_all_combinations_are_told_before_any_run(self):
        words = ["sweep", self.layer(""), "-o", self.folder / "sweep", "--seeds", "1..2", "--set", f"{RATE}=1e-4,oops", "--set",
                 "nodes.generate.temperature=1,-1"]
        done = run(*words)
        self.assert_refused(done, "oops", "in the runs with learning_rate=oops,temperature=1 and "
                            "learning_rate=oops,temperature=-1", "in the runs with learning_rate=1e-4,temperature=-1", problems=2)
        self.assertFalse((self.folder / "sweep").exists())
        self.assert_refused(run(*words[:2], "--seeds", "1", "--set", "nodes.nobody.a=1"), "nobody", "in all runs of the sweep")

    def test_a_command_line_says_what_to_sweep(self):
        self.assert_refused(run("sweep", PPO), "there is nothing to sweep")
        self.assert_refused(run("sweep"), "it is not said what to sweep", code=WRONG_USAGE)
        self.assert_refused(run("sweep", PPO, "--seeds", "5..1"), '"5..1" is not a seed from 0', code=WRONG_USAGE)
        self.assert_refused(run("sweep", "--resume", self.folder, "--seeds", "1"), "--seeds", code=WRONG_USAGE)
        self.assert_refused(run("sweep", PPO, "--seeds", "1", "--metric", "x"), "--table", code=WRONG_USAGE)

    def test_a_folder_of_something_else_is_left_alone(self):
        for words in (("--resume", self.folder), ("--table", self.folder)):
            self.assert_refused(run("sweep", *words), f"{self.folder} is not the folder of a sweep")
        self.write("metrics.jsonl", "{}\n")
        self.assert_refused(run("sweep", PPO, "--seeds", "1", "-o", self.folder), "already holds a run")
        (self.folder / "other/seed=1").mkdir(parents=True)
        self.assert_refused(run("sweep", PPO, "--seeds", "1", "-o", self.folder / "other"), "already has seed=1")
        self.write("sweep.json", '{"pipeline": 3}')
        self.assert_refused(run("sweep", "--table", self.folder), "is not what rlhf-run sweep has written")

    def test_what_does_not_fit_into_memory_at_once_is_refused(self):
        words = ["sweep", self.layer(""), "-o", self.folder / "sweep", "--seeds", "1..3", "--set", "runtime.memory_gib=0.1",
                 "--dry-run"]
        self.assertEqual(run(*words).returncode, DONE)
        self.assert_refused(run(*words, "--parallel", 3), "3 runs at a time may need", "of the 107 MB of this machine",
                            "help: --parallel ")

    def test_a_forged_folder_says_nothing_that_only_a_command_line_may(self):
        sweep = self.folder / "sweep"
        sweep.mkdir()
        for forged, said in ((f"checkpoint.folder={self.folder}/elsewhere", "checkpoint.folder"),
                             ('plugins=["evil.so"]', "plugins")):
            (sweep / "sweep.json").write_text(json.dumps({"pipeline": str(self.layer("")), "set": [forged], "keys": [],
                                                          "seeds": [1], "runs": [], "effective": {}, "differs": [{}]}))
            self.assert_refused(run("sweep", "--resume", sweep), f"sets {said}, which only a command line may")

    def test_a_link_in_a_forged_folder_is_not_followed(self):
        sweep, elsewhere = self.folder / "sweep", self.folder / "elsewhere"
        (elsewhere / "checkpoints").mkdir(parents=True)
        (elsewhere / "metrics.jsonl").write_text('{"iteration": 0, "secret": 1}\n')
        self.assertEqual(
            run("sweep", self.layer(""), "--seeds", "1", "-o", sweep, *sets(**{"pipeline.iterations": 1})).returncode, DONE)
        shutil.rmtree(sweep / "seed=1")
        (sweep / "seed=1").symlink_to(elsewhere)
        for words in (("sweep", "--resume", sweep), ("sweep", "--table", sweep), ("report", sweep)):
            self.assert_refused(run(*words), f"{sweep}/seed=1 is a symbolic link")
        self.assertEqual(sorted(path.name for path in elsewhere.iterdir()), ["checkpoints", "metrics.jsonl"])


class Disturbed(Case):
    """Sweeps of two runs whose scorer waits after the first iteration while `self.hold` is there."""

    def setUp(self):
        super().setUp()
        self.write("reward.py", SCORER)
        self.write("bad.py", BAD)
        self.hold = self.write("hold", "")
        self.pipeline = self.layer('[nodes.score]\ntype = "python_scorer"\nfile = "reward.py"\n[checkpoint]\n'
                                   'every_iterations = 1\n')
        self.sweep = self.folder / "sweep"
        self.runs = [self.sweep / f"seed={seed}" for seed in (1, 2)]
        self.words = ["sweep", self.pipeline, "--seeds", "1..2", "-o", self.sweep,
                      *sets(**{"pipeline.iterations": 3, "runtime.grace_seconds": 0})]

    def start(self, *words):
        process = start(*self.words, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def pid_of(self, run_folder):
        return json.loads((run_folder / "lock").read_text())["pid"]

    def assert_is_as_if_undisturbed(self):
        for seed, folder in enumerate(self.runs, start=1):
            alone = self.folder / f"alone-{seed}"
            done = run("run", self.pipeline, "--run-dir", alone, *sets(**{"pipeline.iterations": 3, "pipeline.seed": seed}))
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertEqual(repeatable(metrics_so_far(folder)), repeatable(metrics_so_far(alone)))

    def test_an_interrupted_sweep_saves_ends_all_and_is_gone_on_with(self):
        process = self.start()
        wait_for_iteration(self.runs[0])
        pid = self.pid_of(self.runs[0])
        process.send_signal(signal.SIGINT)
        said = iter(process.stdout.readline, "")
        self.assertTrue(any(line.startswith("interrupted: finishing what is in flight") for line in said))
        self.hold.unlink()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assertFalse(is_alive(pid))
        self.assertEqual(err.splitlines()[-1], "the sweep was interrupted: 2 of 2 runs are not finished; go on with: rlhf-run "
                         f"sweep --resume {self.sweep}")
        self.assertFalse(self.runs[1].exists())
        self.assertFalse((self.sweep / "lock").exists())
        done = run("sweep", "--resume", self.sweep)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertRegex(done.stdout, rf"goes on from {self.runs[0]}/checkpoints/[12] with iteration [23] of 3\n")
        self.assert_is_as_if_undisturbed()

    def test_children_die_with_a_killed_sweep_which_is_gone_on_with(self):
        process = self.start("--parallel", 2)
        for folder in self.runs:
            wait_for_iteration(folder)
            wait_for("a checkpoint", (folder / "checkpoint").exists)
        pids = [self.pid_of(folder) for folder in self.runs]
        cores = [sorted(os.sched_getaffinity(pid)) for pid in pids]
        if len(os.sched_getaffinity(0)) > 1:
            self.assertEqual(set(cores[0]) & set(cores[1]), set())
        self.assertEqual(set(cores[0] + cores[1]), os.sched_getaffinity(0))
        self.assert_refused(run(*self.words), "is in use by process " + str(process.pid))
        process.kill()
        out, err = process.communicate(timeout=60)
        for pid in pids:
            wait_for("the end of a child", lambda pid=pid: not is_alive(pid))
        self.assertIn("[seed=2] ", err)
        self.assertEqual(run("sweep", "--table", self.sweep).stdout.count(" 0/2"), 1)
        shutil.rmtree(self.runs[1] / "checkpoints")  # this one was cut off before its first
        (self.runs[1] / "checkpoint").unlink()
        self.hold.unlink()
        done = run(*self.words, "--parallel", 2)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertRegex(done.stderr, r"\[seed=1\] \w+ goes on from \S+/checkpoints/1 with iteration 2 of 3\n")
        self.assertIn("[seed=2] the run in " + str(self.runs[1]) + " was ended before its first checkpoint: it starts over\n",
                      done.stderr)
        self.assert_is_as_if_undisturbed()

    def test_with_roles_each_starts_all_of_its_ranks(self):
        small = {"pipeline.iterations": 2, "nodes.prompts.groups_per_iteration": 8, "cluster.slots": 1}
        file = self.write("roles.toml", with_roles("ppo.toml", training=1, sampling=1, forward={"score": (1, ["reference"])}))
        folder = self.folder / "sweep"
        done = run("sweep", file, *sets(**small), "--seeds", "1,2", "--parallel", "2", "-o", folder)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual("warning: 2 runs at a time, of 3 ranks each, share" in done.stderr, len(os.sched_getaffinity(0)) < 6)
        for seed in (1, 2):
            alone = self.folder / f"alone-{seed}"
            self.assertEqual(run(PPO, "--run-dir", alone, *sets(**small, **{"pipeline.seed": seed})).returncode, DONE)
            self.assertEqual(repeatable(metrics_so_far(folder / f"seed={seed}")), repeatable(metrics_so_far(alone)))
        self.assertIn("2 are finished", run("sweep", "--resume", folder, "--dry-run").stdout)

    def test_one_that_fails_ends_no_other_and_is_named(self):
        self.hold.unlink()
        words = ["sweep", self.pipeline, "-o", self.sweep, "--set",
                 f"nodes.score.file={self.folder}/bad.py,{self.folder}/reward.py", "--set", "pipeline.iterations=1"]
        done = run(*words)
        self.assertEqual(done.returncode, FAILED, done.stderr)
        bad, good = sorted(path.name for path in self.sweep.iterdir() if path.is_dir())
        self.assertIn("ValueError: no score", done.stderr)
        self.assertRegex(done.stderr, rf"error: 1 run of the sweep failed\n      = {bad} \(pid \d+\) exited with code 1\n1 of 2 "
                         r"runs are not finished; go on with: ")
        self.assertEqual(len(metrics_so_far(self.sweep / good)), 1)
        self.assertRegex(done.stdout, r"(?m)bad.py +- .* 0/1   1 failed$")
        self.write("bad.py", SCORER)  # mended
        done = run("sweep", "--resume", self.sweep)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("; 1 is finished\n", done.stdout)
        self.assertEqual(repeatable(metrics_so_far(self.sweep / bad)), repeatable(metrics_so_far(self.sweep / good)))


if __name__ == "__main__":
    unittest.main()
