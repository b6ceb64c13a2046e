"""The official conformance suite and the MCP inspector, run against Interlock and compared with runs without it.

`python -m tests.conformance.run` runs all of it and prints a table; `test_conformance.py` runs the same legs in pytest.
"""
