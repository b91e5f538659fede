"""The manifests of deploy/kubernetes: bases, overlays and chart say the same, are valid, and what
refers to each other agrees."""
import copy
import itertools
import json
import pathlib
import re
import subprocess
import sys
import unittest

import jsonschema

sys.path.append(str(pathlib.Path(__file__).absolute().parents[2] / "support"))
import manifests
from programs import program, scratch

MODES = ("training", "serving")
# What the chart is told instead of each overlay.
OVERLAYS = {
    "mtls": ("mtls.servers=demo-servers-tls", "mtls.workers=demo-workers-tls"),
    "gpu": ("workers.gpus=1",),
    "data": ("data.claim=demo-data",),
    "kueue": ("queue=training",),
    "storage": ("storage.class=shared", "storage.size=100Gi"),
}
# Who uses an overlay makes these.
OWN_OBJECTS = {"Secret/demo-servers-tls", "Secret/demo-workers-tls", "PersistentVolumeClaim/demo-data"}
SCHEMAS = manifests.TOOLS / "schemas"
DRAIN_S = 10  # deploy/docs/checkpoints.md


def sorted_lists(value):
    """Returns the value with the lists of named things sorted: their order means nothing."""
    if isinstance(value, dict):
        return {key: sorted_lists(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted((sorted_lists(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


def exit_codes(group):
    """Returns with which codes a pod fails the job at once."""
    rules = group.spec["podFailurePolicy"]["rules"]
    return next(rule["onExitCodes"]["values"] for rule in rules if rule["action"] == "FailJob")


def unit_codes(name):
    text = pathlib.Path(f"deploy/systemd/{name}.service").read_text(encoding="utf-8")
    return [int(code) for code in re.search(r"RestartPreventExitStatus=(.*)", text)[1].split()]


@unittest.skipIf(manifests.missing(), manifests.missing())
class ManifestsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rendered = {}
        with scratch() as directory:
            for mode in MODES:
                cls.rendered[mode] = manifests.helm(mode)
                every = [*itertools.chain(*OVERLAYS.values())]
                cls.rendered[f"{mode}, with all overlays"] = manifests.helm(mode, *every)
                for name in ("", *OVERLAYS):
                    folder = pathlib.Path(directory) / f"{mode}-{name}"
                    folder.mkdir()
                    cls.rendered[f"{mode} {name}"] = manifests.kustomize(
                        folder, mode, (name,) if name else ())

    def test_the_bases_are_what_their_program_writes(self):
        for mode in MODES:
            written = manifests.run(sys.executable, manifests.FOLDER / "make_base.py", "--helm",
                                    manifests.HELM, "--print", mode)
            there = (manifests.FOLDER / "base" / mode / "objects.yaml").read_text(encoding="utf-8")
            self.assertEqual(there, written, "run deploy/kubernetes/make_base.py")

    def test_overlays_and_values_of_the_chart_say_the_same(self):
        self.assertEqual({path.name for path in (manifests.FOLDER / "overlays").iterdir()},
                         set(OVERLAYS))
        for mode in MODES:
            for name, values in {"": (), **OVERLAYS}.items():
                with self.subTest(mode=mode, overlay=name):
                    chart = manifests.helm(mode, *values) if values else self.rendered[mode]
                    self.assertEqual(sorted_lists(manifests.by_name(self.rendered[f"{mode} {name}"])),
                                     sorted_lists(manifests.by_name(chart)))

    @unittest.skipUnless(SCHEMAS.exists(), "no schemas: deploy/setup.sh --dev gets them")
    def test_all_objects_are_those_that_kubernetes_knows(self):
        definitions = json.loads((SCHEMAS / "_definitions.json").read_text())
        validators = {}

        def validate(part):
            kind = part["apiVersion"], part["kind"]
            if kind not in validators:
                group = re.sub(r"\..*/|/", "-", part["apiVersion"])
                name = f"{part['kind'].lower()}-{group}.json"
                schema = json.loads((SCHEMAS / name).read_text())
                resolver = jsonschema.RefResolver.from_schema(
                    schema, store={definitions["$id"]: definitions})
                validators[kind] = jsonschema.Draft202012Validator(schema, resolver=resolver)
            validators[kind].validate(part)

        for name, objects in self.rendered.items():
            for one in objects:
                with self.subTest(name, object=one["metadata"]["name"], kind=one["kind"]):
                    for part in self.parts_with_schemas(one):
                        validate(part)
                        wrong = copy.deepcopy(part)
                        wrong.setdefault("spec", wrong)["nonsense"] = 1
                        self.assertRaises(jsonschema.ValidationError, validate, wrong)

    def parts_with_schemas(self, one):
        """Returns the object, or if it is a JobSet, which Kubernetes does not know, its jobs."""
        if one["kind"] != "JobSet":
            return [one]
        self.assertEqual(one["apiVersion"], "jobset.x-k8s.io/v1alpha2")
        self.assertLessEqual(set(one["spec"]), {"network", "successPolicy", "failurePolicy",
                                                "replicatedJobs"})
        for job in one["spec"]["replicatedJobs"]:
            self.assertLessEqual(set(job), {"name", "replicas", "template", "dependsOn"})
        return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job["name"]},
                 **job["template"]} for job in one["spec"]["replicatedJobs"]]

    def test_what_pods_mount_is_there(self):
        for name, objects in self.rendered.items():
            there = set(manifests.by_name(objects)) | OWN_OBJECTS
            for group in manifests.groups(objects).values():
                with self.subTest(name, group=group.name):
                    volumes = {one["name"] for one in group.spec.get("volumeClaimTemplates", [])
                               for one in [one["metadata"]]}
                    for volume in group.template["spec"]["volumes"]:
                        volumes.add(volume["name"])
                        kind, field = next(
                            ((kind, field) for key, kind, field in (
                                ("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName"),
                                ("persistentVolumeClaim", "PersistentVolumeClaim", "claimName"))
                             for field in [volume.get(key, {}).get(field)] if field), (None, None))
                        if kind:
                            self.assertIn(f"{kind}/{field}", there)
                    mounts = {one["name"]: one["mountPath"] for one in group.container["volumeMounts"]}
                    self.assertEqual(set(mounts), volumes)
                    # All paths that the programs are told lie on a mount.
                    words = [*group.command(0)[1:], *group.environment(0).values()]
                    for path in (word for word in words if word.startswith("/")):
                        self.assertTrue(any(path == mount or path.startswith(mount + "/")
                                            for mount in mounts.values()), path)

    def test_selectors_find_the_pods_that_they_mean(self):
        for name, objects in self.rendered.items():
            groups = manifests.groups(objects)
            servers, workers = sorted(groups.values(), key=lambda group: group.name)
            with self.subTest(name):
                for kind in ("NetworkPolicy", "PodDisruptionBudget", "Service"):
                    for one in manifests.of_kind(objects, kind):
                        spec = one["spec"]
                        wanted = spec.get("podSelector", spec.get("selector"))
                        wanted = wanted.get("matchLabels", wanted)
                        meant = workers if one["metadata"]["name"].endswith("workers") else servers
                        other = servers if meant is workers else workers
                        self.assertLessEqual(wanted.items(), meant.labels(0).items())
                        self.assertFalse(wanted.items() <= other.labels(0).items())
                policy = manifests.by_name(objects)["NetworkPolicy/demo-servers"]["spec"]["ingress"]
                members = policy[0]["from"][0]["podSelector"]["matchLabels"].items()
                for group in (servers, workers):
                    self.assertLessEqual(members, group.labels(0).items())
                ports = {port["name"]: port["containerPort"] for port in servers.container["ports"]}
                self.assertEqual([one["ports"][0]["port"] for one in policy],
                                 [ports["grpc"], ports["http"]])
                budget = manifests.by_name(objects)["PodDisruptionBudget/demo-servers"]["spec"]
                self.assertEqual(budget.get("maxUnavailable", servers.size
                                            - budget.get("minAvailable", 0)), 1)

    def test_servers_have_the_names_by_which_they_are_found(self):
        for name, objects in self.rendered.items():
            with self.subTest(name):
                servers, workers = sorted(manifests.groups(objects).values(), key=lambda one: one.name)
                addresses = [f"{servers.dns_name(shard)}:7070" for shard in range(servers.size)]
                environment = servers.environment(1)
                self.assertEqual(environment["PS_CLUSTER_SERVERS"].split(","), addresses)
                self.assertEqual(environment["PS_CLUSTER_WORKERS"], str(workers.size))
                self.assertIn("--shard 1 ", " ".join(servers.command(1)))
                self.assertEqual(workers.command(3)[1:],
                                 ["--coordinator", addresses[0], "--worker", "3"])
                self.assertTrue(self.names_are_published(objects, servers.subdomain))

    @staticmethod
    def names_are_published(objects, subdomain):
        """Returns whether pods have DNS names before they are ready, which servers need."""
        for one in manifests.of_kind(objects, "JobSet"):
            return one["spec"]["network"]["publishNotReadyAddresses"]
        service = manifests.by_name(objects)[f"Service/{subdomain}"]["spec"]
        return service["clusterIP"] == "None" and service["publishNotReadyAddresses"]

    def test_pods_may_do_little_and_have_time_to_save(self):
        for name, objects in self.rendered.items():
            for group in manifests.groups(objects).values():
                with self.subTest(name, group=group.name):
                    spec, container = group.template["spec"], group.container
                    self.assertTrue(spec["securityContext"]["runAsNonRoot"])
                    self.assertEqual(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault")
                    self.assertFalse(spec["automountServiceAccountToken"])
                    self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
                    self.assertFalse(container["securityContext"]["allowPrivilegeEscalation"])
                    self.assertEqual(container["securityContext"]["capabilities"]["drop"], ["ALL"])
                    self.assertIn("memory", container["resources"]["limits"])
                    self.assertGreater(spec["terminationGracePeriodSeconds"], 2 * DRAIN_S)
                    ports = {port["name"] for port in container.get("ports", [])}
                    for probe in (one for key, one in container.items() if key.endswith("Probe")):
                        self.assertIn(probe["httpGet"]["port"], ports)

    def test_exit_codes_are_those_of_systemds_units(self):
        for mode in MODES:
            for group in manifests.groups(self.rendered[mode]).values():
                if "podFailurePolicy" not in group.spec:
                    continue  # Containers of a StatefulSet are always started again.
                server = group.container["name"] == "server"
                units = unit_codes("ps-server@" if server else "ps-worker")
                # Another node may have the data that a worker cannot read.
                self.assertEqual(exit_codes(group), units if server else
                                 [code for code in units if code != 74])

    def test_the_run_is_valid_with_what_the_pods_set(self):
        with scratch() as directory:
            for mode, durability in itertools.product(MODES, ("synced", "checkpoint", "memory")):
                objects = manifests.helm(mode, f"durability={durability}")
                file = pathlib.Path(directory) / "run.yaml"
                file.write_text(manifests.by_name(objects)["ConfigMap/demo-run"]["data"]["run.yaml"])
                variables = manifests.groups(objects)[
                    "demo-servers-0" if mode == "training" else "demo-servers"].environment(0)
                variables = {key: value for key, value in variables.items() if key.startswith("PS_")}
                manifests.run(program("deploy/psctl/psctl"), "validate", file, env=variables)

    def test_the_chart_refuses_values_that_it_does_not_know(self):
        for value in ("servers.count=0", "workers.count=many", "server.count=2", "mode=both",
                      "mtls.servers=demo-servers-tls", "durability=always"):
            done = subprocess.run([manifests.HELM, "template", "demo", manifests.FOLDER / "chart",
                                   "--set", value], text=True, capture_output=True, check=False)
            self.assertNotEqual(done.returncode, 0, value)
            self.assertIn(value.partition(".")[0].partition("=")[0], done.stderr)


if __name__ == "__main__":
    unittest.main()
