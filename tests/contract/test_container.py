"""The compose file, the Dockerfile and the proxy's settings, as far as they can be held to account without Docker.

`make container` goes further: it replays the Dockerfile's commands, which takes the package registry, and runs what
the compose file runs.
"""

import re
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.settings import AccessMode, MetricsMode, Settings
from tests.container import (
    ROOT,
    composed_environment,
    copied,
    first_key_command,
    health_command,
    of_last_stage,
    run_lines,
    services_of,
)

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE = (ROOT / "docker-compose.yml").read_text("utf-8")
NGINX = (ROOT / "deploy/nginx.conf").read_text("utf-8")
SERVICES = services_of(COMPOSE)
NETWORKS: dict[str, Any] = yaml.safe_load(COMPOSE)["networks"]


def settings_of(name: str) -> Settings:
    """Return the settings that a composed service gets; raise where it gets what is none of ours."""
    environment = composed_environment(SERVICES[name], 5432)
    return Settings.model_validate(
        {
            variable.removeprefix("STALLBUDGET_").lower(): value
            for variable, value in environment.items()
            if variable.startswith("STALLBUDGET_")
        }
    )


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def in_nginx(directive: str) -> str:
    """Return what the proxy's settings say of a directive."""
    found = re.findall(rf"^\s+{directive}\s+([^;]+);", NGINX, re.MULTILINE)
    assert found, directive
    return str(found[-1])


def test_the_compose_file_is_valid() -> None:
    command = [
        str(Path(sys.executable).with_name("check-jsonschema")),
        "--builtin-schema",
        "vendor.compose-spec",
        str(ROOT / "docker-compose.yml"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_service_waits_for_the_migrations_and_they_for_a_healthy_postgres() -> None:
    waits = {name: service.get("depends_on", {}) for name, service in SERVICES.items()}
    assert waits["service"]["migrate"] == {"condition": "service_completed_successfully"}
    assert waits["migrate"]["postgres"] == waits["service"]["postgres"] == {"condition": "service_healthy"}
    assert waits["proxy"]["service"] == {"condition": "service_healthy"}
    assert SERVICES["postgres"]["healthcheck"]["test"]
    assert SERVICES["migrate"]["command"] == ["stallbudget", "migrate"]
    assert SERVICES["migrate"]["restart"] == "no"
    assert settings_of("service").migrate_at_start is False
    assert settings_of("service") == settings_of("migrate")


def test_every_service_needs_a_key_and_only_the_proxy_is_reached_from_outside() -> None:
    settings = settings_of("service")
    assert (settings.access, settings.metrics) == (AccessMode.KEYS, MetricsMode.PRIVATE)
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    assert NETWORKS["inside"]["internal"] is NETWORKS["data"]["internal"] is True
    reach = {name: set(service["networks"]) for name, service in SERVICES.items()}
    assert reach == {
        "proxy": {"outside", "inside"},
        "service": {"inside", "data"},
        "migrate": {"data"},
        "postgres": {"data"},
    }
    (published,) = SERVICES["proxy"]["ports"]
    assert published == "${STALLBUDGET_LISTEN:-127.0.0.1:8000}:8080"
    assert in_nginx("listen") == "8080"


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_may_do_little_and_is_started_again(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert set(service.get("cap_add", ())) <= (
        {"CHOWN", "DAC_READ_SEARCH", "FOWNER", "SETGID", "SETUID"} if name == "postgres" else set()
    )
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"cpus", "memory", "pids"} <= set(service["deploy"]["resources"]["limits"])
    assert service["restart"] == ("no" if name == "migrate" else "unless-stopped")
    assert not service.get("privileged")
    assert not any("docker.sock" in volume for volume in service.get("volumes", ()))


def test_no_secret_is_in_the_files() -> None:
    for name in ("service", "migrate", "postgres"):
        for variable, value in SERVICES[name]["environment"].items():
            if "PASS" in variable:
                assert re.fullmatch(r"\$\{STALLBUDGET_POSTGRES_PASSWORD:\?.+\}", value)
            assert "://stallbudget:" not in value


def test_docker_waits_longer_for_the_end_than_the_service_does() -> None:
    settings = settings_of("service")
    ends = settings.drain_seconds + settings.shutdown_seconds
    assert seconds(SERVICES["service"]["stop_grace_period"]) > ends
    assert seconds(SERVICES["proxy"]["stop_grace_period"]) > ends


def test_the_proxy_is_believed_and_says_who_asks_itself() -> None:
    trusted = ip_network(str(settings_of("service").trusted_proxies))
    (subnet,) = NETWORKS["inside"]["ipam"]["config"]
    assert trusted == ip_network(subnet["subnet"])
    told = dict(re.findall(r"proxy_set_header\s+(\S+)\s+(\S+);", NGINX))
    assert told["X-Forwarded-For"] == "$remote_addr"
    assert told["X-Forwarded-Proto"] == "$scheme"
    assert told["X-Request-Id"] == "$asked_id"
    assert told["Forwarded"] == '""'


def test_the_proxy_refuses_the_metrics() -> None:
    assert re.search(r"location = /metrics \{\s+return 404;\s+\}", NGINX)


def test_the_limits_of_the_proxy_fit_those_of_the_service() -> None:
    settings = settings_of("service")
    largest = Settings.model_fields["max_document_bytes"].metadata
    (most,) = [each.le for each in largest if hasattr(each, "le")]
    assert int(in_nginx("client_max_body_size").removesuffix("m")) * 2**20 > most
    assert seconds(in_nginx("client_header_timeout")) == settings.head_seconds
    assert seconds(in_nginx("client_body_timeout")) == settings.slow_seconds
    assert seconds(in_nginx("proxy_read_timeout")) > settings.request_seconds
    upstream = NGINX[NGINX.index("upstream service") : NGINX.index("server {")]
    (kept,) = re.findall(r"keepalive_timeout (\S+);", upstream)
    assert seconds(kept) < settings.idle_seconds
    assert in_nginx("proxy_request_buffering") == "off"
    assert int(in_nginx("large_client_header_buffers").split()[1].removesuffix("k")) * 1024 * 4 <= (
        settings.max_head_bytes
    )
    # A POST is sent to one replica: nothing here allows the proxy to send it again.
    assert in_nginx("proxy_next_upstream") == "error timeout"


def test_the_request_ids_that_the_proxy_takes_are_those_that_the_service_takes() -> None:
    from service.api.middleware import _WELL_FORMED

    (pattern,) = re.findall(r'"~\^(.+)\$" \$http_x_request_id', NGINX)
    assert pattern == _WELL_FORMED.pattern.decode()


def test_the_image_is_built_from_files_that_are_here_and_not_ignored() -> None:
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").split() if line[0] == "!"}
    assert {name.rstrip("/") for name in copied(DOCKERFILE)} == let_through
    assert all((ROOT / name).exists() for name in let_through)


def test_every_package_of_the_image_comes_from_a_lock_file_or_from_the_checkout() -> None:
    installs = [line for line in run_lines(DOCKERFILE) if " pip " in line and " install " in line]
    assert len(installs) == 3
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)


def test_the_image_runs_as_an_ordinary_user_and_tells_whether_it_is_ready() -> None:
    assert of_last_stage(DOCKERFILE, "USER") == ["10001:10001"]
    assert of_last_stage(DOCKERFILE, "RUN") == []
    assert of_last_stage(DOCKERFILE, "VOLUME") == ["/data"]
    command = health_command(DOCKERFILE)
    assert command[:2] == ["python", "-c"]
    assert "/readyz" in command[2]
    compile(command[2], "health check", "exec")


def test_the_first_key_is_made_by_a_command_of_ours() -> None:
    page = (ROOT / "deploy/README.md").read_text("utf-8")
    assert first_key_command(page)[:3] == ["stallbudget", "key", "create"]
