# needs: mpi4py
"""Heat on a plate that is split over the ranks of MPI: each has a slab and the rows next to it, which are exchanged before each step.

mpiexec -n 2 python docs/examples/mpi_halo.py
"""

import numpy as np
from mpi4py import MPI

import tack

ROWS, COLUMNS, STEPS = 64, 48, 200


@tack.kernel
def step(new, old):
    for i, j in tack.ndrange((1, old.shape[0] - 1), (1, old.shape[1] - 1)):
        new[i, j] = old[i, j] + 0.2 * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1] - 4.0 * old[i, j])


def start():
    plate = np.zeros((ROWS + 2, COLUMNS), np.float32)  # with a border of fixed temperature
    plate[0] = 1.0
    return plate


def main():
    ranks = MPI.COMM_WORLD
    rank, size = ranks.Get_rank(), ranks.Get_size()
    count = ROWS // size
    above = rank - 1 if rank > 0 else MPI.PROC_NULL
    below = rank + 1 if rank < size - 1 else MPI.PROC_NULL
    old = tack.array(start()[rank * count : (rank + 1) * count + 2], device="cpu")
    new = old.copy()
    for _ in range(STEPS):
        # Rows are contiguous, and an array on the CPU is a buffer: MPI reads and writes its memory.
        ranks.Sendrecv(old[1], dest=above, recvbuf=old[count + 1], source=below)
        ranks.Sendrecv(old[count], dest=below, recvbuf=old[0], source=above)
        step(new, old)
        old, new = new, old

    gathered = np.empty((ROWS, COLUMNS), np.float32) if rank == 0 else None
    ranks.Gather(old[1 : count + 1], gathered, root=0)
    if rank == 0:
        a, b = start(), start()
        for _ in range(STEPS):
            step(b, a)
            a, b = b, a
        np.testing.assert_array_equal(gathered, a[1:-1])
        print(f"{size} ranks, the same bits as one; the middle has {gathered[ROWS // 4, COLUMNS // 2]:.3f}")


main()
