"""Settings: file, environment, command line; what cannot be used is said."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from morimon.cli.config import as_toml, command
from morimon.cli.screen import chosen_options, screen_options
from morimon.cli.settings import Settings, SettingsError, load, manual


def written(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return {"MORIMON_CONFIG": str(path)}


def test_without_a_file_all_settings_are_defaults(tmp_path: Path) -> None:
    loaded = load({"MORIMON_CONFIG": str(tmp_path / "none.toml")})
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


def test_the_environment_goes_over_the_file(tmp_path: Path) -> None:
    environ = written(tmp_path, 'theme = "light"\nmouse = true\n[keys]\n"ranks.sort" = "O"\n')
    environ |= {"MORIMON_MOUSE": "no", "MORIMON_REFRESH_HZ": "2"}
    loaded = load(environ)
    assert loaded.settings.theme == "light"
    assert loaded.settings.mouse is False
    assert loaded.settings.refresh_hz == 2.0
    assert loaded.settings.keys == {"ranks.sort": "O"}
    assert loaded.origins["theme"] == environ["MORIMON_CONFIG"]
    assert loaded.origins["mouse"] == "$MORIMON_MOUSE"
    assert loaded.themes_dir == tmp_path / "themes"


@pytest.mark.parametrize(
    ("text", "environ", "said"),
    [
        ("thema = 1", {}, "no setting 'thema'; did you mean theme?"),
        ("theme = ", {}, "is no TOML"),
        ('mouse = "maybe"', {}, "mouse: expected `bool`, got `str`"),
        ("refresh_hz = 100", {}, "refresh_hz: expected `float` <= 20"),
        ("", {"MORIMON_COLOR": "blue"}, "$MORIMON_COLOR: color"),
        ("", {"MORIMON_REFRESH_HZ": "fast"}, "it must be a number"),
        ("", {"MORIMON_MOUSE": "maybe"}, "it can be true or false"),
    ],
)
def test_settings_that_cannot_be_used_say_where_and_why(
    tmp_path: Path, text: str, environ: dict[str, str], said: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(written(tmp_path, text) | environ)
    assert said in str(caught.value)


@click.command()
@screen_options
def chosen() -> None:
    options = chosen_options()
    click.echo(f"{options.theme} {options.color} {options.ascii} {options.mouse} {dict(options.keys)}")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ([], "light 16 True False {'ranks.sort': 'O'}"),
        (["--theme", "dark", "--unicode", "--mouse"], "dark 16 False True {'ranks.sort': 'O'}"),
        (["--color", "never", "--no-mouse"], "light never True False {'ranks.sort': 'O'}"),
    ],
)
def test_the_command_line_goes_over_the_settings(tmp_path: Path, arguments: list[str], shown: str) -> None:
    environ = written(
        tmp_path,
        'theme = "light"\ncolor = "16"\nglyphs = "ascii"\nmouse = false\n[keys]\n"ranks.sort" = "O"\n',
    )
    done = CliRunner().invoke(chosen, arguments, env=environ)
    assert done.output.strip() == shown


def test_keys_that_clash_are_refused_with_the_file_that_holds_them(tmp_path: Path) -> None:
    environ = written(tmp_path, '[keys]\n"ranks.sort" = "q"\n')
    done = CliRunner().invoke(chosen, [], env=environ)
    assert isinstance(done.exception, SettingsError)
    assert environ["MORIMON_CONFIG"] in str(done.exception)
    assert "q would mean both quit and ranks.sort" in str(done.exception)


def test_show_refuses_keys_that_the_screens_refuse(tmp_path: Path) -> None:
    environ = written(tmp_path, '[keys]\nquit = "ctrl+banana"\n')
    done = CliRunner().invoke(command, ["show"], env=environ)
    assert done.exit_code == 2
    assert "no key is called 'ctrl+banana'" in done.output


def test_every_setting_is_explained() -> None:
    assert set(manual()) == set(Settings.__struct_fields__)


def test_what_show_prints_is_a_file_with_the_same_settings(tmp_path: Path) -> None:
    environ = written(tmp_path, 'theme = "okabe-ito"\nrefresh_hz = 5\n[keys]\nquit = "Q"\n')
    loaded = load(environ)
    again = tmp_path / "again.toml"
    again.write_text(as_toml(loaded))
    assert load({"MORIMON_CONFIG": str(again)}).settings == loaded.settings


def test_the_command_prints_the_path_and_refuses_bad_files(tmp_path: Path) -> None:
    environ = written(tmp_path, "colour = 1")
    path = CliRunner().invoke(command, ["path"], env=environ)
    assert path.output.strip() == environ["MORIMON_CONFIG"]
    shown = CliRunner().invoke(command, [], env=environ)
    assert shown.exit_code == 2
    assert "did you mean color?" in shown.output
