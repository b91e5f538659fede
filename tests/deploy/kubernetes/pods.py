"""Runs rendered manifests as Kubernetes would: a process for each pod, in a network namespace and a root
directory of its own.

A pod has its variables, mounts, user and read-only root as the manifest says, and the name by which
others find it; its probes are asked over HTTP. Pods that end are replaced as their Job or StatefulSet
says, with another address. What is not there: limits of CPU and memory, network policies, and the
pauses before a pod is started again.
"""
import os
import pathlib
import signal
import ssl
import subprocess
import urllib.error
import urllib.request

import cluster
import manifests
import network

PROGRAMS = {"ps_server": "server/ps_server", "ps_worker": "worker/ps_worker",
            "psctl": "deploy/psctl/psctl"}

# More starts of one container are a mistake of the test.
RESTARTS_MAX = 20

# Makes a container's root and becomes the container's command there.
# Arguments: the root, the image (or -, then the root has what the machine has), the user, the group, the
# file for /etc/hosts, then mounts (source:path:mode) up to "--", then the working directory and
# the command, which has the variables of this script.
START = r"""
root=$1 image=$2 user=$3 group=$4 hosts=$5; shift 5
mount -t tmpfs tmpfs "$root"
if [ "$image" != - ]; then
  mkdir "$root/upper" "$root/work" "$root/merged"
  mount -t overlay overlay -o "lowerdir=$image,upperdir=$root/upper,workdir=$root/work" "$root/merged"
  root=$root/merged
fi
cd "$root"
mkdir -p proc dev etc
if [ "$image" = - ]; then
  mkdir usr
  mount --bind /usr usr; mount -o remount,bind,ro usr
  for link in bin lib lib64; do ln -s usr/$link $link; done
fi
mount --rbind /dev dev; mount -t proc proc proc
touch etc/hosts; mount --bind "$hosts" etc/hosts
while [ "$1" != -- ]; do
  source=${1%%:*} rest=${1#*:}; path=${rest%%:*} mode=${rest#*:}; shift
  mkdir -p "./${path%/*}"
  if [ -d "$source" ]; then mkdir -p ".$path"; else touch ".$path"; fi
  mount --bind "$source" ".$path"
  if [ "$mode" = ro ]; then mount -o remount,bind,ro ".$path"; fi
done
shift
directory=$1; shift
mount -o remount,ro "$root"
exec setpriv --no-new-privs unshare --root="$root" --wd="$directory" --setgid="$group" \
  --setuid="$user" "$@"
"""


def missing():
    """Returns why no pods can be run here; empty if they can. Starts this program again in namespaces
    of its own (network.enter)."""
    if os.geteuid() != 0:
        return "containers are made only as root, and this user is not"
    reason = network.enter()
    if reason is not None:
        return reason
    other = subprocess.run(["setpriv", "--reuid=65532", "--clear-groups", "true"], check=False)
    return "" if other.returncode == 0 else "processes of another user cannot be started here"


class Pod:
    """A process with a name and an address."""

    def __init__(self, group, index, attempt, node):
        self.group = group
        self.index = index
        self.name = f"{group.name}-{index}" + (f"-{attempt}" if group.is_job else "")
        self.node = node          # Its place in the network.
        self.process = None
        self.ready = False
        self.started = False      # The startup probe has succeeded.
        self.disrupted = False    # It was evicted, or its node is gone (DisruptionTarget).
        self.log = None

    def code(self):
        """Returns the exit code as Kubernetes has it; None while the process runs."""
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code


class Pods:
    """The pods of some objects. Use it in a `with`; only `step` does anything, which `wait` calls."""

    def __init__(self, net, directory, objects, secrets=None, image=None):
        """`secrets` has the files of each Secret, by the Secret's name. `image` is the root of the
        image; without one the programs are those of this build."""
        self.image = image
        self.network = net
        self.directory = pathlib.Path(directory)
        self.objects = manifests.by_name(objects)
        self.secrets = secrets or {}
        self.hosts = self.directory / "hosts"   # The network's file: all see the same names.
        self.free_nodes = list(range(len(net.names)))
        self.pods = {}       # (group, index): the newest pod.
        self.history = []    # All pods.
        self.use(manifests.groups(objects))
        self.failed = {}     # Group: why its job has failed.
        self.complete = False   # The JobSet has succeeded.
        self.known_names = None

    def use(self, groups):
        """Takes these groups of pods in place of those of the objects."""
        self.groups = groups
        self.succeeded = {name: set() for name in groups}
        self.failures = {name: {} for name in groups}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pod in self.history:
            if pod.code() is None:
                pod.process.kill()
            pod.process.wait()
            pod.log.close()

    # What a test asks and does.

    def wait(self, condition, what):
        def look():
            self.step()
            found = condition()
            if self.failed and not found:
                raise AssertionError(f"{what}: {self.failed}")
            return found
        try:
            cluster.wait_until(look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def logs(self):
        return "\n".join(f"--- {pod.name} ({pod.code()})\n"
                         + "".join((self.directory / f"{pod.name}.log").read_text().splitlines(True)[-10:])
                         for pod in self.history)

    def pod(self, group, index):
        return self.pods[group, index]

    def is_ready(self, group):
        """Returns whether all pods of the group are ready or done."""
        group = self.groups[group]
        return all(index in self.succeeded[group.name]
                   or (group.name, index) in self.pods and self.pods[group.name, index].ready
                   for index in range(group.size))

    def is_done(self, group):
        return len(self.succeeded[group]) == self.groups[group].size

    def kill(self, pod):
        """Kills the container, as the kernel does where memory is short."""
        pod.process.kill()
        pod.process.wait()

    def evict(self, pod):
        """Asks the pod to end because its node is drained."""
        pod.disrupted = True
        pod.process.send_signal(signal.SIGTERM)

    def lose_node(self, pod):
        """Lets the pod's node vanish: nobody who is connected with it is told."""
        pod.disrupted = True
        self.network.pull_cable(pod.node)
        self.kill(pod)

    def preempt(self):
        """Asks all pods to end, as where the run has to make place for another (Kueue)."""
        for pod in list(self.pods.values()):
            if pod.code() is None:
                self.evict(pod)

    def execute(self, pod, program, *arguments):
        """Runs one of the programs in the pod's container, as kubectl exec does. Returns its output."""
        user = pod.group.template["spec"]["securityContext"]["runAsUser"]
        variables = [f"{key}={value}" for key, value in pod.group.environment(pod.index).items()]
        return manifests.run("nsenter", f"--target={pod.process.pid}", "--mount", "--net", "--root",
                             f"--setuid={user}", f"--setgid={user}", "/usr/bin/env", "-i", *variables,
                             f"/opt/slipstream/bin/{program}", *arguments)

    # What Kubernetes does.

    def step(self):
        if self.complete:
            return
        for (name, index), pod in list(self.pods.items()):
            if index not in self.succeeded[name] and name not in self.failed and pod.code() is not None:
                self._ended(self.groups[name], index, pod)
        for group in self.groups.values():
            if group.after is not None and not self.is_ready(group.after) \
                    and not any(pod.group is group for pod in self.history):
                continue
            for index in range(group.size):
                if (group.name, index) not in self.pods and group.name not in self.failed \
                        and index not in self.succeeded[group.name]:
                    self._start(group, index)
        for pod in self.pods.values():
            if pod.code() is None:
                self._probe(pod)
        self._publish()
        self._judge()

    def _judge(self):
        """Ends what still runs of a JobSet that has succeeded."""
        for one in self.objects.values():
            if one["kind"] == "JobSet" and not self.complete:
                assert one["spec"]["failurePolicy"]["maxRestarts"] == 0
                names = [f"{one['metadata']['name']}-{job}-0"
                         for job in one["spec"]["successPolicy"]["targetReplicatedJobs"]]
                self.complete = all(self.is_done(name) for name in names)
                for pod in self.pods.values():
                    if self.complete and pod.code() is None:
                        pod.process.terminate()

    def _ended(self, group, index, pod):
        """Decides what follows from the end of a pod."""
        if group.ends and pod.code() == 0:
            self.succeeded[group.name].add(index)
            return
        if not group.is_job:
            # A container is started again in its pod; an evicted pod is made anew.
            self.pods.pop((group.name, index))
            if sum(one.group is group and one.index == index for one in self.history) > RESTARTS_MAX:
                raise AssertionError(f"{pod.name} ends again and again\n{self.logs()}")
            self._start(group, index, None if pod.disrupted else pod.node)
            return
        del self.pods[group.name, index]
        action = next((rule["action"] for rule in group.spec["podFailurePolicy"]["rules"]
                       if self._matches(rule, group, pod)), "Count")
        failures = self.failures[group.name]
        if action == "Count":
            failures[index] = failures.get(index, 0) + 1
        if action == "FailJob":
            self.failed[group.name] = f"{pod.name} ended with {pod.code()}"
        elif "backoffLimitPerIndex" in group.spec:
            assert failures.get(index, 0) <= group.spec["backoffLimitPerIndex"], pod.name
        elif sum(failures.values()) > group.spec["backoffLimit"]:
            self.failed[group.name] = "BackoffLimitExceeded"
        if group.name in self.failed:
            for other in [pod for pod in self.pods.values() if pod.group is group]:
                other.process.terminate()

    @staticmethod
    def _matches(rule, group, pod):
        if "onPodConditions" in rule:
            return pod.disrupted
        assert rule["onExitCodes"]["containerName"] == group.container["name"]
        assert rule["onExitCodes"]["operator"] == "In"
        return pod.code() in rule["onExitCodes"]["values"]

    def _start(self, group, index, node=None):
        attempt = sum(pod.group is group and pod.index == index for pod in self.history)
        pod = Pod(group, index, attempt, self.free_nodes.pop(0) if node is None else node)
        self.pods[group.name, index] = pod
        self.history.append(pod)
        self._publish()
        security = group.template["spec"]["securityContext"]
        folder = self.directory / "pods" / f"{pod.name}-{attempt}"
        (folder / "root").mkdir(parents=True)
        mounts = [] if self.image else [
            f"{pathlib.Path(cluster.program(path)).resolve()}:/opt/slipstream/bin/{name}:ro"
            for name, path in PROGRAMS.items()]
        for mount in group.container["volumeMounts"]:
            source = self._volume(group, index, mount["name"], folder)
            mounts.append(f"{source}:{mount['mountPath']}:{'ro' if mount.get('readOnly') else 'rw'}")
        pod.log = open(self.directory / f"{pod.name}.log", "ab")
        pod.process = subprocess.Popen(
            self.network.on(pod.node, "unshare", "--mount", "--propagation", "private", "sh", "-ec",
                            START, "start", folder / "root", self.image or "-",
                            security["runAsUser"], security["fsGroup"], self.hosts, *mounts, "--",
                            group.container["workingDir"], *group.command(index)),
            stdout=pod.log, stderr=pod.log,
            env={"PATH": os.environ["PATH"], **group.environment(index)})

    def _volume(self, group, index, name, folder):
        """Returns the directory of a volume, made and filled if it is new."""
        claims = [one["metadata"]["name"] for one in group.spec.get("volumeClaimTemplates", [])]
        owner = group.template["spec"]["securityContext"]["fsGroup"]
        if name in claims:
            return self._directory(self.directory / "claims" / f"{name}-{group.name}-{index}", owner)
        volume = next(one for one in group.template["spec"]["volumes"] if one["name"] == name)
        if "persistentVolumeClaim" in volume:
            return self._directory(
                self.directory / "claims" / volume["persistentVolumeClaim"]["claimName"], owner)
        if "hostPath" in volume:
            return volume["hostPath"]["path"]
        made = self._directory(folder / name, owner)
        if "configMap" in volume:
            files = self.objects[f"ConfigMap/{volume['configMap']['name']}"]["data"]
            for file, text in files.items():
                (made / file).write_text(text)
        if "secret" in volume:
            for file, data in self.secrets[volume["secret"]["secretName"]].items():
                (made / file).write_bytes(data)
                os.chown(made / file, 0, owner)
                (made / file).chmod(volume["secret"]["defaultMode"])
        return made

    @staticmethod
    def _directory(path, owner):
        if not path.exists():
            path.mkdir(parents=True)
            os.chown(path, 0, owner)
            path.chmod(0o2775)
        return path

    def _probe(self, pod):
        container = pod.group.container
        if "readinessProbe" not in container:
            pod.ready = True
            return
        pod.started = pod.started or self._answers(pod, container["startupProbe"])
        pod.ready = pod.started and self._answers(pod, container["readinessProbe"])

    def _answers(self, pod, probe):
        get = probe["httpGet"]
        port = next(port["containerPort"] for port in pod.group.container["ports"]
                    if port["name"] == get["port"])
        address = f"{self.network.addresses[pod.node]}:{port}"
        try:
            with urllib.request.urlopen(f"{get.get('scheme', 'HTTP').lower()}://{address}{get['path']}",
                                        timeout=5, context=ssl._create_unverified_context()):
                return True
        except (urllib.error.HTTPError, OSError):
            return False

    def _publish(self):
        """Writes the names of the pods, in place as others have the file mounted."""
        lines = ["127.0.0.1 localhost"]
        for (name, index), pod in self.pods.items():
            group = self.groups[name]
            if group.subdomain and (pod.process is None or pod.code() is None):
                lines.append(f"{self.network.addresses[pod.node]} {group.dns_name(index)}")
        text = "\n".join(lines) + "\n"
        if text != self.known_names:
            with open(self.hosts, "r+", encoding="utf-8") as file:
                file.write(text)
                file.truncate()
            self.known_names = text
