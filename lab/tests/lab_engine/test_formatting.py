"""Text by .NET's format strings."""

from __future__ import annotations

import pytest
from winboot_lab.engine.exceptions import FormatException
from winboot_lab.engine.formatting import format_date, format_number, format_span, format_string
from winboot_lab.engine.moments import LOCAL, UTC, ZONE, DateTime, TimeSpan
from winboot_lab.engine.parsing import parse_date, parse_date_exact, parse_span
from winboot_lab.engine.values import Byte, Decimal, Value


@pytest.mark.parametrize(
    ("value", "spec", "expected"),
    [
        (5, "D3", "005"),
        (-5, "D3", "-005"),
        (255, "x4", "00ff"),
        (-1, "X", "FFFFFFFF"),
        (Byte(10), "X2", "0A"),
        (1234567, "N0", "1,234,567"),
        (1.005, "F2", "1.01"),
        (12345.678, "E2", "1.23E+004"),
        (0.123, "P1", "12.3 %"),
        (1234.5, "#,##0.00", "1,234.50"),
        (0, "#", ""),
        (-7, "0;(0)", "(7)"),
        (12345, "##-##", "123-45"),
        (Decimal("1.10"), "0.##", "1.1"),
        (0.1 + 0.2, "R", "0.30000000000000004"),
    ],
)
def test_numbers_are_written_as_net_framework_writes_them(value: Value, spec: str, expected: str) -> None:
    assert format_number(value, spec) == expected


def test_a_whole_number_format_refuses_doubles() -> None:
    with pytest.raises(FormatException):
        format_number(2.5, "D2")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("yyyy-MM-dd HH:mm:ss.fff", "2024-03-05 14:07:09.123"),
        ("o", "2024-03-05T14:07:09.1230000Z"),
        ("s", "2024-03-05T14:07:09"),
        ("ddd, dd MMM yyyy", "Tue, 05 Mar 2024"),
        ("hh:mm tt", "02:07 PM"),
        ("'at' H", "at 14"),
        ("d", "03/05/2024"),
    ],
)
def test_dates_are_written_by_their_format(spec: str, expected: str) -> None:
    moment = DateTime.at(2024, 3, 5, 14, 7, 9, 123, kind=UTC)

    assert format_date(moment, spec) == expected


def test_local_time_shows_how_far_it_is_from_utc() -> None:
    token = ZONE.set(60 * 60 * 10_000_000)
    try:
        assert format_date(DateTime.at(2024, 1, 1, kind=LOCAL), "o").endswith("+01:00")
        assert parse_date("2024-01-01T00:00:00Z") == DateTime.at(2024, 1, 1, 1)
    finally:
        ZONE.reset(token)


@pytest.mark.parametrize(
    ("spec", "expected"), [("c", "1.02:03:04"), ("g", "1:2:03:04"), ("hh\\:mm", "02:03")]
)
def test_spans_are_written_by_their_format(spec: str, expected: str) -> None:
    assert format_span(parse_span("1.02:03:04"), spec) == expected


def test_items_align_and_braces_double() -> None:
    assert format_string("[{0,-4}|{1,5:N1}] {{x}}", ["a", 2]) == "[a   |  2.0] {x}"


@pytest.mark.parametrize("template", ["{0", "{", "{x}", "}"])
def test_a_broken_template_is_a_format_error(template: str) -> None:
    with pytest.raises(FormatException):
        format_string(template, ["a"])


def test_a_missing_argument_is_named_by_its_index() -> None:
    with pytest.raises(FormatException, match="Index"):
        format_string("{1}", ["a"])


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-02",
        "01/02/2024",
        "Jan 2, 2024",
        "2 January 2024",
        "2024-01-02T00:00:00",
        "Tue, 02 Jan 2024 00:00:00",
    ],
)
def test_dates_are_read_in_many_forms(text: str) -> None:
    assert parse_date(text) == DateTime.at(2024, 1, 2)


def test_a_date_is_read_by_one_exact_format() -> None:
    assert parse_date_exact("2024.01.02 05", "yyyy.MM.dd HH") == (DateTime.at(2024, 1, 2, 5), None)


def test_a_day_that_does_not_exist_is_no_date() -> None:
    with pytest.raises(FormatException):
        parse_date("2020-13-01")


@pytest.mark.parametrize(
    ("text", "ticks"), [("1:02", 37_200_000_000), ("-0:00:05", -50_000_000), ("2", 2 * 864_000_000_000)]
)
def test_spans_are_read(text: str, ticks: int) -> None:
    assert parse_span(text) == TimeSpan(ticks)
