"""Checkpoints in folders, as transformers saves them: in one file or several, as a person asks."""

import json
import shutil
import subprocess
import sys

import pytest
import torch

import otimes as ot
from otimes.numeric.audit.checkpoint import audit_folder
from tests.peers.makers import KINDS, TOKENS, gpt2, llama

pytest.importorskip("transformers")


def otimes(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "otimes", *arguments], capture_output=True, text=True, check=False
    )


pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("shard", ["5GB", "20KB"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_checkpoint_passes(kind: str, shard: str, tmp_path) -> None:
    module = KINDS[kind]()
    module.save_pretrained(tmp_path, max_shard_size=shard)
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) == (shard == "20KB")
    report = audit_folder(str(tmp_path))
    assert report.passed, str(report)
    assert ot.audit(module, TOKENS, weights=tmp_path).passed
    other = ot.audit(KINDS[kind](), TOKENS, weights=tmp_path)
    assert not other.passed  # other weights


def test_a_lone_file_is_run_by_transformers(tmp_path) -> None:
    gpt2().save_pretrained(tmp_path)
    lone = (tmp_path / "model.safetensors").rename(tmp_path / "lone.safetensors")
    beside = audit_folder(str(lone))
    assert beside.passed
    assert "a copy with generic parameters" in str(beside)  # of a live module
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").unlink()
    assert str(audit_folder(str(lone), config=settings)) == str(beside)


def test_in_half_precision(tmp_path) -> None:
    llama().bfloat16().save_pretrained(tmp_path)
    report = audit_folder(str(tmp_path))
    assert report.passed
    assert report.dtype == "bfloat16"


def test_on_the_command_line(tmp_path) -> None:
    llama().save_pretrained(tmp_path / "mine")
    page = tmp_path / "report.html"
    ran = otimes("audit", str(tmp_path / "mine"), "--html", str(page))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("mine computes the reference")
    assert "<td" in page.read_text()
    ran = otimes("audit", str(tmp_path / "mine"), "--json")
    content = json.loads(ran.stdout)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (content["passed"], content["name"]) == (True, "mine")


def test_a_head_that_a_tied_checkpoint_holds_is_used(tmp_path) -> None:
    """The library believes the file more than the setting, and so does the importer."""
    from safetensors.torch import load_file, save_file

    gpt2().save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight"] = torch.randn(61, 32)
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    module = type(gpt2()).from_pretrained(tmp_path)
    assert ot.audit(module, TOKENS[:1], weights=tmp_path).passed


def test_what_is_no_checkpoint_is_said_in_a_sentence(tmp_path) -> None:
    def refusal() -> str:
        with pytest.raises(ot.OtimesError) as raised:
            audit_folder(str(tmp_path))
        return str(raised.value)

    assert "config.json" in refusal()
    gpt2().save_pretrained(tmp_path)
    shutil.move(tmp_path / "model.safetensors", tmp_path / "pytorch_model.bin")
    assert "model.safetensors" in refusal()
