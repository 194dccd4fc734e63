"""Runs as older tools stored them, made by hand: no endings, no plan, folders named otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

OLD_RUN_ID = "20261007T182504Z-a3f9c1"

CLIENT_METADATA = {
    "driver": "openai.chatgpt.desktop.native",
    "capabilities": ["control", "input"],
    "traceSource": "none",
}


class OldRun:
    """One run folder, written file by file."""

    def __init__(
        self,
        results_dir: Path,
        eval_name: str = "search-quality",
        run_id: str = OLD_RUN_ID,
        *,
        variants: Sequence[object] | None = None,
        folder: Path | None = None,
        **more: object,
    ) -> None:
        self.eval_name = eval_name
        self.run_id = run_id
        self.folder = folder or results_dir / eval_name / "runs" / run_id
        self._results: list[dict[str, object]] = []
        self.write(
            "run.json",
            {
                "format": "mst.run/v1",
                "kind": "run",
                "runId": run_id,
                "evalName": eval_name,
                "configId": "search-quality",
                "contentHash": "0" * 64,
                "createdAt": "2026-10-07T18:25:04.000Z",
                "finishedAt": "2026-10-07T18:31:44.000Z",
                "mst": {"version": "2.0.1"},
                "variants": [{"name": "default", "servers": [{"label": "docs"}], "client": "mst"}]
                if variants is None
                else variants,
                "datasets": [{"name": "cases", "caseCount": 1, "contentHash": "1" * 64}],
                "partial": False,
                "redactStoredResponses": True,
                "environment": {"node": "v22.1.0", "platform": "linux", "ci": False},
                "phases": {"collect": "complete", "grade": "complete"},
                **more,
            },
        )

    def write(self, name: str, content: object) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content, indent=2) + "\n"
        path.write_text(text)
        return path

    def trial(
        self,
        trial: int = 0,
        *,
        case: str = "find-page",
        variant: str = "default",
        failed: bool = False,
        scores: Mapping[str, Mapping[str, object]] | None = None,
        place: str | None = None,
        **more: object,
    ) -> Path:
        """Store one trial, and a score for each grader that is named."""
        where = place or f"{quote(variant, safe='')}/{quote(case, safe='')}/{trial}"
        head = {"format": "mst.run/v1", "runId": self.run_id, "variant": variant, "caseId": case}
        for grader, score in (scores or {}).items():
            content = {**head, "kind": "score", "grader": grader, "trial": trial, "score": score}
            self.write(f"scores/{grader}/{where}.json", content)
        content = {
            **head,
            "kind": "trial",
            "datasetName": "cases",
            "trial": trial,
            "durationMs": 1234.5,
            "infrastructureError": failed,
            **more,
        }
        return self.write(f"traces/{where}.json", content)

    def results(self, *cases: Mapping[str, object]) -> None:
        content = {"format": "mst.run/v1", "kind": "results", "runId": self.run_id, "cases": cases}
        self.write("results.json", content)

    def everything(self) -> dict[str, tuple[int, bytes]]:
        """Return every file with its time of change and its bytes."""
        return {
            str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in self.folder.parent.parent.rglob("*")
        }
