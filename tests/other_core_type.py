"""
Print a value of OPENBLAS_CORETYPE that makes numpy and scipy compute with other kernels than on this processor.

Every x86-64 processor with AVX-512 can run the kernels for Haswell, every one with AVX2 those for Nehalem, and all can
run those for Prescott. All ARM processors can run those for ARMV8.
"""

from __future__ import annotations

import platform

import scipy.linalg  # noqa: F401  loads scipy's BLAS
from threadpoolctl import threadpool_info


def other_core_type(own: str) -> str:
    """
    Return a core type that the processor can run and that is not its own.

    >>> [other_core_type(own) for own in ("SkylakeX", "Haswell", "Zen", "Nehalem")]
    ['Haswell', 'Nehalem', 'Nehalem', 'Prescott']
    """
    if own in ("SkylakeX", "Cooperlake", "SapphireRapids"):
        return "Haswell"
    return "Prescott" if own in ("Nehalem", "Penryn", "Core2", "Prescott") else "Nehalem"


if __name__ == "__main__":
    own = next((info["architecture"] for info in threadpool_info() if info["internal_api"] == "openblas"), "")
    print(other_core_type(own) if platform.machine().lower() in ("x86_64", "amd64") else "ARMV8")
