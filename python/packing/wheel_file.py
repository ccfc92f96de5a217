"""A folder as a wheel (PEP 427): its files, and what pip wants to know of them."""

import base64
import dataclasses
import hashlib
import pathlib
import platform
import zipfile

EPOCH = (1980, 1, 1, 0, 0, 0)  # so that the same build gives the same wheel


@dataclasses.dataclass(frozen=True)
class Metadata:
    project: dict  # the table of pyproject.toml
    version: str
    torch: str
    entry_points: dict

    @property
    def stem(self):
        return f"{self.project['name'].replace('-', '_')}-{self.version}"

    @property
    def info(self):
        return f"{self.stem}.dist-info"


def tag():
    """The oldest C library that it may meet is that of this machine (PEP 600)."""
    major, minor = platform.libc_ver()[1].split(".")[:2]
    return f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"


def write(site, into, metadata, licenses):
    """Writes the wheel of all files below `site` and of the licences, {name: file}; returns its name."""
    records = []
    name = f"{metadata.stem}-{tag()}.whl"
    with zipfile.ZipFile(into / name, "w") as wheel:
        for path in sorted(site.rglob("*")):
            if path.is_symlink():
                raise SystemExit(f"error: {path} is a link, of which a wheel has none")
            if path.is_file():
                mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
                records.append(add(wheel, path.relative_to(site).as_posix(), path.read_bytes(), mode))
        for title, file in sorted(licenses.items()):
            records.append(add(wheel, f"{metadata.info}/licenses/{title}", pathlib.Path(file).read_bytes()))
        for title, text in metadata_files(metadata).items():
            records.append(add(wheel, f"{metadata.info}/{title}", text.encode()))
        record = f"{metadata.info}/RECORD"
        add(wheel, record, "".join(f"{line}\n" for line in [*records, f"{record},,"]).encode())
    return name


def add(wheel, path, content, mode=0o644):
    """Adds a file; returns its line of RECORD."""
    entry = zipfile.ZipInfo(path, EPOCH)
    entry.external_attr = (0o100000 | mode) << 16
    wheel.writestr(entry, content, zipfile.ZIP_DEFLATED)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(content)}"


def write_metadata(into, metadata):
    """Only what pip wants to know; returns the name of its folder."""
    folder = into / metadata.info
    folder.mkdir()
    for title, text in metadata_files(metadata).items():
        (folder / title).write_text(text)
    return metadata.info


def metadata_files(metadata):
    project = metadata.project
    scripts = "".join(f"{script} = {function}\n" for script, function in metadata.entry_points.items())
    return {
        "METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {metadata.version}\n"
        f"Summary: {project['description']}\nRequires-Python: {project['requires-python']}\n"
        f"Requires-Dist: torch=={metadata.torch}\nRequires-Dist: tomli>=2; python_version < '3.11'\n"
        f"Description-Content-Type: text/markdown\n\n{pathlib.Path(project['readme']).read_text()}",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: sluice\nRoot-Is-Purelib: false\nTag: {tag()}\n",
        "entry_points.txt": f"[console_scripts]\n{scripts}",
    }
