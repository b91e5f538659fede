"""The ways to a run: as a worker, and as one who looks."""
from __future__ import annotations

import os
from typing import Mapping, Optional, Union

from . import _core
from ._errors import Refused
from ._pending import wait
from ._run import Run
from ._status import status_of
from .status_types import RunStatus


def credential_files(tls: Union[None, str, Mapping[str, str]],
                     token: Optional[str]) -> dict[str, str]:
    """Returns the files by which this process shows who it is: those given, else those that
    psctl run passes on."""
    files = {}
    for name in ("ca", "certificate", "key", "token"):
        value = os.environ.get("SLIPSTREAM_" + name.upper(), "")
        if value:
            files[name] = value
    if tls is not None:
        files = {"token": files["token"]} if "token" in files else {}
    if isinstance(tls, str):
        files["ca"] = tls
    elif tls is not None:
        unknown = set(tls) - {"ca", "certificate", "key"}
        if unknown:
            raise Refused(f"tls: {sorted(unknown)[0]!r} is none of ca, certificate, key")
        files.update(tls)
    if token is not None:
        files["token"] = token
    return files


def address_of(address: Optional[str]) -> str:
    found = address or os.environ.get("SLIPSTREAM_COORDINATOR", "")
    if not found:
        raise Refused('no address: connect("host:port") names server 0 of the run, or psctl run '
                      "FILE -- python3 … does it by the variable SLIPSTREAM_COORDINATOR")
    if not found.rpartition(":")[2].isdigit():
        raise Refused(f"address {found!r} has no port: name host:port of server 0")
    return found


def connect(address: Optional[str] = None, *, worker: Optional[int] = None,
            tls: Union[None, str, Mapping[str, str]] = None,
            token: Optional[str] = None) -> Run:
    """Joins a run as a worker.

    address: "host:port" of server 0; by default what psctl run says.
    worker:  the id to take part under; by default what psctl run says, or the lowest that is free.
    tls:     the file of the authority's certificate (worker.crt and worker.key, or worker-3.crt of
             a worker with that id, lie beside it), or a mapping of "ca", "certificate" and "key" to
             files.
    token:   a file with the run's token, or "env:NAME", instead of a certificate.

    Waits until the servers are there. Raises ServerUnreachable, AccessDenied, RunFull, RunFinished
    or RunFailed.
    """
    if worker is None and os.environ.get("SLIPSTREAM_WORKER"):
        worker = int(os.environ["SLIPSTREAM_WORKER"])
        if os.environ.get("RANK", "0") != "0":
            raise Refused(f"this process is rank {os.environ['RANK']} of worker {worker} (RANK, as torchrun sets "
                          "it), and rank 0 takes part for all: connect there alone, or give each rank an "
                          "id by connect(worker=…), or leave torchrun out, as psctl run starts each worker")
    if worker is not None and (not isinstance(worker, int) or not 0 <= worker < 4096):
        raise Refused(f"worker={worker!r}: an id is a whole number in [0, 4095]")
    joining = _core.Worker()
    try:
        wait(joining.join(address_of(address), worker, credential_files(tls, token)))
    except BaseException:
        joining.leave("")
        raise
    return Run(joining)


def status(address: Optional[str] = None, *, tls: Union[None, str, Mapping[str, str]] = None,
           token: Optional[str] = None) -> RunStatus:
    """Returns the run's status. Its fields, and the types of its parts, are those of
    `slipstream.status_types`. Takes no part in the run."""
    return status_of(_core.status_json(address_of(address), credential_files(tls, token)))
