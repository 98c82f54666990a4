"""Modules beside a kernel's file, for the tracer: importable, under canonical names, and fresh each time.

Loaded by path next to `tracer_worker`; imports the standard library only.
"""

from __future__ import annotations

import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


class BesideLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from its text alone, under a name that tells nothing of where the folder lies."""

    finder: BesideFinder

    def get_code(self, fullname: str) -> types.CodeType:
        data = self.get_data(self.path)
        relative = os.path.relpath(self.path, self.finder.folder)
        self.finder.read[relative] = hashlib.sha256(data).hexdigest()
        canonical = os.path.join(self.finder.canonical, relative)
        text = importlib.util.decode_source(data)
        self.finder.register_lines(canonical, text.splitlines(keepends=True))
        code = compile(text, canonical, "exec", dont_inherit=True)
        assert isinstance(code, types.CodeType)
        return code


class BesideFinder(importlib.abc.MetaPathFinder):
    """Finds modules in a kernel's folder, ahead of what is installed but never ahead of the standard library.

    `canonical` is what the folder is called in bytecode; `read` tells the files that were imported, relative
    to the folder, with the SHA-256 of their bytes.
    """

    def __init__(self, folder: str, canonical: str, register_lines: Callable[[str, list[str]], None]) -> None:
        self.folder = folder
        self.canonical = canonical
        self.register_lines = register_lines
        self.read: dict[str, str] = {}
        self.loader = type("Loader", (BesideLoader,), {"finder": self})

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        top = fullname.partition(".")[0]
        if top == "cuda" or top in sys.stdlib_module_names:
            return None
        inside = [self.folder] if path is None else [p for p in path if self._is_inside(p)]
        if not inside:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, inside, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = self.loader(spec.loader.name, spec.loader.path)
        return spec

    def _is_inside(self, path: str) -> bool:
        return path == self.folder or path.startswith(self.folder + os.sep)


@contextmanager
def importable(finder: BesideFinder) -> Iterator[None]:
    """While it lasts, imports also look into the folder; afterwards what they found is forgotten, so that
    the next kernel, or this one after an edit, finds the files as they are then."""
    before = set(sys.modules)
    sys.meta_path.insert(1, finder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - before:
            spec = getattr(sys.modules[name], "__spec__", None)
            places = [
                getattr(spec, "origin", None),
                *(getattr(spec, "submodule_search_locations", None) or ()),
            ]
            if any(isinstance(place, str) and finder._is_inside(place) for place in places):
                del sys.modules[name]


def unchanged(folder: str, read: dict[str, str]) -> bool:
    """Whether the files still are what was read."""
    for relative, sha256 in read.items():
        try:
            with open(os.path.join(folder, relative), "rb") as file:
                if hashlib.sha256(file.read()).hexdigest() != sha256:
                    return False
        except OSError:
            return False
    return True
