"""A loaded eval as JSON text and back, for the other processes of a run.

References to the environment stay as they are written: the text holds no secret.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_mst.domain.case import Case
from pytest_mst.domain.errors import Place
from pytest_mst.domain.eval_config import EvalConfig
from pytest_mst.domain.loaded import DatasetInfo, LoadedCase, LoadedEval
from pytest_mst.domain.model import UserModel
from pytest_mst.eval_files.collector_pause import collector_paused


def loaded_to_json(loaded: LoadedEval) -> str:
    """Write a loaded eval as JSON text, ASCII only."""
    with collector_paused():
        content = {
            "path": str(loaded.path),
            "config": _dumped(loaded.config),
            "cases": [[_dumped(one.case), one.dataset, *_place(one.place)] for one in loaded.cases],
            "datasets": [[one.name, one.case_count, one.content_hash] for one in loaded.datasets],
            "places": {name: _place(place) for name, place in loaded.places.items()},
        }
        return json.dumps(content, separators=(",", ":"))


def loaded_from_json(text: str) -> LoadedEval:
    """Read what `loaded_to_json` wrote."""
    with collector_paused():
        content = json.loads(text)
        return LoadedEval(
            path=Path(content["path"]),
            config=EvalConfig.model_validate(content["config"]),
            cases=tuple(
                LoadedCase(Case.model_validate(case), dataset, Place(*place))
                for case, dataset, *place in content["cases"]
            ),
            datasets=tuple(DatasetInfo(*one) for one in content["datasets"]),
            places={name: Place(*place) for name, place in content["places"].items()},
        )


def _dumped(model: UserModel) -> dict[str, Any]:
    # Python's own encoder writes the text, because pydantic's refuses lone surrogates.
    return model.model_dump(by_alias=True, exclude_unset=True)


def _place(place: Place) -> list[str | int | None]:
    return [place.file, place.line, place.key]
