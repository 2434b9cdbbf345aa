"""The packages of the wheel. What else it says is in `pyproject.toml`."""

from setuptools import find_packages, setup

SERVICE = ("lab", "ledger", "memory", "memory_project")

setup(
    packages=[
        *find_packages(include=[name for package in SERVICE for name in (package, f"{package}.*")]),
        "memory_project.templates",
    ],
    package_dir={"memory_project.templates": "templates"},
    package_data={
        "lab": ["**/*.json"],
        "memory": ["**/*.json", "**/*.txt", "static/**/*"],
        "memory_project.templates": ["**/*"],
    },
)
