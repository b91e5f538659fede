#!/usr/bin/python3
"""Writes slipstream/status_types.py, the Python types of a run's status, from proto/status.proto
and what it imports.

    worker/python/make_status_types.py            writes the file
    worker/python/make_status_types.py --print    prints what the file should hold

Needs Debian's protobuf-compiler and python3-protobuf. A test compares the file with the messages.
"""
import argparse
import pathlib
import subprocess
import sys
import textwrap

from google.protobuf import descriptor_pb2

PROTO = "proto/status.proto"
TARGET = pathlib.Path("worker/python/slipstream/status_types.py")
WIDTH = 110

HEADER = '''"""The types of a run's status, which `slipstream.status` returns as a RunStatus.

Each class stands for a message of proto/status.proto, and has its fields and comments. A field that a
comment calls absent is None, or if it is a message, one whose fields have their defaults. A float is NaN
if the figure is not finite, an enumeration is the name of its value, and an identifier (fixed64) has the
hexadecimal digits that psctl prints.

worker/python/make_status_types.py wrote this file. Change the messages, and run it again.
"""
from __future__ import annotations

import dataclasses
from typing import Optional
'''

Field = descriptor_pb2.FieldDescriptorProto
INTEGERS = (Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT32, Field.TYPE_UINT64, Field.TYPE_SINT32,
            Field.TYPE_SINT64, Field.TYPE_FIXED32, Field.TYPE_SFIXED32, Field.TYPE_SFIXED64)
# The type and the default of a field. Identifiers and enumerations are text.
SCALARS = {**{kind: ("int", "0") for kind in INTEGERS},
           Field.TYPE_FLOAT: ("float", "0.0"),
           Field.TYPE_DOUBLE: ("float", "0.0"),
           Field.TYPE_BOOL: ("bool", "False"),
           Field.TYPE_STRING: ("str", '""'),
           Field.TYPE_FIXED64: ("str", '""')}

# The numbers of fields of the descriptors themselves, by which comments are found.
MESSAGES_OF_FILE, FIELDS_OF_MESSAGE, MESSAGES_OF_MESSAGE = 4, 2, 3


def described(root):
    """Returns the descriptors of the .proto file and of those that it imports, with their comments."""
    done = subprocess.run(["protoc", "--proto_path=.", "--include_source_info", "--include_imports",
                           "--descriptor_set_out=/dev/stdout", PROTO], cwd=root, check=True,
                          stdout=subprocess.PIPE)
    return descriptor_pb2.FileDescriptorSet.FromString(done.stdout).file


def wrapped(text, indent, prefix):
    """Returns the paragraph as lines of the file."""
    return textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent=indent + prefix,
                         subsequent_indent=indent + prefix, break_on_hyphens=False)


class Writer:
    def __init__(self, files):
        self.package = f".{files[0].package}."
        self.comments = {(file.name, *place.path): place.leading_comments
                         for file in files for place in file.source_code_info.location}
        self.enums = {self.package + enum.name: [value.name for value in enum.value]
                      for file in files for enum in file.enum_type}
        self.messages = {}  # Messages that are no maps, and their files and paths, by name.
        self.maps = {}
        for file in files:
            for number, message in enumerate(file.message_type):
                self.find(message, self.package + message.name, (file.name, MESSAGES_OF_FILE, number))
        self.written = set()
        self.lines = []

    def find(self, message, name, path):
        (self.maps if message.options.map_entry else self.messages)[name] = message, path
        for number, nested in enumerate(message.nested_type):
            self.find(nested, f"{name}.{nested.name}", (*path, MESSAGES_OF_MESSAGE, number))

    def type_and_default(self, field):
        """Returns the type of a single value of the field, and its default."""
        if field.type == Field.TYPE_ENUM:
            return "str", f'"{self.enums[field.type_name][0]}"'
        if field.type == Field.TYPE_MESSAGE:
            name = self.local(field.type_name)
            return name, f"dataclasses.field(default_factory=lambda: {name}())"
        return SCALARS[field.type]

    def annotation(self, field):
        """Returns what follows the field's name."""
        if field.type_name in self.maps:
            key, value = self.maps[field.type_name][0].field
            types = f"{self.type_and_default(key)[0]}, {self.type_and_default(value)[0]}"
            return f"dict[{types}] = dataclasses.field(default_factory=dict)"
        kind, default = self.type_and_default(field)
        if field.label == Field.LABEL_REPEATED:
            return f"tuple[{kind}, ...] = ()"
        return f"Optional[{kind}] = None" if field.proto3_optional else f"{kind} = {default}"

    def local(self, name):
        return name.removeprefix(self.package)

    def write_class(self, name, indent=""):
        """Writes the class of a message, behind those of the messages that it has."""
        self.written.add(name)
        message, path = self.messages[name]
        nested = [f"{name}.{one.name}" for one in message.nested_type if not one.options.map_entry]
        for field in message.field:
            if field.type_name in self.messages and field.type_name not in self.written.union(nested):
                self.write_class(field.type_name)
        if not indent:
            self.lines += ["", ""]
        self.lines += [f"{indent}@dataclasses.dataclass(frozen=True)", f"{indent}class {message.name}:"]
        inner = indent + "    "
        comment = self.comments.get(path, "").strip() or f"The message {self.local(name)}."
        paragraph = wrapped('"""' + comment + '"""', inner, "")
        self.lines += paragraph if len(paragraph) == 1 else \
            wrapped('"""' + comment, inner, "") + [f'{inner}"""']
        for one in nested:
            self.write_class(one, inner)
            self.lines.append("")
        for number, field in enumerate(message.field):
            comment = self.comments.get((*path, FIELDS_OF_MESSAGE, number), "")
            if field.type == Field.TYPE_ENUM:
                comment += " One of " + ", ".join(self.enums[field.type_name]) + "."
            if comment:
                self.lines += wrapped(comment, inner, "# ")
            self.lines.append(f"{inner}{field.name}: {self.annotation(field)}")

    def text(self):
        for name in self.messages:
            if name not in self.written and name.count(".") == self.package.count("."):
                self.write_class(name)
        return HEADER + "\n".join(self.lines) + "\n"


def status_types(root):
    """Returns the text of the file, for the sources under `root`."""
    return Writer(described(root)).text()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--print", action="store_true", help="print the file instead of writing it")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).absolute().parents[2]
    text = status_types(root)
    if arguments.print:
        sys.stdout.write(text)
    else:
        (root / TARGET).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
