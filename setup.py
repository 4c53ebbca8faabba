"""Where the packages lie: the folders at the top of the repository are installed in `otimes`."""

from setuptools import find_packages, setup

FOLDERS = ("algebra", "numeric", "proofs")

setup(
    packages=[
        "otimes",
        *[f"otimes.{name}" for name in find_packages() if name.split(".")[0] in FOLDERS],
    ],
    py_modules=["otimes_pytest"],
    package_dir={f"otimes.{folder}": folder for folder in FOLDERS},
)
