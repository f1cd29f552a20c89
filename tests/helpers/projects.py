"""Small projects of our own for the tests in a browser, and images that are drawn here."""

# ruff: noqa: E501
from __future__ import annotations

import struct
import zlib

TEAS = """name,notes,origin,price
Assam,"Malty and *strong*; the classic of a dark breakfast tea. Takes milk well, and keeps its taste when it steeps too long.",India,3
Sencha,"Grassy, fresh and a little sweet.

- brew at 70 °C
- one minute is enough",Japan,5
Earl Grey,"Black tea with oil of bergamot. See https://example.org/earl-grey for its history, which is disputed by everyone.",Blend,4
Darjeeling,"Light, floral, with a note of muscat grapes in the second flush. **Do not** add milk to the first flush of the year.",India,6
Rooibos,"A red bush from South Africa: no caffeine, mild and slightly sweet. Good in the evening and for children of any age.",South Africa,2
"""

DOCUMENTS = """query,docid,title,text,bm25,year
heat pump in an old house,d1,Heat pumps for houses built before 1950,"A pump that is sized for the coldest day runs badly on all others. We measured eleven houses with *radiators of cast iron*.

- seasonal performance 3.1
- flow temperature 48 °C",7.2,2021
heat pump in an old house,d2,A history of the refrigerator,"The first domestic refrigerators used sulphur dioxide, which was cheap, effective and unpleasant when it leaked into kitchens.",3.1,1998
heat pump in an old house,d3,Noise of outdoor units,"Neighbours hear fans mostly at night. A fence of two metres helps less than a slower fan, and costs more than a larger unit.",4.4,2019
heat pump in an old house,d4,Insulating solid brick walls,"Inside or outside? Moisture decides. A wall that cannot dry to the inside needs a careful detail at every joist.",2.0,2016
quiet wind turbine,d5,Serrated blades,"Owls fly silently because the trailing edge of their feathers is frayed. Serrations on blades reduce noise by about 3 dB.",6.3,2020
quiet wind turbine,d6,Sailing ships of the Hanse,"Cogs carried salt, fish and cloth between Lübeck and Bergen; their single square sail was slow to trim.",0.4,1987
quiet wind turbine,d3,Noise of outdoor units,"Neighbours hear fans mostly at night. A fence of two metres helps less than a slower fan, and costs more than a larger unit.",3.7,2019
"""


def image(red, green, blue, size=160):
    """Return a PNG file of one colour, with a lighter square."""
    rows = bytearray()
    for y in range(size):
        rows.append(0)
        for x in range(size):
            is_inside = size // 4 < x < 3 * size // 4 and size // 4 < y < 3 * size // 4
            rows += bytes(min(255, value + 70 * is_inside) for value in (red, green, blue))

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b"")
    )
