"""Whether the GPUs that are here are what a cell asks for."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from harness.execute.protocol import Gpu
from harness.model import Device


def mismatch(wanted: Device, gpu: Gpu) -> str | None:
    """Why this GPU is not what was asked for, in one sentence; None if it is."""
    if wanted.gpu.lower() not in gpu.name.lower():
        return f"needs a GPU named like {wanted.gpu!r}, this is {gpu.name}"
    if wanted.arch != gpu.arch:
        return f"needs {wanted.arch}, {gpu.name} is {gpu.arch}"
    try:
        fits = SpecifierSet(wanted.driver).contains(Version(gpu.driver), prereleases=True)
    except (InvalidSpecifier, InvalidVersion) as error:
        return f"driver {gpu.driver} cannot be compared with {wanted.driver!r}: {error}"
    if not fits:
        return f"needs a driver {wanted.driver}, here is {gpu.driver}"
    return None


def pick(wanted: Device, gpus: tuple[Gpu, ...]) -> tuple[tuple[Gpu, ...], str | None]:
    """The GPUs that match, or none and one sentence that says why not."""
    reasons = {gpu.uuid: mismatch(wanted, gpu) for gpu in gpus}
    matching = tuple(gpu for gpu in gpus if reasons[gpu.uuid] is None)
    if matching:
        return matching, None
    return (), f"device {wanted.name}: " + "; ".join(dict.fromkeys(r for r in reasons.values() if r))
