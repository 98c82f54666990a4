"""What provisioning may refuse, each as one sentence for the user: what, where, remedy."""

from __future__ import annotations


class ProvisionError(ValueError):
    """Base of every refusal of this room."""


class StoreError(ProvisionError):
    """The store cannot be used: no permission, disk full, or held by another run for too long."""


class StoreFailed(StoreError):
    """An open store failed under a run: its disk is full, read-only all of a sudden, or gone."""


class UnknownVersion(ProvisionError):
    """No such version of this package exists; the text lists what does."""


class UnsupportedFrontend(ProvisionError):
    """This cuda-tile exists but cannot be driven ahead of time, or not by this Python."""


class NotInStore(ProvisionError):
    """The store lacks it and the package index cannot be asked."""


class InstallError(ProvisionError):
    """The package tools failed for a reason that is neither the network nor the disk."""


class IndexUnreachable(Exception):
    """The package index did not answer. Whoever knows what was wanted turns it into `NotInStore`."""
