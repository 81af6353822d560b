"""Neighbours that need more than shared memory: tack.interop.torch, tack.interop.vtk. Each imports its library when it is imported."""
