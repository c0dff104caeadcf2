"""Which type a name in a script means: `[int]`, `[IO.File]`, `[Collections.Generic.List[string]]`.

A name that Windows PowerShell 5.1 would not find gives PowerShell's TypeNotFound; a name that it may well find, but
that is not declared here, is refused.
"""

from __future__ import annotations

from functools import lru_cache

from winboot_lab.engine.dotnet import DotNetType, accelerator_of, lookup, parse_type
from winboot_lab.engine.exceptions import RuntimeException
from winboot_lab.engine.refusal import Refusal


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ROOTS = _words(
    """
    system microsoft windows mscorlib accessibility ms wmi activities addin codedom collections
    componentmodel configuration data deployment device diagnostics directoryservices drawing dynamic
    enterpriseservices globalization identitymodel io linq management media messaging net numerics
    printing reflection resources runtime security servicemodel serviceprocess speech text threading
    timers transactions web xml
    """
)
"""First parts of names that may lead into .NET Framework (with or without the leading `System`)."""

_BARE = _words(
    """
    accessviolationexception action activationcontext activator appdomain appdomainsetup
    appdomainunloadedexception applicationid applicationidentity argiterator arraysegment
    assemblyloadeventargs asynccallback attribute attributetargets attributeusageattribute
    badimageformatexception base64formattingoptions buffer cannotunloadappdomainexception charenumerator
    clscompliantattribute comparison console consolecancelevent consolecancelcolor consolekey
    consolekeyinfo consolemodifiers consolespecialkey contextboundobject contextmarshalexception
    contextstaticattribute converter crossappdomaindelegate datamisalignedexception delegate
    dllnotfoundexception duplicatewaitobjectexception entrypointnotfoundexception eventargs eventhandler
    executionengineexception fieldaccessexception flagsattribute formattablestring func gc
    gccollectionmode gcnotificationstatus iasyncresult icustomformatter iequatable iformatprovider
    insufficientmemoryexception insufficientexecutionstackexception intptr invalidprogramexception
    invalidtimezoneexception iobservable iobserver iprogress iserviceprovider lazy loaderoptimization
    localdatastoreslot marshalbyrefobject memberaccessexception methodaccessexception
    missingfieldexception missingmemberexception missingmethodexception modulehandle mtathreadattribute
    multicastdelegate multicastnotsupportedexception nonserializedattribute notfinitenumberexception
    nullable obsoleteattribute operatingsystem paramarrayattribute platformid predicate progress random
    resolveeventargs runtimeargumenthandle runtimefieldhandle runtimemethodhandle runtimetypehandle
    serializableattribute stackoverflowexception stathreadattribute stringcomparer stringcomparison
    stringsplitoptions systemexception threadstaticattribute timezone timezoneinfo
    timezonenotfoundexception tuple typeaccessexception typecode typedreference
    typeinitializationexception typeloadexception typeunloadedexception uintptr
    unhandledexceptioneventargs unitytype uribuilder uricomponents uriformat uriformatexception
    urihostnametype urikind uriparser uripartial uritemplate valuetuple weakreference adsi adsisearcher
    alias allowemptycollection allowemptystring allownull argumentcompleter cimclass cimconverter
    ciminstance cimsession cimtype cmdletbinding dscresource dscproperty dsclocalconfigurationmanager
    initialsessionstate ipendpoint mailaddress outputtype parameter physicaladdress powershell
    psaliasproperty pscmdlet psdefaultvalue pslistmodifier psmoduleinfo psnoteproperty
    psprimitivedictionary psscriptmethod psscriptproperty pstypenameattribute psvariable
    psvariableproperty regex runspace runspacefactory supportswildcards validatecount validatedrive
    validatelength validatenotnull validatenotnullorempty validatepattern validaterange validatescript
    validateset validatetrusteddata validateuserdrive wildcardpattern wmi wmiclass wmisearcher
    x500distinguishedname x509certificate xml nullstring environment math convert bitconverter
    datetimeoffset timespan uri applicationexception dayofweek midpointrounding
    environmentvariabletarget consolecolor datetimekind
    """
)
"""Names without a dot that 5.1 knows (accelerators and types of namespace System)."""

_SEVEN_ONLY = (
    "semver",
    "ordered",
    "system.management.automation.semanticversion",
    "system.text.json.",
    "system.hashcode",
    "system.half",
    "system.index",
    "system.range",
    "system.dateonly",
    "system.timeonly",
    "system.mathf",
    "system.span",
    "system.readonlyspan",
    "system.memory",
    "system.readonlymemory",
    "system.buffers.",
    "system.io.enumeration.",
    "system.io.pipelines.",
    "system.threading.channels.",
    "system.security.cryptography.hkdf",
    "system.security.cryptography.aesgcm",
    "system.security.cryptography.aesccm",
    "system.security.cryptography.chacha20poly1305",
    "system.security.cryptography.pemencoding",
    "system.runtime.loader.",
    "system.convertutf",
    "system.text.rune",
    "system.formats.",
    "system.net.http.",
    "system.io.compression.zipfile",
    "system.io.compression.zipfileextensions",
    "system.web.httputility",
    "system.io.filestreamoptions",
    "system.collections.generic.priorityqueue",
    "system.collections.frozen.",
    "system.int128",
    "system.uint128",
)
"""Types that a plain 5.1 session does not find: newer .NET, or assemblies that are not loaded."""


def find_type(text: str) -> DotNetType:
    """The type a script's `[text]` means. Raises PowerShell's TypeNotFound, or a Refusal."""

    def plain(name: str) -> DotNetType:
        found = lookup(name.strip())
        if found is None or _is_missing(name):
            raise not_found(name, text)
        return found

    return parse_type(text, plain)


def try_find_type(text: str) -> DotNetType | None:
    """Like find_type, but None where PowerShell finds no type."""
    try:
        return find_type(text)
    except RuntimeException:
        return None


@lru_cache(maxsize=1000)
def _is_missing(name: str) -> bool:
    key = name.strip().lower()
    spellings = (key, "system." + key)
    return any(
        spelling == gone or (gone.endswith(".") and spelling.startswith(gone))
        for gone in _SEVEN_ONLY
        for spelling in spellings
    )


def not_found(name: str, whole: str) -> RuntimeException | Refusal:
    """What to raise for a name that is not declared."""
    key = name.strip().lower().partition("[")[0].partition("`")[0]
    if _is_missing(key):
        return _type_not_found(whole)
    first, dot, _ = key.partition(".")
    if (dot and first in _ROOTS) or (not dot and key in _BARE):
        return Refusal("type", name)
    return _type_not_found(whole)


def _type_not_found(name: str) -> RuntimeException:
    return RuntimeException(f"Unable to find type [{name}].", "TypeNotFound", "InvalidOperation", name)


def type_text(kind: DotNetType) -> str:
    """A type as `[string]` writes it: its short name if it has one, else the full name; generics with brackets."""
    if kind.kind == "array":
        assert kind.element is not None
        return type_text(kind.element) + "[" + "," * (kind.rank - 1) + "]"
    if kind.arguments:
        head = kind.name.partition("`")[0]
        return f"{head}[{','.join(type_text(argument) for argument in kind.arguments)}]"
    return _PREFERRED.get(kind.name) or accelerator_of(kind) or kind.name


_PREFERRED = {"System.Object": "System.Object", "System.Type": "type", "System.Single": "float"}
