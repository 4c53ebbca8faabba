"""The modules that build the site lie beside the pages and are no package: make them importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_builder"))
