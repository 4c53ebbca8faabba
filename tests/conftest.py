"""What every test shares: one thread, a cache of checks that starts empty, how Hypothesis draws."""

import atexit
import os
import shutil
import tempfile

from hypothesis import settings

# The arrays are small, and the tests run in two processes, so BLAS threads only slow them down.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# No test may be answered by what an earlier run or a command of the user has stored.
os.environ["OTIMES_CACHE"] = tempfile.mkdtemp(prefix="otimes-cache-")
atexit.register(shutil.rmtree, os.environ["OTIMES_CACHE"], ignore_errors=True)

# The same examples on every run and every machine, so that a red test is red for everybody; no
# deadline, because the machines that run this are shared and a slow example proves nothing.
settings.register_profile("otimes", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("otimes")
