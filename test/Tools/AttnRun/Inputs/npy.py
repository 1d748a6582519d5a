"""Writes a .npy file without NumPy: npy.py PATH DTYPE SHAPE [BYTES], e.g. npy.py q.npy '<f4' 1,1,2,64."""

import struct
import sys

path, dtype, shape = sys.argv[1:4]
extents = [int(e) for e in shape.split(",")]
header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({', '.join(map(str, extents))}), }}"
header = header.ljust(117) + "\n"
count = 1
for extent in extents:
    count *= extent
size = int(sys.argv[4]) if len(sys.argv) > 4 else count * int(dtype[-1])
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(size))
