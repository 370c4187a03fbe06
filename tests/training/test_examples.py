"""Networks beside that of the digits, on real data: a convolution on images, a transformer on text."""

import pytest

import lab
from lab.data import ALPHABET, bigram_entropy, digits28, text
from lab.nn import Transformer, convnet
from lab.optim import Adam, Cosine

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_run_outlives_its_test")]


def test_a_convolution_reads_97_of_100_digits_that_it_never_saw():
    train, test = digits28()
    model = convnet(28, (1, 8, 16), 10, kernel=5, rng=0)
    optimizer = Adam(model.parameters(), Cosine(3e-3, n_steps=8 * 23))
    run = lab.fit(model, train, validation=test, optimizer=optimizer, epochs=8, batch_size=64)
    assert run.wait().accuracy >= 0.97


def test_a_language_model_knows_more_of_held_out_text_than_the_character_before_tells():
    train, held_out = text(n_places=32)
    model = Transformer(len(ALPHABET), 32, n_blocks=2, n_heads=4, n_places=32, rng=0)
    run = lab.fit(model, train, validation=held_out, optimizer=Adam(model.parameters(), 3e-3), epochs=2, batch_size=32)
    result = run.wait()
    found = lab.evaluate(model, held_out)
    assert result.state == "finished"
    assert found.loss < bigram_entropy(train, held_out) - 0.1
    assert 0.3 < found.accuracy < 1
