import math
from itertools import pairwise

import pytest

from widgets.pictures import theme
from widgets.pictures.scene import NODE_KINDS, SPANS

MODES = theme.THEMES
STRONG = ("contrast", "contrast-dark")
FILLS = ("surface", *(kind for kind in NODE_KINDS if kind not in SPANS))
TEXTS = ("text", "muted", "backward")


def least(mode: str, ordinary: float) -> float:
    """The contrast that a theme owes."""
    return 7.0 if mode in STRONG else ordinary


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("ink", TEXTS)
def test_every_text_reads_on_every_fill(mode, fill, ink):
    colours = theme.COLOURS[mode]
    assert theme.contrast(colours[ink], colours[fill]) >= least(mode, 4.5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["line", "forward", "backward", "done", "trouble", "accent"])
def test_every_line_stands_out_from_the_page(mode, name):
    colours = theme.COLOURS[mode]
    assert theme.contrast(colours[name], colours["surface"]) >= least(mode, 3.0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["forward", "backward", "trouble", "muted"])
def test_coloured_text_on_the_page_reads(mode, name):
    colours = theme.COLOURS[mode]
    assert theme.contrast(colours[name], colours["surface"]) >= least(mode, 4.5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fill", sorted(SPANS))
def test_the_one_text_of_a_bar_reads(mode, fill):
    assert theme.contrast(theme.COLOURS[mode]["text"], theme.COLOURS[mode][fill]) >= least(mode, 4.5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("outline", "fill"), [("forward", "forward_span"), ("backward", "backward_span")])
def test_the_outline_of_a_bar_stands_out_from_its_fill(mode, outline, fill):
    colours = theme.COLOURS[mode]
    assert theme.contrast(colours[outline], colours[fill]) >= 3.0


@pytest.mark.parametrize("mode", MODES)
def test_lines_of_charts_stand_out_from_the_page(mode):
    for colour in theme.COLORWAY[mode]:
        assert theme.contrast(colour, theme.COLOURS[mode]["surface"]) >= least(mode, 3.0)


@pytest.mark.parametrize("mode", STRONG)
def test_even_the_grid_can_be_seen_in_high_contrast(mode):
    assert theme.contrast(theme.COLOURS[mode]["grid"], theme.COLOURS[mode]["surface"]) >= 3.0


def test_high_contrast_is_black_on_white_or_white_on_black():
    ends = [(theme.COLOURS[mode]["text"], theme.COLOURS[mode]["surface"]) for mode in STRONG]
    assert ends == [("#000000", "#FFFFFF"), ("#FFFFFF", "#000000")]


@pytest.mark.parametrize("mode", MODES)
def test_all_themes_name_the_same_colours(mode):
    assert theme.COLOURS[mode].keys() == theme.COLOURS["light"].keys()
    assert all(mode in palettes for palettes in (theme.SEQUENTIAL, theme.DIVERGING, theme.COLORWAY))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("palette", "low"), [("sequential", 0.0), ("diverging", -1.0)])
def test_ink_reads_on_every_tone(mode, palette, low):
    for i in range(101):
        fill = theme.tone_colour(low + (1 - low) * i / 100, palette, mode)
        assert theme.contrast(theme.ink_on(fill), fill) >= least(mode, 4.5)


@pytest.mark.parametrize("mode", MODES)
def test_the_sequential_palette_grows_in_lightness_all_the_way(mode):
    steps = [theme.luminance(theme.tone_colour(i / 40, mode=mode)) for i in range(41)]
    assert all(a < b for a, b in pairwise(steps))


@pytest.mark.parametrize(("mode", "sign"), [("light", -1), ("dark", 1), ("contrast", -1), ("contrast-dark", 1)])
def test_the_diverging_palette_leaves_the_page_evenly_on_both_sides(mode, sign):
    for side in (-1.0, 1.0):
        steps = [sign * theme.luminance(theme.tone_colour(side * i / 50, "diverging", mode)) for i in range(51)]
        assert all(a < b for a, b in pairwise(steps))


def test_tones_beyond_the_ends_stay_at_the_ends():
    assert theme.tone_colour(7.0) == theme.CIVIDIS[-1]
    assert theme.tone_colour(-7.0, "diverging") == theme.DIVERGING["light"][0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (6.0, "6.0"),
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (-2.5, "−2.5"),
        (0.1 + 0.2, "0.3"),
        (1 / 3, "0.3333"),
        (1234.567, "1,234.6"),
        (0.00123456, "0.001235"),
        (1.5e-7, "1.5e−7"),
        (2e30, "2e30"),
        (math.nan, "nan"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (7, "7"),
        (-12345, "−12,345"),
        (True, "True"),
    ],
)
def test_numbers_are_written_as_a_person_would(value, text):
    assert theme.short(value) == text


def test_axes_merge_what_is_added_with_what_is_there():
    layout = theme.axes("step", "loss", yaxis={"type": "log"}, height=200)
    assert layout["yaxis"]["type"] == "log"
    assert layout["yaxis"]["title"]["text"] == "loss"
    assert layout["height"] == 200


@pytest.mark.parametrize("mode", MODES)
def test_the_style_sheet_knows_every_colour_in_every_theme(mode):
    css = theme.css_variables()
    block = css.partition("}")[0] if mode == "light" else css.partition(f"[data-lab-theme={mode}]")[2].partition("}")[0]
    for name, colour in theme.COLOURS[mode].items():
        assert f"--lab-{name}:{colour};" in block


def test_a_projector_gets_larger_type():
    assert ".lab-root[data-lab-size=projector]{--lab-scale:1.5;}" in theme.css_variables()


def test_still_pictures_are_drawn_in_the_theme_of_the_block():
    with theme.drawn_in("contrast-dark"):
        assert theme.INK["surface"] == "#000000"
        assert theme.tone_colour(0.0, "diverging") == "#000000"
        assert theme.colorway() == theme.COLORWAY["contrast-dark"]
    assert theme.INK["surface"] == "#FFFFFF"
    assert dict(theme.INK) == theme.COLOURS["light"]
