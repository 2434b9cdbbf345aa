"""The official conformance suite of MCP on our server.

- `contents`: the tools, resources and prompts by name that the suite calls, added to a server of ours.
- `rounds`: its tools that ask the client for input before they answer.
- `serve`: a process that serves both with our transport, as a proxy that adds an API key.
- `*.yml`: the scenarios that are expected to fail, with the reasons.
"""
