"""The shared libraries of a package folder: which it needs of the system, and where it looks for them.

What every Linux has (the C library, its C++ library) is not bundled; what torch brings lies beside the package. All else is
copied into lib/deps. Programs and libraries look for all of it relative to themselves, so the tree can be moved, and libraries of
the system are never taken in its place.
"""

import os
import pathlib
import re
import shutil
import subprocess

# of the package pyarrow, which is looked for where a file needs it (data/columnar.h)
ON_REQUEST = re.compile(r"lib(arrow|parquet)\.so")
SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s))\.so")
DEPS = "deps"


def bundle(package):
    """Copies the libraries that it needs into lib/deps, and sets where all look. Returns the files that were copied."""
    ours = [package / "bin/rlhf-run", *sorted((package / "lib").glob("*.so*"))]
    torch = site_of_torch(package / "bin/rlhf-run")
    of_torch = {path.name for folder in ("torch/lib", "nvidia/*/lib") for path in torch.glob(f"{folder}/*.so*")}
    needed = {}
    for file in ours:
        needed |= {name: path for name, path in needed_by(file).items() if not is_at(path, package) and name not in of_torch}
    folder = package / "lib" / DEPS
    folder.mkdir()
    for name, path in sorted(needed.items()):
        shutil.copy2(path.resolve(), folder / name)
    for file in ours:
        set_run_path(file, torch)
    return sorted(needed.values())


def licenses(files):
    """{name of a Debian package: its copyright file} of the packages that these files are from."""
    found = {}
    for file in files:
        for path in (file, pathlib.Path("/usr" + str(file)), file.resolve()):
            done = subprocess.run(["dpkg-query", "-S", str(path)], capture_output=True, text=True)
            if done.returncode == 0:
                name = done.stdout.split(":")[0]
                found[name] = pathlib.Path("/usr/share/doc") / name / "copyright"
                break
        else:
            raise SystemExit(f"error: {file} is of no Debian package, so its licence is not known")
    return found


def needed_by(file):
    """{name: file} of all libraries that the loader takes for it, but those of every system and those on request."""
    done = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=True)
    if any(not ON_REQUEST.match(name) for name in re.findall(r"^\s*(\S+) => not found", done.stdout, re.MULTILINE)):
        raise SystemExit(f"error: {file.name} needs what is not there:\n{done.stdout}")
    found = re.findall(r"^\s*(\S+) => (\S+) \(", done.stdout, re.MULTILINE)
    return {name: pathlib.Path(path) for name, path in found if not SYSTEM.match(name) and not ON_REQUEST.match(name)}


def is_at(path, folder):
    return path.resolve().is_relative_to(folder.resolve())


def run_path(file):
    done = subprocess.run(["readelf", "-d", str(file)], capture_output=True, text=True, check=True)
    match = re.search(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", done.stdout)
    return match.group(1).split(":") if match else []


def site_of_torch(program):
    """The folder in which the package torch lies that it was linked with."""
    return next(pathlib.Path(entry).parent.parent for entry in run_path(program) if entry.endswith("/torch/lib"))


def set_run_path(file, torch):
    """As it is, but relative to itself: with torch beside the package."""
    lib = os.path.relpath(file.parent.parent / "lib", file.parent)
    own = ["$ORIGIN" if lib == "." else f"$ORIGIN/{lib}"]
    own.append(f"{own[0]}/{DEPS}")
    beside = [entry.replace(str(torch), "$ORIGIN/../..") for entry in run_path(file) if is_at(pathlib.Path(entry), torch)]
    new = ":".join(dict.fromkeys([*own, *beside]))
    script = file.with_suffix(".cmake")
    script.write_text(f'file(RPATH_SET FILE "{file}" NEW_RPATH "{new}")\n')
    subprocess.run(["cmake", "-P", str(script)], check=True, stdout=subprocess.DEVNULL)
    script.unlink()
