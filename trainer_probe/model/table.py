"""The table of models: families by name, and their presets.

A family is one file: its keys, sublayers and presets. To add one, write the file and list it here; recipes, the
trainer, plans and closed forms ask the table.
"""

from collections.abc import Mapping

from fabrictune.trainer_probe.model import gpt, llama, moe
from fabrictune.trainer_probe.model.spec import ModelSpec

DEFAULT_FAMILY = gpt.GptSpec.family

_FAMILIES: tuple[type[ModelSpec], ...] = (gpt.GptSpec, llama.LlamaSpec, moe.MoeSpec)
MODELS: Mapping[str, type[ModelSpec]] = {spec.family: spec for spec in _FAMILIES}
PRESETS: Mapping[str, ModelSpec] = {**gpt.PRESETS, **llama.PRESETS, **moe.PRESETS}
