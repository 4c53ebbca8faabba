"""What every test shares: how Hypothesis draws."""

from hypothesis import settings

# The same examples on every run and every machine, so that a red test is red for everybody; no
# deadline, because the machines that run this are shared and a slow example proves nothing.
settings.register_profile("otimes", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("otimes")
