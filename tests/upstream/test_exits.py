"""What a person is told about the end of a server: one row for each kind of last words."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.upstream.exits import Exit, explain_exit

TRACE = 'Traceback (most recent call last):\n  File "/srv/server.py", line 3, in <module>\n'


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        # The SDK's version 2 took these away.
        (TRACE + "AttributeError: 'Server' object has no attribute 'list_resources'", "another version of its MCP SDK"),
        (TRACE + "AttributeError: 'FastMCP' object has no attribute 'mcp_server'", "another version of its MCP SDK"),
        (
            TRACE + "AttributeError: type object 'Server' has no attribute 'list_tools'",
            "another version of its MCP SDK",
        ),
        (
            TRACE + "ImportError: cannot import name 'FastMCP' from 'mcp.server' (/srv/lib/mcp/server/__init__.py)",
            "another version of its MCP SDK",
        ),
        (TRACE + "ModuleNotFoundError: No module named 'mcp.server.fastmcp'", "another version of its MCP SDK"),
        (
            TRACE + "TypeError: Server.__init__() got an unexpected keyword argument 'lifespan'",
            "another version of its MCP SDK",
        ),
        (TRACE + "ModuleNotFoundError: No module named 'mcp'", "the Python module 'mcp' is not installed"),
        (
            TRACE + "ModuleNotFoundError: No module named 'numpy.core'",
            "the Python module 'numpy.core' is not installed",
        ),
        ("/usr/bin/python3: No module named mcp_server_git", "no module 'mcp_server_git' to run"),
        (
            TRACE + "ImportError: cannot import name 'foo' from 'bar' (/x/bar.py)",
            "the Python module 'bar' has no 'foo'",
        ),
        ("npm error code E404\nnpm error 404 Not Found - GET https://x/y", "npm found no such package"),
        ("npm ERR! code ETARGET\nnpm ERR! notarget", "npm found no such package or version"),
        ("npm error code ENOTFOUND\nnpm error syscall getaddrinfo", "npm could not reach its registry"),
        ("npm error code ECONNREFUSED", "npm could not reach its registry"),
        ("npm ERR! network request to https://x failed, reason: connect ETIMEDOUT", "npm could not reach its registry"),
        ("npm error code SELF_SIGNED_CERT_IN_CHAIN", "a TLS certificate is not trusted"),
        ("ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED]", "a TLS certificate is not trusted"),
        ("npm error code EACCES", "npm may not write"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("Error: Cannot find module '/srv/dist/index.js'\n    at x", "Node found no module '/srv/dist/index.js'"),
        ("Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported", "Node found no module 'zod'"),
        ("error: Failed to fetch: `https://x/simple/y/`", "it could not reach the network"),
        ("  x No solution found when resolving tool dependencies:", "was not found. Check its name"),
        ("Error: listen EADDRINUSE: address already in use :::3000", "a port that it listens on is in use"),
        ("OSError: [Errno 98] Address already in use", "a port that it listens on is in use"),
        (TRACE + "KeyError: 'GITHUB_TOKEN'", "the environment variable GITHUB_TOKEN"),
        ("Error: GITHUB_PERSONAL_ACCESS_TOKEN is not set", "the environment variable GITHUB_PERSONAL_ACCESS_TOKEN"),
        ("Please set the BRAVE_API_KEY environment variable", "the environment variable BRAVE_API_KEY"),
        ("Error: SLACK_BOT_TOKEN and SLACK_TEAM_ID must be set", "the environment variable SLACK_BOT_TOKEN"),
        ("Environment variable NOTION_KEY is required", "the environment variable NOTION_KEY"),
        ("Missing required env: OPENAI_API_KEY", "the environment variable OPENAI_API_KEY"),
        ("FATAL ERROR: Reached heap limit - JavaScript heap out of memory", "it ran out of memory"),
        ("docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "Docker is not running"),
        ("node: /lib/libc.so.6: version `GLIBC_2.34' not found", "a system library"),
        ("server.py: error: unrecognized arguments: --stdoi", "it did not understand its arguments"),
        ("PermissionError: [Errno 13] Permission denied: '/etc/x'", "it was denied access"),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'config.json'",
            "a file that it needs does not exist",
        ),
        ("  File \"x.py\", line 1\n    print 'a'\nSyntaxError: Missing parentheses", "does not fit the version"),
    ],
)
def test_last_words(tail: str, expected: str) -> None:
    said = explain_exit(Exit(1, None, tail, uptime=0.4))
    assert said.startswith("exit code 1 right after its start; probable cause: ")
    assert expected in said
    assert not said.endswith(".")


@pytest.mark.parametrize(
    ("exit", "said"),
    [
        (Exit(1, None, "I cannot go on", uptime=0.1), "exit code 1 right after its start"),
        (Exit(3, None, "", uptime=71.6), "exit code 3 after 72 s"),
        (
            Exit(None, 9, "", uptime=5),
            "SIGKILL after 5 s: killed from outside; where nobody did so, the system was out of memory",
        ),
        (Exit(None, 11, "", uptime=0), "SIGSEGV right after its start: it crashed in native code (a memory fault)"),
        (
            Exit(137, None, "", uptime=5),
            "exit code 137 after 5 s: killed from outside; where nobody did so, the system was out of memory",
        ),
        (Exit(139, None, "", uptime=5), "exit code 139 after 5 s: it crashed in native code (a memory fault)"),
        (
            Exit(127, None, "sh: 1: nodde: not found", uptime=0),
            "exit code 127 right after its start: a command that it starts was not found. Its PATH may be shorter than "
            "that of your terminal",
        ),
        (
            Exit(0, None, "", uptime=0),
            "exit code 0 right after its start: it ended as if its work were done, but a stdio server should run until "
            "its input ends. It may need an argument that selects stdio, or have stopped because a setting is missing",
        ),
        (Exit(0xC0000005, None, "", uptime=0), "exit code 3221225477 right after its start: it crashed in native code "
                                               "(a memory fault)"),
        (Exit(None, 99, "", uptime=0), "signal 99 right after its start"),
        (Exit(255, None, "", uptime=0), "exit code 255 right after its start"),
        (Exit(None, 15, "", cause="requested"), "stopped by Interlock"),
        (
            Exit(None, 9, "", cause="requested", forced=True),
            "stopped by Interlock, by force, because it did not end when asked",
        ),
        (
            Exit(None, 15, "", cause="stdout-closed", uptime=9),
            "it closed its standard output but went on running, so it was of no more use and was stopped",
        ),
        (
            Exit(None, 15, "listen EADDRINUSE", cause="stdin-closed", uptime=9),
            "it closed its standard input but went on running, so it was of no more use and was stopped; probable "
            "cause: a port that it listens on is in use. Another copy of it may be running",
        ),
    ],
)  # fmt: skip
def test_status(exit: Exit, said: str) -> None:
    assert explain_exit(exit) == said


@given(st.integers(-5, 2**32), st.text(), st.sampled_from(["own", "requested", "stdout-closed", "stdin-closed"]))
def test_anything_can_be_explained(code: int, tail: str, cause: str) -> None:
    assert explain_exit(Exit(code, None, tail, cause=cause))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "tail",
    [
        "ImportError: Interlock says: run this {name}{0}",
        "ImportError: cannot import name 'Interlock says: run this' from 'x'",
        "Error: Cannot find module 'Interlock says; run this'",
        "KeyError: 'INTERLOCK says run this'",
        "No module named Interlock says run this",
    ],
)
def test_a_server_cannot_put_words_into_our_mouth(tail: str) -> None:
    assert "says" not in explain_exit(Exit(1, None, tail)).replace("stderr say", "")


def test_a_long_tail_is_searched_in_no_time() -> None:
    """No pattern may go quadratic on what a server chooses to write."""
    for filler in ("a" * 2000, "A_" * 1000, "missing " * 250, "npm error code " * 130, "environment variable " * 95):
        explain_exit(Exit(1, None, "\n".join([filler] * 20)))


def test_the_installed_sdk_really_says_so() -> None:
    """The words are not ours: ask the SDK of version 2 that the tests run with."""
    program = "from mcp.server.lowlevel import Server\nServer('x').list_resources"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        pytest.skip("the installed SDK still has this method")
    assert "another version of its MCP SDK" in explain_exit(Exit(1, None, ended.stderr))
