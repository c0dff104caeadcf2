"""The decisions, by what they are about.

Write the smallest text that is there once, and a wrong version that somebody could really write. A mutation that changes
nothing anybody could see is no entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.mutations.decision import Decision

# Name, right text, wrong text.
Entry = tuple[str, str, str]


def _held_by(tests: str, *entries: Entry) -> Iterator[Decision]:
    """Decisions that these files and folders below tests/, separated by blanks, are to hold."""
    return (Decision(name, right, wrong, tuple(tests.split())) for name, right, wrong in entries)


_CERTIFICATES = _held_by(
    "cluster/test_requests.py cluster/test_hostile_requests.py",
    ("csr-any-group", "if group not in _NODE_GROUPS:", 'if group == "system:masters":'),
    ("csr-no-group", 'if "system:nodes" not in request.groups:', "if not request.groups and request.name:"),
    (
        "csr-local-names",
        "if value.lower() in known_names:",
        'if value.lower() in known_names or value.endswith(".local"):',
    ),
    (
        "csr-any-address",
        "if address in known_addresses:",
        "if address in known_addresses or address.is_private:",
    ),
    (
        "csr-organization-among-others",
        'if organizations != ["system:nodes"]:',
        'if "system:nodes" not in organizations:',
    ),
    ("csr-second-common-name", "if common != [node.user]:", "if common[:1] != [node.user]:"),
    (
        "csr-other-subject-parts",
        "if attribute.oid not in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME):",
        "if attribute.oid == NameOID.SERIAL_NUMBER:",
    ),
    (
        "csr-other-extensions",
        "if extension.oid != ExtensionOID.SUBJECT_ALTERNATIVE_NAME:",
        "if extension.critical:",
    ),
    ("csr-attributes", "if attribute.oid != _EXTENSION_REQUEST:", "if not attribute.value:"),
    (
        "csr-more-usages",
        'if not required <= request.usages <= required | {"key encipherment"}:',
        "if not required <= request.usages:",
    ),
    (
        "csr-fewer-usages",
        'if not required <= request.usages <= required | {"key encipherment"}:',
        'if not request.usages <= required | {"key encipherment"}:',
    ),
    ("csr-signature", "if parsed is None or not parsed.is_signature_valid:", "if parsed is None:"),
    (
        "csr-two-blocks",
        "x509.load_pem_x509_csr(pem) if _PEM.fullmatch(pem) else None",
        "x509.load_pem_x509_csr(pem)",
    ),
    (
        "csr-serving-by-anybody",
        'elif request.kind == "serving":',
        'elif request.kind == "serving" and not node.requestors:',
    ),
    (
        "csr-client-by-anybody",
        "elif request.user not in node.requestors:",
        "elif node.requestors and not request.user:",
    ),
    (
        "csr-client-with-names",
        "if _alternative_names(parsed) is not None:",
        "if _alternative_names(parsed) is None:",
    ),
    ("csr-serving-without-names", "if names is None or not list(names):", "if names is None:"),
    ("csr-short-key", "if key.key_size < _RSA_BITS:", "if key.key_size < 1024:"),
    ("csr-weak-curve", "if key.curve.name not in _CURVES:", "if not key.curve.name:"),
    ("csr-weak-digest", "if digest is not None and digest.name not in _DIGESTS:", "if digest is None:"),
    (
        "csr-foreign-signer",
        "if request.kind is None:\n        yield",
        "if request.signer is None:\n        yield",
    ),
    (
        "uuid-of-another",
        "return one.bytes in (other.bytes, other.bytes_le)",
        "return one.bytes[8:] == other.bytes[8:]",
    ),
    (
        "uuid-byte-order",
        "return one.bytes in (other.bytes, other.bytes_le)",
        "return one.bytes == other.bytes",
    ),
)

_CA = _held_by(
    "cli/test_init.py cluster",
    ("ca-server-not-below-it", "    _get(server, even(ssl.create_default_context(cadata=pem)))\n", ""),
    ("ca-of-another-key", "if key_hash(certificate) == ca_hash:", "if certificate:"),
)

_SECRETS = _held_by(
    "join",
    (
        "token-lifetime",
        "TOKEN_LIFETIME: Final = timedelta(hours=2)",
        "TOKEN_LIFETIME: Final = timedelta(hours=26)",
    ),
    (
        "token-minted-always",
        "if BOOTSTRAP in names and spec.cluster.bootstrap_token",
        "if spec.cluster.bootstrap_token",
    ),
    ("token-not-forgotten", "            _forget(cluster, minted, note)\n", "            pass\n"),
    (
        "token-forgotten-when-it-went-well",
        "    finally:\n        if cluster is not None and minted",
        "    except KeyError:\n        if cluster is not None and minted",
    ),
    ("secrets-of-all-steps", "if step.name in names for secret in", "for secret in"),
    ("requestor-with-secret-half", "token.reveal().partition('.')[0]", "token.reveal()"),
)

_ADMISSION = _held_by(
    "join",
    (
        "blocked-counts-as-done",
        'if step.state not in ("ok", "changed")]',
        'if step.state not in ("ok", "changed", "blocked")]',
    ),
    (
        "failed-counts-as-done",
        'if step.state not in ("ok", "changed")]',
        'if step.state not in ("ok", "changed", "failed")]',
    ),
    ("admission-after-failed-labels", 'if done.state == "failed":', 'if done.state == "blocked":'),
    (
        "admission-before-ready",
        "        if node is None or not node.ready:\n            reason =",
        "        if node is None:\n            reason =",
    ),
    ("taint-stays", "        self.cluster.lift_taint(self.name, self.spec.node.startup_taint.key)\n", ""),
    (
        "cordon-stays",
        "        self.cluster.uncordon(self.name)\n        return differences",
        "        return differences",
    ),
    (
        "address-as-dialled",
        "own = machine.node_ip or address",
        "own = machine.node_ip or machine.address",
    ),
    (
        "wrong-machine",
        "if node is None or same_machine(node.system_uuid, look",
        "if node is None or not same_machine(node.system_uuid, look",
    ),
    (
        "node-that-is-not-ready-is-free",
        "if not node.ready and not node.was_admitted(",
        "if not node.ready or not node.was_admitted(",
    ),
    ("preflight-not-asked", "    state.preflight.stop_on_error(run.spec)", "    pass"),
    (
        "unresolved-joins",
        "    refuse_unresolved(specs)\n    preflight = Preflight(",
        "    preflight = Preflight(",
    ),
)

_DRAIN = _held_by(
    "join",
    (
        "drain-without-asking",
        "if run.cluster is None or not (run.options.drain and",
        "if run.cluster is None or not (",
    ),
    ("drain-of-a-starting-node", "run.is_live(node) and needs_drain(steps)", "needs_drain(steps)"),
    ("drain-for-nothing", "run.is_live(node) and needs_drain(steps)", "run.is_live(node)"),
    (
        "drain-for-a-policy",
        "return rough and not difference.policy and not unknown",
        "return rough and not unknown",
    ),
    (
        "drain-for-what-is-not-known",
        "return rough and not difference.policy and not unknown",
        "return rough and not difference.policy",
    ),
    (
        "drain-for-disrupts",
        "difference.reboot or difference.disrupts or difference.disturbs",
        "difference.reboot or difference.disturbs",
    ),
    (
        "drain-for-reboots",
        "difference.reboot or difference.disrupts or difference.disturbs",
        "difference.disrupts or difference.disturbs",
    ),
    ("drain-with-pods-left", "    if drained.left:\n", "    if drained.left and timeout <= 0:\n"),
    ("drain-without-cordon", "    cordoned = cluster.cordon(name)\n", "    cordoned = False\n"),
    (
        "drained-late-unheard",
        "if not drained and _drained(run, node, held_back(done)):",
        "if drained and _drained(run, node, held_back(done)):",
    ),
)

_RUN = _held_by(
    "test_run.py test_fleet.py",
    ("run-of-another", "event = parse(line, run)", "event = parse(line)"),
    (
        "look-that-says-less",
        'if missing and (mode == "Look" or reason in WHOLE_PASSES):',
        'if missing and mode == "Look" and reason not in WHOLE_PASSES:',
    ),
    (
        "step-told-twice",
        "for name, count in counts.items() if count > 1]",
        "for name, count in counts.items() if count > 2]",
    ),
    ("step-of-no-plan", "for name in counts if name not in self._steps]", "for name in counts if not name]"),
    (
        "restart-believed-by-a-port",
        "if now == before:\n                answers",
        "if now is None:\n                answers",
    ),
    (
        "restart-by-any-line",
        "return next((line for line in reversed(lines) if BOOT_ID.fullmatch(line)), None)",
        "return next((line for line in reversed(lines)), None)",
    ),
    ("lost-without-end", "and lost < MOST_LOST", "and lost >= 0"),
    ("never-reached-is-waited-for", "reached = self.record.pipelines > 0 or lost > 0", "reached = True"),
    ("restarts-without-end", "MOST_PASSES: Final = 20", "MOST_PASSES: Final = 2000"),
    ("noise-without-end", "if heard.noise <= MOST_NOISE:", "if heard.noise >= 0:"),
    (
        "quiet-for-ever",
        "if silence > self._patience.quiet:",
        "if silence > self._patience.quiet and self._stop.requested:",
    ),
    (
        "superseded-goes-on",
        'case "superseded":\n                    raise superseded(',
        'case "superseded!":\n                    raise superseded(',
    ),
    (
        "cut-output-is-an-answer",
        "if heard.started is None or heard.ended is None:",
        "if heard.started is None:",
    ),
    ("restart-not-asked-again", "if not taken or answers % PATIENT_ANSWERS == 0:", "if answers > 10_000:"),
)

_RETRY = _held_by(
    "test_retry.py transport/test_failures.py cluster/test_calls.py test_run.py test_fleet.py transport/test_connect.py",
    (
        "retry-of-any-error",
        "kind = isinstance(error, errors) if errors else error.worth_retrying",
        "kind = isinstance(error, errors) if errors else True",
    ),
    (
        "retry-of-other-classes",
        "kind = isinstance(error, errors) if errors else error.worth_retrying",
        "kind = error.worth_retrying",
    ),
    ("retry-regardless-of-when", "return kind and (when is None or when(error))", "return kind"),
    (
        "retry-after-ignored",
        "return usual(state) if asked is None else asked + growing(state)",
        "return usual(state)",
    ),
    (
        "retry-of-a-bug",
        "        if not isinstance(error, WinbootError):\n            return False\n",
        "        if not isinstance(error, WinbootError):\n            return True\n",
    ),
)

_DIGEST = _held_by(
    "test_plan.py test_script.py",
    ("digest-without-values", "[step.name, {**step.inputs(spec)},", "[step.name, {},"),
    ("digest-without-files", "{**step.files(spec)}, step.secrets(spec)", "{}, step.secrets(spec)"),
    ("digest-without-secrets", "step.secrets(spec), repr(step.source)]", "(), repr(step.source)]"),
    ("digest-without-own-steps", "step.secrets(spec), repr(step.source)]", 'step.secrets(spec), ""]'),
    (
        "digest-without-version",
        "json.dumps([winboot.__version__, spec.machine.name, told]",
        "json.dumps([spec.machine.name, told]",
    ),
    (
        "digest-without-name",
        "json.dumps([winboot.__version__, spec.machine.name, told]",
        "json.dumps([winboot.__version__, told]",
    ),
    ("essential-steps-left-out", "(step.name in kept or step.essential)", "(step.name in kept)"),
    (
        "skip-of-nothing",
        "if step.name not in skip and (",
        "if (step.name not in skip or step.essential) and (",
    ),
    ("needs-not-followed", "            waiting.extend(needs[name])\n", ""),
    ("digest-of-the-choice", "_digest(spec, wanted)", "_digest(spec, chosen)"),
)

_QUOTING = _held_by(
    "powershell/test_literals.py test_secret.py test_script.py",
    ("quote-201b", "(['\\u2018\\u2019\\u201a\\u201b])", "(['\\u2018\\u2019\\u201a])"),
    ("quote-2018", "(['\\u2018\\u2019\\u201a\\u201b])", "(['\\u2019\\u201a\\u201b])"),
    ("quote-once", 'sub(r"\\1\\1", text)', 'sub(r"\\1", text)'),
    ("half-surrogates", "if _SURROGATE.search(text):\n        raise", "if not text:\n        raise"),
    ("negative-numbers", 'if text.startswith("-") else text', 'if text.startswith("--") else text'),
    ("array-in-array", "if len(values) == 1 and isinstance(values[0], list | tuple):", "if not values:"),
    ("keys-that-differ-in-case", "if key.lower() in seen:", "if key in seen:"),
    ("big-numbers", "if value not in _INT64:", "if value is None:"),
    ("infinite-numbers", "if not math.isfinite(value):", "if math.isnan(value):"),
    ("secret-in-a-script", '    if hasattr(kind, "reveal"):\n', '    if hasattr(kind, "reveal_"):\n'),
    ("secret-pickled", "    def __reduce__(self) -> NoReturn:\n", "    def _reduce(self) -> NoReturn:\n"),
    (
        "secret-formatted",
        "    def __format__(self, format_spec: str) -> str:\n        return repr(self)",
        "    def __format__(self, format_spec: str) -> str:\n        return self._value",
    ),
    ("secret-printed", '        return "Secret(…)"', "        return self._value"),
)

_CLEAN = _held_by(
    "test_clean.py",
    ("clean-bidi", "\\u2028-\\u202e\\u2060", "\\u2028-\\u202d\\u2060"),
    ("clean-bidi-isolates", "\\u2060-\\u2069", "\\u2060-\\u2068"),
    ("clean-c1", "\\x7f-\\x9f\\u061c", "\\x7f\\u061c"),
    ("clean-escape", "\\x0b-\\x1f\\x7f", "\\x0b-\\x1a\\x7f"),
    ("clean-surrogates", "\\ud800-\\udfff\\ufffe", "\\ufffe"),
    ("clean-without-end", "if len(text) > longest:", "if len(text) < 0:"),
)

_CLAIMS = _held_by(
    "cloud/test_claims.py cloud/test_hook_adversity.py",
    ("claim-of-another-is-over", "return bool(self.clock() - since >= there.duration)", "return True"),
    ("claim-never-over", "return bool(self.clock() - since >= there.duration)", "return False"),
    ("claim-renewed-by-another-is-over", "if version != there.version:", "if not version:"),
    ("claim-taken-over-unnoticed", "transitions=there.transitions + 1", "transitions=there.transitions"),
    (
        "claim-over-any-version",
        "transitions=there.transitions, version=there.version)",
        'transitions=there.transitions, version="")',
    ),
    (
        "beat-after-the-loss",
        "    def _beat(self) -> None:\n        if not self.lost:\n",
        "    def _beat(self) -> None:\n        if True:\n",
    ),
    (
        "extend-after-the-loss",
        "    def _extend(self) -> None:\n        if not self.lost:\n",
        "    def _extend(self) -> None:\n        if True:\n",
    ),
    (
        "message-deleted-first",
        "        waited = self.shared.queue.complete(item.action, result)\n",
        "        self.delete(item)\n        waited = self.shared.queue.complete(item.action, result)\n",
    ),
    ("answer-though-lost", "if not owner.holds() or interrupted:", "if interrupted:"),
    ("answer-though-interrupted", "if not owner.holds() or interrupted:", "if not owner.holds():"),
    ("failed-is-continue", 'result = "CONTINUE" if outcome.good else "ABANDON"', 'result = "CONTINUE"'),
    (
        "work-for-what-nobody-waits-for",
        'if stage not in ("starts", "warms"):\n            return self._answers',
        'if stage == "unlisted":\n            return self._answers',
    ),
    (
        "foreign-machine-deleted",
        'case "foreign":\n                return self._answers',
        'case "nobody":\n                return self._answers',
    ),
    (
        "unknown-machine-gone-at-once",
        "                if item.deliveries < shared.settings.gone_after:\n",
        "                if item.deliveries < 0:\n",
    ),
)

_OWNERSHIP = _held_by(
    "cluster/test_claims.py join/test_ownership.py",
    (
        "claim-given-back-is-held",
        "            if not there.holder:\n",
        "            if there.holder is None:\n",
    ),
    ("session-not-asked", "renewed = read(session) if session else there", "renewed = there"),
    ("pause-unnoticed", "paused |= self._write()", "paused = self._write()"),
    (
        "taken-over-without-fence",
        '"TakeOver": self.options.take_over or (',
        '"TakeOver": self.options.take_over and (',
    ),
    (
        "look-before-the-wait-counts",
        "    if not state.until_ended.enter_context(run.claimed()):",
        "    if state.until_ended.enter_context(run.claimed()):",
    ),
    ("done-by-other-settings", "claim.notes.get(SETTINGS_DIGEST) == settings_digest(spec)", "True"),
)

_ACCESS = _held_by(
    "steps/test_directories.py steps/test_state.py",
    ("writer-of-rules-not-seen", "[int]$Rights = 0x500d0156", "[int]$Rights = 0x50010156"),
    ("writer-append-not-seen", "[int]$Rights = 0x500d0156", "[int]$Rights = 0x500d0152"),
    ("writer-delete-not-seen", "[int]$Rights = 0x500d0156", "[int]$Rights = 0x500c0156"),
    (
        "writer-owner-not-seen",
        "        $Security.GetOwner([Security.Principal.SecurityIdentifier]).Value\n        foreach",
        "        foreach",
    ),
    ("writer-denied-is-one", "if ($rule.AccessControlType -ne 'Allow' -or ", "if ("),
    (
        "trusted-everybody",
        "@('S-1-5-18', 'S-1-5-32-544', $installer) -contains $Sid",
        "@('S-1-5-18', 'S-1-5-32-544', 'S-1-5-32-545', $installer) -contains $Sid",
    ),
    ("stranger-owner", "if (Test-Trusted -Sid $owner) { $null } else { $owner }", "$null"),
    (
        "link-followed",
        "        if (Test-Link -Path $part) {\n            Stop-Step -Id 'FolderIsLink'",
        "        if ($false) {\n            Stop-Step -Id 'FolderIsLink'",
    ),
    (
        "link-above-followed",
        "foreach ($part in @(Get-ParentPath -Path $Path) + $Path) {",
        "foreach ($part in @($Path)) {",
    ),
    (
        "folder-above-not-looked-at",
        "-Is (Get-UntrustedReplacer -Path $path) -Want $null",
        "-Is $null -Want $null",
    ),
    (
        "strange-child-stays",
        "if ($entry.aside) { Move-Aside -Path $entry.path } else {",
        "if (-not $entry.aside) {",
    ),
    (
        "state-folder-of-another",
        "if ([IO.Directory]::Exists($folder)) { Assert-OwnFolder -Path $folder }",
        "",
    ),
    (
        "state-folder-is-a-link",
        'if (Test-Link -Path $path) { throw "$path is a link to another place',
        'if ($false) { throw "$path is a link to another place',
    ),
    ("secret-readable", "$users = if ($Readable) {", "$users = if ($true) {"),
)

_ARTIFACTS = _held_by(
    "steps/test_artifacts.py",
    ("member-of-another-hash", "if ($Member['sha256'] -and $hash -ne $Member['sha256']) {", "if ($false) {"),
    (
        "archive-of-another-hash",
        "($hash = Get-PathHash -Path $part) -ne $want; $attempt++",
        "($hash = Get-PathHash -Path $part) -eq $null; $attempt++",
    ),
    (
        "archive-without-hash",
        "if (-not $Artifact['sha256']) { Stop-Step -Id 'HashMissing'",
        "if ($false) { Stop-Step -Id 'HashMissing'",
    ),
    (
        "old-note-for-a-new-version",
        "if ($noted.name -ne $Artifact.name -or $noted.archive -ne $Artifact['sha256']) { continue }",
        "if ($noted.name -ne $Artifact.name) { continue }",
    ),
    (
        "resume-from-the-beginning",
        "if ([int]$response.StatusCode -eq 206) { 'Append' }",
        "if ($true) { 'Append' }",
    ),
    ("former-program-not-kept", "        Save-FormerFile -Path $Member.to\n", ""),
)

_FLAGS = _held_by(
    "steps/test_program_flags.py node/test_knowledge.py",
    (
        "program-asked-after-it-is-placed",
        "    Assert-UnpackedProgram -Artifact $Artifact -Folder $unpacked\n",
        "",
    ),
    (
        "program-that-is-there-unasked",
        "if ($Member['takes']) { Assert-ProgramFlag -Path $Member.to -Takes $Member.takes }",
        "",
    ),
    ("half-of-the-gates", "    Get-RefusedGate -Path $Path -Gates $Gates[0..($middle - 1)]\n", ""),
    (
        "gates-refused-by-a-broken-program",
        "if (Test-Gate -Path $Path -Gates @()) { $Gates }",
        "$Gates",
    ),
    ("removed-unasked", "    for name in sorted(refused.flags):", "    for name in ():"),
)

_DRIVE = _held_by(
    "steps/test_drive.py steps/test_selection.py steps/test_state.py",
    (
        "second-look-not-taken",
        "    if ($left) { Stop-Step -Id 'StillDifferent'",
        "    if ($false) { Stop-Step -Id 'StillDifferent'",
    ),
    (
        "live-node-disturbed",
        "if ($facts.NodeIsLive -and -not $facts.Drained -and $rough.Count -gt 0) {",
        "if ($false) {",
    ),
    (
        "drained-node-still-waits",
        "if ($facts.NodeIsLive -and -not $facts.Drained -and $rough.Count -gt 0) {",
        "if ($facts.NodeIsLive -and $rough.Count -gt 0) {",
    ),
    ("live-node-disrupted", "($_.reboot -or $_.disrupts -or $_.disturbs)", "($_.reboot -or $_.disturbs)"),
    (
        "missing-secret-goes-on",
        "    if ($missing) {\n        Stop-Step -Id 'SecretMissing'",
        "    if ($false) {\n        Stop-Step -Id 'SecretMissing'",
    ),
    (
        "look-emits-noise",
        "if ($thing -isnot [Management.Automation.PSCustomObject] -or $thing.kind -ne 'difference') {",
        "if ($false) {",
    ),
    ("two-differences-of-one-key", "if ($seen.ContainsKey($thing.key)) { throw", "if ($false) { throw"),
    ("dependents-go-on", "    if (-not $unmet) { return }\n    $names", "    return\n    $names"),
    (
        "policy-is-changed",
        "if (@($result.Differences | Where-Object { -not $_.policy }).Count -gt 0)",
        "if (@($result.Differences).Count -gt 0)",
    ),
    ("reboot-builds-on", "if ($result.Reboot) { $script:Run.Unmet[$Step.Name] = 'PendingReboot' }", ""),
    (
        "superseded-run-goes-on",
        "if (-not (Test-Fence)) { New-EndEvent -Reason 'superseded'",
        "if ($false) { New-EndEvent -Reason 'superseded'",
    ),
    ("undo-below-what-stands", "    if ($above) {\n", "    if ($false) {\n"),
    (
        "notes-go-first",
        "if ($null -eq $result.Detached) {\n            Remove-Unnoted",
        "if ($true) {\n            Remove-Unnoted",
    ),
    ("fence-not-raised", "$script:Run.Fence = (Get-Fence) + 1", "$script:Run.Fence = (Get-Fence)"),
    ("order-of-an-undo", "    [array]::Reverse($steps)\n    Invoke-Step", "    Invoke-Step"),
    (
        "sign-block-is-text",
        '-csplit "`r`n# SIG # Begin signature block`r`n")[0]',
        '-csplit "`r`n# SIG # none`r`n")[0]',
    ),
)

_PROGRAMS = _held_by(
    "steps/test_program.py powershell/test_real.py",
    (
        "argument-empty-left-out",
        "if ($argument -and $argument -notmatch '[\\s\"]') { $argument; continue }",
        "if (-not $argument -or $argument -notmatch '[\\s\"]') { $argument; continue }",
    ),
    ("argument-backslashes-at-the-end", " -replace '(\\\\+)$', '$1$1') + '\"'", ") + '\"'"),
    ("argument-quotes", "($argument -replace '(\\\\*)\"', '$1$1\\\"' -replace", "($argument -replace"),
    ("program-outlives-us", "if (-not $over) { Stop-StartedProcess -Process $process }", ""),
    (
        "program-without-end",
        "while (-not $process.WaitForExit(500)) {\n            if ($watch.Elapsed.TotalSeconds -gt $Seconds) {",
        "while (-not $process.WaitForExit(500)) {\n            if ($watch.Elapsed.TotalSeconds -gt 999999) {",
    ),
)

_PRIVATE = _held_by(
    "test_journal.py report/test_report.py cli/test_output.py config/test_any_input.py test_secret.py",
    (
        "private-folder-open",
        "one.mkdir(mode=0o700)\n            # A umask",
        "one.mkdir()\n            # A umask",
    ),
    ("report-written-in-place", "        part.replace(path)\n", "        path.write_text(text)\n"),
)

_BUDGET = _held_by(
    "test_budget.py",
    ("share-rounds-up", "self.number * count // 100 if", "-(-self.number * count // 100) if"),
    ("share-of-none", "return max(least, self.number", "return max(0, self.number"),
    (
        "canary-may-fail",
        'if report.outcome not in ("ok", "changed"):\n                self._close(',
        'if report.outcome == "skipped":\n                self._close(',
    ),
    (
        "canary-not-ready-is-fine",
        "elif report.ready is False:\n                self._close",
        "elif report.ready is None and False:\n                self._close",
    ),
    ("canary-alone-decides", "if len(canaries) == len(self._canaries):", "if canaries:"),
    (
        "one-more-may-fail",
        "            if len(failed) > most:\n",
        "            if len(failed) > most + 1:\n",
    ),
    ("same-cause-with-a-success", 'len(causes) == 1 and "" not in causes:', "len(causes - {''}) == 1:"),
    (
        "same-cause-without-a-budget",
        "if self._budget.given and len(last) == SAME_FAILURES",
        "if len(last) == SAME_FAILURES",
    ),
    (
        "deadline-ends-nothing",
        "self._clock() - self._started >= deadline:",
        "self._clock() - self._started < 0 * deadline:",
    ),
    (
        "down-already-takes-no-place",
        "away = members & (down.keys() | self._running",
        "away = members & (self._running",
    ),
    ("just-ended-takes-no-place", "| self._running | self._availability.unsettled)", "| self._running)"),
    (
        "a-sick-node-waits",
        "if self._budget.max_unavailable is None or node in down:",
        "if self._budget.max_unavailable is None:",
    ),
    (
        "group-of-this-run-only",
        'self._groups = {**dict.fromkeys(nodes, ""), **groups}',
        'self._groups = {**groups, **dict.fromkeys(nodes, "")}',
    ),
    (
        "nobody-comes-back-and-all-wait",
        "if not (self._running or self._availability.unsettled):",
        "if self._canaries_first:",
    ),
    (
        "first-answer-not-needed",
        "if self._asked is None:\n                    raise\n                return\n",
        "return\n",
    ),
    ("cause-without-its-step", 'return f"{step.name}: {step.problem.id}"', "return step.problem.id"),
)

_APPROVAL = _held_by(
    "cli/test_approval.py join/test_approved.py",
    ("plan-of-others-approves", 'whose = "" if trust else others_say(file)', 'whose = ""'),
    (
        "plan-trusts-who-cannot-be-asked",
        'whose = f"the owner of {file} cannot be read ({error.strerror})"\n    if whose:',
        'whose = ""\n    if whose:',
    ),
    ("plan-and-other-steps", "if given and given != planned:", "if given and not planned:"),
    (
        "plan-without-its-steps",
        "return replace(options, only=chosen.only, skip=chosen.skip, adopt=chosen.adopt, approved=plan)",
        "return replace(options, adopt=chosen.adopt, approved=plan)",
    ),
    (
        "plan-without-its-adopt",
        "skip=chosen.skip, adopt=chosen.adopt, approved=plan)",
        "skip=chosen.skip, approved=plan)",
    ),
    (
        "plan-forgets-who-left",
        "        for name in plan.nodes\n        if name not in here\n",
        "        for name in plan.nodes\n        if name in here and False\n",
    ),
    (
        "asked-where-nobody-sits",
        "return sys.stdin.isatty() and sys.stderr.isatty()",
        "return sys.stderr.isatty()",
    ),
)

_TRUST = _held_by(
    "cli/test_trust.py config/test_demands.py",
    (
        "strangers-file-runs",
        "strange = {} if trust else _of_others(one.file for one in found)",
        "strange: dict[Path, str] = {}",
    ),
    ("yes-for-a-stranger", "if not (may_ask and at_terminal()):", "if not at_terminal():"),
    (
        "agreed-to-for-each-program",
        "return one.file.absolute(), one.kind, one.what",
        'return one.file.absolute(), one.kind, ""',
    ),
    (
        "other-kubeconfig-when-used",
        "strange = _of_others([file]) if new else {}",
        "strange: dict[Path, str] = {}",
    ),
    (
        "setting-names-all",
        "if any(file.resolve().is_relative_to(one.resolve()) for one in named):",
        "if named:",
    ),
    (
        "owner-who-cannot-be-asked",
        '            reason = f"the owner of {file} cannot be read ({error.strerror})"',
        '            reason = ""',
    ),
    (
        "link-out-of-the-folder",
        "outside = not file.resolve().is_relative_to(folder.resolve())",
        "outside = not file.absolute().is_relative_to(folder.absolute())",
    ),
    (
        "circle-of-links-is-inside",
        "        # A circle of links, or no path at all.\n        outside = True",
        "        outside = False",
    ),
    (
        "profile-of-a-group-unread",
        "    for inside, below in _inside(table, path) if deep else ():",
        "    for inside, below in ():",
    ),
    ("command-unseen", 'if key == "command":\n            items', 'if key == "commands":\n            items'),
    (
        "variable-unseen",
        'if key == "env":\n                yield',
        'if key == "environment":\n                yield',
    ),
    ("local-is-no-program", 'entry.value.text == "local":', 'entry.value.text == "here":'),
)

_ORDER = _held_by(
    "lab/test_upgrade.py",
    (
        "newer-than-the-api-server",
        "if (wanted.major, wanted.minor_number) > (server.major, server.minor_number):",
        "if wanted.major > server.major:",
    ),
    (
        "upgrade-goes-back",
        "if (wanted.major, wanted.minor_number) < (runs.major, runs.minor_number):",
        "if wanted.major < runs.major:",
    ),
    (
        "two-minors-at-once",
        "elif wanted.minor_number > runs.minor_number + 1:",
        "elif wanted.minor_number > runs.minor_number + 2:",
    ),
)

_REMOVAL = _held_by(
    "lab/test_remove.py steps/test_undo_leaves_others.py",
    (
        "ready-node-leaves-alone",
        "if removal.cluster_only and node is not None and node.ready:",
        "if removal.cluster_only and node is None:",
    ),
    (
        "node-goes-though-kept",
        "if node is not None and not removal.keep_node and cluster.delete_node(run.name):",
        "if node is not None and cluster.delete_node(run.name):",
    ),
    ("unnoted-unsaid", '"Unnoted": unnoted})', '"Unnoted": []})'),
    (
        "restored-is-unnoted",
        '"$($_.kind):$($_.key)" }) + @(Get-RestoredThing)',
        '"$($_.kind):$($_.key)" })',
    ),
    (
        "unnoted-beyond-what-was-shown",
        "Get-UnnotedThing | Where-Object { $shown -contains",
        "Get-UnnotedThing | Where-Object { $true -or $shown -contains",
    ),
)

_FIRST_BOOT = _held_by(
    "firstboot/test_door.py",
    (
        "voucher-of-a-host-for-many",
        '        if self.kind == "host":\n            if self.used:\n',
        '        if self.kind == "host":\n            if not self.made:\n',
    ),
    ("voucher-never-old", "if now - self.made > HOST_VOUCHER_S:", "if now < self.made:"),
    (
        "voucher-by-its-id-alone",
        "if voucher is None or not hmac.compare_digest(voucher.hash, _hash(secret)):",
        "if voucher is None:",
    ),
    ("voucher-after-its-work", "seen.ready_at > voucher.made:", "seen.ready_at < 0:"),
    (
        "yes-for-whoever-comes",
        "if approved is not None and same_machine(",
        "if approved is not None or same_machine(",
    ),
    ("yes-for-ever", "known.approved.pop(node, None)", "known.approved.get(node, None)"),
    ("called-from-elsewhere", "if peer in addresses]", "if addresses]"),
)

_PROOFS = _held_by(
    "firstboot/test_proof.py",
    ("proof-from-elsewhere", "if document.address != hello.peer:", "if not document.address:"),
    (
        "proof-of-an-older-start",
        "if abs(document.pending - host.launched) > _SAME_START:",
        "if not host.launched:",
    ),
    (
        "free-by-memory-alone",
        "if node is None or not node.was_admitted(",
        "if node is None or not node.ready or not node.was_admitted(",
    ),
    ("started-before-it-fell-silent", "node.silent_since < started", "node.silent_since > started"),
    ("pods-prove-it", "if seen.ready_at > start:", "if seen.ready_at < 0:"),
)

_NONCES = _held_by(
    "firstboot/test_endpoint.py",
    ("nonce-of-another-address", 'f"{peer} {minute}".encode()', 'f"{minute}".encode()'),
    ("nonce-never-old", 'f"{peer} {minute}".encode()', 'f"{peer}".encode()'),
)

_SERVER = _held_by(
    "firstboot/test_server.py",
    ("each-byte-a-deadline", "left = self._deadline - time.monotonic()", "left = REQUEST_S"),
    ("body-without-a-bound", "            if size <= largest:\n", "            if size:\n"),
    ("address-without-a-bound", "if owner and self._of[owner] >= MOST_OF_ONE:", "if not owner:"),
    ("slow-callers-keep-their-places", "if not one.received), None)", "if one.received), None)"),
    ("session-takes-places-of-its-address", 'f"session {session}")', "connection.peer)"),
)

_EVENTS = _held_by(
    "cloud/test_hook_azure.py",
    (
        "cordon-for-another-reason-is-lifted",
        "or not node.ready or node.annotations.get(CORDON) != FOR_AN_EVENT:",
        "or not node.ready:",
    ),
    (
        "event-by-the-id-that-a-kubelet-chose",
        "node = nodes.get(target.spec.node.name)",
        "node = next((one for one in nodes.values() if EVENTS in one.annotations), None)",
    ),
)

_CORDONS = _held_by(
    "cloud/test_hook_simulation.py",
    (
        "any-cordon-was-meanwhile",
        "if place is not None and place.node.annotations.get(CORDON) == MEANWHILE:",
        "if place is not None:",
    ),
    (
        "cordon-without-its-reason",
        "place.cluster.cordon(place.node.name, why=MEANWHILE)",
        "place.cluster.cordon(place.node.name)",
    ),
    (
        "node-of-others-is-cordoned",
        "            if place is not None and place.ours:\n                place.cluster.cordon(",
        "            if place is not None:\n                place.cluster.cordon(",
    ),
)

_VERSIONS = _held_by(
    "steps/test_versions.py",
    (
        "hold-goes-with-any-run",
        "if ($facts.Versions -eq 'release') { $note.held = $null }",
        "if ($facts.Versions -ne 'hold') { $note.held = $null }",
    ),
)

_WAY_BACK = _held_by(
    "test_events.py",
    ("back-from-half-way-is-two-back", "(self.now if self.next is not None else self.before)", "self.before"),
    ("back-twice-is-two-back", "return self.held or (self.now", "return (self.now"),
)

_BACK = _held_by(
    "lab/test_upgrade.py",
    (
        "join-forgets-what-is-held",
        '            case "kept":\n                target = note.held\n',
        '            case "kept":\n                target = None\n',
    ),
)

_PROCESSES = _held_by(
    "fleet/test_processes.py",
    (
        "all-nodes-to-one-process",
        "process = min(self._alive, key=lambda one: len(one.errands))",
        "process = max(self._alive, key=lambda one: len(one.errands))",
    ),
    (
        "lost-process-is-not-replaced",
        "and self._started < self.count + _SPARE",
        "and self._started < self.count",
    ),
    (
        "bad-account-tried-by-all",
        "if failure is not None and failure.name == LoginRefused.__name__:",
        "if failure is None:",
    ),
    (
        "processes-outlive-the-run",
        "        stop.request()\n        for thread in threads:\n",
        "        for thread in threads:\n",
    ),
)

_VERIFY = _held_by(
    "verify/test_verify.py",
    (
        "refusal-of-the-cluster-is-a-success",
        "            self._ended_early(error)\n            return error.exit_code\n",
        "            self._ended_early(error)\n            return 0\n",
    ),
    (
        "namespace-stays",
        "            left = self._stage.close(patient=not self._context.stop.requested)\n",
        '            left = ""\n',
    ),
)

# What the lab's programs do as the real ones: lab/contracts has the source of each.
_STAND_INS = (
    *_held_by(
        "../lab/tests/lab_contracts/test_flanneld.py",
        (
            "lab-gateway-in-the-bridge-endpoint",
            'request = {"Name": name, "VirtualNetwork": self._network, "IPAddress": address}',
            'request = {"Name": name, "VirtualNetwork": self._network, "IPAddress": address, "GatewayAddress": "0.0.0.0"}',
        ),
        (
            "lab-exit-code-2-of-flanneld",
            'return Exit(0, b"", go_text(str(e), USAGE))',
            'return Exit(2, b"", go_text(str(e), USAGE))',
        ),
    ),
    *_held_by(
        "../lab/tests/lab_contracts/test_kube_proxy.py",
        (
            "lab-node-port-with-dsr",
            '**({"Flags": 1} if address and self._dsr else {}),',
            '**({"Flags": 1} if self._dsr else {}),',
        ),
        (
            "lab-no-endpoint-for-the-source-address",
            "        if self._source not in known:\n"
            "            known[self._source] = self._make(network, self._source, self._mac)\n",
            "",
        ),
    ),
    *_held_by(
        "../lab/tests/lab_contracts/test_cni.py",
        (
            "lab-exit-code-1-without-a-command",
            'return Exit(0, b"", go_text(f"{self.about} v{run.version}", protocols))',
            'return Exit(1, b"", go_text(f"{self.about} v{run.version}", protocols))',
        ),
    ),
    *_held_by(
        "../lab/tests/lab_contracts/test_containerd.py",
        ("lab-ignored-drop-in", "            data = _merged(data, other)\n", ""),
    ),
    *_held_by(
        "../lab/tests/lab_contracts/test_kubelet.py",
        (
            "lab-certificate-request-after-the-runtime",
            "        self._identity.tick()\n        pods =",
            "        pods =",
        ),
        (
            "lab-lease-without-an-owner",
            '{**metadata, "ownerReferences": [owner]}',
            '{**metadata, "labels": {"node": owner["name"]}}',
        ),
        (
            "lab-early-registration",
            'raise GoError(f"{what}: {e}") from None\n        self.klog(',
            'self.klog(f"{what}: {e}")\n        self.klog(',
        ),
        (
            "lab-plain-certificate-file",
            "        if there is not None and there[1].link is None:\n"
            '            raise GoError(f"expected {json.dumps(link)} to be a symlink but it is a file")\n',
            "",
        ),
    ),
)

DECISIONS: Final = (
    *_CERTIFICATES,
    *_CA,
    *_SECRETS,
    *_ADMISSION,
    *_DRAIN,
    *_RUN,
    *_RETRY,
    *_DIGEST,
    *_QUOTING,
    *_CLEAN,
    *_CLAIMS,
    *_OWNERSHIP,
    *_ACCESS,
    *_ARTIFACTS,
    *_FLAGS,
    *_DRIVE,
    *_PROGRAMS,
    *_PRIVATE,
    *_BUDGET,
    *_APPROVAL,
    *_TRUST,
    *_ORDER,
    *_REMOVAL,
    *_FIRST_BOOT,
    *_PROOFS,
    *_NONCES,
    *_SERVER,
    *_EVENTS,
    *_CORDONS,
    *_VERSIONS,
    *_WAY_BACK,
    *_BACK,
    *_PROCESSES,
    *_VERIFY,
    *_STAND_INS,
)
