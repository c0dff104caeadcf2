"""Down and up: what is lost, what is written, and what takes effect only with a restart."""

from __future__ import annotations

from datetime import datetime, timedelta

from winboot_lab.windows.parts import Parts
from winboot_lab.windows.registry import ACTIVE_NAME, CBS_PENDING, SESSION_MANAGER

COMPUTER_NAME = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control\ComputerName\ComputerName"
TCPIP = r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters"
UPDATE_PENDING = (
    r"HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update\RebootRequired"
)
WINLOGON = r"HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows NT\CurrentVersion"

# The options that the boot loader gave this start, and the boot entry's element for test signing (BCD reference:
# BcdLibraryBoolean_AllowPrereleaseSignatures). Unsourced: start-options.
SYSTEM_START_OPTIONS = (r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Control", "SystemStartOptions")
TEST_SIGNING_ELEMENT = r"HKEY_LOCAL_MACHINE\BCD00000000\Objects\{current}\Elements\16000049"
TEST_SIGNING = "TESTSIGNING"

_PARTS = (
    ("System", ""),
    ("smss", r"\SystemRoot\System32\smss.exe"),
    ("csrss", r"C:\Windows\System32\csrss.exe"),
    ("wininit", r"C:\Windows\System32\wininit.exe"),
    ("services", r"C:\Windows\System32\services.exe"),
    ("lsass", r"C:\Windows\System32\lsass.exe"),
)


class Boot:
    """The machine's way down and up, and the names that go with it."""

    def __init__(self, machine: Parts) -> None:
        self._machine = machine
        self.down_cleanly = True
        # A restart is scheduled, for the end of its delay.
        self.restart_due = False
        self.domain = ""
        self.is_trusted = True
        # Why the secure channel cannot be verified, in Windows' words.
        self.channel_error = ""
        # Whether the domain lets this machine read the password of an account, by its name.
        self.managed: dict[str, bool] = {}
        self.workgroup = "WORKGROUP"
        # What PagingFiles said at the last boot.
        self.page_files: list[str] = []
        # Ports that remote management listens on; an endpoint of the lab on loopback has ports of its own.
        self.management_ports = [5985]

    @property
    def boot_time(self) -> datetime:
        """LastBootUpTime: the clock now less the time since boot, so it moves with the clock."""
        return self._machine.now() - timedelta(seconds=self._machine.uptime())

    # ---- names -----------------------------------------------------------------------------------------

    @property
    def next_name(self) -> str:
        """The name after the next boot."""
        return self._machine.registry.text(COMPUTER_NAME, "ComputerName", self._machine.name)

    def rename(self, name: str) -> None:
        """Take a new name with the next boot. NetBIOS keeps 15 characters in capitals."""
        registry = self._machine.registry
        registry.set(COMPUTER_NAME, "ComputerName", "String", name.upper()[:15])
        registry.set(TCPIP, "NV Hostname", "String", name)

    def install_name(self, name: str) -> None:
        """The name from the installation, at once in force."""
        self.rename(name)
        self._apply_name()

    def _apply_name(self) -> None:
        registry = self._machine.registry
        registry.set(ACTIVE_NAME, "ComputerName", "String", self.next_name)
        registry.set(TCPIP, "Hostname", "String", registry.text(TCPIP, "NV Hostname", self.next_name))
        registry.set(TCPIP, "Domain", "String", registry.text(TCPIP, "NV Domain"))

    def join_domain(self, domain: str, *, netbios: str = "") -> None:
        """Make the machine a domain member, as if it had been joined and restarted."""
        self.domain = domain
        registry = self._machine.registry
        registry.set(TCPIP, "NV Domain", "String", domain)
        registry.set(TCPIP, "Domain", "String", domain)
        self._machine.accounts.domains["S-1-5-21-1000-2000-3000-513"] = f"{netbios or domain}\\Domain Users"

    def pending(self) -> list[str]:
        """Why a restart is pending, by the usual signs."""
        registry = self._machine.registry
        signs = {
            "component servicing": registry.exists(CBS_PENDING),
            "Windows Update": registry.exists(UPDATE_PENDING),
            "file renames": bool(registry.strings(SESSION_MANAGER, "PendingFileRenameOperations")),
            "computer name": self.next_name != self._machine.name,
        }
        return [sign for sign, there in signs.items() if there]

    # ---- down ------------------------------------------------------------------------------------------

    def restart(self, seconds: float) -> None:
        """A clean shutdown now, and up again after `seconds`."""
        machine = self._machine
        if not machine.running:
            return
        self.go_down(clean=True)
        if machine.faults.comes_back:
            machine.after(seconds, self.come_up, lasting=True)

    def request_restart(self, delay: float, who: str, *, comment: str = "") -> bool:
        """What Restart-Computer and shutdown.exe do: the session continues for a moment. False: one is under way."""
        machine = self._machine
        if self.restart_due:
            return False
        message = f"The process {who} has initiated the restart of computer {machine.name} on behalf of user."
        machine.events.write("System", "User32", 1074, f"{message}\n Comment: {comment}")
        self.restart_due = True
        machine.after(delay, machine.reboot)
        return True

    def go_down(self, *, clean: bool) -> None:
        """Everything volatile goes. Sessions find out at their next checkpoint."""
        machine = self._machine
        if not machine.running:
            return
        machine.services.go_down(clean=clean)
        if clean:
            machine.events.write("System", "EventLog", 6006, "The Event log service was stopped.")
            machine.events.write(
                "System", "Microsoft-Windows-Kernel-General", 13, "The operating system is shutting down."
            )
        self.down_cleanly = clean
        machine.running = False
        machine.tasks.forget_running()
        machine.processes.forget_all()
        machine.files.forget_open()
        machine.mutexes.forget_all()
        machine.sockets.forget_all()
        machine.timers.forget_all()
        machine.registry.forget_volatile()
        machine.hns.machine_went_down()
        machine.network.machine_went_down()
        self.restart_due = False
        machine.signal("down")

    # ---- up --------------------------------------------------------------------------------------------

    def come_up(self) -> None:
        """Boot: pending things take effect, Windows' own processes and services start, startup tasks run."""
        machine = self._machine
        first = machine.running
        if not first:
            machine.boot_count += 1
        machine.booted_at = machine.time.seconds
        machine.running = True
        self.take_options()
        self._rename_files()
        self._apply_name()
        self.page_files = machine.registry.strings(SESSION_MANAGER + r"\Memory Management", "PagingFiles")
        machine.features.finish_pending()
        for sign in (CBS_PENDING, UPDATE_PENDING):
            machine.registry.wipe(sign)
        for name, path in _PARTS:
            machine.processes.add(name, path, path)
        self._write_boot_records()
        machine.network.machine_came_up()
        machine.services.load()
        machine.hns.machine_came_up()
        machine.services.start_automatic()
        self.open_management()
        machine.defender.machine_came_up()
        machine.tasks.machine_came_up()
        machine.signal("up")

    def take_options(self) -> None:
        """The options of the boot entry that are in force from now on."""
        registry = self._machine.registry
        on = registry.binary(TEST_SIGNING_ELEMENT, "Element") == b"\x01"
        options = ["NOEXECUTE=OPTOUT", *([TEST_SIGNING] if on else [])]
        registry.set(*SYSTEM_START_OPTIONS, "String", " " + "  ".join(options))

    def open_management(self) -> None:
        """The system listens for WinRM on behalf of its service."""
        machine = self._machine
        system = machine.processes.named("System")[0]
        machine.sockets.close_all(system.pid)
        for port in self.management_ports:
            machine.sockets.listen(system, port, address="::")

    def _rename_files(self) -> None:
        # Pairs of names: an empty second one deletes, a leading ! overwrites.
        registry, files = self._machine.registry, self._machine.files
        names = registry.strings(SESSION_MANAGER, "PendingFileRenameOperations")
        for source, goal in zip(names[::2], names[1::2], strict=False):
            path = source.removeprefix("\\??\\")
            if not files.exists(path):
                continue
            if not goal:
                # A directory goes only when it is empty (MoveFileExW, MOVEFILE_DELAY_UNTIL_REBOOT).
                if not files.is_directory(path):
                    files.delete(path)
                elif not files.list(path):
                    files.delete_directory(path)
            else:
                overwrite = goal.startswith("!")
                files.move(path, goal.lstrip("!").removeprefix("\\??\\"), overwrite=overwrite)
        registry.forget(SESSION_MANAGER, "PendingFileRenameOperations")

    def _write_boot_records(self) -> None:
        machine = self._machine
        if not self.down_cleanly:
            machine.events.write(
                "System",
                "Microsoft-Windows-Kernel-Power",
                41,
                "The system has rebooted without cleanly shutting down first.",
                "Critical",
            )
            message = "The previous system shutdown was unexpected."
            machine.events.write("System", "EventLog", 6008, message, "Error")
        started = machine.now().strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        machine.events.write(
            "System",
            "Microsoft-Windows-Kernel-General",
            12,
            f"The operating system started at system time {started}.",
            properties=("10", "0", str(machine.build), str(machine.release.ubr), "0", "0", started),
        )
        machine.events.write("System", "EventLog", 6005, "The Event log service was started.")
