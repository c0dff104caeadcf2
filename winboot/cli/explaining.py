"""The text of `render --explain`: each step with its reason, and each file with the settings worth a reason."""

from __future__ import annotations

from winboot.node.fleet import PreparedNode


def explanation(prepared: PreparedNode) -> str:
    """One node's plan in words."""
    spec = prepared.spec
    lines = [
        f"# {spec.node.name}: profile {spec.profile.name}, Kubernetes {spec.kubernetes.version}, "
        f"Windows Server {spec.machine.os}, {spec.network.solution.what}",
        f"# plan {prepared.plan.digest[:12]}, script {prepared.script.size_bytes / 1024:.0f} KiB",
        "",
    ]
    for step in prepared.plan.steps:
        lines.append(f"{step.name}: {step.why}")
        lines.extend(f"    writes {path}" for path in step.files(spec))
        lines.extend(
            f"    takes the secret {name}, separately from the script" for name in step.secrets(spec)
        )
    if prepared.plan.left_out:
        lines.append(f"left out: {', '.join(prepared.plan.left_out)}")
    return "\n".join(lines)
