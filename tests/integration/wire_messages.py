"""Encodes and decodes protobuf messages by hand, field by field, for clients without stubs."""
import struct


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def fixed64(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def blob(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def fields(message):
    """Yields (number, value) of each field, in order. Values other than varints are bytes."""
    position = 0

    def take():
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        key = take()
        if key & 7 == 0:
            yield key >> 3, take()
            continue
        length = take() if key & 7 == 2 else 8 if key & 7 == 1 else 4
        yield key >> 3, message[position:position + length]
        position += length


def last_fields(message):
    """Returns values by field number; the last one of a repeated field."""
    return dict(fields(message))
