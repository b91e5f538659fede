"""Each encoding, with what it feeds back and what refused pushes leave, is that of its definition in
numpy, for rounds of one, two and three workers."""
import pathlib
import subprocess
import sys
import unittest

import numpy

sys.path.append(str(pathlib.Path(__file__).absolute().parents[2] / "support"))
from programs import program

VALUES = 3 * 1024 + 100  # The last block is short.
ROUNDS = 60
REFUSED = 0.2
SEED = 6


def blocks(values, size):
    return (values[begin:begin + size] for begin in range(0, len(values), size))


def bf16(block):
    bits = block.view(numpy.uint32).astype(numpy.uint64)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16 << 16).astype(numpy.uint32).view(numpy.float32)


def fp16(block):
    return block.astype(numpy.float16).astype(numpy.float32)


def int8(block):
    scale = numpy.float32(numpy.abs(block).max()) / numpy.float32(127)
    return numpy.rint(block / scale).astype(numpy.float32) * scale


def mean(block, where):
    return block[where].mean(dtype=numpy.float64) if where.any() else 0


def onebit(block):
    is_positive = block >= 0
    return numpy.where(is_positive, mean(block, is_positive), mean(block, ~is_positive))


def twobit(block):
    threshold = numpy.float32(numpy.abs(block).mean(dtype=numpy.float64))
    above, below = block >= threshold, block <= -threshold
    return numpy.where(above, mean(block, above), numpy.where(below, mean(block, below), 0))


def topk(block):
    kept = numpy.argsort(-numpy.abs(block), kind="stable")[:16]
    sent = numpy.zeros_like(block)
    sent[kept] = block[kept]
    return sent


# By name: the function of a block, the block's size, and whether errors are fed back.
CODECS = {"bf16": (bf16, VALUES, False), "fp16": (fp16, VALUES, False), "int8": (int8, 1024, True),
          "onebit": (onebit, 256, True), "twobit": (twobit, 256, True), "topk": (topk, 1024, True)}


class Worker:
    """A worker's side of an encoding by its definition."""

    def __init__(self, encode, size, feeds_back):
        self.encode, self.size, self.feeds_back = encode, size, feeds_back
        self.error = numpy.zeros(VALUES, numpy.float32)

    def push(self, gradient, counts):
        """Returns what arrives."""
        wanted = gradient + self.error if self.feeds_back else gradient
        sent = numpy.concatenate([self.encode(block) for block in blocks(wanted, self.size)])
        sent = sent.astype(numpy.float32)
        if counts and self.feeds_back:
            self.error = wanted - sent
        return sent


class CodecNumpyTest(unittest.TestCase):
    def test_rounds_equal_those_of_the_definition(self):
        print("seed", SEED)
        for codec, definition in CODECS.items():
            for workers in (1, 2, 3):
                with self.subTest(codec=codec, workers=workers):
                    self.compare(codec, [Worker(*definition) for _ in range(workers)])

    def compare(self, codec, workers):
        random = numpy.random.default_rng(SEED)
        command = [program("tests/worker/client/codec_steps"), codec, str(VALUES), str(len(workers))]
        apart = 0
        refused = 0
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for _ in range(ROUNDS):
                expected = numpy.zeros(VALUES, numpy.float32)
                for worker in workers:
                    gradient = random.standard_normal(VALUES, numpy.float32)
                    counts = random.random() >= REFUSED
                    refused += not counts
                    process.stdin.write(bytes([counts]) + gradient.tobytes())
                    sent = worker.push(gradient, counts)
                    expected += sent if counts else 0
                process.stdin.flush()
                arrived = numpy.frombuffer(process.stdout.read(4 * VALUES), numpy.float32)
                apart = max(apart, float(numpy.abs(arrived - expected).max()))
            process.stdin.close()
        print(f"{codec}, {len(workers)} workers, {refused} pushes refused: {apart:.3g} apart")
        self.assertGreater(refused, 0)
        # Means are added up in another order than numpy's, and errors remember the difference.
        self.assertLessEqual(apart, 0 if codec in ("bf16", "fp16", "topk") else 1e-4)


if __name__ == "__main__":
    unittest.main()
