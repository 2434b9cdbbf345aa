"""Sessions, memories and stores of agent SDKs: the real packages, in environments of their own.

Each runs its example of docs/guides/agent-sdks.md, and then its script in `agent_sdks/`.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from memory.models import Account
from memory.services.accounts.register import READ_WRITE, issue_key
from tests.integrations.environments import make_environment

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "agent-sdks.md"
SCRIPTS = Path(__file__).with_name("agent_sdks")
OURS = "httpx2~=2.16"
PACKAGES = {
    "openai_agents": ("OpenAI Agents SDK", "openai-agents==0.24.0"),
    "pydantic_ai": ("pydantic-ai", "pydantic-ai-harness==0.62.0"),
    "strands": ("Strands", "strands-agents==1.62.0"),
    "google_adk": ("Google ADK", "google-adk==2.13.0"),
    "llama_index": ("LlamaIndex", "llama-index-core==0.14.25"),
    "crewai": ("CrewAI", "crewai==1.15.30"),
    "agent_framework": ("Microsoft Agent Framework", "agent-framework-core==1.23.0"),
}
MASKED = {"pydantic_ai"}
"""Whose account masks secrets."""
RUN_SECONDS = 400


def find_example(heading: str) -> str:
    """Return the code of a section of the guide."""
    [section] = re.findall(rf"^## {heading}$(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    [code] = re.findall(r"^```python\n(.*?)^```$", section, re.M | re.S)
    return str(code)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("module", PACKAGES)
def test_the_package_of_an_sdk_uses_the_service(module: str, url: str, account: Account, tmp_path: Path) -> None:
    heading, package = PACKAGES[module]
    python = make_environment(module, package, OURS)
    if module in MASKED:
        Account.objects.filter(id=account.id).update(secrets="mask")
    key = issue_key(account, scopes=READ_WRITE).secret
    (tmp_path / "example.py").write_text(find_example(heading))

    for script in (tmp_path / "example.py", SCRIPTS / f"{module}.py"):
        done = subprocess.run(
            [str(python), "-c", f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"],
            # what the packages write to the home folder, or send elsewhere, is not wanted
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "XDG_DATA_HOME": str(tmp_path),
                "AGENT_MEMORY_BASE_URL": url,
                "AGENT_MEMORY_API_KEY": key,
                "CREWAI_DISABLE_TELEMETRY": "true",
                "OTEL_SDK_DISABLED": "true",
                "OPENAI_AGENTS_DISABLE_TRACING": "1",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{script.name}: {done.stderr[-4_000:]}"
