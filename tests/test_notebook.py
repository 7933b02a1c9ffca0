"""A cell under %%bitwatt is measured, shown, and behaves as without it."""

import pytest
from IPython.core.error import UsageError

from bitwatt.notebook import HtmlReport, load_ipython_extension
from bitwatt.records import Run

IPython = pytest.importorskip("IPython")


@pytest.fixture
def shell(tmp_path, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    load_ipython_extension(shell)
    yield shell
    InteractiveShell.clear_instance()


@pytest.fixture
def shown(monkeypatch):
    objects = []
    monkeypatch.setattr("IPython.display.display", objects.append)
    return objects


def test_a_cell_runs_in_the_notebook_and_its_run_is_bound(shell, shown):
    shell.run_cell("%%bitwatt --name training --by phase\nx = 6 * 7").raise_error()
    assert shell.user_ns["x"] == 42
    assert isinstance(shell.user_ns["_run"], Run)
    assert shell.user_ns["_run"].name == "training"
    (report,) = shown
    assert isinstance(report, HtmlReport)
    assert '<div class="bitwatt">' in report._repr_html_()
    assert "0 missing" in repr(report)


def test_the_run_can_be_bound_to_a_name(shell, shown):
    shell.run_cell("%%bitwatt -o mine\npass").raise_error()
    assert isinstance(shell.user_ns["mine"], Run)


def test_a_cell_that_fails_says_so_in_its_run(shell, shown, capsys):
    shell.run_cell("%%bitwatt\n1 / 0")
    assert shell.user_ns["_run"].status == "failed: ZeroDivisionError: division by zero"
    assert capsys.readouterr().out.count("Traceback") == 1


def test_a_wrong_option_is_an_error_of_the_cell(shell, shown):
    with pytest.raises(UsageError, match="unrecognized arguments: --colour"):
        shell.run_cell("%%bitwatt --colour\npass").raise_error()


@pytest.mark.parametrize("option", ["--by nosuch", "--cost-model nosuch", "--name 'open"])
def test_a_wrong_name_is_told_before_the_cell_runs(shell, shown, option, capsys):
    shell.run_cell(f"%%bitwatt {option}\nran = True")
    assert "ran" not in shell.user_ns
    told = capsys.readouterr()
    assert "UsageError: %%bitwatt: " in told.err + told.out
    assert "Traceback" not in told.err + told.out
