"""Compares our readers of users' files with the reference readers, on mutations of sound files.

What both read must be equal, and what the reference refuses we refuse. What we refuse although the
reference reads it has a line in REFUSED below, which says why. SLIPSTREAM_MUTATIONS is the number of
files of each format (500), and SLIPSTREAM_SEED the seed (1):

    bazel test //tests/readers:differential_test --test_env=SLIPSTREAM_MUTATIONS=10000
"""
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import unittest

import mutation
import programs
import references

COUNT = int(os.environ.get("SLIPSTREAM_MUTATIONS", "500"))
SEED = int(os.environ.get("SLIPSTREAM_SEED", "1"))
FILES_AT_ONCE = 500

# What an honest writer of .npy files may put into a dictionary: strings without prefix and escapes,
# decimal numbers, words and marks.
PLAIN_DICTIONARY = re.compile(
    rb"""[ \t]*\{([ \t\n\r\f]|'[^'\\\n\r]*'|"[^"\\\n\r]*"|[0-9]+L?|True|False|[(),:])*\}[ \t\n\r\f]*""")


def has_odd_dictionary(content):
    begin = 10 if content[6] == 1 else 12
    end = begin + int.from_bytes(content[8:begin], "little")
    dictionary = content[begin:end]
    is_plain = PLAIN_DICTIONARY.fullmatch(dictionary) and b"''" not in dictionary
    is_twice = any(dictionary.count(key) > 1 for key in (b"descr", b"fortran_order", b"shape"))
    return not is_plain or is_twice or re.search(rb"\([^)]*(True|False|\()", dictionary)


# By format: our message, as a regular expression, and why we refuse what the reference reads. Some
# hold only for certain files.
REFUSED = {
    "npy": [
        ("holds (values of type|Python objects|structured values)",
         "types that are no numbers of up to 64 bits, or have another name", None),
        ("too long", "bytes behind the array, which NumPy drops in silence", None),
        ("announces more values than any file has", "sizes beyond 2^48", None),
        ("header: ", "a Python expression that no writer of .npy files writes", has_odd_dictionary),
    ],
    "safetensors": [
        ("is there twice", "one name twice, of which the package takes one in silence", None),
        ("dtype is ", "types other than fp32", None),
        ("(has a name of more|a tensor needs a name|dimensions)", "limits of our models", None),
        ("nests deeper", "keys that mean nothing, with values that nest", None),
        ("is no object but", "a tensor as a list, which the format does not know", None),
    ],
    "idx": [
        ("announces (images|0 examples)", "images without pixels or of more than 1024 a side", None),
        ("not a sound gzip file: (header crc mismatch|unknown header flags set)",
         "damaged headers of gzip, of which Python does not check all", None),
    ],
    "csv": [
        ("which may be the names of the columns or an example", "first lines that may be either", None),
        ("line [0-9]+ is empty", "empty lines between examples", None),
        ("does not end with one", "quoted fields without an end on their line", None),
        ("found no name", "columns without a name, such as the index of pandas", None),
        ("is UTF-16", "UTF-16", None),
        ('found ".*"[^,]', "text behind a quoted field, which csv joins with it",
         lambda content: re.search(rb'"[^",\r\n]*[^", \t\r\n]', content)),
    ],
}


def reason_for(kind, message, content):
    for pattern, reason, holds_for in REFUSED[kind]:
        if re.search(pattern, message) and (holds_for is None or holds_for(content)):
            return reason
    return None


class Case:
    """A file, how ours and the reference read it."""

    def __init__(self, kind, path, content, reference):
        self.kind = kind
        self.path = path
        self.content = content
        try:
            self.expected = reference()
        except Exception as error:  # Whatever a reference raises, it is a refusal.
            self.expected = None
            self.refusal = repr(error)


def npy_case(chance, path):
    content = mutation.npy_file(chance)
    path.write_bytes(content)
    return Case("npy", path, content, lambda: references.npy(content))


def model_case(chance, path):
    content = mutation.model_file(chance)
    path.write_bytes(content)
    return Case("safetensors", path, content, lambda: references.model(content))


def idx_case(chance, path):
    path.mkdir()
    contents = mutation.idx_files(chance)
    for kind, content in zip(("images-idx3", "labels-idx1"), contents):
        name = f"t10k-{kind}-ubyte"
        name = chance.choice((name, name + ".gz", name.replace("-idx", ".idx")))
        (path / name).write_bytes(content)
    return Case("idx", path, contents, lambda: references.idx(*contents))


def csv_case(chance, path):
    path.mkdir()
    content = mutation.csv_file(chance)
    (path / "test.csv").write_bytes(content)
    kind, has_header = chance.choice((("csv", None), ("csv_with_header", True),
                                      ("csv_without_header", False)))
    return Case(kind, path, content, lambda: references.table(content, has_header))


def read(cases):
    """Returns what our readers say about each."""
    arguments = [f"{case.kind}:{case.path}" for case in cases]
    done = subprocess.run([programs.program("tests/readers/read_files"), *arguments], check=True,
                          stdout=subprocess.PIPE, timeout=programs.DEADLINE_S)
    return [json.loads(line) for line in done.stdout.splitlines()]


class DifferentialTest(unittest.TestCase):
    def check(self, case, ours):
        """Returns what came of it, in words."""
        if "tensors" in ours:  # Tensors are told by their names; their order is that of their data.
            ours["tensors"] = sorted(ours["tensors"])
        about = f"{case.content!r}\nours: {ours}\nreference: {case.expected or case.refusal}"
        if "refused" not in ours:
            self.assertEqual(ours, case.expected, about)
            return "read"
        message = ours["refused"].removeprefix(str(case.path))
        self.assertRegex(message, "^(/[^:]*)?: .{8,}", about)
        if case.expected is None:
            return "refused by both"
        reason = reason_for(case.kind.partition("_")[0], message, case.content)
        self.assertIsNotNone(reason, about)
        return f"refused: {reason}"

    def compare(self, make_case):
        print(f"{self.id().rpartition('.')[2]}: {COUNT} files of seed {SEED}")
        chance = random.Random(SEED)
        outcomes = collections.Counter()
        for first in range(0, COUNT, FILES_AT_ONCE):
            with programs.scratch() as folder:
                cases = [make_case(chance, pathlib.Path(folder) / str(i))
                         for i in range(first, min(COUNT, first + FILES_AT_ONCE))]
                for case, ours in zip(cases, read(cases), strict=True):
                    outcomes[self.check(case, ours)] += 1
        for outcome, count in outcomes.most_common():
            print(f"{count:6} {outcome}")
        self.assertGreater(outcomes["read"], COUNT / 20)

    def test_npy(self):
        self.compare(npy_case)

    @unittest.skipIf(references.safetensors is None, "no package safetensors")
    def test_safetensors(self):
        self.compare(model_case)

    def test_idx(self):
        self.compare(idx_case)

    def test_csv(self):
        self.compare(csv_case)


if __name__ == "__main__":
    unittest.main()
