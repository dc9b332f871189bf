"""deploy/ names what there is: commands, settings, ports, paths of probes; and its numbers agree with the settings."""

from __future__ import annotations

import ipaddress
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostinato.api.app import api_routes
from ostinato.config import SYSTEMD_VARIABLES, Settings
from ostinato.durations import parse_duration
from tests.doors.command_line import CommandLine, page_address
from tests.doors.deploy_files import (
    DEPLOY,
    ENDING_SECONDS,
    check_command,
    dockerfile,
    documents,
    environment_of,
    exec_form,
    settings_of,
    unit,
)

ROOT = DEPLOY.parent
PATHS = {route.path for route in api_routes()}


def is_open_and_safe(settings: Settings) -> bool:
    """Whether it listens on the network, and only a proxy that speaks TLS is answered there."""
    return settings.host == "0.0.0.0" and bool(settings.trusted_proxies) and bool(settings.hosts)


# systemd


def test_the_unit_starts_a_command_that_there_is_with_settings_that_there_are(tmp_path: Path) -> None:
    said = unit()
    (start,) = said["ExecStart"]
    program, *words = start.split()
    assert program == "/opt/ostinato/bin/ostinato"
    check_command(words)
    variables = dict(pair.split("=", 1) for pair in said["Environment"])
    settings = settings_of(variables, tmp_path)
    assert settings.log_format == "text"
    assert settings.db == f"sqlite:///{said['WorkingDirectory'][0]}/ostinato.db"
    assert said["WorkingDirectory"] == [f"/var/lib/{said['StateDirectory'][0]}"] == [variables["XDG_STATE_HOME"]]


def test_the_unit_gives_a_drain_its_time_and_asks_for_what_the_command_tells() -> None:
    said = unit()
    assert (said["Type"], said["KillMode"], said["Restart"]) == (["notify"], ["mixed"], ["always"])
    assert int(said["TimeoutStopSec"][0]) > Settings().grace.total_seconds() + ENDING_SECONDS
    assert int(said["WatchdogSec"][0]) > 10
    assert "NotifyAccess" not in said  # the default of Type=notify: only the main process is heard
    assert not {name for pair in said["Environment"] for name in SYSTEMD_VARIABLES if name in pair}


def test_the_sandbox_of_the_unit_lets_commands_work() -> None:
    said = unit()
    forbids_work = {"MemoryDenyWriteExecute", "RestrictNamespaces", "PrivateNetwork", "PrivateDevices", "ProtectHome"}
    forbids_work |= {"ProtectClock"}  # it implies DeviceAllow=, which closes the other devices
    assert not forbids_work & said.keys()
    assert said["ProtectSystem"] == ["full"]  # 'strict' would let them write nowhere but in the state
    assert said["OOMPolicy"] == ["continue"]
    assert said["NoNewPrivileges"] == ["yes"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_finds_no_fault_with_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "systemd/ostinato.service").read_text(encoding="utf-8")
    place = tmp_path / "ostinato.service"
    place.write_text(text.replace("/opt/ostinato/bin/ostinato", sys.executable), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(place)], capture_output=True, text=True, timeout=60, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "ostinato.service" in line]
    assert (done.returncode, ours) == (0, []), done.stderr


# Docker


def test_the_image_runs_a_command_that_there_is_at_its_port_and_not_as_root(tmp_path: Path) -> None:
    said = dict(dockerfile())
    assert exec_form(said["ENTRYPOINT"]) == ["ostinato"]
    check_command(exec_form(said["CMD"]))
    settings = settings_of(environment_of(dockerfile()), tmp_path)
    assert settings.port == int(said["EXPOSE"]) == Settings().port
    assert settings.db == f"sqlite:///{said['VOLUME']}/ostinato.db"
    assert int(said["USER"].partition(":")[0]) > 0
    assert "ProxyHandler({})" in said["HEALTHCHECK"]  # HTTP_PROXY in the environment is not for 127.0.0.1
    (path,) = re.findall(r"\$OSTINATO_PORT(/\w+)", said["HEALTHCHECK"])
    assert path in PATHS


def test_the_image_is_built_in_stages_from_files_that_are_there_and_not_ignored() -> None:
    instructions = dockerfile()
    words = [word for word, _ in instructions]
    assert words.count("FROM") == 2
    build = instructions[words.index("FROM") : len(words) - words[::-1].index("FROM") - 1]
    assert ("ARG", "EXTRAS=postgres,notify") in build  # else no --build-arg reaches install.sh
    kept = re.findall(r"(?m)^!(.+)$", (DEPLOY / "docker/Dockerfile.dockerignore").read_text())
    assert [name for name in kept if not (ROOT / name).exists()] == []
    # What the build of the wheel reads, and what the steps call.
    assert {"src", "web", "hatch_build.py", "pyproject.toml", "README.md", "LICENSE"} < set(kept)
    for word, rest in instructions:
        for script in re.findall(r"\bsh (\S+)", rest) if word == "RUN" else ():
            assert script in kept


def variables_of_node(compose: dict[str, Any], name: str) -> dict[str, str]:
    """As docker compose fills them in, with a password and nothing else in `.env`."""
    filled = {
        key: re.sub(r"\$\{POSTGRES_PASSWORD[^}]*\}", "secret", re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value))
        for key, value in compose["services"][name]["environment"].items()
    }
    assert not [value for value in filled.values() if "$" in value]
    return filled


def test_the_nodes_of_compose_share_a_database_and_answer_only_the_proxy(tmp_path: Path) -> None:
    (compose,) = documents("docker/compose.yaml")
    services = compose["services"]
    nodes = [name for name in services if name.startswith("node-")]
    assert len(nodes) == 2
    for name in nodes:
        node = services[name]
        settings = settings_of(variables_of_node(compose, name), tmp_path)
        assert is_open_and_safe(settings)
        assert list(settings.trusted_proxies) == [services["proxy"]["networks"]["inside"]["ipv4_address"]]
        assert settings.db == "postgresql://ostinato:secret@db/ostinato"
        assert node["hostname"] == name  # its Host, when the proxy asks how it is
        assert parse_duration(node["stop_grace_period"]).total_seconds() > (
            settings.grace.total_seconds() + ENDING_SECONDS
        )
        assert (DEPLOY / "docker" / node["build"]["context"]).resolve() == ROOT
        assert (ROOT / node["build"]["dockerfile"]).is_file()
        assert "ports" not in node
        assert node["depends_on"] == {"db": {"condition": "service_healthy"}}
    (network,) = compose["networks"]["inside"]["ipam"]["config"]
    proxy = services["proxy"]["networks"]["inside"]["ipv4_address"]
    assert ipaddress.ip_address(proxy) in ipaddress.ip_network(network["subnet"])
    # Containers without a fixed address get one of these: none of them may take the proxy's.
    given = ipaddress.IPv4Network(network["ip_range"])
    assert ipaddress.ip_address(proxy) not in given
    assert given.subnet_of(ipaddress.IPv4Network(network["subnet"]))
    used = {volume.split(":")[0] for service in services.values() for volume in service["volumes"]}
    assert used - set(compose["volumes"]) == {"./Caddyfile"}


def test_two_nodes_with_the_settings_of_compose_start_once_there_is_a_token(
    cli: CommandLine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (compose,) = documents("docker/compose.yaml")
    for name, value in variables_of_node(compose, "node-1").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OSTINATO_DB", postgres_url)
    with cli.start("up", name="refused") as refused:
        assert refused.wait() == 2
        assert "make one with 'ostinato token add NAME --role admin'" in refused.err
    cli.ok("token", "add", "admin", "--role", "admin")
    with cli.start("up", name="node-1") as first, cli.start("up", name="node-2") as second:
        for node in (first, second):
            address = page_address(node)
            for path in ("/livez", "/healthz", "/readyz"):
                assert httpx.get(address + path).status_code == 200
        assert len(cli.ok("node", "ls", "--json").json) == 2
        for node in (first, second):
            node.signal(signal.SIGTERM)
        assert (first.wait(), second.wait()) == (0, 0)


def test_the_proxy_of_compose_asks_every_node_at_its_port_for_a_path_that_there_is() -> None:
    text = (DEPLOY / "docker/Caddyfile").read_text(encoding="utf-8")
    (compose,) = documents("docker/compose.yaml")
    nodes = {f"{name}:{Settings().port}" for name in compose["services"] if name.startswith("node-")}
    assert set(re.findall(r"node-\d+:\d+", text)) == nodes
    (path,) = re.findall(r"health_uri (\S+)", text)
    assert path in PATHS


# Kubernetes


def objects() -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for name in ("ostinato", "token") for one in documents(f"kubernetes/{name}.yaml")}


def container_of(kind: str) -> dict[str, Any]:
    (container,) = objects()[kind]["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = container
    return found


def test_the_pods_run_a_command_that_there_is_with_settings_that_there_are(tmp_path: Path) -> None:
    found = objects()
    variables = found["ConfigMap"]["data"]
    settings = settings_of(variables, tmp_path)
    assert is_open_and_safe(settings)
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert found["Deployment"]["spec"]["replicas"] == 2
    container = container_of("Deployment")
    waits = container["lifecycle"]["preStop"]["sleep"]["seconds"]  # until no request is sent there any more
    assert waits > 0
    assert pod["terminationGracePeriodSeconds"] > waits + settings.grace.total_seconds() + ENDING_SECONDS
    check_command(container["args"])
    assert container["ports"] == [{"name": "http", "containerPort": settings.port}]
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"/tmp", variables["XDG_STATE_HOME"]}
    for kind in ("Deployment", "Job"):
        one = objects()[kind]["spec"]["template"]["spec"]
        # A service called ostinato would set OSTINATO_PORT=tcp://… in its pods.
        assert one["enableServiceLinks"] is False
        assert f"{one['securityContext']['runAsUser']}" == dict(dockerfile())["USER"].partition(":")[0]
        assert container_of(kind)["securityContext"]["readOnlyRootFilesystem"]
        (secret,) = container_of(kind)["env"]
        assert secret["name"] == "OSTINATO_DB"
    check_command(container_of("Job")["args"])


def test_the_probes_ask_for_paths_that_there_are_and_a_database_that_is_away_restarts_no_pod() -> None:
    container = container_of("Deployment")
    asked = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {one["path"] for one in asked.values()} <= PATHS
    assert {one["port"] for one in asked.values()} == {"http"}
    assert (asked["livenessProbe"]["path"], asked["readinessProbe"]["path"]) == ("/livez", "/readyz")


def test_service_ingress_and_budget_lead_to_the_pods_of_the_deployment() -> None:
    found = objects()
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        found["Deployment"]["spec"]["selector"]["matchLabels"],
        found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        found["Service"]["spec"]["selector"],
    ):
        assert selector == labels
    assert found["Job"]["spec"]["template"]["metadata"]["labels"] != labels  # or the service would lead to it, too
    (rule,) = found["Ingress"]["spec"]["rules"]
    assert rule["host"] == found["ConfigMap"]["data"]["OSTINATO_HOSTS"]
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": found["Service"]["metadata"]["name"], "port": {"name": "http"}}


# Procfile


def test_the_procfile_calls_commands_that_there_are() -> None:
    lines = (DEPLOY / "Procfile").read_text(encoding="utf-8").splitlines()
    for line in lines:
        _, command = line.split(": ", 1)
        program, *words = shlex.split(command.replace("$PORT", "8000"))
        assert program == "ostinato"
        check_command(words)
    assert [line.partition(":")[0] for line in lines] == ["release", "web", "worker"]


def test_every_file_of_deploy_is_named_in_its_readme() -> None:
    text = (DEPLOY / "README.md").read_text(encoding="utf-8")
    folders = {path.name for path in DEPLOY.iterdir() if path.name != "README.md"}
    assert {name for name in folders if name not in text} == set()
