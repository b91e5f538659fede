"""Renders the manifests of deploy/kubernetes with kubectl and helm, and finds one's way in them."""
import os
import pathlib
import shutil
import subprocess

import yaml

# Not by the links of Bazel, which Kustomize does not follow.
FOLDER = pathlib.Path("deploy/kubernetes/make_base.py").resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
TOOLS = CACHE / "slipstream/kubernetes"
OWN_LABELS = {"app.kubernetes.io/name": "slipstream", "app.kubernetes.io/instance": "demo"}
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"


def _tool(name):
    found = TOOLS / name
    return str(found) if found.exists() else shutil.which(name)


KUBECTL, HELM = _tool("kubectl"), _tool("helm")


def missing():
    """Returns why nothing can be rendered here; empty if it can."""
    absent = [name for name, path in (("kubectl", KUBECTL), ("helm", HELM)) if path is None]
    return f"no {' and no '.join(absent)}: deploy/setup.sh --dev gets them" if absent else ""


def run(*command, **arguments):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, timeout=60, **arguments)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} exited {done.returncode}:\n{done.stderr}")
    return done.stdout


def _load(text):
    return [one for one in yaml.safe_load_all(text) if one is not None]


def kustomize(directory, mode, overlays=(), run_yaml=None):
    """Renders a base with overlays, as a kustomization of the user's in `directory` does, with
    run.yaml of one's own if its text is given."""
    directory = pathlib.Path(directory)
    # Kustomize takes relative paths only.
    here = os.path.relpath(FOLDER.resolve(), directory.resolve())
    wanted = {"resources": [f"{here}/base/{mode}"],
              "components": [f"{here}/overlays/{name}" for name in overlays]}
    if run_yaml is not None:
        (directory / "run.yaml").write_text(run_yaml)
        wanted["configMapGenerator"] = [{"name": "demo-run", "behavior": "replace",
                                         "files": ["run.yaml"]}]
        wanted["generatorOptions"] = {"disableNameSuffixHash": True}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(wanted))
    return _load(run(KUBECTL, "kustomize", directory))


def helm(mode, *values, run_file=None):
    """Renders the chart with these values, and the user's run.yaml if there is one."""
    flags = [word for value in (f"mode={mode}", *values) for word in ("--set", value)]
    if run_file is not None:
        flags += ["--set-file", f"run={run_file}"]
    return _load(run(HELM, "template", "demo", FOLDER / "chart", *flags))


def by_name(objects):
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in objects}


def of_kind(objects, kind):
    return [one for one in objects if one["kind"] == kind]


class Group:
    """Pods of one template: a Job of a JobSet, a Job, or a StatefulSet."""

    def __init__(self, name, template, spec, *, index_label="", subdomain="", after=None):
        self.name = name            # Pods are NAME-0, NAME-1, …
        self.template = template
        self.spec = spec            # Of the Job or StatefulSet.
        self.size = spec.get("completions", spec.get("replicas"))
        self.index_label = index_label
        self.subdomain = subdomain  # Its pods have the DNS names POD.SUBDOMAIN.
        self.after = after          # The name of the group that must be ready before.
        self.is_job = "completions" in spec
        self.ends = self.is_job     # A container that ends with 0 has done its part.

    def labels(self, index):
        return {**self.template["metadata"]["labels"], self.index_label: str(index)}

    def dns_name(self, index):
        return f"{self.name}-{index}.{self.subdomain}"

    @property
    def container(self):
        return self.template["spec"]["containers"][0]

    def environment(self, index):
        """Returns the variables of the pod's container."""
        values = {}
        for one in self.container.get("env", []):
            if "value" in one:
                values[one["name"]] = one["value"]
            else:
                path = one["valueFrom"]["fieldRef"]["fieldPath"]
                values[one["name"]] = self.labels(index)[path.removeprefix("metadata.labels['")[:-2]]
        return values

    def command(self, index):
        words = [*self.container["command"], *self.container.get("args", [])]
        for name, value in self.environment(index).items():
            words = [word.replace(f"$({name})", value) for word in words]
        return words


def groups(objects):
    """Returns the groups of pods, by their names."""
    found = []
    for one in of_kind(objects, "JobSet"):
        name, spec = one["metadata"]["name"], one["spec"]
        for job in spec["replicatedJobs"]:
            # The name of the job with the number 0 of its kind; there are no others.
            after = [f"{name}-{on['name']}-0" for on in job.get("dependsOn", [])]
            inner = job["template"]["spec"]
            found.append(Group(f"{name}-{job['name']}-0", inner["template"], inner,
                               index_label=INDEX_LABEL, subdomain=spec["network"]["subdomain"],
                               after=after[0] if after else None))
    for one in of_kind(objects, "Job"):
        found.append(Group(one["metadata"]["name"], one["spec"]["template"], one["spec"],
                           index_label=INDEX_LABEL))
    for one in of_kind(objects, "StatefulSet"):
        found.append(Group(one["metadata"]["name"], one["spec"]["template"], one["spec"],
                           index_label=POD_INDEX_LABEL, subdomain=one["spec"]["serviceName"]))
    return {group.name: group for group in found}
