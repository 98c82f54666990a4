"""Provisioning: resolve, install and lock compilers; compose backends. `Provisioner` is the door."""

from harness.toolchain.errors import (
    InstallError,
    NotInStore,
    ProvisionError,
    StoreError,
    StoreFailed,
    UnknownVersion,
    UnsupportedFrontend,
)
from harness.toolchain.provisioner import Provisioner
from harness.toolchain.store import STORE_VARIABLE, Store, open_store

__all__ = [
    "STORE_VARIABLE",
    "InstallError",
    "NotInStore",
    "ProvisionError",
    "Provisioner",
    "Store",
    "StoreError",
    "StoreFailed",
    "UnknownVersion",
    "UnsupportedFrontend",
    "open_store",
]
