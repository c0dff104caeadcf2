"""What Windows PowerShell writes into its log of script blocks with no policy set.

When a script block first runs, its whole text goes to the log in two cases. Its text has one of these words, as a run of
letters and dashes; or its code names [Type], or chooses a member at run time. Source: PowerShell v6.0.0-alpha.7, the first
open sources after Windows PowerShell 5.1. See LogScriptBlockStart, CheckSuspiciousContent and s_signatures of
CompiledScriptBlock.cs, and MarkAstParentsAsSuspicious of SemanticChecks.cs. Words with a digit are left out here.
Unsourced: that a member chosen at run time counts; it is counted to be on the safe side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from winboot_lab.engine.invoke import BlockStage, Inline

_WORDS: Final = frozenset(
    [
        "add-type",
        "dllimport",
        "definedynamicassembly",
        "definedynamicmodule",
        "definetype",
        "defineconstructor",
        "createtype",
        "defineliteral",
        "defineenum",
        "definefield",
        "ilgenerator",
        "emit",
        "unverifiablecodeattribute",
        "definepinvokemethod",
        "gettypes",
        "getassemblies",
        "methods",
        "properties",
        "getconstructor",
        "getconstructors",
        "getdefaultmembers",
        "getevent",
        "getevents",
        "getfield",
        "getfields",
        "getinterface",
        "getinterfacemap",
        "getinterfaces",
        "getmember",
        "getmembers",
        "getmethod",
        "getmethods",
        "getnestedtype",
        "getnestedtypes",
        "getproperties",
        "getproperty",
        "invokemember",
        "makearraytype",
        "makebyreftype",
        "makegenerictype",
        "makepointertype",
        "declaringmethod",
        "declaringtype",
        "reflectedtype",
        "typehandle",
        "typeinitializer",
        "underlyingsystemtype",
        "interopservices",
        "marshal",
        "allochglobal",
        "ptrtostructure",
        "structuretoptr",
        "freehglobal",
        "intptr",
        "memorystream",
        "deflatestream",
        "frombase64string",
        "encodedcommand",
        "bypass",
        "tobase64string",
        "expandstring",
        "getpowershell",
        "openprocess",
        "virtualalloc",
        "virtualfree",
        "writeprocessmemory",
        "createuserthread",
        "closehandle",
        "getdelegateforfunctionpointer",
        "createthread",
        "memcpy",
        "loadlibrary",
        "getmodulehandle",
        "getprocaddress",
        "virtualprotect",
        "freelibrary",
        "readprocessmemory",
        "createremotethread",
        "adjusttokenprivileges",
        "writebyte",
        "openthreadtoken",
        "ptrtostring",
        "zerofreeglobalallocunicode",
        "openprocesstoken",
        "gettokeninformation",
        "setthreadtoken",
        "impersonateloggedonuser",
        "reverttoself",
        "getlogonsessiondata",
        "createprocesswithtoken",
        "duplicatetokenex",
        "openwindowstation",
        "opendesktop",
        "minidumpwritedump",
        "addsecuritypackage",
        "enumeratesecuritypackages",
        "getprocesshandle",
        "dangerousgethandle",
        "cryptoserviceprovider",
        "cryptography",
        "rijndaelmanaged",
        "cryptostream",
        "createencryptor",
        "createdecryptor",
        "transformfinalblock",
        "deviceiocontrol",
        "setinformationprocess",
        "passwordderivebytes",
        "getasynckeystate",
        "getkeyboardstate",
        "getforegroundwindow",
        "bindingflags",
        "nonpublic",
        "scriptblocklogging",
        "logpipelineexecutiondetails",
        "protectedeventlogging",
    ]
)
_RUN: Final = re.compile(r"[A-Za-z-]{4,}")
_CHOSEN: Final = re.compile(r"[\w)\]]\.[$(]|\[type\]", re.IGNORECASE)


def is_logged(text: str) -> bool:
    """Whether a script block of this text goes to the log."""
    return bool(_CHOSEN.search(text)) or not _WORDS.isdisjoint(map(str.lower, _RUN.findall(text)))


def log_bytes(blocks: Iterable[str]) -> int:
    """The bytes of text that the log takes for script blocks that run, each once, in UTF-16."""
    return sum(len(text.encode("utf-16-le")) for text in set(blocks) if is_logged(text))


@contextmanager
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The texts of the functions and script blocks that run meanwhile, without that of the script itself."""
    texts: list[str] = []
    stage, inline = BlockStage.__init__, Inline.__init__

    def staged(self: Any, scope: Any, code: Any, *rest: Any, **named: Any) -> None:
        texts.append(code.tree.extent.text)
        stage(self, scope, code, *rest, **named)

    def inlined(self: Any, scope: Any, block: Any) -> None:
        inline(self, scope, block)
        texts.append(str(block))

    with monkeypatch.context() as patch:
        patch.setattr(BlockStage, "__init__", staged)
        patch.setattr(Inline, "__init__", inlined)
        yield texts
