"""The forward pass of BERT (Devlin et al. 2019) as an ONNX graph in fp32, made from a safetensors file.

XLM-R (Conneau et al. 2020) is the same network; its positions begin behind that of padding.

Inputs `input_ids`, `attention_mask`: int64 (batch, tokens); output `token_vectors` (batch, tokens, hidden).
Standard operators only: measured level with onnxruntime's own fused ones, and any runtime can read them.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors import safe_open

# part of the cache key: raise it with every change of this module, or old graphs stay in use
BUILDER_VERSION = 2
ONNX_IR_VERSION = 10
ONNX_OPSET = 20
MASKED = -1e9
PREFIXES = ("", "bert.", "roberta.")
"""What names of weights begin with, by the part of a larger model that they were saved from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BertShape:
    hidden: int
    heads: int
    layers: int
    layer_norm_epsilon: float
    gelu_approximation: str
    """"none" or "tanh", as ONNX names them."""
    first_position: int = 0
    """Row of the position embeddings that belongs to the first token."""


def build_bert_graph(weights: Path, shape: BertShape) -> bytes:
    """Return the serialized model. Raises KeyError for weights of another architecture, TypeError for bfloat16."""
    # safetensors' numpy reader is lazy: one tensor at a time is in memory twice, not the whole file
    with safe_open(str(weights), framework="np") as tensors:
        return _BertGraph(tensors, shape).serialize()


class _BertGraph:
    def __init__(self, tensors: Any, shape: BertShape) -> None:
        self._tensors = tensors
        self._names = set(tensors.keys())
        self._shape = shape
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def serialize(self) -> bytes:
        bias = self._attention_bias()
        x = self._embeddings()
        for layer in range(self._shape.layers):
            x = self._layer(x, bias, prefix=f"encoder.layer.{layer}.")
        self._nodes.append(helper.make_node("Identity", [x], ["token_vectors"]))
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [self._io("input_ids", TensorProto.INT64), self._io("attention_mask", TensorProto.INT64)],
            [self._io("token_vectors", TensorProto.FLOAT, self._shape.hidden)],
            list(self._constants.values()),
        )
        opset = [helper.make_opsetid("", ONNX_OPSET)]
        model = helper.make_model(graph, ir_version=ONNX_IR_VERSION, opset_imports=opset)
        return bytes(model.SerializeToString())

    def _attention_bias(self) -> str:
        """Return 0 for tokens and a very negative number for padding, in the shape (batch, 1, 1, tokens)."""
        present = self._op("Cast", "attention_mask", to=TensorProto.FLOAT)
        absent = self._op("Sub", self._constant("one", np.float32(1)), present)
        bias = self._op("Mul", absent, self._constant("masked", np.float32(MASKED)))
        return self._op("Unsqueeze", bias, self._constant("head_and_query", np.array([1, 2])))

    def _embeddings(self) -> str:
        words = self._op("Gather", self._weight("embeddings.word_embeddings.weight"), "input_ids")
        # one text at a time means token type 0 everywhere: its row joins the positions here, once
        places = self._read("embeddings.position_embeddings.weight")[self._shape.first_position :]
        places = places + self._read("embeddings.token_type_embeddings.weight")[0]
        tokens = self._op("Shape", "input_ids", start=1, end=2)
        first = self._constant("first", np.array([0]))
        positions = self._op("Slice", self._constant("positions", places), first, tokens)
        return self._layer_norm(self._op("Add", words, positions), "embeddings.LayerNorm")

    def _layer(self, x: str, bias: str, *, prefix: str) -> str:
        attended = self._linear(self._attention(x, bias, prefix=prefix), f"{prefix}attention.output.dense")
        x = self._layer_norm(self._op("Add", attended, x), f"{prefix}attention.output.LayerNorm")
        inner = self._linear(x, f"{prefix}intermediate.dense")
        inner = self._op("Gelu", inner, approximate=self._shape.gelu_approximation)
        outer = self._linear(inner, f"{prefix}output.dense")
        return self._layer_norm(self._op("Add", outer, x), f"{prefix}output.LayerNorm")

    def _attention(self, x: str, bias: str, *, prefix: str) -> str:
        query = self._heads(self._linear(x, f"{prefix}attention.self.query"), order=(0, 2, 1, 3))
        key = self._heads(self._linear(x, f"{prefix}attention.self.key"), order=(0, 2, 3, 1))
        value = self._heads(self._linear(x, f"{prefix}attention.self.value"), order=(0, 2, 1, 3))
        scale = np.float32(1 / math.sqrt(self._shape.hidden // self._shape.heads))
        scores = self._op("Mul", self._op("MatMul", query, key), self._constant("scale", scale))
        weights = self._op("Softmax", self._op("Add", scores, bias), axis=-1)
        mixed = self._op("Transpose", self._op("MatMul", weights, value), perm=(0, 2, 1, 3))
        return self._op("Reshape", mixed, self._constant("merged", np.array([0, 0, self._shape.hidden])))

    def _heads(self, x: str, *, order: tuple[int, ...]) -> str:
        split = np.array([0, 0, self._shape.heads, self._shape.hidden // self._shape.heads])
        return self._op("Transpose", self._op("Reshape", x, self._constant("split", split)), perm=order)

    def _linear(self, x: str, name: str) -> str:
        # stored as (out, in); transposed here, once, instead of in every run
        weight = self._constant(f"{name}.weight", self._read(f"{name}.weight").T)
        return self._op("Add", self._op("MatMul", x, weight), self._weight(f"{name}.bias"))

    def _layer_norm(self, x: str, name: str) -> str:
        scale, shift = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        epsilon = self._shape.layer_norm_epsilon
        return self._op("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon)

    def _weight(self, name: str) -> str:
        return self._constant(name, self._read(name))

    def _read(self, name: str) -> NDArray[np.float32]:
        """Read a weight, under its name or with one of PREFIXES."""
        stored = next((known for prefix in PREFIXES if (known := f"{prefix}{name}") in self._names), None)
        if stored is None:
            raise KeyError(name)
        tensor: NDArray[np.float32] = self._tensors.get_tensor(stored).astype(np.float32)
        return tensor

    def _constant(self, name: str, value: NDArray[Any] | np.float32) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def _op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    @staticmethod
    def _io(name: str, kind: int, *inner: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, ["batch", "tokens", *inner])
