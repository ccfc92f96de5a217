"""The wheel: built from the build tree, installed into an empty environment, where everything works without the checkout.

Torch is not fetched: the one that the build has found stands beside the package as pip would lay it out.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("SLUICE_BUILD", str(ROOT / "build/release"))
TORCH = pathlib.Path(os.environ.get("SLUICE_TORCH", ROOT / ".deps/python/torch"))
# What the packages of torch and of every Linux bring.
EVERYWHERE = ("linux-vdso", "ld-linux", "libc.", "libm.", "libdl.", "librt.", "libpthread.", "libutil.", "libresolv.",
              "libstdc++.", "libgcc_s.")

work = site = wheel = None


def setUpModule():
    global work, site, wheel
    work = pathlib.Path(tempfile.mkdtemp(prefix="sluice-wheel-"))
    unittest.addModuleCleanup(shutil.rmtree, work, ignore_errors=True)
    done([sys.executable, "-m", "venv", work / "env"])
    # Without the network: nothing that a build or an installation needs is fetched.
    done([work / "env/bin/python", "-m", "pip", "wheel", "--no-deps", "--no-index", "--wheel-dir", work, ROOT],
         SLUICE_BUILD=BUILD)
    wheel, = work.glob("*.whl")
    site, = (work / "env/lib").glob("python*/site-packages")
    for package in ("torch", "nvidia"):
        if (TORCH.parent / package).exists():
            (site / package).symlink_to(TORCH.parent / package)
    done([work / "env/bin/python", "-m", "pip", "install", "--no-deps", "--no-index", wheel])


def done(words, code=0, cwd=None, **variables):
    """Runs a program that knows nothing of this checkout: neither a compiler nor a library is named to it."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(work), "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables}
    finished = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600, cwd=cwd or work,
                              env=environment)
    if finished.returncode != code:
        raise AssertionError(f"{words} ended with {finished.returncode}\n{finished.stdout}{finished.stderr}")
    return finished


def rlhf_run(*words, **options):
    """The command of the environment, on a machine without a compiler."""
    return done([work / "env/bin/rlhf-run", *words], PATH=str(work / "env/bin"), **options)


def elves():
    return [site / "sluice/bin/rlhf-run", *(site / "sluice/lib").glob("*.so*"), *(site / "sluice/lib/deps").iterdir()]


class Wheel(unittest.TestCase):
    def test_what_a_person_does_first(self):
        share = site / "sluice/share/sluice/pipelines"
        rlhf_run("init", "grpo", "--model", share / "models/tiny-arithmetic", "--data", share / "data/arithmetic_train.jsonl",
                 "-o", "mine.toml")
        rlhf_run("run", "mine.toml", "--set", "pipeline.iterations=3", "--run-dir", "run")
        rlhf_run("report", "run", "-o", "run.html")
        self.assertIn("<html", (work / "run.html").read_text())
        self.assertIn("Group relative policy optimisation", rlhf_run("pipelines").stdout)
        rlhf_run("run", "builtin:ppo", "--set", "pipeline.iterations=1", "--run-dir", "ppo")
        self.assertEqual(sorted(file.name for file in (share / "recipes").iterdir()),
                         sorted(file.name for file in (ROOT / "pipelines/recipes").iterdir()))

    def test_every_link_of_the_documentation_leads_somewhere(self):
        share = site / "sluice/share/sluice"
        pages = [share / "README.md", *share.rglob("docs/**/*.md")]
        links = [(page, link) for page in pages for link in
                 re.findall(r"\]\(([^)\s#:]+)[^)\s:]*\)", re.sub(r"`[^`\n]*`|(?ms:^```.*?^```)", "", page.read_text()))]
        self.assertGreater(len(links), 300)
        self.assertEqual([f"{page}: {link}" for page, link in links if not (page.parent / link).exists()], [])

    def test_an_example_runs(self):
        rlhf_run("run", site / "sluice/share/sluice/examples/03_ppo/short_ppo.toml", "--set", "pipeline.iterations=1",
                 "--run-dir", "example")

    def test_a_scorer_in_python_runs_too(self):
        (work / "reward.py").write_text("def reward(response):\n    return len(response)\n")
        (work / "python.toml").write_text('extends = "builtin:grpo"\n[pipeline]\niterations = 1\n[nodes.score]\n'
                                          'type = "python_scorer"\nfile = "reward.py"\n')
        rlhf_run("run", "python.toml", "--run-dir", "python")

    def test_the_python_package(self):
        # Its launcher and its helpers are not of the checkout. What else it does, does not depend on where it lies.
        some = ("Runs.test_a_run_that_was_stopped_goes_on", "Rewards.test_a_function_of_this_process_scores", "Samples", "Views",
                "Errors")
        done([work / "env/bin/python", ROOT / "tests/python/package_test.py", *some], PATH=str(work / "env/bin"),
             SLUICE_INSTALLED="1")

    def test_trackers_are_told_by_the_environment_s_interpreter(self):
        said = rlhf_run("run", "builtin:grpo", "--set", "pipeline.iterations=1", "--set", 'log.trackers=["mlflow"]', "--run-dir",
                        "tracked").stderr
        self.assertIn(f"No module named 'mlflow'; {work / 'env/bin/python'}", said)

    def test_a_plugin_is_compiled_against_it(self):
        if not all(shutil.which(program) for program in ("c++", "cmake", "ninja")):
            self.skipTest("there is no compiler")
        prefix = done([work / "env/bin/python", "-c", "import sluice; print(sluice.cmake_prefix())"]).stdout.strip()
        example = ROOT / "examples/04_scorer_plugin"
        path = f"{work / 'env/bin'}:{os.environ['PATH']}"
        done(["cmake", "-S", example, "-B", work / "plugin", "-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release", "-D",
              f"CMAKE_PREFIX_PATH={prefix}"], PATH=path)
        done(["cmake", "--build", work / "plugin"], PATH=path)
        self.assertNotIn(str(ROOT / "engine"), (work / "plugin/build.ninja").read_text())
        self.assertIn("brevity", rlhf_run("nodes", "--plugin", work / "plugin/libbrevity_scorer.so").stdout)
        rlhf_run("run", "builtin:grpo", "--plugin", work / "plugin/libbrevity_scorer.so", "--set",
                 "nodes.score.type=brevity_score", "--set", "pipeline.iterations=1", "--run-dir", "brevity")

    def test_every_library_is_bundled_or_of_torch_or_of_every_system(self):
        taken = re.findall(r"(\S+) => (\S+)", done(["ldd", site / "sluice/bin/rlhf-run"]).stdout)
        self.assertGreater(len(taken), 20)
        for name, path in taken:
            if not name.startswith(EVERYWHERE):
                self.assertTrue(path.startswith(str(site)), f"{name} is taken from {path}")

    def test_no_file_of_it_names_where_it_was_built(self):
        for file in elves():
            told = done(["readelf", "-d", file]).stdout
            for match in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", told):
                for entry in match.split(":"):
                    self.assertTrue(entry.startswith("$ORIGIN"), f"{file.name}: {entry}")
            self.assertNotIn(str(ROOT).encode(), file.read_bytes(), file.name)

    def test_the_tree_can_be_moved(self):
        moved = work / "moved"
        moved.mkdir()
        shutil.copytree(site / "sluice", moved / "sluice")
        for package in ("torch", "nvidia"):
            if (site / package).exists():
                (moved / package).symlink_to((site / package).resolve())
        told = done([moved / "sluice/bin/rlhf-run", "pipelines"]).stdout
        self.assertIn(f"in {moved}/sluice/share/sluice/pipelines", told)

    def test_without_torch_it_says_what_is_missing(self):
        alone = work / "alone"
        alone.mkdir()
        (alone / "sluice").symlink_to(site / "sluice")
        shutil.copytree(site / "sluice", alone / "copy/sluice")
        for call in ("from sluice._program import main; main()", "import sluice; sluice.run('builtin:grpo')",
                     "import sluice; sluice.plan('builtin:grpo')"):
            refused = done([work / "env/bin/python", "-c", f"import sys; sys.path.insert(0, '.'); {call}"], code=1,
                           cwd=alone / "copy")
            self.assertIn("torch is not installed beside sluice", refused.stderr)

    def test_a_source_distribution_is_refused_with_what_to_do(self):
        refused = done([sys.executable, "-c", "import backend; backend.build_sdist('.')"], code=1,
                       PYTHONPATH=str(ROOT / "python/packing"))
        self.assertIn("--wheel", refused.stderr)
        self.assertNotIn("Traceback", refused.stderr)

    def test_each_bundled_library_has_its_licence(self):
        names = zipfile.ZipFile(wheel).namelist()
        licenses = {pathlib.PurePosixPath(name).name for name in names if ".dist-info/licenses/" in name}
        for library in ("libtbb12", "libspdlog1.10", "libfmt9", "libonig5", "libutf8proc2", "libcurl4", "libcpp-httplib0.11",
                        "zlib1g"):
            if shutil.which("dpkg-query") and "Debian GNU/Linux 12" in pathlib.Path("/etc/os-release").read_text():
                self.assertIn(library, licenses)
        self.assertIn("sluice", licenses)

    def test_it_wants_the_torch_that_it_was_built_with(self):
        version = re.search(r"__version__ = '([\d.]+)", (TORCH / "version.py").read_text()).group(1)
        metadata = next((site.glob("sluice_rlhf-*.dist-info"))).joinpath("METADATA").read_text()
        self.assertIn(f"Requires-Dist: torch=={version}\n", metadata)


if __name__ == "__main__":
    unittest.main()
