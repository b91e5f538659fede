"""Reads model files and recomputes their accuracy and loss, from the format's description alone. It
shares no code with Slipstream, and uses nothing but Python's own library.

    python3 safetensors_reader.py FILE      prints names, shapes, metadata and the weights' SHA-256
"""
import array
import hashlib
import json
import math
import operator
import pathlib
import struct
import sys


class Model:
    """A model's tensors in the order of their data. `values` and `shapes` are dicts by name."""

    def __init__(self, path):
        content = pathlib.Path(path).read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = content[8:8 + length]
        assert length % 8 == 0 and header[:1] == b"{", "the header is padded JSON"
        entries = json.loads(header)
        self.metadata = entries.pop("__metadata__", {})
        data = content[8 + length:]
        self.shapes, self.values = {}, {}
        end = 0
        for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
            assert entry["dtype"] == "F32", (name, entry)
            begin, stop = entry["data_offsets"]
            assert begin == end and stop - begin == 4 * math.prod(entry["shape"]), (name, entry)
            values = array.array("f")
            values.frombytes(data[begin:stop])
            if sys.byteorder == "big":
                values.byteswap()
            self.shapes[name], self.values[name], end = entry["shape"], values, stop
        assert end == len(data), "bytes follow the last tensor"
        self.sha256 = hashlib.sha256(data).hexdigest()

    def rows(self, name):
        """Returns the rows of a matrix."""
        _, columns = self.shapes[name]
        values = self.values[name]
        return [values[i:i + columns] for i in range(0, len(values), columns)]


def read_idx(path):
    """Returns the bytes of an IDX file behind its header, and its dimensions."""
    content = pathlib.Path(path).read_bytes()
    dimensions = struct.unpack(f">{content[3]}I", content[4:4 + 4 * content[3]])
    return content[4 + 4 * content[3]:], dimensions


def write_idx(path, dimensions, content):
    head = bytes([0, 0, 8, len(dimensions)]) + struct.pack(f">{len(dimensions)}I", *dimensions)
    pathlib.Path(path).write_bytes(head + bytes(content))


def measure_mlp(model, data_directory):
    """Returns accuracy and mean loss of dense layers with ReLU between them on an IDX test set,
    scaled as Fashion-MNIST is."""
    images, (count, height, width) = read_idx(f"{data_directory}/t10k-images-idx3-ubyte")
    labels, _ = read_idx(f"{data_directory}/t10k-labels-idx1-ubyte")
    scale = [(pixel / 255 - 0.2860) / 0.3530 for pixel in range(256)]
    layers = [(model.rows(name), model.values[name.replace(".weight", ".bias")])
              for name in model.values if name.endswith(".weight")]
    correct, loss = 0, 0.0
    for example in range(count):
        pixels = images[example * height * width:(example + 1) * height * width]
        values = [scale[pixel] for pixel in pixels]
        for index, (rows, bias) in enumerate(layers):
            if index > 0:
                values = [max(0.0, value) for value in values]
            values = [sum(map(operator.mul, row, values)) + b for row, b in zip(rows, bias)]
        correct += values.index(max(values)) == labels[example]
        highest = max(values)
        total = sum(math.exp(value - highest) for value in values)
        loss += math.log(total) + highest - values[labels[example]]
    return correct / count, loss / count


def main():
    model = Model(sys.argv[1])
    for name, shape in model.shapes.items():
        print(name, shape)
    print(json.dumps(model.metadata, indent=2))
    print("sha256 of the weights", model.sha256)


if __name__ == "__main__":
    main()
