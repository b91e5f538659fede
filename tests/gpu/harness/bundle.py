"""The programs under test, and the machine they run on."""
import os
import pathlib
import site
import subprocess
import tarfile


def nvidia_packages():
    """Folders of CUDA's libraries that Python's packages brought."""
    roots = site.getsitepackages()
    return [str(path) for root in roots for path in sorted(pathlib.Path(root).glob("nvidia/*/lib"))]


class Bundle:
    """A bundle, unpacked; `scratch` is for what its programs write."""

    def __init__(self, path, scratch):
        self.scratch = scratch
        if path.is_dir():
            self.root = path.resolve()
        else:
            with tarfile.open(path) as archive:
                archive.extractall(scratch)  # Of our own making.
            self.root = next(scratch.iterdir())
        commit = self.root / "COMMIT"
        self.commit = commit.read_text(encoding="utf-8").strip() if commit.exists() else "unknown"

    def program(self, name):
        return str(self.root / "bin" / name)

    def environment(self):
        folders = [os.environ.get("LD_LIBRARY_PATH", ""), *nvidia_packages()]
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, folders))}

    def run(self, command, timeout):
        """The exit status and all that it printed. One that hangs is ended and fails."""
        try:
            done = subprocess.run(command, cwd=self.scratch, env=self.environment(), timeout=timeout,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", check=False)
        except subprocess.TimeoutExpired as expired:
            return 124, f"{expired.stdout or ''}\nended after {timeout} s"
        except FileNotFoundError as error:
            return 127, str(error)
        return done.returncode, done.stdout


def gpu_facts():
    """Name, driver and memory of the first GPU, and how many programs see; None if there is none."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        said = subprocess.run(query, stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    lines = said.strip().splitlines()
    fields = [field.strip() for field in lines[0].split(",")] if lines else []
    if len(fields) != 3:
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = len(lines) if visible is None else min(len(lines), len(visible.split(",")))
    return {**dict(zip(("name", "driver", "memory"), fields)), "count": count}
