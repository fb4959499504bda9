"""The number of workers by default."""

from __future__ import annotations

import pytest

from fedcdh._runtime import cpu_count


@pytest.mark.parametrize(
    ("says", "expected"), [("max 100000", 64), ("200000 100000", 2), ("150000 100000", 2), ("5000 100000", 1), ("", 64)]
)
def test_a_container_has_as_many_workers_as_it_was_given_processors(monkeypatch, tmp_path, says, expected):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: range(64), raising=False)
    (tmp_path / "cpu.max").write_text(says, encoding="ascii")
    monkeypatch.setattr(cpu_count, "_CGROUP_QUOTA_FILE", tmp_path / "cpu.max")
    assert cpu_count.available_cpus() == expected
    monkeypatch.setattr(cpu_count, "_CGROUP_QUOTA_FILE", tmp_path / "nowhere")
    assert cpu_count.available_cpus() == 64


def test_workers_of_wide_tables_are_few(monkeypatch):
    monkeypatch.setattr(cpu_count, "available_cpus", lambda: 64)
    found = {columns: cpu_count.default_workers(columns) for columns in (100, 500, 1000, 2000, 4000, 20_000)}
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert (found[100], found[20_000]) == (64, 1)
    assert all(workers == 1 or workers * 16 * 8 * columns**2 <= 2 << 30 for columns, workers in found.items())
