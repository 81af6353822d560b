"""The GPU benchmarks' kernels in each library. A library that is not installed, or finds no GPU, is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gpu_cases import BINS, LIMIT, SOFT

__all__ = ["LIBRARIES", "Library"]

Run = Callable[[], Any]
BLOCK = 256


class Library:
    """``kernels``: by the cases' names, and "axpy" for the cost of a launch; called with what ``upload`` made of the inputs."""

    name = ""
    kernels: dict[str, Callable[..., Any]]

    def upload(self, value: Any) -> Any:
        """An array on the GPU, or a scalar as it is."""
        raise NotImplementedError

    def download(self, array: Any) -> Any:
        raise NotImplementedError

    def sync(self) -> None:
        raise NotImplementedError

    def copy(self, destination: Any, source: Any) -> None:
        """From the GPU's memory to the GPU's memory."""
        raise NotImplementedError


class Tack(Library):
    name = "tack"

    def __init__(self, device: str) -> None:
        import tack

        self.tack = tack
        self.device = tack.device(device)
        tack.set_default_device(self.device)

        @tack.kernel
        def axpy(out, x, y, a):
            for i in range(out.shape[0]):
                out[i] = x[i] * a + y[i]

        @tack.kernel
        def mandelbrot(out, size):
            for p in range(size * size):
                cx = -2.0 + 3.0 * tack.f32(p % size) / size
                cy = -1.5 + 3.0 * tack.f32(p // size) / size
                x = 0.0
                y = 0.0
                k = 0
                while k < LIMIT and x * x + y * y <= 4.0:
                    x, y = x * x - y * y + cx, 2.0 * x * y + cy
                    k += 1
                out[p] = k

        @tack.kernel
        def nbody(out, x, y, z, m):
            for i in range(out.shape[0]):
                s = 0.0
                for j in range(x.shape[0]):
                    dx = x[j] - x[i]
                    dy = y[j] - y[i]
                    dz = z[j] - z[i]
                    r = tack.rsqrt(dx * dx + dy * dy + dz * dz + SOFT)
                    s += dx * m[j] * r * r * r
                out[i] = s

        @tack.kernel
        def histogram(out, x):
            for b in range(out.shape[0]):
                out[b] = 0
            for i in range(x.shape[0]):
                tack.atomic_add(out, min(int(x[i] * BINS), BINS - 1), 1)

        self.kernels = {
            "axpy": axpy,
            "triad": axpy,
            "mandelbrot": mandelbrot,
            "n-body": nbody,
            "histogram": histogram,
            "reduction": lambda _, x: x.sum(),
        }

    def upload(self, value: Any) -> Any:
        return self.tack.array(value) if isinstance(value, np.ndarray) else value

    def download(self, array: Any) -> Any:
        return array.numpy()

    def sync(self) -> None:
        self.device.synchronize()

    def copy(self, destination: Any, source: Any) -> None:
        self.tack.copyto(destination, source)


# CUDA C for CuPy's RawKernel: what somebody who writes CUDA by hand would write first.
CUDA = r"""
extern "C" {
__global__ void axpy(float* out, const float* x, const float* y, float a, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * a + y[i];
}
__global__ void mandelbrot(int* out, int size) {
  const long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (p >= (long long)size * size) return;
  const float cx = -2.0f + 3.0f * (float)(p % size) / size, cy = -1.5f + 3.0f * (float)(p / size) / size;
  float x = 0.0f, y = 0.0f;
  int k = 0;
  while (k < LIMIT && x * x + y * y <= 4.0f) {
    const float t = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = t;
    ++k;
  }
  out[p] = k;
}
__global__ void nbody(float* out, const float* x, const float* y, const float* z, const float* m, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float s = 0.0f;
  for (int j = 0; j < n; ++j) {
    const float dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
    const float r = rsqrtf(dx * dx + dy * dy + dz * dz + SOFT);
    s += dx * m[j] * r * r * r;
  }
  out[i] = s;
}
__global__ void histogram(int* out, const float* x, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int b = (int)(x[i] * BINS);
  atomicAdd(out + (b < BINS - 1 ? b : BINS - 1), 1);
}
}
"""


def blocks(n: int) -> int:
    return (n + BLOCK - 1) // BLOCK


class Cupy(Library):
    name = "CuPy RawKernel"

    def __init__(self, device: str) -> None:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
        self.cupy = cupy
        text = CUDA.replace("LIMIT", str(LIMIT)).replace("SOFT", f"{SOFT}f").replace("BINS", str(BINS))
        module = cupy.RawModule(code=text)
        axpy, mandelbrot, nbody, histogram = (module.get_function(f) for f in ("axpy", "mandelbrot", "nbody", "histogram"))

        def run_axpy(out: Any, x: Any, y: Any, a: float) -> None:
            axpy((blocks(out.size),), (BLOCK,), (out, x, y, np.float32(a), out.size))

        def run_histogram(out: Any, x: Any) -> None:
            out.fill(0)
            histogram((blocks(x.size),), (BLOCK,), (out, x, x.size))

        self.kernels = {
            "axpy": run_axpy,
            "triad": run_axpy,
            "mandelbrot": lambda out, size: mandelbrot((blocks(out.size),), (BLOCK,), (out, np.int32(size))),
            "n-body": lambda out, *a: nbody((blocks(out.size),), (BLOCK,), (out, *a, np.int32(out.size))),
            "histogram": run_histogram,
            "reduction": lambda _, x: float(x.sum()),
        }

    def upload(self, value: Any) -> Any:
        return self.cupy.asarray(value) if isinstance(value, np.ndarray) else value

    def download(self, array: Any) -> Any:
        return array.get()

    def sync(self) -> None:
        self.cupy.cuda.get_current_stream().synchronize()

    def copy(self, destination: Any, source: Any) -> None:
        self.cupy.copyto(destination, source)


class Numba(Library):
    name = "numba-cuda"

    def __init__(self, device: str) -> None:
        from numba import cuda

        if not cuda.is_available():
            raise RuntimeError("numba.cuda finds no GPU")
        self.cuda = cuda
        from math import sqrt

        one, half = np.float32(1), np.float32(-1.5)
        soft = np.float32(SOFT)

        @cuda.jit
        def axpy(out, x, y, a):
            i = cuda.grid(1)
            if i < out.size:
                out[i] = x[i] * a + y[i]

        @cuda.jit
        def mandelbrot(out, size):
            p = cuda.grid(1)
            if p >= out.size:
                return
            cx = np.float32(-2) + np.float32(3) * np.float32(p % size) / np.float32(size)
            cy = half + np.float32(3) * np.float32(p // size) / np.float32(size)
            x = np.float32(0)
            y = np.float32(0)
            k = 0
            while k < LIMIT and x * x + y * y <= np.float32(4):
                x, y = x * x - y * y + cx, np.float32(2) * x * y + cy
                k += 1
            out[p] = k

        @cuda.jit
        def nbody(out, x, y, z, m):
            i = cuda.grid(1)
            if i >= out.size:
                return
            s = np.float32(0)
            for j in range(x.size):
                dx = x[j] - x[i]
                dy = y[j] - y[i]
                dz = z[j] - z[i]
                r = one / sqrt(dx * dx + dy * dy + dz * dz + soft)
                s += dx * m[j] * r * r * r
            out[i] = s

        @cuda.jit
        def clear(out):
            i = cuda.grid(1)
            if i < out.size:
                out[i] = 0

        @cuda.jit
        def histogram(out, x):
            i = cuda.grid(1)
            if i < x.size:
                cuda.atomic.add(out, min(int(x[i] * np.float32(BINS)), BINS - 1), 1)

        @cuda.reduce
        def add(a, b):
            return a + b

        def run_histogram(out: Any, x: Any) -> None:
            clear[blocks(out.size), BLOCK](out)
            histogram[blocks(x.size), BLOCK](out, x)

        def run_axpy(out: Any, x: Any, y: Any, a: float) -> None:
            axpy[blocks(out.size), BLOCK](out, x, y, np.float32(a))

        self.kernels = {
            "axpy": run_axpy,
            "triad": run_axpy,
            "mandelbrot": lambda out, size: mandelbrot[blocks(out.size), BLOCK](out, size),
            "n-body": lambda out, *a: nbody[blocks(out.size), BLOCK](out, *a),
            "histogram": run_histogram,
            "reduction": lambda _, x: float(add(x)),
        }

    def upload(self, value: Any) -> Any:
        return self.cuda.to_device(value) if isinstance(value, np.ndarray) else value

    def download(self, array: Any) -> Any:
        return array.copy_to_host()

    def sync(self) -> None:
        self.cuda.synchronize()

    def copy(self, destination: Any, source: Any) -> None:
        destination.copy_to_device(source)


LIBRARIES: tuple[type[Library], ...] = (Tack, Cupy, Numba)
