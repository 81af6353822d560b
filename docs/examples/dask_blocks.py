# needs: dask
"""Dask over a kernel: the blocks of a large array are smoothed in other processes, with the edges that neighbours share."""

import dask.array as da
import numpy as np

import tack


@tack.kernel
def smooth(out, a):
    h, w = a.shape
    for y, x in tack.ndrange((1, h - 1), (1, w - 1)):
        out[y, x] = 0.25 * (a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1])


def smooth_block(block):
    """What a worker does with a NumPy block; the kernel is compiled once in each process, or comes from its cache on disk."""
    out = np.array(block)
    smooth(out, np.ascontiguousarray(block))
    return out


def main():
    rng = np.random.default_rng(0)
    picture = rng.random((600, 800), dtype=np.float32)
    blocks = da.from_array(picture, chunks=(200, 400))
    result = da.overlap.overlap(blocks, depth=1, boundary="none").map_blocks(smooth_block, dtype=picture.dtype)
    result = da.overlap.trim_overlap(result, depth=1, boundary="none").compute(scheduler="processes", num_workers=2)
    whole = smooth_block(picture)
    np.testing.assert_array_equal(result, whole)
    print(f"{blocks.npartitions} blocks of {blocks.chunksize}, the same as at once")


if __name__ == "__main__":  # workers import this file
    main()
