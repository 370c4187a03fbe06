import collections
import math

import numpy as np
import pytest

import lab
from lab.data import ALPHABET, Dataset, bigram_entropy, lines, spelled, text
from lab.data.packed import unpacked
from lab.data.text import FILE, SHA256, STRETCH
from lab.errors import ArgumentError, DataError


def test_a_target_is_the_character_that_follows():
    for part in text(n_places=20):
        assert np.array_equal(part.inputs[:, 1:], part.targets[:, :-1])


def test_every_character_is_in_one_part_alone_and_the_text_is_that_of_the_package():
    packed = unpacked(FILE, "topics of the text", SHA256)["text"].tobytes().decode("ascii")
    stretches = [packed[at : at + STRETCH] for at in range(0, len(packed) - STRETCH + 1, STRETCH)]
    train, held_out = text(n_places=STRETCH - 1)
    assert [spelled(row) for row in held_out.inputs] == [stretch[:-1] for stretch in stretches[9::10]]
    assert [spelled(row) for row in train.targets] == [s[1:] for i, s in enumerate(stretches) if i % 10 != 9]


def test_windows_lie_side_by_side_within_their_stretch():
    whole, parts = text("all", n_places=STRETCH - 1), text("all", n_places=100)
    n = (STRETCH - 1) // 100
    assert np.array_equal(parts.inputs.reshape(len(whole), n * 100), whole.inputs[:, : n * 100])


def test_the_alphabet_has_each_character_of_the_text_once():
    assert len(set(ALPHABET)) == len(ALPHABET) == 96
    assert spelled(range(96)) == ALPHABET


def test_a_bigram_entropy_is_that_of_counts_in_plain_python():
    train, held_out = text(n_places=64)
    pairs = list(zip(train.inputs.ravel().tolist(), train.targets.ravel().tolist(), strict=True))
    followed, before = collections.Counter(pairs), collections.Counter(a for a, _ in pairs)
    alone = collections.Counter(b for _, b in pairs)
    total = 0.0
    for a, b in zip(held_out.inputs.ravel().tolist(), held_out.targets.ravel().tolist(), strict=True):
        share = (alone[b] + 1) / (len(pairs) + len(ALPHABET))
        total -= math.log((followed[a, b] + 0.5 * share) / (before[a] + 0.5))
    assert bigram_entropy(train, held_out, smoothing=0.5) == pytest.approx(total / held_out.targets.size, rel=1e-12)


def test_what_always_follows_costs_nothing_and_a_coin_costs_the_logarithm_of_two():
    a, b = np.tile([1, 2], 50_000), np.tile([2, 1], 50_000)
    sure = Dataset(a[:, None], b[:, None])
    assert bigram_entropy(sure, sure) == pytest.approx(0.0, abs=1e-3)
    coin = np.random.default_rng(0).integers(0, 2, 200_000)[:, None]
    tossed = Dataset(coin[:-1], coin[1:])
    assert bigram_entropy(tossed, tossed) == pytest.approx(math.log(2), abs=1e-3)


def test_knowing_what_was_before_helps():
    train, held_out = text()
    nothing = [Dataset(np.zeros_like(part.inputs), part.targets) for part in (train, held_out)]
    assert bigram_entropy(train, held_out) < bigram_entropy(*nothing) - 0.5


def test_characters_that_no_training_text_has_cost_much_but_not_infinitely_much():
    seen, new = Dataset(np.array([[3]]), np.array([[4]])), Dataset(np.array([[200]]), np.array([[7]]))
    assert math.log(96) < bigram_entropy(seen, new) < math.inf


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (lambda: text("test"), ArgumentError, "no such split of the text"),
        (lambda: text(n_places=0), ArgumentError, "n_places"),
        (lambda: text(n_places=STRETCH), ArgumentError, "windows lie within a stretch"),
        (lambda: spelled([96]), ArgumentError, "characters are numbered from 0"),
        (lambda: spelled([0.5]), ArgumentError, "characters are numbered from 0"),
        (lambda: bigram_entropy(*text(), smoothing=0), ArgumentError, "needs a chance"),
        (lambda: bigram_entropy(*lab.data.digits()), DataError, "no characters and what follows"),
    ],
)
def test_what_cannot_be_is_refused_in_three_lines(call, kind, says):
    with pytest.raises(kind, match=says) as caught:
        call()
    assert [line.split(":")[0] for line in str(caught.value).splitlines()[1:]] == ["given", "hint"]


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "text.npz"
    path.write_bytes(FILE.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"the topics of the text are damaged\ngiven: text.npz, 62400 bytes"):
        unpacked(path, "topics of the text", SHA256)


def test_lines_are_told_character_by_character_and_padded():
    packed = unpacked(FILE, "topics of the text", SHA256)["text"].tobytes().decode("ascii")
    known = set(packed.split("\n"))
    for part in lines(n_places=200):
        n_tokens = (part.targets >= 0).sum(axis=1)
        for row, targets, n in zip(part.inputs, part.targets, n_tokens, strict=True):
            assert spelled(row[1:n]) in known
            assert spelled(targets[:n]) == spelled(row[1:n]) + "\n"
            assert set(targets[n:]) <= {-1}
            assert not row[n:].any()


def test_long_lines_are_cut():
    train, _ = lines(n_places=8)
    whole, _ = lines(n_places=80)
    assert np.array_equal(train.inputs, whole.inputs[:, :8])
    assert np.array_equal(train.targets, whole.targets[:, :8])
    assert {len(set(part.targets[:, 0])) > 1 for part in (train, whole)} == {True}
