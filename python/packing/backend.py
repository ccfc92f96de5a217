"""The build backend that pyproject.toml names: packs a build of this checkout as a wheel.

The build is build/release, or the folder that SLUICE_BUILD names, as it is: `./rlhf-run --setup` makes it. What `cmake --install`
lays out becomes the package folder `sluice`, with the Debian libraries that it needs, and finds LibTorch in the package `torch`
beside it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import libraries  # noqa: E402
import wheel_file  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    build = built_tree()
    with tempfile.TemporaryDirectory(prefix="sluice-wheel-") as folder:
        site = pathlib.Path(folder)
        package = site / "sluice"
        subprocess.run(["cmake", "--install", str(build), "--prefix", str(package), "--strip"], check=True,
                       stdout=subprocess.DEVNULL)
        lay_out(package)
        bundled = libraries.bundle(package)
        return wheel_file.write(site, pathlib.Path(wheel_directory), metadata(),
                                {"sluice": ROOT / "LICENSE", **libraries.licenses(bundled)})


def build_sdist(sdist_directory, config_settings=None):
    """What `python -m build` calls first unless it is told otherwise."""
    sys.exit("error: there is no source distribution of Sluice: a wheel is packed from a build, which that would not have\n"
             "      = help: python3 -m build --wheel, or python3 -m pip wheel --no-deps .")


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return wheel_file.write_metadata(pathlib.Path(metadata_directory), metadata())


def get_requires_for_build_wheel(config_settings=None):
    return []


def metadata():
    return wheel_file.Metadata(project=project(), version=version(), torch=torch_version(),
                               entry_points={"rlhf-run": "sluice._program:main"})


def built_tree():
    build = pathlib.Path(os.environ.get("SLUICE_BUILD", ROOT / "build/release"))
    if not (build / "cli/rlhf-run").exists():
        sys.exit(f"error: there is no program in {build}: a wheel is packed from a build\n"
                 "      = help: ./rlhf-run --setup, or set SLUICE_BUILD to the folder of one")
    return build


def lay_out(package):
    """The install tree as a package: its Python files on top, and each library once, since a wheel has no links."""
    python = package / "share/sluice/python"
    for path in (python / "sluice").iterdir():
        shutil.move(path, package / path.name)
    shutil.rmtree(python)
    for link in [path for path in (package / "lib").iterdir() if path.is_symlink()]:
        target = link.resolve()
        link.unlink()
        # what programs name: libsluice_engine.so.0
        if link.name.count(".so.") == 1 and link.name.rpartition(".so.")[2].isdigit():
            shutil.copy2(target, link)
    for targets in (package / "lib/cmake/sluice").glob("sluice-targets-*.cmake"):
        targets.write_text(re.sub(r"(\.so\.\d+)\.\d+\.\d+", r"\1", targets.read_text()))
    for path in (package / "lib").iterdir():
        if re.search(r"\.so\.\d+\.\d+\.\d+$", path.name):
            path.unlink()


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def version():
    return re.search(r'kVersionText\[\] = "([^"]+)"', (ROOT / "engine/contract/version.h").read_text()).group(1)


def torch_version():
    return re.search(r"set\(SLUICE_TORCH_VERSION ([^)]+)\)", (ROOT / "cmake/FindTorch.cmake").read_text()).group(1)
