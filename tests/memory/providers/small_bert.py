"""Folders of random weights of a few kilobytes, in all the variants that folders come in."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "lamp", "is", "red", "in", "cellar", "a", "cat"]
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁the", "▁lamp", "▁is", "▁re", "d", "▁in", "▁a", "▁"]
"""The pieces of XLM-R's tokenizer, as many as WORDS."""
XLM_R = {"model_type": "xlm-roberta", "pad_token_id": 1, "layer_norm_eps": 1e-5}
HIDDEN, INNER, POSITIONS = 8, 16, 12


def write_small_bert(
    folder: Path, *, prefix: str = "", dtype: type = np.float32, pooling: str = "mean_tokens", **config: Any
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    weights: dict[str, NDArray[Any]] = {
        f"{prefix}{name}": random.normal(size=shape).astype(dtype) for name, shape in list_shapes().items()
    }
    save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    write_tokenizer(folder / "tokenizer.json")
    return folder


def write_small_xlm_r(folder: Path, *, pooling: str = "mean_tokens", prefix: str = "") -> Path:
    write_small_bert(folder, pooling=pooling, prefix=prefix, **XLM_R)
    write_unigram_tokenizer(folder / "tokenizer.json")
    return folder


CONFIG = {
    "model_type": "bert",
    "hidden_size": HIDDEN,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": POSITIONS,
    "pad_token_id": 0,
}


def list_shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
    }
    norms = ["embeddings.LayerNorm"]
    linears: dict[str, tuple[int, ...]] = {}
    for at in ("encoder.layer.0.", "encoder.layer.1."):
        norms += [f"{at}attention.output.LayerNorm", f"{at}output.LayerNorm"]
        linears |= {f"{at}attention.self.{part}": (HIDDEN, HIDDEN) for part in ("query", "key", "value")}
        linears |= {f"{at}attention.output.dense": (HIDDEN, HIDDEN)}
        linears |= {f"{at}intermediate.dense": (INNER, HIDDEN), f"{at}output.dense": (HIDDEN, INNER)}
    shapes |= {f"{name}.{part}": (HIDDEN,) for name in norms for part in ("weight", "bias")}
    shapes |= {f"{name}.weight": shape for name, shape in linears.items()}
    return shapes | {f"{name}.bias": (shape[0],) for name, shape in linears.items()}


def write_tokenizer(path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # as published folders do: asks for padding and for shorter texts than the model reads
    tokenizer.enable_padding(length=6)
    tokenizer.enable_truncation(max_length=6)
    tokenizer.save(str(path))


def write_unigram_tokenizer(path: Path) -> None:
    tokenizer = Tokenizer(models.Unigram([(piece, -float(at)) for at, piece in enumerate(PIECES)], unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.save(str(path))
