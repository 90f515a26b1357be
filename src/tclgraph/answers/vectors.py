"""Vectors of nodes, and the nodes whose vectors are most similar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from tclgraph.answers.time_travel import model_at
from tclgraph.arrays import IntArray, ScoreArray
from tclgraph.events.identifiers import Identifiers, Key

if TYPE_CHECKING:
    from tclgraph.models.interface import Model

Side: TypeAlias = Literal["source", "target"]


class SimilarNode(NamedTuple):
    """A node and the cosine of its vector with that of the node asked for."""

    key: Key
    similarity: float


def embed(model: Model, keys: Sequence[Key] | None, *, side: Side, at: float | None) -> ScoreArray:
    """Return one vector per key, or of all nodes of a side."""
    past, now = _model_with(model, () if keys is None else keys, side, at)
    identifiers = _identifiers(past, side)
    ids = np.arange(len(identifiers)) if keys is None else identifiers.ids(keys)
    return _vectors(past, ids, side, now)


def embeddings(model: Model, *, at: float | None) -> pl.DataFrame:
    """Return all vectors as a table with the columns side, key and vector."""
    model.check_fitted()
    is_one_mode = model.state.space.kind == "one-mode"
    sides: tuple[Side, ...] = ("source",) if is_one_mode else ("source", "target")
    frames = []
    for side in sides:
        identifiers = _identifiers(model, side)
        vectors = embed(model, None, side=side, at=at)
        frames.append(
            pl.DataFrame(
                {
                    "side": ["both" if is_one_mode else side] * len(identifiers),
                    # One type for both sides, whether keys are text or integers.
                    "key": identifiers.keys.cast(pl.String),
                    "vector": pl.Series(vectors, dtype=pl.Array(pl.Float32, vectors.shape[1])),
                }
            )
        )
    return pl.concat(frames)


def similar(model: Model, key: Key, *, top: int, side: Side, at: float | None) -> list[SimilarNode]:
    """Return the nodes of a side with the highest cosine similarity, best first."""
    past, now = _model_with(model, [key], side, at)
    identifiers = _identifiers(past, side)
    own = identifiers.id(key)
    vectors = _vectors(past, np.arange(len(identifiers)), side, now).astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1)
    # A vector of length zero has no direction; its cosine counts as zero.
    unit = vectors / np.where(lengths > 0, lengths, 1.0)[:, None]
    cosine = unit @ unit[own]
    cosine[own] = -np.inf  # the node itself is left out
    best = np.argsort(-cosine, kind="stable")[: min(top, len(cosine) - 1)]
    return [SimilarNode(identifiers.key(node), float(cosine[node])) for node in best.tolist()]


def _model_with(
    model: Model, keys: Sequence[Key], side: Side, at: float | None
) -> tuple[Model, float]:
    """Return the model at a time, with these keys of a side, and the time."""
    if side == "source":
        return model_at(model, at, sources=keys)
    return model_at(model, at, targets=keys)


def _vectors(model: Model, ids: IntArray, side: Side, now: float) -> ScoreArray:
    offset = 0 if side == "source" else model.state.space.first_target
    return model.vectors(ids + offset, now)


def _identifiers(model: Model, side: Side) -> Identifiers:
    return model.state.sources if side == "source" else model.state.targets
