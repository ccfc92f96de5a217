#!/usr/bin/env python3
"""Fetches what the benches are compared with.

usage: bench/peers/set_up.py [FOLDER]

FOLDER: .deps/peers of this checkout. It gets a virtual environment with requirements.txt, and in FOLDER/ppo a second TRL:
PPOTrainer left it after 1.12. Torch is not fetched again where ./run-tests --oracles did so, or where SLUICE_PEERS_SHARE names a
folder with packages. What is complete is left alone."""

import os
import pathlib
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LAST_WITH_PPO = "trl==1.12.0"
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


def wanted():
    return (HERE / "requirements.txt").read_text() + LAST_WITH_PPO + "\n"


def give_up(step, log):
    sys.exit(f"error: {step} failed (no network, or a full disk? {log} tells)\n       try again: bench/run --peers")


def pip(folder, log, *arguments):
    with open(log, "a") as output:
        command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
        if subprocess.run(command, stdout=output, stderr=output).returncode != 0:
            give_up(f"pip install {' '.join(str(argument) for argument in arguments)}", log)


def share_packages(folder):
    """Lets the environment see the packages of another one, which is complete; pip then fetches only what is missing there."""
    oracles = ROOT / ".deps" / "oracles"
    packages = pathlib.Path(os.environ.get("SLUICE_PEERS_SHARE", oracles / "lib" / VERSION / "site-packages")).absolute()
    complete = "SLUICE_PEERS_SHARE" in os.environ or (oracles / "requirements.txt").exists()
    if complete and (packages / "torch").exists():
        (folder / "lib" / VERSION / "site-packages" / "shared.pth").write_text(f"{packages}\n")
        return True
    return False


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / ".deps" / "peers").absolute()
    complete = folder / "complete"
    if complete.exists() and complete.read_text() == wanted():
        return
    log = folder.with_suffix(".log")
    folder.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    try:
        venv.create(folder, clear=True, with_pip=True)
    except (subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"error: no virtual environment could be made: {error}\n       on Debian: apt-get install python3-venv")
    size = "0.1 GB to load; torch is shared" if share_packages(folder) else "3 GB to load, 5 GB on the disk"
    print(f"fetching what the benches are compared with into {folder} ({size})", file=sys.stderr, flush=True)
    pip(folder, log, "-r", HERE / "requirements.txt")
    pip(folder, log, "--no-deps", "--target", folder / "ppo", LAST_WITH_PPO)
    complete.write_text(wanted())  # the last step: what was interrupted is fetched again


if __name__ == "__main__":
    main()
