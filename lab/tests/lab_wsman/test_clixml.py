"""CLIXML, read back by the two libraries that read it for a living."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import psrpcore.types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypsrp.messages import DebugRecord, ErrorRecordMessage, InformationRecord, ObjectMeta, ProgressRecord
from pypsrp.serializer import Serializer
from winboot_lab.wsman import clixml
from winboot_lab.wsman.executor import ErrorRecord, Information, Position, Progress
from winboot_lab.wsman.psrp import plain

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | TEXT
    | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


@given(VALUES)
def test_any_plain_value_is_read_back(value):
    """By psrpcore, which the lab itself uses for what comes in."""
    element = ElementTree.fromstring(clixml.output(value))

    assert plain(psrpcore.types.deserialize(element, psrpcore.types.PSCryptoProvider())) == value


@given(TEXT)
def test_any_text_is_read_back_by_a_client(value):
    """By pypsrp, whose rules for escapes are its own."""
    assert Serializer().deserialize(clixml.output(value)) == value


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinities_have_their_own_names(value):
    """As .NET's XmlConvert writes them."""
    assert clixml.output(value) in ("<Db>INF</Db>", "<Db>-INF</Db>")


@pytest.mark.parametrize("value", [object(), 2**63, {1, 2}])
def test_what_has_no_form_is_refused(value):
    """Rather than sent as something else."""
    with pytest.raises(TypeError):
        clixml.output(value)


ERROR = ErrorRecord(
    "it <broke> & 'so' on",
    error_id="Some,Id",
    category=13,
    category_name="ObjectNotFound",
    activity="Get-Item",
    reason="ItemNotFoundException",
    target_name="C:\\x",
    target_type="String",
    position=Position(3, 5, "line", "At line:3 char:5"),
    stack="at <ScriptBlock>, <No file>: line 3",
)


@pytest.mark.parametrize("xml", [clixml.error_record(ERROR, "$script")], ids=["stream"])
def test_an_error_record_keeps_what_a_report_wants(xml):
    """Message, id, category, position and stack."""
    record = Serializer().deserialize(xml, ObjectMeta("Obj", object=ErrorRecordMessage))

    assert str(record) == ERROR.message
    assert record.fq_error == "Some,Id"
    assert record.category == 13
    assert record.message == "ObjectNotFound: (C:\\x:String) [Get-Item], ItemNotFoundException"
    assert record.invocation_info.adapted_properties["PositionMessage"] == "At line:3 char:5"
    assert record.script_stacktrace == ERROR.stack


@pytest.mark.parametrize("kind", ["Warning", "Verbose", "Debug"])
def test_a_record_says_where_it_was_written_only_when_asked(kind):
    """That is the script itself, with every record."""
    asked = clixml.informational_record(kind, "text", "$script")
    unasked = clixml.informational_record(kind, "text", "$script", place=False)

    assert ("$script" in asked, "$script" in unasked) == (True, False)
    record = Serializer().deserialize(unasked, ObjectMeta("Obj", object=DebugRecord))
    assert (record.message, record.invocation) == ("text", False)


def test_type_names_point_backwards_only():
    """A client that reads fields in another order would stumble over a name that is explained later."""
    for xml in (
        clixml.error_record(ERROR),
        clixml.pipeline_state(5, ERROR),
        clixml.application_private_data("5.1.1.1"),
    ):
        known = set()
        for element in ElementTree.fromstring(xml).iter():
            if element.tag == "TN":
                known.add(element.get("RefId"))
            if element.tag == "TNRef":
                assert element.get("RefId") in known


def test_the_other_records_are_read_by_a_client():
    """Warning, verbose and debug share one form."""
    serializer = Serializer()
    debug = serializer.deserialize(
        clixml.informational_record("Debug", "text"), ObjectMeta("Obj", object=DebugRecord)
    )
    told = clixml.information_record(
        Information("hello", "source", ("a", "b")), "WIN", "user", "2026-01-01T00:00:00Z"
    )
    information = serializer.deserialize(told, ObjectMeta("Obj", object=InformationRecord))
    progress = serializer.deserialize(
        clixml.progress_record(Progress("busy", percent=40)), ObjectMeta("Obj", object=ProgressRecord)
    )

    assert debug.message == "text"
    assert (information.message_data, information.tags) == ("hello", ["a", "b"])
    assert (progress.activity, progress.percent_complete) == ("busy", 40)
