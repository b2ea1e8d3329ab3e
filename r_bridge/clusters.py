"""Modal clustering at the door: its fit and its preview as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pydpmode.models.modal_clustering import ModalClustering

from . import describe as tables
from .requests import checked, preview_of, source_of


def _fit(data: Any, options: Mapping[str, Any], fit: Mapping[str, Any]) -> dict[str, Any]:
    return tables.describe(ModalClustering(source_of(data), **checked(options)).fit(**checked(fit)))


def _preview(data: Any, options: Mapping[str, Any], preview: Mapping[str, Any]) -> dict[str, Any]:
    return preview_of(ModalClustering(source_of(data), **checked(options)).preview(**checked(preview)))


OPERATIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"fit_modal_clustering": _fit, "preview_modal_clustering": _preview}
)

SIGNATURES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "ModalClustering": ModalClustering.__init__,
        "ModalClustering.fit": ModalClustering.fit,
        "ModalClustering.preview": ModalClustering.preview,
    }
)
