import re
from pathlib import Path

import pytest

from enfa.training import Config, read_config
from enfa.training.settings.config import settings

ROOT = Path(__file__).resolve().parents[2]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_base_then_file_then_overrides(tmp_path: Path) -> None:
    write(tmp_path / "base" / "a.yaml", "dataset: CSL\nlr: 0.5\nepochs: 7\nnum_layers: 3\n")
    write(tmp_path / "base" / "b.yaml", "base: a.yaml\nlr: 0.25\n")
    path = write(tmp_path / "c.yaml", "base: base/b.yaml\nepochs: 9\n")
    config = read_config(path, ["epochs=11", "policy_params.isolate=true"])
    assert (config.dataset, config.lr, config.epochs, config.num_layers) == ("CSL", 0.25, 11, 3)
    assert config.name == "c" and config.policy_params == {"isolate": True}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dataset: CSL\nepoch: 3", r"c\.yaml: .*'epoch' \(did you mean 'epochs'\?\)"),
        ("epochs: 3", "a setting 'dataset'"),
        ("dataset: CSL\nlr: fast", "Expected lr to be a number, got 'fast'"),
        ("dataset: CSL\nepochs: 3.5", "Expected epochs to be a whole number, got 3.5"),
        ("dataset: CSL\nepochs: true", "Expected epochs to be a whole number, got True"),
        ("dataset: CSL\nepochs: 0", "Expected epochs to be an integer >= 1, got 0"),
        ("dataset: CSL\nbatch_size: -1", "Expected batch_size to be an integer >= 1, got -1"),
        ("dataset: CSL\nmax_rows: 0", "Expected max_rows to be an integer >= 1, got 0"),
        ("dataset: CSL\nearly_stopping: -3", "Expected early_stopping >= 1, or null, which turns it off, got -3"),
        ("dataset: CSL\nearly_stopping: 0", "Expected early_stopping >= 1, or null, which turns it off, got 0"),
        ("dataset: CSL\nseed: -1", "Expected seed to be an integer >= 0 and <= 9223372036854775807, got -1"),
        ("dataset: CSL\nseed: 99999999999999999999", "Expected seed to be an integer >= 0 and <= 9223372036854775807"),
        ("dataset: CSL\nfold_seed: -1", "Expected fold_seed to be an integer >= 0"),
        ("dataset: CSL\nlr: -1", "Expected lr to be a number > 0, got -1.0"),
        ("dataset: CSL\nlr: nan", "Expected lr to be a number > 0, got nan"),
        ("dataset: CSL\nlr: .inf", "Expected lr to be a number > 0, got inf"),
        ("dataset: CSL\nlr_decay: .inf", "Expected lr_decay to be a number > 0, got inf"),
        ("dataset: CSL\nweight_decay: .nan", "Expected weight_decay to be a number >= 0, got nan"),
        ("dataset: CSL\nstop_at: 1.5", "Expected stop_at to be a number >= 0 and <= 1, got 1.5"),
        ("dataset: CSL\nstop_at: .nan", "Expected stop_at to be a number >= 0 and <= 1, got nan"),
        ("dataset: CSL\nresidual: 1", "Expected residual to be true or false or null, got 1"),
        ("dataset: CSL\nmodel: dds", r"Expected model to be one of ds, dss, .* got 'dds' \(did you mean"),
        ("dataset: 3", "Expected dataset to be text, got 3"),
        ("dataset: CSL\npolicy_params: 3", "Expected policy_params to be a mapping, got 3"),
        ("dataset: CSL\ndropout: 1", "Expected dropout to be a number >= 0 and < 1, got 1.0"),
        ("dataset: CSL\nbase: none.yaml", r"no config file .*none\.yaml, which .*c\.yaml names as its base"),
        ("base: c.yaml", "its own base"),
        ("base: 3", "Expected base to be the path"),
        ("- 3", "Expected 'setting: value' lines, got list"),
        ("a: [", "is not YAML"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        read_config(write(tmp_path / "c.yaml", text))


@pytest.mark.parametrize("name", ["../../x", "..", ".", "", "/x", "a/b", "a\\b", "a/", "a\0b"])
def test_a_run_stays_in_its_folder(name: str) -> None:
    with pytest.raises(ValueError, match=f"^Expected name to be a file name, .*, got {re.escape(repr(name))}$"):
        Config(dataset="CSL", name=name)


def test_a_name_may_hold_what_file_names_may() -> None:
    assert Config(dataset="CSL", name="my run, lr=0.1 [b].v2").name == "my run, lr=0.1 [b].v2"


@pytest.mark.parametrize("override", ["lr", "=3", "lr.x=3", "lr=[", "polizy=x"])
def test_wrong_overrides(tmp_path: Path, override: str) -> None:
    with pytest.raises(ValueError, match=rf"c\.yaml with {re.escape(override)}: Expected"):
        read_config(write(tmp_path / "c.yaml", "dataset: CSL"), [override])
    with pytest.raises(ValueError, match=r"c\.yaml: Expected dropout"):
        read_config(write(tmp_path / "c.yaml", "dataset: CSL\ndropout: 1"), [override])


def test_numbers_that_yaml_reads_as_text_or_as_other_types(tmp_path: Path) -> None:
    path = write(tmp_path / "c.yaml", "dataset: CSL\nlr: 1e-3\nprecision: 64\ndropout: 0\n")
    config = read_config(path)
    assert config.lr == 0.001 and config.precision == "64" and isinstance(config.dropout, float)


def test_a_config_survives_being_written_down() -> None:
    config = Config(dataset="CSL", policy_params={"isolate": True}, early_stopping=3)
    assert Config.make(config.to_dict()) == config


def test_every_setting_says_what_it_means() -> None:
    assert all(name and kind and default and meaning for name, kind, default, meaning in settings())


def test_a_file_of_ones_own_chooses_its_epoch_on_no_test_data(tmp_path: Path) -> None:
    own, named = tmp_path / "own.npz", tmp_path / "named.yaml"
    own.write_bytes(b"")
    named.write_text("dataset: PROTEINS\n")
    assert read_config(own).validation == "next" and read_config(named, [f"dataset={own}"]).validation == "next"
    assert read_config(own, ["validation=test"]).validation == "test" and read_config(named).validation == "test"
