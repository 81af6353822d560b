"""Devices: what there is, what it can do, and a CPU device of one thread for a part of the program."""

import tack
from tack.runtime.dispatch import get_backend


@tack.kernel
def norm(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return tack.sqrt(s)


for kind in ("cpu", "metal", "cuda", "hip", "level_zero"):
    print(f"{kind}: {tack.device_count(kind)}")

# Ask what the default device can do instead of comparing names.
dtype = tack.f64 if get_backend().supports_f64 else tack.f32
x = tack.full(1_000_000, 0.5, dtype=dtype)
everywhere = norm(x)
with tack.device("cpu", num_threads=1):
    alone = norm(x)  # the same memory on one thread: and the same bits, since the order of a sum is fixed
assert everywhere == alone == 500.0
print(f"|x| = {everywhere} on {x.device} and on one thread")
