"""The files under which the service is packed and deployed say what the service understands.

There is neither a container engine nor a cluster here: Helm's templates are rendered by the few rules that they use.
"""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from memory_project.env import DECLARED
from memory_project.serve import ROLES
from memory_project.up import SETTINGS

PROJECT = Path(__file__).resolve().parents[2]
DEPLOY = PROJECT / "deploy"
CHART = DEPLOY / "helm" / "agent-memory"
CONDITION = re.compile(r"^\{\{- if (\S+) \}\}\n(.*?)^\{\{- end \}\}\n", re.MULTILINE | re.DOTALL)
EXPRESSION = re.compile(r"\{\{ (\S+)(?: \| (quote|toJson))?( \| sha256sum)? \}\}")


@pytest.fixture(scope="module")
def settings_names() -> set[str]:
    for module in (*SETTINGS, "memory_project.serve"):
        import_module(module)
    return set(DECLARED)


def look_up(path: str, scope: Mapping[str, Any]) -> Any:
    found: Any = scope
    for name in path.lstrip(".").split("."):
        found = found[name]
    return found


def render(template: str, scope: Mapping[str, Any]) -> str:
    def value_of(match: "re.Match[str]") -> str:
        found = look_up(match[1], scope)
        text = json.dumps(found) if match[2] else str(found)
        return hashlib.sha256(text.encode()).hexdigest() if match[3] else text

    kept = CONDITION.sub(lambda match: match[2] if look_up(match[1], scope) else "", template)
    return EXPRESSION.sub(value_of, kept)


def render_chart(
    *, config: Mapping[str, str] | None = None, owner: str = "", **ingress: Any
) -> dict[tuple[str, str], Any]:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    values["ingress"] |= ingress
    values["ownerSecret"] = owner
    values["config"] |= config or {}
    scope = {"Values": values, "Release": {"Name": "memory"}}
    texts = [render(path.read_text(), scope) for path in sorted((CHART / "templates").iterdir())]
    assert "{{" not in "".join(texts)
    found = [document for text in texts for document in yaml.safe_load_all(text) if document is not None]
    return {(document["kind"], document["metadata"]["name"]): document for document in found}


def pods(chart: Mapping[tuple[str, str], Any]) -> Iterator[tuple[str, Any]]:
    for (kind, name), document in chart.items():
        if kind in {"Deployment", "Job"}:
            yield name, document["spec"]["template"]


def test_the_chart_runs_every_role_unprivileged_and_probes_ports_that_it_has() -> None:
    seen = set()
    for _, pod in pods(render_chart()):
        [container] = pod["spec"]["containers"]
        command, role, *_ = container["args"]
        seen.add(role if command == "serve" else command)
        ports = {port["name"] for port in container.get("ports", ())}
        probes = [container[name] for name in container if name.endswith("Probe")]
        assert {probe["httpGet"]["port"] for probe in probes} <= ports
        assert pod["spec"]["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/data", "/tmp"}

    assert seen == {*ROLES, "manage"} - {"all"}


def test_a_changed_configuration_starts_the_pods_of_every_deployment_anew() -> None:
    before, after = (
        {name: pod["metadata"].get("annotations") for name, pod in pods(chart) if not name.endswith("-migrate")}
        for chart in (render_chart(), render_chart(config={"MEMORY_WEB_THREADS": "9"}))
    )

    assert len(before) == 4
    assert all(before[name] != after[name] for name in before)


def test_pods_are_rolled_back_with_their_configuration_and_the_job_has_it_before_them() -> None:
    chart = render_chart(config={"MEMORY_WEB_THREADS": "9"})
    hooks = {key: document["metadata"].get("annotations", {}) for key, document in chart.items()}
    read = {
        (kind, document["metadata"]["name"]): document["spec"]["template"]["spec"]["containers"][0]["envFrom"][0]
        for (kind, _), document in chart.items()
        if kind in {"Deployment", "Job"}
    }

    assert len(read) == 5
    for (kind, name), source in read.items():
        config = ("ConfigMap", source["configMapRef"]["name"])
        assert chart[config]["data"]["MEMORY_WEB_THREADS"] == "9"
        # a rollback runs no hook of an upgrade
        assert hooks[config].get("helm.sh/hook") == hooks[kind, name].get("helm.sh/hook")
        if kind == "Job":
            assert int(hooks[config]["helm.sh/hook-weight"]) < int(hooks[kind, name]["helm.sh/hook-weight"])


def test_the_chart_s_services_select_pods_and_its_values_fit_their_schema() -> None:
    chart = render_chart(enabled=True)
    labels = [pod["metadata"]["labels"] for _, pod in pods(chart)]
    for (kind, _), document in chart.items():
        if kind == "Service":
            assert any(document["spec"]["selector"].items() <= each.items() for each in labels)
    [web] = chart["Deployment", "memory-web"]["spec"]["template"]["spec"]["containers"]
    [hosts] = [each["value"] for each in web["env"] if each["name"] == "MEMORY_ALLOWED_HOSTS"]
    assert hosts == "memory.example,memory-web"
    [rule] = chart["Ingress", "memory"]["spec"]["rules"]
    asked = {path["backend"]["service"]["name"] for path in rule["http"]["paths"]}
    assert asked <= {name for kind, name in chart if kind == "Service"}

    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.validate(values, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values | {"wbe": {}}, schema)


def test_the_chart_and_compose_set_only_variables_that_are_settings(settings_names: set[str]) -> None:
    config = yaml.safe_load((CHART / "values.yaml").read_text())["config"]
    composed = yaml.safe_load((PROJECT / "compose.yaml").read_text())
    own = [service for service in composed["services"].values() if service["image"].startswith("agent-memory:")]
    given = {*config, *(name for service in own for name in service["environment"])}

    assert given <= settings_names


def test_only_what_migrates_and_works_off_jobs_knows_the_owner_of_the_tables() -> None:
    services = yaml.safe_load((PROJECT / "compose.yaml").read_text())["services"]
    composed = {name for name, each in services.items() if "DATABASE_OWNER_URL" in each.get("environment", {})}
    chart = {name: pod["spec"]["containers"][0] for name, pod in pods(render_chart(owner="memory-owner"))}
    given = {name for name, each in chart.items() if {"secretRef": {"name": "memory-owner"}} in each["envFrom"]}

    assert composed == {"migrate", "worker"}
    assert all("//memory_app:" in each["environment"]["DATABASE_URL"] for each in services.values() if "build" in each)
    assert given == {"memory-migrate", "memory-worker"}
    assert all(len(each["envFrom"]) <= 2 for _, pod in pods(render_chart()) for each in pod["spec"]["containers"])


def environment_files(unit: str, *, role: str = "") -> list[str]:
    """Return the files whose variables a unit of systemd has, the last of which wins."""
    lines = (DEPLOY / "systemd" / unit).read_text().splitlines()
    return [line.partition("=")[2].lstrip("-").replace("%i", role) for line in lines if line.startswith("Environment")]


def test_of_the_roles_under_systemd_the_worker_alone_reads_the_file_with_the_owner() -> None:
    text = (DEPLOY / "systemd" / "agent-memory-migrate.service").read_text()
    comment = " ".join(line.lstrip("# ") for line in text.partition("[Unit]")[0].splitlines())
    named = set(re.findall(r"/etc/\S+\.env", comment.partition("DATABASE_OWNER_URL")[2]))
    [row] = re.findall(r"\| systemd, each role \| (.*/etc.*) \|", (PROJECT / "docs" / "operations.md").read_text())
    read = {role: environment_files("agent-memory@.service", role=role) for role in sorted(set(ROLES) - {"all"})}
    read["migrate"] = environment_files("agent-memory-migrate.service")

    assert {role for role, files in read.items() if named & {*files}} == {"migrate", "worker"}
    assert named == set(re.findall(r"`(/etc/\S+\.env)`", row)) <= {file for files in read.values() for file in files}
    # a later file replaces what an earlier one says
    assert all(files[-2:] == ["/etc/agent-memory.env", f"/etc/agent-memory-{role}.env"] for role, files in read.items())
    assert not any("DATABASE_" in file for files in read.values() for file in files)


def test_compose_runs_every_role_from_what_it_declares() -> None:
    composed = yaml.safe_load((PROJECT / "compose.yaml").read_text())
    services = composed["services"]
    roles = {name: service["command"] for name, service in services.items() if "serve" in service.get("command", ())}

    assert {command[1] for command in roles.values()} == set(ROLES) - {"all"}
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        named = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert {name for name in named if not name.startswith((".", "/"))} <= set(composed["volumes"])
    assert all(services[name]["read_only"] and services[name]["cap_drop"] == ["ALL"] for name in roles)


def test_images_are_named_without_a_host() -> None:
    texts = [(PROJECT / "Dockerfile").read_text(), (PROJECT / "compose.yaml").read_text()]
    named = [name for text in texts for name in re.findall(r"^\s*(?:FROM|image:) (\S+)", text, re.MULTILINE)]

    assert len(named) > 5
    assert all("." not in name.partition("/")[0] or "/" not in name for name in named)


def test_the_image_copies_what_exists_and_is_no_root() -> None:
    text = (PROJECT / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE)

    assert all((PROJECT / name).exists() for line in copied for name in line.split())
    assert re.search(r"^USER 10001", text, re.MULTILINE)


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="There is no hadolint on the PATH.")
def test_hadolint_finds_nothing() -> None:
    ended = subprocess.run(["hadolint", str(PROJECT / "Dockerfile")], capture_output=True, text=True, check=False)

    assert ended.stdout == ""


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="There is no systemd-analyze on the PATH.")
@pytest.mark.parametrize("unit", sorted(path.name for path in (DEPLOY / "systemd").iterdir()))
def test_systemd_accepts_the_units(tmp_path: Path, unit: str) -> None:
    text = (DEPLOY / "systemd" / unit).read_text()
    # the program and the user of an installation are not here
    text = re.sub(r"^ExecStart=\S+", f"ExecStart={shutil.which('true')}", text, flags=re.MULTILINE)
    file = tmp_path / unit.replace("@.", "@web.")
    file.write_text(re.sub(r"^(User|WorkingDirectory|EnvironmentFile)=.*\n", "", text, flags=re.MULTILINE))

    ended = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False)

    assert [line for line in ended.stderr.splitlines() if unit.partition("@")[0] in line] == []
