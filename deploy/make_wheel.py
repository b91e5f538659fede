"""Packs the Python package and the libraries that its extension needs into a wheel.

A wheel is an archive (PEP 427): the package, its libraries, and a folder *.dist-info with lists of
both. Libraries get names of their own, made from their contents: a program that loads a library of
the same name from elsewhere has both, each with its own users."""
import argparse
import base64
import hashlib
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

# Part of every system that glibc is part of.
OF_THE_SYSTEM = re.compile(r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so\.|ld-linux|linux-vdso")
LIBRARIES = "slipstream.libs"
SUMMARY = "Training one model on machines that do not keep step: a worker for Python"


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True,
                          text=True).stdout


def needed(library):
    return run("patchelf", "--print-needed", library).split()


def found_libraries(extension):
    """Returns the paths of the libraries to carry, by the names by which they are asked for."""
    found = {}
    for line in run("ldd", extension).splitlines():
        match = re.match(r"\s*(\S+) => (/\S+)", line)
        if "not found" in line:
            sys.exit(f"make_wheel: {line.strip()}")
        if match and not OF_THE_SYSTEM.match(match[1]):
            found[match[1]] = pathlib.Path(match[2]).resolve()
    return found


def own_name(name, path):
    """Returns "libgrpc-1a2b3c4d.so.29" for "libgrpc.so.29"."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    stem, ending = name.split(".so", 1)
    return f"{stem}-{digest}.so{ending}"


def gather(extension, staging):
    """Copies the extension and its libraries, and leads each to its libraries' own names."""
    libraries = found_libraries(extension)
    names = {name: own_name(name, path) for name, path in libraries.items()}
    folder = staging / LIBRARIES
    folder.mkdir()
    core = staging / "slipstream" / "_core.so"
    copies = {core: "$ORIGIN/../" + LIBRARIES}
    shutil.copy(extension, core)
    for name, path in libraries.items():
        shutil.copy(path, folder / names[name])
        copies[folder / names[name]] = "$ORIGIN"
    for copy, path in copies.items():
        copy.chmod(0o755)
        run("strip", "--strip-unneeded", copy)
        # One change at a time: patchelf 0.14 loses some of several.
        for name in needed(copy):
            if name in names:
                run("patchelf", "--replace-needed", name, names[name], copy)
        if copy is not core:
            run("patchelf", "--set-soname", copy.name, copy)
        run("patchelf", "--force-rpath", "--set-rpath", path, copy)
        left = set(needed(copy)) & set(names)
        if left:
            sys.exit(f"make_wheel: {copy.name} still asks for {sorted(left)[0]}")
    return libraries.values()


def copy_licenses(libraries, folder):
    """Copies the copyright files of the packages that the libraries are from: each asks for it."""
    folder.mkdir(parents=True)
    shutil.copy("LICENSE", folder / "slipstream")
    for library in libraries:
        # dpkg knows a file by the path it was packed under, which may lack the /usr it lies in today.
        path = "*" + str(library).removeprefix("/usr")
        package = run("dpkg-query", "--search", path).split(":")[0]
        shutil.copy(f"/usr/share/doc/{package}/copyright", folder / package)


def tag():
    """Returns the wheel's tag: Python's version, and the machine's glibc, which newer ones replace."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    glibc = platform.libc_ver()[1].replace(".", "_")
    return f"{python}-{python}-manylinux_{glibc}_{platform.machine()}"


def write_info(staging, version):
    info = staging / f"slipstream-{version}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: slipstream\nVersion: {version}\nSummary: {SUMMARY}\n"
        f"License: Apache-2.0\nRequires-Python: =={sysconfig.get_python_version()}.*\n")
    (info / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: slipstream\nRoot-Is-Purelib: false\nTag: {tag()}\n")
    return info


def pack(staging, info, target):
    """Writes the archive, with the list of its files and their hashes last."""
    record = info / "RECORD"
    lines = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(path for path in staging.rglob("*") if path.is_file()):
            name = path.relative_to(staging).as_posix()
            digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest())
            lines.append(f"{name},sha256={digest.rstrip(b'=').decode()},{path.stat().st_size}\n")
            archive.write(path, name)
        lines.append(f"{record.relative_to(staging).as_posix()},,\n")
        archive.writestr(record.relative_to(staging).as_posix(), "".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--package", type=pathlib.Path, required=True)
    parser.add_argument("--extension", type=pathlib.Path, required=True)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        staging = pathlib.Path(directory)
        (staging / "slipstream").mkdir()
        for path in sorted(arguments.package.iterdir()):
            if path.suffix in (".py", ".pyi", ".typed"):
                shutil.copy(path, staging / "slipstream")
        libraries = gather(arguments.extension, staging)
        version = re.search(r'kVersion = "(.*)"',
                            pathlib.Path("common/process/version.h").read_text("utf8"))[1]
        info = write_info(staging, version)
        copy_licenses(libraries, info / "licenses")
        wheel = arguments.out / f"slipstream-{version}-{tag()}.whl"
        pack(staging, info, wheel)
        print(f"{wheel} ({wheel.stat().st_size / 2**20:.1f} MiB)")


if __name__ == "__main__":
    main()
