"""Writes a .npy file without NumPy: npy.py PATH DTYPE SHAPE [BYTES], e.g. npy.py q.npy '<f4' 1,1,2,64.

Its elements are zeros, or integers of '<i4' that come after an equals sign: npy.py t.npy '<i4' 2,2 =3,-1,0,7. A part
of them may be an interval: =0:128,384:512.
"""

import struct
import sys

path, dtype, shape = sys.argv[1:4]
extents = [int(e) for e in shape.split(",")]
header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({', '.join(map(str, extents))}), }}"
header = header.ljust(117) + "\n"
count = 1
for extent in extents:
    count *= extent
last = sys.argv[4] if len(sys.argv) > 4 else str(count * int(dtype[-1]))
if last.startswith("="):
    ends = [[int(end) for end in each.split(":")] for each in last[1:].split(",")]
    data = b"".join(struct.pack("<i", x) for first, *end in ends for x in range(first, *end or [first + 1]))
else:
    data = bytes(int(last))
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
