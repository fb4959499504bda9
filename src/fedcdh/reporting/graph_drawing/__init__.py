"""The drawing of a causal graph: one layout and one scene for the report, notebooks and matplotlib.

Modules
-------
layered_layout
    Positions of the boxes in layers from causes to effects.
edge_routing
    Points at which edges leave and reach the boxes.
scene
    Boxes and curves, ready to be drawn.
svg
    The scene as SVG for notebooks.
"""

from fedcdh.reporting.graph_drawing.scene import EdgeCurve, NodeBox, Scene, build_scene, scene_of
from fedcdh.reporting.graph_drawing.svg import render_svg

__all__ = ["EdgeCurve", "NodeBox", "Scene", "build_scene", "render_svg", "scene_of"]
