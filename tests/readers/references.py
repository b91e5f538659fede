"""The readers that ours are compared with: NumPy, the package safetensors, and Python's own gzip, struct
and csv. Each takes a file's bytes, and returns what read_files.cc prints of it, or raises an
exception if it refuses the file."""
import array
import csv
import gzip
import io
import json
import math
import re
import struct
import warnings
import zlib

import numpy

try:
    import safetensors
except ImportError:
    safetensors = None

FLOAT_MAX = float(numpy.finfo("f4").max)


class Refused(Exception):
    """The file is not in the format."""


def npy(content):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Headers of Python 2 are read with a warning.
        values = numpy.load(io.BytesIO(content), allow_pickle=False)
    if not isinstance(values, numpy.ndarray):
        raise Refused("an archive")
    if values.dtype.kind not in "fiub" or values.dtype.itemsize > 8 or values.dtype == numpy.float16:
        return {"type": str(values.dtype)}
    doubles = numpy.ascontiguousarray(values.astype("<f8"))
    return {"shape": list(values.shape), "values": zlib.crc32(doubles.tobytes())}


def model(content):
    tensors = safetensors.deserialize(content)
    types = {tensor["dtype"] for _, tensor in tensors}
    if types - {"F32"}:
        return {"type": str(types)}
    (length,) = struct.unpack("<Q", content[:8])
    header = content[8:8 + length]
    data = content[8 + length:]
    with_values = [(name, tensor["shape"]) for name, tensor in tensors if 0 not in tensor["shape"]]
    return {"tensors": sorted(map(list, with_values)), "metadata": metadata_of(header),
            "values": zlib.crc32(data)}


def metadata_of(header):
    """Returns the metadata, which the package gives only of a file at a path."""
    return json.loads(header).get("__metadata__") or {}


def unpacked(content):
    if content[:2] != b"\x1f\x8b":
        return content
    return gzip.GzipFile(fileobj=io.BytesIO(content)).read()


def idx_values(content, dimensions):
    content = unpacked(content)
    zero, kind, count = struct.unpack(">HBB", content[:4])
    if (zero, kind, count) != (0, 8, dimensions):
        raise Refused("another magic number")
    sizes = struct.unpack(f">{count}I", content[4:4 + 4 * count])
    values = content[4 + 4 * count:]
    if len(values) != math.prod(sizes):
        raise Refused("another number of values")
    return sizes, values


def idx(images, labels):
    sizes, pixels = idx_values(images, 3)
    (count,), classes = idx_values(labels, 1)
    if count != sizes[0] or any(label > 9 for label in classes):
        raise Refused("labels that do not fit")
    return {"shape": list(sizes), "values": zlib.crc32(pixels), "labels": zlib.crc32(classes)}


NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

INFINITE = re.compile("[+-]?(inf|infinity)", re.IGNORECASE)


def number_of(field):
    if not NUMBER.fullmatch(field):
        raise Refused(f"no number: {field!r}")
    value = float(field)
    if abs(value) > FLOAT_MAX:
        raise Refused("too large")
    return value


def table(content, has_header):
    """Reads as csv does and, where csv has no opinion, as pandas: a byte order mark and empty lines
    are no rows. `has_header` None: the first line is one if it has text, and no numbers."""
    text = content.decode("utf-8-sig", errors="surrogateescape")
    rows = [[field.strip(" \t") for field in row] for row in
            csv.reader(io.StringIO(text, newline=""), skipinitialspace=True) if row]
    if not rows:
        raise Refused("empty")
    if has_header is None:
        has_header = not any(NUMBER.fullmatch(field) or INFINITE.fullmatch(field)
                             for field in rows[0])
    if has_header:
        width = len(rows.pop(0))
    else:
        width = len(rows[0])
    if width < 2 or not rows or any(len(row) != width for row in rows):
        raise Refused("no table")
    values = [[number_of(field) for field in row] for row in rows]
    examples = array.array("f", (value for row in values for value in row[:-1]))
    targets = array.array("f", (row[-1] for row in values))
    return {"shape": [len(rows), width - 1], "values": zlib.crc32(examples.tobytes()),
            "labels": zlib.crc32(targets.tobytes())}
