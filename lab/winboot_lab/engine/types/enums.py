"""The enums, as data: name, flags or not, and the constants as `Name=number` (without a number: one more)."""

from __future__ import annotations

from winboot_lab.engine.dotnet import enum_type
from winboot_lab.engine.values import INT32

_PLAIN = {
    "System.DayOfWeek": "Sunday Monday Tuesday Wednesday Thursday Friday Saturday",
    "System.DateTimeKind": "Unspecified Utc Local",
    "System.StringComparison": "CurrentCulture CurrentCultureIgnoreCase InvariantCulture InvariantCultureIgnoreCase "
    "Ordinal OrdinalIgnoreCase",
    "System.MidpointRounding": "ToEven AwayFromZero",
    "System.ConsoleColor": "Black DarkBlue DarkGreen DarkCyan DarkRed DarkMagenta DarkYellow Gray DarkGray Blue Green "
    "Cyan Red Magenta Yellow White",
    "System.EnvironmentVariableTarget": "Process User Machine",
    "System.Security.Cryptography.X509Certificates.X509NameType": "SimpleName EmailName UpnName DnsName "
    "DnsFromAlternativeName UrlName",
    "System.IO.FileMode": "CreateNew=1 Create Open OpenOrCreate Truncate Append",
    "System.IO.SearchOption": "TopDirectoryOnly AllDirectories",
    "System.IO.DriveType": "Unknown NoRootDirectory Removable Fixed Network CDRom Ram",
    "System.IO.Compression.CompressionMode": "Decompress Compress",
    "Microsoft.Win32.RegistryValueKind": "Unknown=0 String=1 ExpandString=2 Binary=3 DWord=4 MultiString=7 QWord=11 "
    "None=-1",
    "Microsoft.Win32.RegistryKeyPermissionCheck": "Default ReadSubTree ReadWriteSubTree",
    "System.Security.AccessControl.AccessControlType": "Allow Deny",
    "System.Security.AccessControl.ResourceType": "Unknown FileObject Service Printer RegistryKey LMShare KernelObject "
    "WindowObject DSObject DSObjectAll ProviderDefined WmiGuidObject RegistryWow6432Key",
    "System.Security.Principal.WindowsBuiltInRole": "Administrator=544 User=545 Guest=546 PowerUser=547 "
    "AccountOperator=548 SystemOperator=549 PrintOperator=550 BackupOperator=551 Replicator=552",
    "System.Security.Cryptography.X509Certificates.StoreLocation": "CurrentUser=1 LocalMachine=2",
    "System.Security.Cryptography.X509Certificates.StoreName": "AddressBook=1 AuthRoot CertificateAuthority Disallowed My "
    "Root TrustedPeople TrustedPublisher",
    "System.Net.Sockets.AddressFamily": "Unknown=-1 Unspecified=0 Unix InterNetwork InterNetworkV6=23",
    "System.Net.Sockets.SocketError": "Success=0 SocketError=-1 Interrupted=10004 AccessDenied=10013 Fault=10014 "
    "InvalidArgument=10022 TooManyOpenSockets=10024 WouldBlock=10035 InProgress=10036 AlreadyInProgress=10037 "
    "NotSocket=10038 AddressAlreadyInUse=10048 AddressNotAvailable=10049 NetworkDown=10050 NetworkUnreachable=10051 "
    "NetworkReset=10052 ConnectionAborted=10053 ConnectionReset=10054 NotConnected=10057 TimedOut=10060 "
    "ConnectionRefused=10061 HostDown=10064 HostUnreachable=10065 HostNotFound=11001 TryAgain=11002 NoRecovery=11003 "
    "NoData=11004",
    "System.Net.WebExceptionStatus": "Success NameResolutionFailure ConnectFailure ReceiveFailure SendFailure "
    "PipelineFailure RequestCanceled ProtocolError ConnectionClosed TrustFailure SecureChannelFailure "
    "ServerProtocolViolation KeepAliveFailure Pending Timeout ProxyNameResolutionFailure UnknownError "
    "MessageLengthLimitExceeded CacheEntryNotFound RequestProhibitedByCachePolicy RequestProhibitedByProxy",
    "System.Net.HttpStatusCode": "Continue=100 SwitchingProtocols OK=200 Created Accepted NonAuthoritativeInformation "
    "NoContent ResetContent PartialContent Ambiguous=300 MultipleChoices=300 Moved=301 MovedPermanently=301 Found=302 "
    "Redirect=302 RedirectMethod=303 SeeOther=303 NotModified=304 UseProxy=305 Unused=306 RedirectKeepVerb=307 "
    "TemporaryRedirect=307 BadRequest=400 Unauthorized PaymentRequired Forbidden NotFound MethodNotAllowed NotAcceptable "
    "ProxyAuthenticationRequired RequestTimeout Conflict Gone LengthRequired PreconditionFailed RequestEntityTooLarge "
    "RequestUriTooLong UnsupportedMediaType RequestedRangeNotSatisfiable ExpectationFailed UpgradeRequired=426 "
    "InternalServerError=500 NotImplemented BadGateway ServiceUnavailable GatewayTimeout HttpVersionNotSupported",
    "System.ServiceProcess.ServiceControllerStatus": "Stopped=1 StartPending StopPending Running ContinuePending "
    "PausePending Paused",
    "System.ServiceProcess.ServiceStartMode": "Boot System Automatic Manual Disabled",
    "System.Diagnostics.ProcessWindowStyle": "Normal Hidden Minimized Maximized",
    "System.Diagnostics.ProcessPriorityClass": "Normal=32 Idle=64 High=128 RealTime=256 BelowNormal=16384 "
    "AboveNormal=32768",
    "System.Diagnostics.EventLogEntryType": "Error=1 Warning=2 Information=4 SuccessAudit=8 FailureAudit=16",
    "System.Management.Automation.ActionPreference": "SilentlyContinue Stop Continue Inquire Ignore Suspend",
    "System.Management.Automation.ConfirmImpact": "None Low Medium High",
    "System.Management.Automation.ErrorCategory": "NotSpecified OpenError CloseError DeviceError DeadlockDetected "
    "InvalidArgument InvalidData InvalidOperation InvalidResult InvalidType MetadataError NotImplemented NotInstalled "
    "ObjectNotFound OperationStopped OperationTimeout SyntaxError ParserError PermissionDenied ResourceBusy "
    "ResourceExists ResourceUnavailable ReadError WriteError FromStdErr SecurityError ProtocolError ConnectionError "
    "AuthenticationError LimitsExceeded QuotaExceeded NotEnabled",
    "System.Management.Automation.CommandOrigin": "Runspace Internal",
    "System.Management.Automation.ProgressRecordType": "Processing Completed",
    "System.Runtime.InteropServices.Architecture": "X86 X64 Arm Arm64",
    "Microsoft.PowerShell.ExecutionPolicy": "Unrestricted RemoteSigned AllSigned Restricted Default=3 Bypass=4 "
    "Undefined=5",
    "Microsoft.PowerShell.Commands.FileSystemCmdletProviderEncoding": "Unknown String Unicode Byte BigEndianUnicode UTF8 "
    "UTF7 UTF32 Ascii Default Oem BigEndianUTF32",
}
_FLAGS = {
    "System.StringSplitOptions": "None=0 RemoveEmptyEntries=1",
    "System.Base64FormattingOptions": "None=0 InsertLineBreaks=1",
    "System.IO.FileAccess": "Read=1 Write=2 ReadWrite=3",
    "System.IO.FileShare": "None=0 Read=1 Write=2 ReadWrite=3 Delete=4 Inheritable=16",
    "System.IO.FileOptions": "None=0 Encrypted=16384 DeleteOnClose=67108864 SequentialScan=134217728 "
    "RandomAccess=268435456 Asynchronous=1073741824 WriteThrough=-2147483648",
    "System.IO.FileAttributes": "ReadOnly=1 Hidden=2 System=4 Directory=16 Archive=32 Device=64 Normal=128 Temporary=256 "
    "SparseFile=512 ReparsePoint=1024 Compressed=2048 Offline=4096 NotContentIndexed=8192 Encrypted=16384 "
    "IntegrityStream=32768 NoScrubData=131072",
    "System.Text.RegularExpressions.RegexOptions": "None=0 IgnoreCase=1 Multiline=2 ExplicitCapture=4 Compiled=8 "
    "Singleline=16 IgnorePatternWhitespace=32 RightToLeft=64 ECMAScript=256 CultureInvariant=512",
    "System.Globalization.NumberStyles": "None=0 AllowLeadingWhite=1 AllowTrailingWhite=2 AllowLeadingSign=4 Integer=7 "
    "AllowTrailingSign=8 AllowParentheses=16 AllowDecimalPoint=32 AllowThousands=64 Number=111 AllowExponent=128 "
    "Float=167 AllowCurrencySymbol=256 Currency=383 Any=511 AllowHexSpecifier=512 HexNumber=515",
    "System.Globalization.DateTimeStyles": "None=0 AllowLeadingWhite=1 AllowTrailingWhite=2 AllowInnerWhite=4 "
    "AllowWhiteSpaces=7 NoCurrentDateDefault=8 AdjustToUniversal=16 AssumeLocal=32 AssumeUniversal=64 RoundtripKind=128",
    "Microsoft.Win32.RegistryValueOptions": "None=0 DoNotExpandEnvironmentNames=1",
    "System.Security.AccessControl.FileSystemRights": "ReadData=1 ListDirectory=1 WriteData=2 CreateFiles=2 AppendData=4 "
    "CreateDirectories=4 ReadExtendedAttributes=8 WriteExtendedAttributes=16 ExecuteFile=32 Traverse=32 "
    "DeleteSubdirectoriesAndFiles=64 ReadAttributes=128 WriteAttributes=256 Write=278 Delete=65536 ReadPermissions=131072 "
    "Read=131209 ReadAndExecute=131241 Modify=197055 ChangePermissions=262144 TakeOwnership=524288 Synchronize=1048576 "
    "FullControl=2032127",
    "System.Security.AccessControl.RegistryRights": "QueryValues=1 SetValue=2 CreateSubKey=4 EnumerateSubKeys=8 Notify=16 "
    "CreateLink=32 Delete=65536 ReadPermissions=131072 WriteKey=131078 ExecuteKey=131097 ReadKey=131097 "
    "ChangePermissions=262144 TakeOwnership=524288 FullControl=983103",
    "System.Security.AccessControl.InheritanceFlags": "None=0 ContainerInherit=1 ObjectInherit=2",
    "System.Security.AccessControl.PropagationFlags": "None=0 NoPropagateInherit=1 InheritOnly=2",
    "System.Security.AccessControl.AccessControlSections": "None=0 Audit=1 Access=2 Owner=4 Group=8 All=15",
    "System.Security.AccessControl.MutexRights": "Modify=1 Delete=65536 ReadPermissions=131072 ChangePermissions=262144 "
    "TakeOwnership=524288 Synchronize=1048576 FullControl=2031617",
    "System.Security.Cryptography.X509Certificates.OpenFlags": "ReadOnly=0 ReadWrite=1 MaxAllowed=2 OpenExistingOnly=4 "
    "IncludeArchived=8",
    "System.Security.Authentication.SslProtocols": "None=0 Ssl2=12 Ssl3=48 Tls=192 Default=240 Tls11=768 Tls12=3072 "
    "Tls13=12288",
    "System.Net.SecurityProtocolType": "SystemDefault=0 Ssl3=48 Tls=192 Tls11=768 Tls12=3072 Tls13=12288",
    "System.ServiceProcess.ServiceType": "KernelDriver=1 FileSystemDriver=2 Adapter=4 RecognizerDriver=8 "
    "Win32OwnProcess=16 Win32ShareProcess=32 InteractiveProcess=256",
    "System.Management.Automation.SplitOptions": "SimpleMatch=1 RegexMatch=2 CultureInvariant=4 "
    "IgnorePatternWhitespace=8 Multiline=16 Singleline=32 IgnoreCase=64 ExplicitCapture=128",
    "System.Management.Automation.ScopedItemOptions": "None=0 ReadOnly=1 Constant=2 Private=4 AllScope=8 Unspecified=16",
    "System.Management.Automation.PSMemberTypes": "AliasProperty=1 CodeProperty=2 Property=4 NoteProperty=8 "
    "ScriptProperty=16 Properties=31 PropertySet=32 Method=64 CodeMethod=128 ScriptMethod=256 Methods=448 "
    "ParameterizedProperty=512 MemberSet=1024 Event=2048 Dynamic=4096 All=8191",
    "System.Management.Automation.CommandTypes": "Alias=1 Function=2 Filter=4 Cmdlet=8 ExternalScript=16 Application=32 "
    "Script=64 Workflow=128 Configuration=256 All=511",
}


def _constants(text: str) -> dict[str, int]:
    numbers: dict[str, int] = {}
    following = 0
    for word in text.split():
        name, given, number = word.partition("=")
        following = int(number) if given else following
        numbers[name] = following
        following += 1
    return numbers


for _table, _flags in ((_PLAIN, False), (_FLAGS, True)):
    for _name, _text in _table.items():
        enum_type(_name, _constants(_text), flags=_flags, underlying=INT32.name)
