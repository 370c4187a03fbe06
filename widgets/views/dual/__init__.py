"""DualView: forward mode, value and tangent side by side."""
