"""Runs a test that needs Hugging Face's packages, with the Python that has them.

    python3 run.py SCRIPT ARGUMENT...

That Python is $SLUICE_ORACLE_PYTHON, or the one that `./run-tests --oracles` sets up in .deps/oracles. Without either the test is
skipped (exit code 77), but fails where CI=true.
"""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77


def main():
    python = pathlib.Path(os.environ.get("SLUICE_ORACLE_PYTHON", ROOT / ".deps/oracles/bin/python"))
    if not python.exists():
        print(f"skipped: {python} is not there; ./run-tests --oracles sets it up, or name a Python with transformers "
              "in SLUICE_ORACLE_PYTHON")
        return 1 if os.environ.get("CI") == "true" else SKIPPED
    # Nothing is fetched while a test runs, and libraries that spin for work do not take the cores from tests beside this one.
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    sys.stdout.flush()
    os.execv(python, [str(python), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
