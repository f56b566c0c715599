#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Zeroes the kernels of other GPUs in libnccl.so:  cut_nccl.py IN OUT ARCHITECTURE        (90 is H100 and H200)

The file keeps its size and its addresses, so that nothing else changes; zeros pack to nothing. A GPU loads the kernels of its own
architecture. Layout of fat binaries: a header (magic, version u16, its size u16, size of the entries u64), then entries (kind u16:
1 PTX, 2 machine code; version u16; its size u32; size of the data u64; ...; architecture u32 at byte 28).
"""
import struct
import sys

MAGIC = 0xBA55ED50
MACHINE_CODE = 2


def sections(data):
    """Name -> (offset, size), of a 64-bit ELF file."""
    if data[:5] != b"\x7fELF\x02":
        sys.exit("cut_nccl.py: not a 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", data, 40)
    entry, count, names = struct.unpack_from("<HHH", data, 58)
    rows = [struct.unpack_from("<IIQQQQ", data, table + i * entry) for i in range(count)]
    text = rows[names][4]
    return {data[text + row[0]:data.index(b"\0", text + row[0])].decode(): (row[4], row[5]) for row in rows}


def cut(data, offset, size, architecture):
    """Returns the bytes of machine code that are kept."""
    kept, at, end = 0, offset, offset + size
    while at + 16 <= end:
        magic, _, header, entries = struct.unpack_from("<IHHQ", data, at)
        if magic != MAGIC:
            at += 8  # padding
            continue
        at += header
        last = at + entries
        while at < last:
            kind, _, entry, length = struct.unpack_from("<HHIQ", data, at)
            (of,) = struct.unpack_from("<I", data, at + 28)
            if kind == MACHINE_CODE and of == architecture:
                kept += length
            else:
                data[at + entry:at + entry + length] = bytes(length)
            at += entry + length
    return kept


def main(source, target, architecture):
    with open(source, "rb") as file:
        data = bytearray(file.read())
    found = sections(data)
    if ".nv_fatbin" not in found:
        sys.exit(f"cut_nccl.py: {source} has no section .nv_fatbin")
    if not cut(data, *found[".nv_fatbin"], int(architecture)):
        sys.exit(f"cut_nccl.py: {source} has no machine code for architecture {architecture}")
    if "__nv_relfatbin" in found:  # for programs that link device code
        offset, size = found["__nv_relfatbin"]
        data[offset:offset + size] = bytes(size)
    with open(target, "wb") as file:
        file.write(data)


main(*sys.argv[1:])
