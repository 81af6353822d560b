# needs: vtkmodules
"""A wave on VTK's own points: kernels move them in place, and VTK computes with what they wrote."""

import math

from vtkmodules.vtkFiltersCore import vtkPolyDataNormals
from vtkmodules.vtkFiltersSources import vtkPlaneSource

import tack
from tack.interop.vtk import from_vtk, to_vtk


@tack.kernel
def wave(points, height, time):
    for k in range(points.shape[0]):
        r = tack.sqrt(points[k, 0] ** 2 + points[k, 1] ** 2)
        points[k, 2] = 0.1 * tack.sin(20.0 * r - time)
        height[k] = points[k, 2]


plane = vtkPlaneSource()
plane.SetResolution(200, 200)
plane.Update()
surface = plane.GetOutput()

points = from_vtk(surface.GetPoints().GetData())  # VTK's memory, (points, 3)
height = tack.empty(points.shape[0], device="cpu")
surface.GetPointData().SetScalars(to_vtk(height, "height"))  # tack's memory
wave(points, height, 0.5)
surface.GetPoints().Modified()
surface.GetPointData().SetNormals(None)  # those of the flat plane

low, high = surface.GetBounds()[4:]
assert math.isclose(high, 0.1, rel_tol=1e-2)
assert math.isclose(low, -0.1, rel_tol=1e-2)
assert surface.GetPointData().GetArray("height").GetRange() == (low, high)
normals = vtkPolyDataNormals()
normals.SplittingOff()
normals.SetInputData(surface)
normals.Update()
slopes = from_vtk(normals.GetOutput().GetPointData().GetNormals())
assert slopes.shape == (points.shape[0], 3)
assert 0.4 < slopes[:, 2].min() < 0.6
assert slopes[:, 2].max() > 0.99
print(f"{points.shape[0]} points between {low:.2f} and {high:.2f}")
