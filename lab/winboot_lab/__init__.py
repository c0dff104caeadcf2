"""Pretend Windows machines and a pretend cluster: rehearsal without Windows."""
