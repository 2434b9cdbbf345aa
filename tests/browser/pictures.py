"""Small pictures of pages: PNG with a palette, which text and flat colours hardly lose by."""

import base64
import zlib
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import numpy.typing as npt

PICTURES = Path(__file__).parents[2] / "docs" / "console"
MAX_PICTURE_BYTES = 60_000
MAX_COLOURS = 64
RARE_COLOURS = 20
"""Colours of the palette that are not frequent, but far from all that are, such as those of a small icon."""

# the browser reads its own picture: nothing else here decodes PNG
READ_PIXELS = """async (picture) => {
    const bytes = Uint8Array.from(atob(picture), (char) => char.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
    const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const {data, width, height} = context.getImageData(0, 0, image.width, image.height);
    let text = "";
    for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
    return [width, height, btoa(text)];
}"""


def shrink_picture(page: Any) -> bytes:
    """Return a picture of what the page's window shows, as PNG with at most 64 colours."""
    taken = base64.b64encode(page.screenshot()).decode()
    width, height, pixels = page.evaluate(READ_PIXELS, taken)
    colours = np.frombuffer(base64.b64decode(pixels), dtype=np.uint8).reshape(height, width, 4)[:, :, :3]
    return encode_png(*choose_palette(colours))


def choose_palette(colours: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return the most frequent colours and the rare ones that differ most, and for each pixel the nearest's number."""
    found, places, counts = np.unique(colours.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    chosen = list(np.argsort(-counts, kind="stable")[: MAX_COLOURS - RARE_COLOURS])
    distances = measure_distances(found, found[chosen])
    for _ in range(min(RARE_COLOURS, len(found) - len(chosen))):
        # the colour whose pixels would be furthest from what they are
        chosen.append((distances.min(axis=1) * counts).argmax())
        distances = np.concatenate([distances, measure_distances(found, found[chosen[-1:]])], axis=1)
    nearest = distances.argmin(axis=1).astype(np.uint8)
    return found[chosen], nearest[places.reshape(-1)].reshape(colours.shape[:2])


def measure_distances(colours: npt.NDArray[np.uint8], palette: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    """Return the squared distance of each colour to each of the palette."""
    distances: npt.NDArray[np.int32] = (
        (colours[:, None, :].astype(np.int32) - palette[None, :, :].astype(np.int32)) ** 2
    ).sum(axis=2, dtype=np.int32)
    return distances


def encode_png(palette: npt.NDArray[np.uint8], pixels: npt.NDArray[np.uint8]) -> bytes:
    height, width = pixels.shape
    lines = b"".join(b"\x00" + line.tobytes() for line in pixels)
    parts = (
        (b"IHDR", pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    chunks = (pack(">I", len(data)) + name + data + pack(">I", zlib.crc32(name + data)) for name, data in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
