"""The modules that build the site lie beside the pages and are no package: make them importable."""

import sys
from pathlib import Path

BUILDER = Path(__file__).parents[2] / "docs" / "_builder"
sys.path[:0] = [str(BUILDER), str(BUILDER / "browser")]
