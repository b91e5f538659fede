"""Which folder may include which: includes point down only, and a core knows nothing of the world.

If an include is refused here, either the code is in the wrong place, or a line has to be added
below, which adds a dependency to the whole folder.
"""
import pathlib
import re

PROJECT = ("proto", "server", "worker", "common", "deploy", "tests")

# Each folder, and the folders that its files may include beside their own and common/base. The
# files directly in server/ and worker/ are the mains; beside psctl's main, deploy/psctl has what the
# folders below it share. Tests may include everything.
MAY_INCLUDE = {
    "common/base": (),
    "common/alarms": ("proto",),
    "common/config": ("common/layout", "common/model", "common/settings"),
    "common/files": (),
    "common/json": (),
    "common/kernels": (),
    "common/kernels/rules": ("common/kernels", "common/layout", "common/settings"),
    "common/layout": (),
    "common/log": ("common/json", "common/settings"),
    "common/local": ("common/files", "common/memory"),
    "common/memory": (),
    "common/model": ("common/layout",),
    "common/model_file": ("common/files", "common/json", "common/layout"),
    "common/policy": ("common/kernels", "common/settings"),
    "common/process": ("common/files", "common/log"),
    "common/protocol": (),
    "common/rpc": ("common/log", "common/memory", "common/process", "common/security"),
    "common/settings": ("common/layout", "common/model"),
    "common/security": ("common/files", "common/log", "common/settings"),
    "common/wire": ("common/files", "common/kernels", "common/layout", "common/local",
                    "common/protocol", "proto"),
    "deploy/lab": ("common/config", "common/files", "common/json", "common/kernels",
                   "common/kernels/rules", "common/layout", "common/log", "common/model",
                   "common/model_file", "common/process", "common/protocol", "common/rpc",
                   "common/settings", "common/wire", "deploy/psctl/run", "deploy/psctl/status",
                   "proto", "server/aggregator", "server/control_plane", "server/core", "server/core/coordinator",
                   "server/core/shard", "server/data_plane", "server/status", "server/storage",
                   "worker/client", "worker/compute", "worker/compute/cpu", "worker/core",
                   "worker/data", "worker/member", "worker/model", "worker/training"),
    "deploy/psctl": ("common/config", "common/process", "common/rpc", "common/settings",
                     "common/security", "deploy/psctl/certs", "deploy/psctl/checkpoint",
                     "deploy/psctl/compare", "deploy/psctl/completion", "deploy/psctl/config",
                     "deploy/psctl/lab", "deploy/psctl/node", "deploy/psctl/operate", "deploy/psctl/plan", "deploy/psctl/prediction",
                     "deploy/psctl/run", "deploy/psctl/slurm", "deploy/psctl/status", "proto"),
    "deploy/psctl/certs": ("common/config", "common/files", "common/json", "common/process",
                           "common/settings", "common/security", "deploy/psctl", "deploy/psctl/config"),
    "deploy/psctl/checkpoint": ("common/config", "common/json", "common/layout",
                                "common/model_file", "common/process", "common/settings", "deploy/psctl",
                                "server/core", "server/core/coordinator", "server/core/shard",
                                "server/data_plane", "server/storage"),
    "deploy/psctl/compare": ("common/config", "common/files", "common/json", "common/process",
                             "common/settings", "deploy/psctl", "deploy/psctl/run",
                             "deploy/psctl/status"),
    "deploy/psctl/completion": ("common/config", "common/process", "deploy/psctl"),
    "deploy/psctl/config": ("common/config", "common/files", "common/json", "common/layout",
                            "common/model", "common/process", "common/settings", "deploy/psctl"),
    "deploy/psctl/lab": ("deploy/lab", "common/config", "common/files", "common/json", "common/model",
                         "common/process", "common/settings", "deploy/psctl",
                         "deploy/psctl/compare", "deploy/psctl/config", "deploy/psctl/run"),
    "deploy/psctl/node": ("common/config", "common/files", "common/json", "common/log", "common/process",
                          "common/settings", "deploy/psctl", "deploy/psctl/config", "deploy/psctl/run",
                          "deploy/psctl/status", "proto"),
    "deploy/psctl/operate": ("common/config", "common/files", "common/json", "common/layout",
                             "common/log", "common/model_file", "common/process", "common/rpc",
                             "common/security", "deploy/psctl", "deploy/psctl/status", "proto",
                             "worker/client"),
    "deploy/psctl/plan": ("common/config", "common/json", "common/layout", "common/process",
                          "common/settings", "common/wire", "deploy/psctl", "deploy/psctl/config",
                          "deploy/psctl/prediction", "deploy/psctl/run"),
    "deploy/psctl/prediction": ("common/config", "common/json", "common/layout", "common/process",
                                "common/settings", "common/wire", "deploy/psctl",
                                "deploy/psctl/config"),
    "deploy/psctl/run": ("common/alarms", "common/config", "common/files", "common/json", "common/log",
                         "common/process", "common/settings", "common/security", "deploy/psctl",
                         "deploy/psctl/config", "deploy/psctl/prediction", "deploy/psctl/status", "proto"),
    "deploy/psctl/slurm": ("common/files", "common/process", "common/settings", "deploy/psctl",
                           "deploy/psctl/config", "deploy/psctl/node", "deploy/psctl/run"),
    "deploy/psctl/status": ("common/alarms", "common/json", "common/process", "common/settings", "deploy/psctl", "proto"),
    "server": ("common/config", "common/files", "common/local", "common/log", "common/memory",
               "common/process", "common/rpc", "common/settings", "common/security", "proto",
               "server/aggregator", "server/control_plane", "server/core",
               "server/core/coordinator", "server/core/shard", "server/data_plane", "server/http",
               "server/listen", "server/storage"),
    "server/aggregator": ("common/kernels", "common/layout", "common/log", "common/protocol",
                          "common/settings", "proto", "server/control_plane", "server/core",
                          "server/core/shard", "server/data_plane", "server/listen",
                          "server/storage", "worker/client", "worker/core"),
    "server/control_plane": ("common/log", "common/process", "common/rpc", "common/settings",
                             "common/wire", "proto", "server/core", "server/core/coordinator",
                             "server/listen", "server/status"),
    "server/core": ("common/layout", "common/protocol", "common/settings"),
    "server/core/coordinator": ("common/layout", "common/protocol", "common/settings", "server/core"),
    "server/core/shard": ("common/policy", "common/protocol", "common/settings",
                          "server/core"),
    "server/data_plane": ("common/files", "common/kernels", "common/kernels/rules",
                          "common/layout", "common/local", "common/log", "common/memory",
                          "common/policy", "common/process", "common/protocol", "common/rpc",
                          "common/settings", "common/wire", "proto", "server/control_plane",
                          "server/core", "server/core/shard", "server/listen", "server/status",
                          "server/storage"),
    "server/http": ("common/alarms", "common/config", "common/files", "common/json", "common/log", "common/process",
                    "common/protocol", "common/security", "common/settings", "proto", "server/http/page", "server/listen",
                    "server/metrics"),
    "server/http/page": (),
    "server/listen": ("common/files", "common/local", "common/log", "common/process", "common/rpc",
                      "common/security"),
    "server/metrics": ("common/alarms", "common/log", "common/process", "proto"),
    "server/status": ("common/protocol", "common/settings", "common/wire", "proto", "server/core",
                      "server/core/coordinator", "server/core/shard"),
    "server/storage": ("common/files", "common/layout", "common/local", "common/log",
                       "common/memory", "common/model_file", "common/process", "common/protocol",
                       "server/core", "server/core/coordinator"),
    "worker": ("common/config", "common/json", "common/log", "common/model_file", "common/process",
               "common/rpc", "common/settings", "common/security", "worker/training"),
    "worker/algorithm": ("common/layout", "common/settings"),
    "worker/allreduce": ("common/log", "common/process", "common/settings", "worker/client"),
    "worker/client": ("common/files", "common/kernels", "common/layout", "common/local",
                      "common/log", "common/process", "common/protocol", "common/rpc",
                      "common/settings", "common/wire", "proto", "worker/core", "worker/member",
                      "worker/model"),
    "worker/compute": ("common/files", "common/layout", "common/local", "common/log",
                       "common/model", "common/settings", "worker/compute/cpu", "worker/compute/cuda",
                       "worker/model"),
    "worker/compute/cpu": ("common/layout", "common/memory", "common/model", "worker/compute"),
    "worker/compute/cuda": ("common/layout", "common/log", "common/model", "worker/compute"),
    "worker/core": ("common/protocol",),
    "worker/data": ("common/kernels", "common/model", "common/process", "common/settings"),
    "worker/member": ("common/layout", "common/protocol", "common/settings", "common/wire", "proto",
                      "worker/core"),
    "worker/model": ("common/layout",),
    "worker/python": ("common/config", "common/json", "common/layout", "common/local", "common/log",
                      "common/memory", "common/model_file", "common/process",
                      "common/protocol", "common/rpc", "common/settings", "common/security",
                      "common/wire", "proto", "worker/algorithm", "worker/client", "worker/core", "worker/data", "worker/member",
                      "worker/training"),
    "worker/training": ("common/config", "common/files", "common/kernels", "common/kernels/rules",
                        "common/layout", "common/local", "common/log", "common/model",
                        "common/memory", "common/model_file", "common/policy", "common/process",
                        "common/protocol", "common/settings", "common/wire", "proto", "worker/algorithm",
                        "worker/allreduce", "worker/client", "worker/compute", "worker/compute/cpu", "worker/core", "worker/data", "worker/member",
                        "worker/model"),
}
FOR_ALL = "common/base"

# Folders whose code only decides: everything that it needs from the world is an argument.
PURE = ("common/base", "common/policy", "common/kernels", "common/kernels/rules", "common/layout", "common/model",
        "common/settings", "common/protocol", "server/core", "worker/algorithm", "worker/core", "worker/member", "worker/model")
# Those of them that decide about messages, and may include what converts them, beside the others.
PURE_WITH_MESSAGES = {"worker/member": ("common/wire", "proto")}
# Exceptions: the annotated lock, and the check that ends the process.
PURE_EXCEPT = {"common/base/mutex.h", "common/base/check.h"}

# Folders that may use gRPC, beside tests. The mains hand gRPC objects to the shells that they wire.
KNOW_GRPC = ("common/rpc", "common/wire", "server", "server/aggregator",
             "server/control_plane", "server/data_plane", "server/listen", "worker", "worker/client", "deploy/psctl",
             "deploy/psctl/operate", "deploy/psctl/status")

IMPURE_HEADER = re.compile(
    r"(thread|future|condition_variable|mutex|shared_mutex|semaphore|latch|barrier|chrono|random"
    r"|iostream|fstream|filesystem|stdio\.h|unistd\.h|pthread\.h|poll\.h|signal\.h|sys/.*|csignal"
    r"|ctime|fcntl\.h|dirent\.h|spdlog/.*|grpc/.*|grpcpp/.*|grpc\+\+/.*|google/protobuf/.*"
    r"|zlib\.h|CLI/.*|yaml-cpp/.*|nlohmann/.*|oneapi/.*|openssl/.*|absl/time/clock\.h|absl/synchronization/.*)$")
GRPC_HEADER = re.compile(r"(grpcpp|grpc|grpc\+\+)/")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')


def folder_of(path):
    return str(pathlib.PurePosixPath(path).parent)


def is_pure(path):
    folder = folder_of(path)
    return path not in PURE_EXCEPT and any(folder == pure or folder.startswith(pure + "/")
                                           for pure in PURE)


def is_test(path):
    return path.startswith("tests/")


def includes(lines):
    """Yields the headers that the lines include, as (line, header)."""
    for number, line in enumerate(lines, start=1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(2)


def complaint(path, header):
    """Returns why a file may not include a header, or None if it may."""
    folder, target = folder_of(path), folder_of(header)
    if ".." in header.split("/"):
        return f"{header}: includes begin at the project's root"
    if header.split("/")[0] in PROJECT:
        if is_test(path) or target == folder:
            return None
        if folder not in MAY_INCLUDE:
            return f"{folder} has no line in tests/checks/layering.py that says what it may include"
        if target not in MAY_INCLUDE[folder] and (target != FOR_ALL or folder == FOR_ALL):
            return f"{folder} may not include {header}: includes point down only"
    elif is_pure(path) and IMPURE_HEADER.match(header):
        return f"pure code takes time, chance, threads and I/O from its caller, not from {header}"
    elif GRPC_HEADER.match(header) and not is_test(path) and folder not in KNOW_GRPC:
        return f"{header}: only {', '.join(KNOW_GRPC)} know gRPC"
    return None


def offences(path, lines):
    for number, header in includes(lines):
        message = complaint(path, header)
        if message:
            yield number, message
