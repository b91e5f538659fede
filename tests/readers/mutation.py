"""Files that are sound, and mutations of them, mostly of their headers, drawn from a seeded random.Random."""
import gzip
import io
import json
import struct

import numpy


def mutate(chance, content, tokens, begin=0, end=None):
    """Changes bytes of a part of the content once or a few times."""
    content = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 1, 2, 3))):
        last = max(begin, min(len(content), len(content) if end is None else end))
        at = chance.randint(begin, last)
        length = chance.choice((1, 1, 1, 2, 4, 8, 16))
        kind = chance.randrange(12)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << chance.randrange(8)
        elif kind == 1 and at < len(content):
            content[at] = chance.randrange(256)
        elif kind == 2:
            del content[at:min(at + length, last)]
        elif kind == 3:
            other = chance.randint(begin, last)
            content[at:at] = content[other:other + length]
        elif kind == 4:
            token = chance.choice(tokens)
            content[at:at + chance.choice((0, 0, len(token)))] = token
        elif kind < 11:  # A token that is there for another.
            old = chance.choice([token for token in tokens if token in content[begin:last]] or [b""])
            place = content.find(old, begin, last)
            alike = [token for token in tokens if token[:1] == old[:1] and chance.randrange(4)]
            content[place:place + len(old)] = chance.choice(alike or tokens)
        elif chance.randrange(4) == 0:
            del content[chance.randint(begin, len(content)):]
    return bytes(content)


NPY_TOKENS = [token.encode() for token in (
    "True", "False", "'<f4'", "'>f4'", "'=f4'", "'|f4'", "'f4'", "'<f8'", "'>f8'", "'|u1'", "'<u1'", "'>u1'",
    "'|b1'", "'<b1'", "'?'", "'<i2'", "'>i2'", "'<i4'", "'<i8'", "'>u8'", "'<f2'", "'<c8'", "'|O'", "'<U3'",
    "'|S4'", "'<M8[s]'", "'<d'", "'<l'", "'float32'", "[('a', '<f4')]", "(4, 5)", "(5, 4)", "(20,)",
    "(20)", "(5L, 4L)", "(5, 4,)", "()", "(0, 4)", "(2, 2, 5)", "(1, 20)", "(20, 1)", "(-1, 20)",
    "(99999999999999999999,)", "(4294967296, 4294967296)", "5", "4", "2", "10", "05", "00", "L", " ", "\n",
    "\t", "\r", "\f", "\0", "'", '"', ",", ":", "(", ")", "{", "}", "\\", "#", "'descr': '<f4', ",
    "'fortran_order': True, ", "'shape': (20,), ", "'other': 1, ", "descr", "fortran_order", "shape")]


def npy_file(chance):
    values = numpy.arange(20) % 7
    dtype = chance.choice("<f4 >f4 <f8 >f8 |i1 <i2 >i2 <i4 <i8 >i8 |u1 <u2 <u4 <u8 |b1 <f2 <c8".split())
    shape = chance.choice(((20,), (5, 4), (2, 5, 2), (2, 1, 5, 2), (0, 4), ()))
    if shape in ((0, 4), ()):
        values = values[:int(shape == ())]
    order = chance.choice("CF")
    file = io.BytesIO()
    numpy.lib.format.write_array(file, numpy.asarray(values.astype(dtype).reshape(shape), order=order),
                                 version=chance.choice(((1, 0), (2, 0), (3, 0))))
    content = file.getvalue()
    begin = 10 if content[6] == 1 else 12
    dictionary_end = content.index(b"\n", begin) + 1
    dictionary, data = content[begin:dictionary_end], content[dictionary_end:]
    if chance.randrange(8) == 0:  # As Python 2 writes it.
        dictionary = dictionary.replace(b"5,", b"5L,").replace(b"4)", b"4L)")
    where = chance.randrange(10)
    if where < 8:
        dictionary = mutate(chance, dictionary, NPY_TOKENS, end=dictionary.find(b"}") + 2)
    form = "<H" if begin == 10 else "<I"
    content = content[:8] + struct.pack(form, len(dictionary)) + dictionary + data
    if where == 8:
        content = mutate(chance, content, NPY_TOKENS, end=begin)
    elif where == 9:
        content = mutate(chance, content, NPY_TOKENS)
    return content


MODEL_TOKENS = [token.encode() for token in (
    '"__metadata__":null,', '"__metadata__":{},', '"__metadata__":{"a":"b"},', '"F32"', '"F16"', '"F64"',
    '"I8"', "[0]", "[]", "[2]", "[1,2]", "[0,0]", "[0,8]", "[8,16]", "[4,4]", "[2,0]",
    "[4611686018427387904,0]", "[4294967296,4294967296,0]", "0", "4", "8", "-0", "1e1", "2.0", "null", "true",
    "18446744073709551616", '"dtype"', '"shape"', '"data_offsets"', '"dtype":"F32",', '"more":[{"a":1}],',
    '"more":1,', '"e":{"dtype":"F32","shape":[0],"data_offsets":[8,8]},', "{", "}", "[", "]", ",", ":",
    '"', "\\", "\\u0000", "\\ud800", "\0", " ", "\n", "\t", "\r", "\ufeff", "é", "\x01")]


def model_file(chance):
    tensors, end = [], 0
    for name in ("weight", "bias", "scale", "empty")[:chance.randint(0, 4)]:
        shape = [0, 3] if name == "empty" else chance.choice(([2], [], [2, 3], [1, 1, 4], [3]))
        begin, end = end, end + 4 * int(numpy.prod(shape, dtype=int))
        tensors.append((name, {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}))
    chance.shuffle(tensors)
    metadata = chance.choice((None, {"format": "pt"}, {}, "absent"))
    header = {} if metadata == "absent" else {"__metadata__": metadata}
    separators = chance.choice(((",", ":"), (", ", ": ")))
    text = json.dumps({**header, **dict(tensors)}, separators=separators).encode()
    data = bytes(chance.randrange(1, 100) for _ in range(end))
    where = chance.randrange(10)
    if where < 9:
        text = mutate(chance, text, MODEL_TOKENS)
    text += b" " * (-len(text) % 8)
    content = struct.pack("<Q", len(text)) + text + data
    return mutate(chance, content, MODEL_TOKENS) if where == 9 else content


BYTES = [b"\0", b"\0" * 7, b"\0" * 512, b"\1", b"\x1f\x8b", b"\x1f\x8b\x08\0", b"\xff", b"\0\0\x08\x03",
         b"\0\0\x08\x01", gzip.compress(b"", mtime=0), gzip.compress(b"\1\2", mtime=0)]


def packed(chance, content):
    """Packs the content in one to three members of gzip, at times with padding behind."""
    cuts = sorted(chance.randint(0, len(content)) for _ in range(chance.choice((0, 0, 1, 2))))
    file = io.BytesIO()
    for begin, end in zip([0, *cuts], [*cuts, len(content)]):
        name = chance.choice(("", "t10k-images-idx3-ubyte"))
        with gzip.GzipFile(filename=name, mode="wb", fileobj=file, mtime=0) as member:
            member.write(content[begin:end])
        file.write(bytes(chance.choice((0, 0, 0, 3, 512))))
    return file.getvalue()


def idx_files(chance):
    """Returns images and labels, one of which is mutated."""
    count, height, width = chance.choice(((4, 2, 3), (1, 1, 1), (12, 4, 4), (0, 2, 2)))
    images = struct.pack(">4I", 0x803, count, height, width) + bytes(
        chance.randrange(256) for _ in range(count * height * width))
    labels = struct.pack(">2I", 0x801, count) + bytes(chance.randrange(10) for _ in range(count))
    files = [images, labels]
    which = chance.randrange(2)
    where = chance.randrange(4)
    if where == 0:
        files[which] = mutate(chance, files[which], BYTES, end=16)
    files = [packed(chance, file) if chance.randrange(3) else file for file in files]
    if where == 1:
        files[which] = mutate(chance, files[which], BYTES)
    elif where == 2:
        files[which] = mutate(chance, files[which], BYTES, end=12)
    return files


CSV_TOKENS = [token.encode() for token in (
    ",", ",,", '"', '""', '"1.5"', '"1,5"', '"a, b"', '" 7 "', "\n", "\r", "\r\n", "\n\n", " ", "\t", "NA", "nan",
    "inf", "1e3", "1E-2", "1e-400", "1e400", "1e39", "+1", "-1", "+-1", ".5", "5.", ".", "1_000", "1 000", "0x10",
    "x", "2024", "\ufeff", "\0", "\x0b", "\u00a0", "\xe9", "#", ";", "'", "0,1,2\n", "NA,NA,NA\n", "a,b,c\n")]


def csv_file(chance):
    columns = chance.choice((2, 3, 5))
    headers = ([], ["a", "b", "label", "d", "e"], ['"a"', '"price, €"', '"x ""y"""', "d", "e"], list("01234"),
               ["2019", "2020", "2021", "2022", "2023"], ['"1"', '"7"', '"3"', '"2"', '"5"'], ["NA"] * 5)
    header = chance.choice(headers[:3] if chance.randrange(2) else headers)
    form = chance.choice(("{:g}", "{:.3f}", "{:d}", "{:e}", ' {:g}', '"{:g}"'))
    rows = [",".join(header[:columns])] if header else []
    for _ in range(chance.randint(1, 4)):
        values = (chance.choice((0, 1, -3, 12, 250)) for _ in range(columns))
        rows.append(",".join(form.format(value) for value in values))
    end = chance.choice(("\n", "\n", "\r\n", "\r"))
    text = end.join(rows) + chance.choice(("", end, end, end + end))
    content = (b"\xef\xbb\xbf" if chance.randrange(8) == 0 else b"") + text.encode()
    return mutate(chance, content, CSV_TOKENS)
