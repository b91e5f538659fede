"""The image's root, laid out from a bundle, and deploy/compose.yaml run in it by the harness of
tests/deploy/kubernetes."""
import pathlib
import re
import subprocess
import sys
import unittest

import yaml

TESTS = pathlib.Path(__file__).absolute().parents[2]
sys.path += [str(TESTS / name) for name in ("support", "integration", "deploy/kubernetes")]
import cluster
import manifests
import network
import pods

COMPOSE = pathlib.Path("deploy/compose.yaml").resolve()
MACHINES = ("libc.so.", "libm.so.", "ld-linux", "linux-vdso")  # What a bundle has no copy of.
RUN = """version: 1
model: {preset: mlp}
data: {format: synthetic, train_examples: 6400, test_examples: 1000}
training: {batch_size: 32, epochs: 3}
consistency: {policy: softsync, n: 1}
optimizer: {kind: momentum, learning_rate: 0.02, momentum: 0.9}
cluster: {lease: 3s}
testing: {push_delay_max: 40ms}
"""


def make_bundle(directory):
    """Packs this build's programs, and the libraries that they need, as deploy/bundle.sh does."""
    folder = pathlib.Path(directory) / "slipstream"
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    for name, path in pods.PROGRAMS.items():
        file = folder / "bin" / name
        file.write_bytes(pathlib.Path(cluster.program(path)).read_bytes())
        file.chmod(0o755)
        listed = manifests.run("ldd", file)
        for library, found in re.findall(r"(\S+) => (/\S+)", listed):
            if not library.startswith(MACHINES) and not (folder / "lib" / library).exists():
                (folder / "lib" / library).write_bytes(pathlib.Path(found).read_bytes())
        manifests.run("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib", file)
    manifests.run("tar", "-C", directory, "-cf", folder.with_suffix(".tar"), "slipstream")
    return folder.with_suffix(".tar")


def groups_of(text, variables):
    """Returns the pods of a Compose file, which has `variables` put in."""
    text = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: variables.get(found[1], found[2]), text)
    groups = {}
    for name, service in yaml.safe_load(text)["services"].items():
        user, group = (int(number) for number in service["user"].split(":"))
        assert service["read_only"] and service["restart"].startswith("on-failure")
        mounts, volumes = [], []
        for number, line in enumerate([*service["volumes"], *(f"tmpfs:{one}" for one in service["tmpfs"])]):
            source, path, *mode = line.split(":")
            mounts.append({"name": str(number), "mountPath": path, "readOnly": mode == ["ro"]})
            kind = ({"hostPath": {"path": COMPOSE.parent / source}} if source[0] in "./" else
                    {"emptyDir": {}} if source == "tmpfs" else
                    {"persistentVolumeClaim": {"claimName": source}})
            volumes.append({"name": str(number), **kind})
        container = {"name": name, "command": service["command"], "volumeMounts": mounts,
                     "workingDir": service["working_dir"],
                     "env": [{"name": key, "value": value}
                             for key, value in service["environment"].items()]}
        one = manifests.Group(name, {"metadata": {"labels": {}}, "spec": {
            "securityContext": {"runAsUser": user, "fsGroup": group}, "containers": [container],
            "volumes": volumes}}, {"replicas": 1}, subdomain="compose")
        one.ends = True
        one.dns_name = lambda _, name=name: name
        groups[name] = one
    return groups


MISSING = pods.missing()


class ImageTest(unittest.TestCase):
    @unittest.skipIf(MISSING, MISSING)
    def test_a_compose_run_outlives_a_server_and_ends_well(self):
        with cluster.scratch() as directory:
            directory = pathlib.Path(directory)
            manifests.run("deploy/image/make_root.sh", make_bundle(directory), directory / "image")
            (directory / "run.yaml").write_text(RUN)
            groups = groups_of(COMPOSE.read_text(encoding="utf-8"),
                               {"RUN": str(directory / "run.yaml")})
            image = directory / "image" / "root"
            self.assertFalse((image / "bin").exists())
            with network.Network(8, directory) as net, pods.Pods(net, directory, [], image=image) as live:
                live.use(groups)
                live.wait(lambda: self.updates() > 20, "training")
                live.kill(live.pod("ps-1", 0))
                live.wait(lambda: all(map(live.is_done, groups)), "the run to end")
                self.assertEqual(len(live.history), len(groups) + 1)
                self.assertTrue((live.directory / "claims/state/models/model.safetensors").exists())

    @staticmethod
    def updates():
        done = cluster.psctl("status", "--coordinator", "ps-0:7070", "-o", "json", check=False)
        return int(yaml.safe_load(done.stdout)["updates"]) if done.returncode == 0 else 0

    def test_the_root_is_made_of_a_bundle_only(self):
        with cluster.scratch() as directory:
            for arguments, reason in ((("nothing.tar", directory), "there is no bundle"),
                                      ((), "which bundle"), ((COMPOSE, directory), "tar")):
                done = subprocess.run(["deploy/image/make_root.sh", *arguments], text=True,
                                      capture_output=True, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(reason, done.stderr)


if __name__ == "__main__":
    unittest.main()
