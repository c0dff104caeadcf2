"""Decisions of the tool, each made wrong once: does a test notice? `make mutate` asks; survivors.txt is the answer.

A decision is a line of the tool's Python or of its PowerShell library that a promise hangs on. table.py has each with a
wrong version and the tests that are to hold it; runner.py tries them in a copy of the repository.
"""
