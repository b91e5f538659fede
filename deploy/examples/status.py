#!/usr/bin/python3
"""Looks at a running cluster without Slipstream's programs: staleness per shard, and one shard's weights.

Needs Debian's python3-grpcio, python3-protobuf, protobuf-compiler and protobuf-compiler-grpc; the
stubs are made from proto/ into a temporary directory each time.

    deploy/examples/status.py --coordinator localhost:7070 --pull 1
"""
import argparse
import array
import importlib
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

import grpc

TIMEOUT_S = 30

# The servers are asked themselves, also where the environment names a proxy for the web.
OPTIONS = [("grpc.enable_http_proxy", 0)]


def proto_folder():
    """The folder of .proto files: beside this one's in a bundle, further up in the repository."""
    # Not resolved: where links lie side by side, proto/ is found among them.
    near, far = (folder / "proto" for folder in pathlib.Path(__file__).absolute().parents[1:3])
    return near if (near / "coordinator.proto").exists() else far


def make_stubs(proto, directory):
    """Generates Python's messages and stubs of proto/*.proto; returns them as modules by name."""
    plugin = shutil.which("grpc_python_plugin")
    if plugin is None or shutil.which("protoc") is None:
        sys.exit("status.py: install protobuf-compiler and protobuf-compiler-grpc")
    files = sorted(str(file.relative_to(proto.parent)) for file in proto.glob("*.proto"))
    if not files:
        sys.exit(f"status.py: there are no .proto files in {proto}; --proto says where they are")
    subprocess.run(["protoc", f"--plugin=protoc-gen-grpc={plugin}", f"--proto_path={proto.parent}",
                    f"--python_out={directory}", f"--grpc_out={directory}", *files], check=True)
    # A package of its own, before any other of that name.
    (directory / "proto" / "__init__.py").touch()
    sys.path.insert(0, str(directory))
    names = ["coordinator_pb2", "coordinator_pb2_grpc", "shard_pb2", "shard_pb2_grpc", "status_pb2"]
    return {name: importlib.import_module(f"proto.{name}") for name in names}


def print_staleness(status, phases):
    print(f"{status.name}: {phases.Name(status.phase)}, {status.updates} updates, "
          f"version skew {status.version_skew}")
    for shard in status.shards:
        sigma = shard.staleness
        at_most = ", ".join(f"{share:.1%} at most {value}" for value, share in enumerate(sigma.cdf[:4]))
        print(f"shard {shard.shard} at {shard.address}: version {shard.version}, staleness mean "
              f"{sigma.mean:.3f}, of late {sigma.window_mean:.3f}, max {sigma.max}; {at_most}")


def connect(address, arguments):
    """A channel in plaintext, or over TLS where the authority is known."""
    if arguments.ca is None:
        return grpc.insecure_channel(address, OPTIONS)
    key = arguments.key.read_bytes() if arguments.key else None
    certificate = arguments.certificate.read_bytes() if arguments.certificate else None
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(arguments.ca.read_bytes(), key,
                                                                     certificate), OPTIONS)


def pull(modules, address, arguments):
    """The weights of one shard as an array of floats, and their version."""
    values = array.array("f")
    version = None
    with connect(address, arguments) as channel:
        stub = modules["shard_pb2_grpc"].ShardStub(channel)
        # Neither an identity nor a shard map: a reader that takes what there is.
        for chunk in stub.Pull(modules["shard_pb2"].PullRequest(), timeout=TIMEOUT_S):
            if version is None:
                version = chunk.header.version
            if chunk.offset != len(values):
                sys.exit(f"status.py: a chunk begins at {chunk.offset}, not at {len(values)}")
            values.frombytes(chunk.values)
    if sys.byteorder == "big":
        values.byteswap()
    return values, version


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--coordinator", default="localhost:7070", help="server 0 of the run")
    parser.add_argument("--pull", type=int, metavar="SHARD", help="also take this shard's weights")
    parser.add_argument("--proto", type=pathlib.Path, default=proto_folder(),
                        help="the folder of .proto files")
    for flag, doc in (("--ca", "the certificate of the run's authority, where it has one"),
                      ("--certificate", "our own certificate"), ("--key", "and its private key")):
        parser.add_argument(flag, type=pathlib.Path, metavar="FILE", help=doc)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        modules = make_stubs(arguments.proto.absolute(), pathlib.Path(directory))
        with connect(arguments.coordinator, arguments) as channel:
            stub = modules["coordinator_pb2_grpc"].CoordinatorStub(channel)
            status = stub.GetStatus(modules["coordinator_pb2"].GetStatusRequest(), timeout=TIMEOUT_S)
        print_staleness(status, modules["status_pb2"].Phase)
        if arguments.pull is None:
            return
        if arguments.pull not in range(len(status.shards)):
            sys.exit(f"status.py: there are {len(status.shards)} shards, not {arguments.pull}")
        values, version = pull(modules, status.shards[arguments.pull].address, arguments)
        norm = math.sqrt(math.fsum(value * value for value in values))
        print(f"pulled {len(values)} weights of shard {arguments.pull}, version {version}, "
              f"norm {norm:.6g}")


if __name__ == "__main__":
    try:
        main()
    except grpc.RpcError as error:
        sys.exit(f"status.py: {error.code().name}: {error.details()}")
