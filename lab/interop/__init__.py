"""The neighbours: what the lab recorded, in the forms that other tools read. One file a neighbour."""

from lab.interop.numpy_export import export_numpy
from lab.interop.onnx_export import export_onnx

__all__ = ["export_numpy", "export_onnx"]
