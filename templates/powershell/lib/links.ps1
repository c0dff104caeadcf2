# SUMMARY Reads links and hard links of files from the file system.
# `LinkType` of Get-Item is not a fact on Windows PowerShell 5.1: it
# opens the path to read (InternalSymbolicLinkLinkCodeMethods.GetLinkType, GENERIC_READ; PowerShell v6.0.0-alpha.7,
# FileSystemProvider.cs) and returns nothing where another handle or a rule refuses that. A path opened with no access right at all
# passes every sharing mode (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew, dwDesiredAccess).

function Get-UserLink {
    # What a path is, if a link that a user made or could have made; nothing otherwise, or if the path is gone.
    param([string]$Path)
    try {
        $tag = Read-Entry -Path $Path -Work { [Winboot.Entry]::Tag($Path) }
        if ($tag) { return (Get-LinkText -Path $Path -Tag $tag) }
    }
    catch [IO.FileNotFoundException], [IO.DirectoryNotFoundException] { return }
    if (Test-HardLink -Path $Path) { 'a second name of another file' }
}

function Get-LinkText {
    # What a reparse point with this tag is, if an ordinary user made or could have made it; nothing otherwise. Any user can make
    # a junction. A symbolic link needs a privilege, which a user may have: its owner decides. Other tags count as links if they
    # are name surrogates (20000000, ntifs.h: IsReparseTagNameSurrogate); a kubelet's socket is not (MS-FSCC 2.1.2.1: AF_UNIX).
    param([string]$Path, [int]$Tag)
    if ($Tag -eq 0xA0000003) { return 'a junction' }
    try { $owner = Read-Entry -Path $Path -Work { [Winboot.Entry]::Owner($Path) } }
    catch [UnauthorizedAccessException] { return 'a link whose owner cannot be read' }
    if (-not (Test-Trusted -Sid $owner)) { return "a link of $owner" }
    if ($Tag -ne 0xA000000C -and ($Tag -band 0x20000000)) { 'a link of an unknown kind ({0:x8})' -f $Tag }
}

function Test-HardLink {
    # Whether a path is a file with a second name.
    param([string]$Path)
    if (-not [IO.File]::Exists($Path)) { return $false }
    try { (Read-Entry -Path $Path -Work { [Winboot.Entry]::Names($Path) }) -gt 1 }
    catch [IO.FileNotFoundException], [IO.DirectoryNotFoundException] { $false }
}

function Read-Entry {
    # The result of Work, which asks the type below about a path, or nothing if Work returns none. Waits while Windows deletes or
    # replaces the path.
    param([string]$Path, [scriptblock]$Work)
    if (-not ('Winboot.Entry' -as [type])) { Add-Type -TypeDefinition (Get-EntryDeclaration) -Language CSharp }
    Invoke-WithRetry -File $Path -Work $Work
}

function Get-EntryDeclaration {
    # The C# that asks the file system about a path, without following it.
    @'
    using System;
    using System.Runtime.InteropServices;
    using System.Security.Principal;
    using Microsoft.Win32.SafeHandles;

    namespace Winboot
    {
        public static class Entry
        {
            [DllImport("kernel32.dll", ExactSpelling = true, CharSet = CharSet.Unicode, SetLastError = true)]
            private static extern SafeFileHandle CreateFileW(string name, int access, int share, IntPtr security, int mode, int flags, IntPtr template);

            [DllImport("kernel32.dll", ExactSpelling = true, SetLastError = true)]
            private static extern bool GetFileInformationByHandleEx(SafeFileHandle file, int kind, [Out] int[] found, int size);

            [DllImport("advapi32.dll", ExactSpelling = true)]
            private static extern int GetSecurityInfo(SafeFileHandle file, int type, int wanted, out IntPtr owner, IntPtr group, IntPtr access, IntPtr audit, out IntPtr descriptor);

            [DllImport("kernel32.dll", ExactSpelling = true)]
            private static extern IntPtr LocalFree(IntPtr memory);

            // The tag of a reparse point; 0 if the path is none. FILE_ATTRIBUTE_TAG_INFO: attributes, tag.
            public static int Tag(string path)
            {
                int[] found = Ask(path, 9, 2);
                return (found[0] & 0x400) == 0 ? 0 : found[1];
            }

            // How many names a file has. FILE_STANDARD_INFO: two sizes of 8 bytes, the number, two flags.
            public static int Names(string path)
            {
                return Ask(path, 1, 6)[4];
            }

            // The SID of the owner of the path itself: 20000 is READ_CONTROL, 1 a file, 1 its owner.
            public static string Owner(string path)
            {
                using (SafeFileHandle file = Open(path, 0x20000))
                {
                    IntPtr owner, descriptor;
                    int failed = GetSecurityInfo(file, 1, 1, out owner, IntPtr.Zero, IntPtr.Zero, IntPtr.Zero, out descriptor);
                    if (failed != 0) { Marshal.ThrowExceptionForHR(unchecked((int)0x80070000) | failed); }
                    try { return new SecurityIdentifier(owner).Value; }
                    finally { LocalFree(descriptor); }
                }
            }

            private static int[] Ask(string path, int kind, int count)
            {
                using (SafeFileHandle file = Open(path, 0))
                {
                    int[] found = new int[count];
                    if (!GetFileInformationByHandleEx(file, kind, found, count * 4)) { Marshal.ThrowExceptionForHR(Marshal.GetHRForLastWin32Error()); }
                    return found;
                }
            }

            // Shares everything, opens what exists, folders too (2000000), and the link itself (200000).
            private static SafeFileHandle Open(string path, int access)
            {
                SafeFileHandle file = CreateFileW(@"\\?\" + path, access, 7, IntPtr.Zero, 3, 0x2200000, IntPtr.Zero);
                if (file.IsInvalid) { Marshal.ThrowExceptionForHR(Marshal.GetHRForLastWin32Error()); }
                return file;
            }
        }
    }
'@
}
