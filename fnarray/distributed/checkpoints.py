"""Pytrees of arrays on disk: each worker writes, and reads, its own part.

A checkpoint is a folder: a ``.npy`` file for each part of each array, of its bytes whatever the
dtype, or a Zarr array for each array, whose chunks are the parts; and ``fnarray.json``, which says
what there is. It is written under another name and renamed
when all is there, so a folder of the given name is whole.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast

import cloudpickle
import fsspec
import numpy as np

from ..core import tree
from ..core.array import Array, asarray
from ..runtime.spec import NamedSharding, Sharding
from .arrays import WorkerArray, box_of, from_callback
from .wire import dtype_named

_INDEX = "fnarray.json"
_VERSION = 1


class _Write:
    """Writes one part; runs on a worker."""

    def __init__(self, path: str, options: dict[str, Any]):
        self.path, self.options = path, options

    def __call__(self, data: np.ndarray) -> None:
        with fsspec.open(self.path, "wb", **self.options) as file:
            np.save(cast("Any", file), data.reshape(-1).view(np.uint8))


class _WriteChunk:
    """Writes one part into a Zarr array, of which it is a chunk; runs on a worker."""

    def __init__(self, path: str, box: Any, options: dict[str, Any]):
        self.path, self.box, self.options = path, box, options

    def __call__(self, data: np.ndarray) -> None:
        where = tuple(slice(*b) for b in self.box)
        _zarr(self.path, self.options, "r+")[where] = data.view(_stored(data.dtype))


def _zarr(path: str, options: dict[str, Any], mode: Any, **more: Any) -> Any:
    """Open, or create, a Zarr array; the file system's options are of remote ones alone."""
    try:
        zarr: Any = import_module("zarr")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a checkpoint in Zarr's format needs zarr, here and on the workers: pip install zarr",
            name=error.name,
        ) from error
    given = {"storage_options": options} if "://" in path else {}
    if more:
        return zarr.create_array(path, **more, **given)
    return zarr.open_array(path, mode=mode, **given)


def _stored(dtype: np.dtype) -> np.dtype:
    """Return the dtype that Zarr has for one of its own, or words of its size."""
    return dtype if dtype.kind in "biufc" else np.dtype(f"u{dtype.itemsize}")


class _Read:
    """Reads part of an array from the parts it was written in; runs where the part is wanted."""

    def __init__(self, root: str, entry: dict[str, Any], options: dict[str, Any]):
        self.root, self.entry, self.options = root, entry, options

    def __call__(self, index: Any) -> np.ndarray:
        shape, dtype = self.entry["shape"], dtype_named(self.entry["dtype"])
        box = box_of(index, shape)
        if name := self.entry.get("zarr"):
            found = _zarr(f"{self.root}/{name}", self.options, "r")
            where = tuple(slice(*b) for b in box)
            return np.asarray(found[where]).view(dtype).reshape([b - a for a, b in box])
        out = np.empty([b - a for a, b in box], dtype)
        for name, origin in self.entry["parts"]:
            cut = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, origin, strict=True)]
            if any(a >= b for a, b in cut):
                continue
            with fsspec.open(f"{self.root}/{name}", "rb", **self.options) as file:
                part = np.load(cast("Any", file)).view(dtype).reshape([b - a for a, b in origin])
            there = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(cut, origin, strict=True))
            here = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(cut, box, strict=True))
            out[here] = part[there]
        return out


def checkpoint(path: Any, state: Any, *, format: str = "npy", **options: Any) -> None:
    """Write a pytree of arrays; returns when all of it is there.

    Parameters
    ----------
    path : str or path-like
        Folder that all workers reach by this name: of a shared file system, or of whatever fsspec
        knows (``"s3://bucket/run/7"``). One that exists is replaced when the new one is whole.
    state : pytree of arrays
        On workers or here.
    format : "npy" or "zarr"
        Files of parts, or a Zarr array for each array, named by its number among the leaves, which
        other programs can read: its chunks are the parts. Dtypes that Zarr has not, such as
        bfloat16, are words of their size there.
    **options
        Of the file system (`fsspec.open`).

    Raises
    ------
    OSError
        A part cannot be written; what was at ``path`` before is intact.
    ValueError
        There is no such format.
    ModuleNotFoundError
        Zarr is asked for, and not installed.
    """
    if format not in ("npy", "zarr"):
        raise ValueError(f"checkpoint: format must be 'npy' or 'zarr', got {format!r}.")
    fs, root = fsspec.url_to_fs(str(path), **options)
    temporary = f"{root}.{secrets.token_hex(6)}.part"
    prefix = str(path)[: len(str(path)) - len(root)] if "://" in str(path) else ""
    leaves = tree.leaves_with_path(state)
    fs.makedirs(temporary, exist_ok=True)
    try:
        entries = [
            _written(f"{prefix}{temporary}", k, tree.keystr(where), leaf, options, format)
            for k, (where, leaf) in enumerate(leaves)
        ]
        with fs.open(f"{temporary}/{_INDEX}", "w") as file:
            json.dump({"version": _VERSION, "leaves": entries}, file)
        old = f"{root}.{secrets.token_hex(6)}.old"
        if existed := fs.exists(root):
            fs.mv(root, old, recursive=True)
        fs.mv(temporary, root, recursive=True)
        if existed:
            fs.rm(old, recursive=True)
    except BaseException:
        if fs.exists(temporary):
            fs.rm(temporary, recursive=True)
        raise


def _written(
    root: str, k: int, where: str, leaf: Any, options: dict[str, Any], format: str
) -> dict[str, Any]:
    x = leaf if isinstance(leaf, WorkerArray) else asarray(leaf)
    entry = {"path": where, "shape": x.shape, "dtype": x.dtype.name, "weak": x.weak_type}
    if format == "zarr":
        part = x.placement.shard_shape(x.shape) if isinstance(x, WorkerArray) else x.shape
        chunks = tuple(max(n, 1) for n in part)
        stored = _stored(x.dtype)
        _zarr(f"{root}/{k}", options, "w", shape=x.shape, dtype=stored, chunks=chunks)
        entry["zarr"] = str(k)

    def writer(name: str, box: Any) -> Any:
        if format == "zarr":
            return _WriteChunk(f"{root}/{k}", box, options)
        return _Write(f"{root}/{name}", options)

    parts: list[Any] = []
    if isinstance(x, WorkerArray):
        x.block_until_ready()
        node, cluster = x.handle.node, x.handle.node.cluster
        places = x.placement.devices_indices_map(x.shape).values()
        seen: set[Any] = set()
        for rank, index in zip(x.ranks, places, strict=True):
            box = box_of(index, x.shape)
            if box in seen:
                continue
            seen.add(box)
            name = f"{k}.{len(parts)}.npy"
            write = cloudpickle.dumps(writer(name, box))
            message = {"op": "save", "key": node.key(x.handle.k), "write": write}
            cluster.do(node, x.handle.k, rank, message)
            parts.append((name, box))
    else:
        box = [(0, n) for n in x.shape]
        writer(name := f"{k}.0.npy", box)(np.asarray(x))
        parts.append((name, box))
    return entry if format == "zarr" else {**entry, "parts": parts}


def restore(path: Any, like: Any, **options: Any) -> Any:
    """Read what `checkpoint` wrote; each worker reads its own part.

    Parameters
    ----------
    path : str or path-like
    like : pytree
        Of the structure that was written: its leaves are the shardings that arrays are to have, on
        a mesh of any number of workers, or arrays that have them; None reads an array to here.
    **options
        Of the file system.

    Raises
    ------
    FileNotFoundError
        There is no checkpoint, or it is not whole.
    ValueError
        The structure is another one, or a sharding does not divide an array.
    """
    fs, root = fsspec.url_to_fs(str(path), **options)
    try:
        with fs.open(f"{root}/{_INDEX}") as file:
            found = json.load(file)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"restore: there is no checkpoint at {str(path)!r}: no {_INDEX} in it. One that was "
            "interrupted has another name, and is to be deleted."
        ) from None
    if found.get("version") != _VERSION:
        raise ValueError(
            f"restore: the checkpoint at {str(path)!r} is of version {found.get('version')}, and "
            f"this fnarray reads {_VERSION}."
        )
    entries: Sequence[dict[str, Any]] = found["leaves"]
    is_leaf = lambda x: x is None or isinstance(x, Sharding)  # noqa: E731
    wanted = tree.leaves_with_path(like, is_leaf=is_leaf)
    names, has = [tree.keystr(w) for w, _ in wanted], [e["path"] for e in entries]
    if names != has:
        raise ValueError(
            f"restore: the checkpoint at {str(path)!r} has the leaves {has}, and `like` has "
            f"{names}."
        )
    leaves = []
    for (_, to), entry in zip(wanted, entries, strict=True):
        read = _Read(str(path), entry, options)
        shape = tuple(entry["shape"])
        sharding = to.sharding if isinstance(to, Array) else to
        if isinstance(sharding, NamedSharding) and sharding.mesh.platform:
            leaves.append(from_callback(shape, sharding, read, dtype_named(entry["dtype"])))
        else:
            leaves.append(asarray(read(tuple(slice(0, n) for n in shape))))
    return tree.unflatten(tree.structure(like, is_leaf=is_leaf), leaves)
