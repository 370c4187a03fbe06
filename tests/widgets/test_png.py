"""Pictures in pixels: of the right size, with the colours of their theme and words on them; or three lines help."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest
from PIL import Image

from lab.errors import ViewError
from tests.widgets.golden import falling, product_plus_x, recorded, training
from tests.widgets.golden_cluster import launch_of
from tests.widgets.golden_pipeline import pipeline
from tests.widgets.golden_ranks import collective, ranks_of, told, trained
from widgets import (
    ClusterView,
    DataParallelView,
    GradientView,
    GraphView,
    LossView,
    PipelineView,
    Player,
    RingView,
)
from widgets.export import png
from widgets.pictures.palettes import COLOURS, THEMES
from widgets.pictures.scene import Node, Scene

VIEWS = {
    "graph": lambda: GraphView(product_plus_x()),
    "loss": lambda: LossView(training(falling(60))),
    "gradient": lambda: GradientView(training(falling(30))),
    "ring": lambda: RingView(told(collective("all_reduce", "ring", ranks_of(4)))),
    "pipeline": lambda: PipelineView(pipeline()),
    "data parallel": lambda: DataParallelView(trained(2)),
    "cluster": lambda: ClusterView(launch_of(3)),
    "empty": lambda: LossView(recorded([])),
}


def rgb(colour):
    return tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def share(image, colour):
    return float((image == rgb(colour)).all(axis=2).mean())


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", VIEWS)
def test_a_picture_has_the_size_of_its_svg_and_the_colours_of_its_theme(name, theme, tmp_path):
    view = VIEWS[name]()
    path = view.export(tmp_path / "a.png", theme=theme, scale=1)
    image = pixels(path.read_bytes())
    _, width, height = png.below_one_another([view.svg(theme)])
    assert abs(image.shape[1] - width) <= 1
    assert abs(image.shape[0] - height) <= 1
    assert share(image, COLOURS[theme]["surface"]) > 0.2
    drawn = 1 - share(image, COLOURS[theme]["surface"])
    assert drawn > 0.01, "blank"
    other = "dark" if theme == "light" else "light"
    assert share(image, COLOURS[other]["surface"]) < 0.05 or COLOURS[other]["surface"] == COLOURS[theme]["surface"]
    assert (image[0, 0] == rgb(COLOURS[theme]["surface"])).all(), "no rounded corner that shows the page below"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_are_drawn(theme):
    bare = pixels(png.png_of([Scene((Node("a", 0, 0, 90, 40, ""),))], theme=theme))
    named = pixels(png.png_of([Scene((Node("a", 0, 0, 90, 40, "matmul"),))], theme=theme))
    assert bare.shape == named.shape
    assert (bare != named).any(axis=2).sum() > 400
    assert share(named, COLOURS[theme]["text"]) > share(bare, COLOURS[theme]["text"])


def test_every_sign_that_pictures_use_has_a_glyph():
    """A sign without a glyph would be drawn as nothing, or as the box of another one that has none."""
    shapes = {}
    for sign in "v₁₂²−×∞…→√Σ∂·≤⌀αβ":
        image = pixels(png.png_of([Scene((Node("a", 0, 0, 90, 40, sign),))], scale=2))
        shapes.setdefault(image.tobytes(), []).append(sign)
    assert [signs for signs in shapes.values() if len(signs) > 1] == []


def test_scale_is_in_pixels_and_in_dots_to_an_inch(tmp_path):
    view = GraphView(product_plus_x())
    sizes, dots = {}, {}
    for scale in (None, 1, 2, 3.5):
        image = Image.open(view.export(tmp_path / "a.png", scale=scale))
        sizes[scale], dots[scale] = np.array(image.size), image.info["dpi"][0]
        image.close()
    assert (sizes[None] == sizes[2]).all()
    assert (abs(sizes[2] - 2 * sizes[1]) <= 2).all()
    assert (abs(sizes[3.5] - 3.5 * sizes[1]) <= 4).all()
    assert dots == pytest.approx({None: 192, 1: 96, 2: 192, 3.5: 336}, abs=0.1)


def test_a_player_shows_all_its_views_at_its_stop(tmp_path):
    rec = product_plus_x()
    player, graph = Player(GraphView(rec), RingView(rec)), GraphView(rec)
    player.seek(3)
    stop = int(player.transport.stops[3])
    pictures = [graph.picture_at(stop), RingView(rec).picture_at(stop)]
    made = player.export(tmp_path / "a.png", theme="dark", scale=1).read_bytes()
    assert made == png.png_of(pictures, theme="dark", scale=1)
    assert made != png.png_of([graph.picture_at(len(rec)), pictures[1]], theme="dark", scale=1)


def test_a_view_that_is_shown_is_written_as_it_is_shown(tmp_path):
    view = GraphView(product_plus_x())
    end = view.export(tmp_path / "a.png").read_bytes()
    view.show(9)
    assert view.export(tmp_path / "a.png").read_bytes() == end, "nobody sees it"
    assert view.host is not None
    view.show(9)
    assert view.export(tmp_path / "a.png").read_bytes() == png.png_of([view.picture_at(9)]) != end
    view.dispose()


def test_one_picture_gives_the_same_bytes_again():
    picture = GraphView(product_plus_x()).picture_at(9)
    assert png.png_of([picture]) == png.png_of([picture])


def test_a_moving_svg_has_themes_too(tmp_path):
    for view in (GraphView(product_plus_x()), LossView(training(falling(9)))):
        light, dark = (view.export(tmp_path / "a.svg", theme=theme).read_text() for theme in ("light", "dark"))
        assert COLOURS["dark"]["surface"] in dark
        assert COLOURS["dark"]["text"] in dark
        assert COLOURS["light"]["text"] not in dark
        assert light == view.export(tmp_path / "a.svg").read_text()


WRONG = {
    "a theme that there is not": (".png", {"theme": "sepia"}, "there is no such theme"),
    "of svg too": (".svg", {"theme": "sepia"}, "there is no such theme"),
    "a scale of nothing": (".png", {"scale": -1}, "positive number"),
    "a scale of 0": (".png", {"scale": 0}, "positive number"),
    "a scale that is a bool": (".png", {"scale": True}, "scale is a number"),
    "a scale that is a word": (".png", {"scale": "big"}, "scale is a number"),
    "a scale without end": (".png", {"scale": float("inf")}, "positive number"),
    "a theme of a page": (".html", {"theme": "dark"}, "a page has no theme of its own"),
    "a scale of a page": (".html", {"scale": 2}, "only a PNG has a scale"),
    "a scale of an svg": (".svg", {"scale": 2}, "only a PNG has a scale"),
    "too large": (".png", {"scale": 100}, "too large for a PNG"),
}


@pytest.mark.parametrize("make", [GraphView, Player])
@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_drawn_is_told_in_three_lines_and_writes_nothing(what, make, tmp_path):
    ending, look, said = WRONG[what]
    with pytest.raises(ViewError, match=said) as caught:
        make(product_plus_x()).export(tmp_path / f"a{ending}", **look)
    assert len(str(caught.value).splitlines()) == 3
    assert list(tmp_path.iterdir()) == []


def test_the_scale_that_is_proposed_fits():
    picture = GraphView(product_plus_x()).picture_at(9)
    with pytest.raises(ViewError) as caught:
        png.png_of([picture], scale=100)
    proposed = float(str(caught.value).split("scale=")[1].split()[0])
    _, width, height = png.below_one_another([GraphView(product_plus_x()).svg()])
    assert width * height * proposed**2 <= png.MOST_PIXELS * 1.3


def test_without_resvg_one_is_told_what_to_install_and_svg_works(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    png._require_font.cache_clear()
    view = GraphView(product_plus_x())
    with pytest.raises(ViewError, match="PNG files need resvg") as caught:
        view.export(tmp_path / "a.png")
    assert "pip install resvg_py" in str(caught.value).splitlines()[2]
    assert view.export(tmp_path / "a.svg").stat().st_size > 1000
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_without_a_font_one_is_told_so(monkeypatch):
    real = png._rendered
    monkeypatch.setattr(png, "_rendered", lambda svg, *rest: real(re.sub("<text.*?</text>", "", svg), *rest))
    png._require_font.cache_clear()
    with pytest.raises(ViewError, match="no font to draw text with"):
        png.png_of([Scene((Node("a", 0, 0, 90, 40, "x"),))])
    png._require_font.cache_clear()
