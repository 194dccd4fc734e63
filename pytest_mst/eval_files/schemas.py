"""The JSON Schemas of eval configs and datasets, generated from the models.

Descriptions are the docstrings of models and of their fields; the latter are read from the
source here, so that nothing is paid for them where evals run.
"""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import DictSchema

from pytest_mst.domain import case as case_module
from pytest_mst.domain import eval_config as eval_config_module
from pytest_mst.domain import judge as judge_module
from pytest_mst.domain.case import Dataset
from pytest_mst.domain.eval_config import EvalConfig
from pytest_mst.domain.judge import FunctionConfig, RegisteredConfig, RubricConfig
from pytest_mst.domain.model import UserModel

SUFFIX = ".schema.json"

_MODELS: dict[str, tuple[type[UserModel], str]] = {
    "eval-config": (EvalConfig, "Eval config"),
    "dataset": (Dataset, "Dataset"),
}

NAMES = tuple(_MODELS)
"""The schemas there are."""


class _Generator(GenerateJsonSchema):
    """Writes what a label must look like so that a wrong one is refused, not left unchecked."""

    def dict_schema(self, schema: DictSchema) -> JsonSchemaValue:
        """Turn one pattern for all keys into a condition on each key."""
        written = super().dict_schema(schema)
        patterns = written.pop("patternProperties", None)
        if patterns:
            ((pattern, values),) = patterns.items()
            written["propertyNames"] = {"pattern": pattern}
            written["additionalProperties"] = values
        return written


def schemas() -> dict[str, dict[str, Any]]:
    """Return every schema (JSON Schema, draft 2020-12) by the name of its file."""
    return {f"{name}{SUFFIX}": schema(name) for name in NAMES}


def schema(name: str) -> dict[str, Any]:
    """Return one schema.

    Args:
        name: one of `NAMES`.

    """
    model, title = _MODELS[name]
    written = model.model_json_schema(schema_generator=_Generator)
    definitions: dict[str, Any] = written.pop("$defs", {})
    definitions.update(_judge_definitions())
    described = _field_docstrings()
    for class_name, part in ((model.__name__, written), *definitions.items()):
        for key, value in part.get("properties", {}).items():
            if key == "judges":
                _judges_in(value)
            # Generated from the key, it says nothing that the key does not.
            value.pop("title", None)
            description = described.get(class_name, {}).get(key)
            if description:
                value["description"] = description
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **written,
        "title": title,
        "$defs": definitions,
    }


def _judge_definitions() -> dict[str, Any]:
    """Return the forms that judges have, which the models leave to `judge_check`."""
    written = TypeAdapter(RubricConfig | FunctionConfig | RegisteredConfig).json_schema(
        ref_template="#/$defs/{model}", schema_generator=_Generator
    )
    definitions: dict[str, Any] = written["$defs"]
    definitions["RubricConfig"]["required"] = []  # `rubric` alone says the type
    definitions["RubricConfig"]["anyOf"] = [{"required": ["type"]}, {"required": ["rubric"]}]
    definitions["FunctionConfig"]["required"] = ["object"]
    return definitions


def _judges_in(part: dict[str, Any]) -> None:
    """Say in a list of judges, wherever it stands in a schema, what each of them may be."""
    forms = [{"$ref": f"#/$defs/{one}Config"} for one in ("Rubric", "Function", "Registered")]
    of_a_kind = [{"required": [key]} for key in ("type", "rubric", "object")]
    changes = {"type": "object", "required": ["name"], "not": {"anyOf": of_a_kind}}
    for one in (part, *part.get("anyOf", ())):
        if one.get("type") == "array":
            one["items"] = {"anyOf": [{"type": "string", "pattern": r"\S"}, *forms, changes]}


def write_schemas(folder: Path) -> list[Path]:
    """Write every schema into a folder.

    Returns:
        The files that were written.

    Raises:
        OSError: a file cannot be written.

    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, content in schemas().items():
        path = folder / name
        path.write_text(schema_text(content), encoding="utf-8")
        written.append(path)
    return written


def schema_text(content: dict[str, Any]) -> str:
    """Write a schema as the text of its file."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _field_docstrings() -> dict[str, dict[str, str]]:
    """Return the text below each field, by class name and key; a subclass has its base's too."""
    by_class: dict[str, dict[str, str]] = {}
    for module in (case_module, eval_config_module, judge_module):
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ClassDef):
                model = getattr(module, node.name)
                inherited = [by_class.get(base.__name__, {}) for base in model.__mro__[1:]]
                by_class[node.name] = {
                    key: text for base in inherited for key, text in base.items()
                } | _docstrings_in(node, model)
    return by_class


def _docstrings_in(node: ast.ClassDef, model: type[UserModel]) -> dict[str, str]:
    found = {}
    for field, after in zip(node.body, node.body[1:], strict=False):
        match field, after:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[model.model_fields[name].alias or name] = inspect.cleandoc(text)
            case _:
                pass
    return found
