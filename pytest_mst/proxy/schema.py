"""JSON Schemas of tools: compiled once, asked often, never a reason to let a write through."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_PROBLEMS_SHOWN = 5


class CompiledSchema:
    """A tool's schema. Where it cannot be used, everything fits it."""

    def __init__(self, schema: object) -> None:
        """Compile a schema; what is not one is kept as unusable."""
        self._validator = _compile(schema) if isinstance(schema, dict) else None

    @property
    def usable(self) -> bool:
        """Whether the schema can be used at all."""
        return self._validator is not None

    def problems(self, value: Any) -> list[str]:
        """Say what does not fit, where in the value first; nothing where all fits.

        References are never fetched. A schema that turns out not to be usable has no say.
        """
        if self._validator is None:
            return []
        from referencing.exceptions import Unresolvable

        found: list[str] = []
        try:
            for error in self._validator.iter_errors(value):
                where = "".join(f"[{part!r}]" for part in error.absolute_path)
                found.append(f"{where}: {error.message}" if where else error.message)
                if len(found) == _PROBLEMS_SHOWN:
                    break
        except (Unresolvable, RecursionError, re.error, ArithmeticError):
            self._validator = None
            return []
        return found


def _compile(schema: dict[str, Any]) -> Validator | None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry

    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except (SchemaError, RecursionError, re.error):
        return None
    return kind(schema, registry=Registry())
