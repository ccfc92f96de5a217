"""Which plugins the program loads: what looks at a pipeline none that the user did not name, a run those beside its file, a
resumed run those that it has loaded. A library whose loading leaves a mark shows it."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from support import DONE, PPO, ROOT, SMALL, WRONG_PIPELINE, Case, run, sets

PLUGINS = pathlib.Path(os.environ.get("SLUICE_TEST_PLUGINS", str(ROOT / "build/release/tests/plugins")))
MARKING = """#include <fcntl.h>
#include <stdlib.h>
__attribute__((constructor)) static void mark(void) { creat(getenv("MARK"), 0600); }
"""
LOOKING = (("validate",), ("plan",), ("plan", "--config"), ("graph",), ("simulate",))
# Idle behind `generate`: `fault` is never reached.
FAULTY = '[nodes.faulty]\ntype = "faulty"\ninputs = ["generate"]\nfault = "throw"\nat = -1\n'


class PluginCase(Case):
    def setUp(self):
        super().setUp()
        self.mark = self.folder / "mark"
        self.environment = {**os.environ, "MARK": str(self.mark)}
        self.environment.pop("SLUICE_PLUGINS", None)

    def marking(self, name):
        source = self.write("marking.c", MARKING)
        library = self.folder / name
        library.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        return library

    def valid(self, name):
        """A plugin that loads and has a node type."""
        library = self.folder / name
        library.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PLUGINS / "libfaults.so", library)
        return library

    def pipeline(self, plugin, text="", name="p.toml"):
        return self.write(name, f'extends = "{PPO}"\nplugins = ["{plugin}"]\n{text}')

    def call(self, *words, stdin="", **environment):
        return run(*words, stdin=stdin, env={**self.environment, **environment})

    def was_loaded(self):
        there = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return there


class Plugins(PluginCase):
    def test_what_looks_at_a_pipeline_loads_nothing_unasked(self):
        self.marking("build/libx.so")
        pipeline = self.pipeline("build/libx.so")
        for command, *options in LOOKING:
            with self.subTest(command):
                done = self.call(command, pipeline, *options)
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertEqual(done.stderr.count("warning: plugin build/libx.so is not loaded"), 1)
                self.assertIn("add --plugins to the command", done.stderr)
                self.assertFalse(self.was_loaded())

    def test_what_looks_loads_what_it_is_told_to(self):
        library = self.marking("build/libx.so")
        pipeline = self.pipeline("build/libx.so")
        for words, environment in ((["--plugins"], {}), (["--plugin", library], {}),
                                   ([], {"SLUICE_PLUGINS": str(library.parent)})):
            self.call("validate", pipeline, *words, **environment)
            self.assertTrue(self.was_loaded())

    def test_the_rest_of_a_pipeline_is_checked_without_its_plugin(self):
        self.valid("libfaults.so")
        text = FAULTY + '[nodes.train]\nobjective = "of_the_plugin"\n[nodes.generate]\ntemprature = 2\n'
        done = self.call("validate", self.pipeline("libfaults.so", text))
        self.assert_refused(done, "temprature is not a parameter", 'p.toml:4: there is no node type "faulty"',
                            'p.toml:9: there is no objective "of_the_plugin"')

    def test_a_pipeline_of_which_a_node_is_the_plugins_is_valid_as_far_as_is_known(self):
        self.valid("libfaults.so")
        pipeline = self.pipeline("libfaults.so", FAULTY)
        done = self.call("validate", pipeline)
        self.assertEqual((done.returncode, done.stdout),
                         (DONE, f"{pipeline}: no problems in what can be checked without its plugins\n"))
        self.assert_refused(self.call("plan", pipeline), "without it there is no plan", "--plugins")
        self.assertEqual(self.call("plan", pipeline, "--plugins").returncode, DONE)

    def test_every_node_of_a_pipeline_may_be_a_plugins(self):
        self.marking("libx.so")
        for node in ("prompts", "generate", "rewards", "train"):
            with self.subTest(node):
                done = self.call("validate", self.pipeline("libx.so"), "--set", f"nodes.{node}.type=of_the_plugin")
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertIn('there is no node type "of_the_plugin"', done.stderr)

    def test_a_preset_may_be_a_plugins(self):
        self.marking("libx.so")
        done = self.call("validate", self.pipeline("libx.so", '[pipeline]\npreset = "of_the_plugin"\n'))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn('there is no preset "of_the_plugin"', done.stderr)

    def test_a_run_loads_what_lies_beside_its_file(self):
        self.marking("build/libx.so")
        done = self.call("run", self.pipeline("build/libx.so"), "--run-dir", self.folder / "run")
        self.assertIn("is a shared library but not a plugin", done.stderr)
        self.assertTrue(self.was_loaded())

    def test_a_run_loads_nothing_from_elsewhere(self):
        library = self.marking("elsewhere/libx.so")
        inside = self.folder / "project"
        inside.mkdir()
        (inside / "link.so").symlink_to(library)
        (inside / "folder").symlink_to(library.parent)
        self.write("elsewhere/base.toml", f'extends = "{PPO}"\nplugins = ["libx.so"]\n')
        texts = [f'extends = "{PPO}"\nplugins = ["{path}"]\n'
                 for path in ("../elsewhere/libx.so", library, "link.so", "folder/libx.so", "./../elsewhere/libx.so")]
        for text in [*texts, 'extends = "../elsewhere/base.toml"\n']:
            with self.subTest(text):
                done = self.call("run", self.write("project/p.toml", text))
                self.assert_refused(done, "does not lie in the folder of the pipeline file", "add to the command: --plugin")
                self.assertFalse(self.was_loaded())

    def test_the_refusal_says_what_to_type(self):
        library = self.valid("elsewhere/libfaults.so")
        pipeline = self.write("project/p.toml", f'extends = "{PPO}"\nplugins = ["{library}"]\n')
        words = self.call("validate", pipeline).stderr.split("add to the command: ")[1].split(",")[0].split()
        self.assertEqual(self.call("validate", pipeline, *words).returncode, DONE)

    def test_a_plugin_that_is_named_twice_is_said_to_be(self):
        library = self.valid("build/libfaults.so")
        (self.folder / "link.so").symlink_to(library)
        for again in ("build/../build/libfaults.so", "link.so"):
            with self.subTest(again):
                pipeline = self.write("p.toml", f'extends = "{PPO}"\nplugins = ["build/libfaults.so", "{again}"]\n')
                done = self.call("validate", pipeline, "--plugin", library, "--plugin", self.folder / "link.so")
                self.assert_refused(done, "is named twice", "p.toml:2")
                self.assertNotIn("already taken", done.stderr)
        once = self.call("validate", self.pipeline("build/libfaults.so"), "--plugin", library, "--plugin",
                         self.folder / "link.so")
        self.assertEqual(once.returncode, DONE, once.stderr)

    def test_a_plugin_whose_file_is_cut_off_is_said_to_be(self):
        library = self.valid("libfaults.so")
        os.truncate(library, library.stat().st_size // 2)
        self.assert_refused(self.call("run", self.pipeline("libfaults.so")), "libfaults.so cannot be loaded: the file is cut off")

    def test_a_pipe_for_a_plugin_is_not_waited_for(self):
        os.mkfifo(self.folder / "libx.so")
        self.assert_refused(self.call("run", self.pipeline("libx.so")), "is not a file, so it is no plugin")


class TriedNode(PluginCase):
    def try_faulty(self, fault):
        columns = json.dumps({"columns": {"tokens": [[1, 2]]}})
        return self.call("try", "faulty", "--plugin", PLUGINS / "libfaults.so", "--set", f"fault={fault}", "--set", "at=0",
                         stdin=columns)

    def test_what_a_node_of_a_plugin_does_wrong_is_told_as_in_a_run(self):
        for fault, said in {"throw": "node 'faulty' failed: a fault, as asked",
                            "missing_column": "it did not write column 'passed', which its contract promises",
                            "undeclared_column": "it writes column 'undeclared', which its contract does not say"}.items():
            with self.subTest(fault):
                done = self.try_faulty(fault)
                self.assertNotIn("internal error", done.stderr)
                self.assert_refused(done, said)


class ResumedRun(PluginCase):
    def interrupted_run(self, library):
        pipeline = self.pipeline(library.relative_to(self.folder), FAULTY)
        folder = self.folder / "run"
        done = self.call("run", pipeline, "--run-dir", folder, *sets(**SMALL))
        self.assertEqual(done.returncode, DONE, done.stderr)
        return folder

    def resume(self, folder, *words, **environment):
        return self.call("resume", folder, *words, *sets(**{"pipeline.iterations": 3}), **environment)

    def test_a_run_goes_on_with_its_plugin_without_a_word(self):
        folder = self.interrupted_run(self.valid("build/libfaults.so"))
        done = self.resume(folder)
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_a_plugin_that_was_built_again_is_asked_for(self):
        library = self.valid("build/libfaults.so")
        folder = self.interrupted_run(library)
        library.unlink()
        self.valid("build/libfaults.so")
        refused = self.resume(folder)
        self.assert_refused(refused, "is not, or no longer, the file that this run has loaded")
        words = refused.stderr.split("rlhf-run resume ")[1].split()[1:]
        self.assertEqual(self.resume(folder, *words).returncode, DONE)

    def test_a_plugin_that_is_gone_can_be_named_anew(self):
        library = self.valid("build/libfaults.so")
        folder = self.interrupted_run(library)
        library.unlink()
        self.assert_refused(self.resume(folder), "there is no plugin", "--set 'plugins=")
        moved = self.valid("moved/libfaults.so")
        self.assertEqual(self.resume(folder, "--set", f'plugins=["{moved}"]').returncode, DONE)

    def test_a_forged_run_folder_loads_no_library(self):
        folder = self.interrupted_run(self.valid("build/libfaults.so"))
        evil = self.marking("run/libx.so")
        text = (folder / "pipeline.toml").read_text()
        seals = json.loads((folder / "plugins.json").read_text())
        for path in (evil, "libx.so"):
            (folder / "pipeline.toml").write_text(text.replace(str(self.folder / "build/libfaults.so"), str(path)))
            (folder / "plugins.json").write_text(json.dumps([{**seals[0], "path": str(evil), "bytes": evil.stat().st_size}]))
            with self.subTest(path):
                self.assert_refused(self.resume(folder), "that this run has loaded", code=WRONG_PIPELINE)
                self.assertFalse(self.was_loaded())


if __name__ == "__main__":
    unittest.main()
