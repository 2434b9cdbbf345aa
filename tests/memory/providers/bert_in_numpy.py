"""BERT's forward pass a second time, straight from the paper's formulas, to hold the ONNX graph against."""

import json
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

Matrix = NDArray[np.float64]
erf = np.vectorize(math.erf)


class NumpyBert:
    """One text at a time, so there is no padding to get wrong; float64, so there is no rounding to share."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = {
            name.removeprefix("roberta."): value.astype(np.float64)
            for name, value in load_file(folder / "model.safetensors").items()
        }

    def token_vectors(self, ids: list[int]) -> Matrix:
        w = self.weights
        # XLM-R numbers its tokens from behind that of padding
        first = self.config["pad_token_id"] + 1 if self.config["model_type"] == "xlm-roberta" else 0
        places = w["embeddings.position_embeddings.weight"][first : first + len(ids)]
        x = w["embeddings.word_embeddings.weight"][ids] + places
        x = self.norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for number in range(self.config["num_hidden_layers"]):
            x = self.layer(x, f"encoder.layer.{number}.")
        return x

    def mean_vector(self, ids: list[int]) -> Matrix:
        mean: Matrix = self.token_vectors(ids).mean(axis=0)
        return mean / np.linalg.norm(mean)

    def layer(self, x: Matrix, at: str) -> Matrix:
        attended = self.linear(self.attention(x, at), f"{at}attention.output.dense")
        x = self.norm(x + attended, f"{at}attention.output.LayerNorm")
        inner = self.gelu(self.linear(x, f"{at}intermediate.dense"))
        return self.norm(x + self.linear(inner, f"{at}output.dense"), f"{at}output.LayerNorm")

    def attention(self, x: Matrix, at: str) -> Matrix:
        heads = self.config["num_attention_heads"]
        parts = (self.linear(x, f"{at}attention.self.{part}") for part in ("query", "key", "value"))
        q, k, v = (np.split(part, heads, axis=1) for part in parts)
        return np.hstack([softmax(q[h] @ k[h].T / math.sqrt(q[h].shape[1])) @ v[h] for h in range(heads)])

    def gelu(self, x: Matrix) -> Matrix:
        if self.config["hidden_act"] == "gelu":
            return np.asarray(x * (1 + erf(x / math.sqrt(2))) / 2)
        return np.asarray(x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2)

    def linear(self, x: Matrix, name: str) -> Matrix:
        return np.asarray(x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"])

    def norm(self, x: Matrix, name: str) -> Matrix:
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + self.config["layer_norm_eps"])
        return np.asarray(scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"])


def softmax(x: Matrix) -> Matrix:
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
