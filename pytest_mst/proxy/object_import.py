"""Finding `module:attribute`, beside the eval config first."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path

from pytest_mst.proxy.unavailable import ServerUnavailableError

_IMPORTS = threading.Lock()


def load_object(label: str, name: str, base_dir: Path) -> object:
    """Import a module and give one of its attributes.

    Args:
        label: the server's label, for errors.
        name: `module:attribute`; both may be dotted.
        base_dir: where modules are looked up before `sys.path`.

    Raises:
        ServerUnavailableError: there is no such module or attribute, or importing it fails.

    """
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise _wrong(label, f"{name!r} is not of the form module:attribute")
    with _IMPORTS:
        found: object = _module(label, module_name, base_dir)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise _wrong(label, f"{name}: there is no {part!r}", part, dir(found))
        found = getattr(found, part)
    return found


def _module(label: str, name: str, base_dir: Path) -> object:
    beside = str(base_dir)
    _refuse_namesake(label, name, base_dir)
    sys.path.insert(0, beside)
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise
        near = [path.stem for path in base_dir.glob("*.py")] + list(sys.modules)
        raise _wrong(label, f"there is no module {name!r} beside {beside}", name, near) from error
    finally:
        sys.path.remove(beside)


def _refuse_namesake(label: str, name: str, base_dir: Path) -> None:
    """Refuse to take another folder's module of the same name for the one that is meant."""
    top = name.partition(".")[0]
    known = sys.modules.get(top)
    ours = PathFinder.find_spec(top, [str(base_dir)])
    if known is None or ours is None or ours.origin is None:
        return
    loaded_from = getattr(known, "__file__", None)
    if loaded_from is not None and Path(loaded_from).resolve() != Path(ours.origin).resolve():
        raise _wrong(
            label,
            f"module {top!r} is already imported from {loaded_from}, and {ours.origin}"
            " is meant; give one of them another name",
        )


def _wrong(
    label: str, problem: str, given: str = "", names: Iterable[str] = ()
) -> ServerUnavailableError:
    near = difflib.get_close_matches(given, [n for n in names if not n.startswith("_")])
    hint = f"; near it: {', '.join(near)}" if near else ""
    return ServerUnavailableError(label, "object", f"cannot be imported: {problem}{hint}")
