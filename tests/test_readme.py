import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_code_of_the_readme_runs_and_gives_what_it_says(capsys):
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
        exec(block, scope)
        for source, said in re.findall(r"^([^#\n]+?) *# (\(?tensor\([^:\n]*\))(?::.*)?$", block, re.MULTILINE):
            assert repr(eval(source, scope)) == said
    scope["run"].wait(timeout=60)
    assert scope["run"].result.accuracy > 0.9
    assert "tanh(a)" in capsys.readouterr().out


def test_every_file_that_the_readme_names_is_there():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) >= 4
    assert [link for link in links if not (Path(__file__).parents[1] / link).exists()] == []
