"""`winboot hook` under faults: a kill before each of its calls, messages twice and out of order, throttling, SIGTERM.

Also a machine that never boots, another cluster's machine, and a paused worker."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from winboot_lab.aws import LAUNCHING, TERMINATING, AwsSite

from tests.cloud.hook_bench import CSRS, Bench, Killed, Tap, Tapped, a_bench, logged
from winboot.base.errors import CloudUnreachable, ClusterConflict
from winboot.node.run import Stop
from winboot.operations.hook.heartbeat import Owner
from winboot.operations.hook.item import WorkItem
from winboot.operations.hook.pace import Pace
from winboot.operations.hook.shared import Settings
from winboot.operations.hook.sweep import Sweep
from winboot.remote.cloud.base import HookAction, Message
from winboot.remote.cluster.claims import Claim


@pytest.fixture
def bench(aws: AwsSite) -> Iterator[tuple[AwsSite, Bench]]:
    with a_bench(aws.folder, "pool.aws.yaml", regions=["eu-west-1"], cluster="prod") as made:
        aws.group("pool", aws.network())
        yield aws, made


def queue(aws: AwsSite, bench: Bench) -> Any:
    """The hooks' queue, asked without waiting."""
    provider: Any = bench.work(Tap()).pool.provider
    found = provider.hooks(aws.queue())
    found._long_poll = 0
    return found


def in_service(aws: AwsSite) -> list[str]:
    return [one for one, state in aws.states("pool").items() if state == "InService"]


def test_a_group_goes_from_0_to_3_to_1_and_every_message_comes_twice(bench: tuple[AwsSite, Bench]) -> None:
    aws, made = bench
    aws.copies = 2
    aws.scale("pool", 3)
    worker = made.worker(queue(aws, made))

    outcomes = made.drive(worker)

    assert outcomes == ["continue"] * 3
    assert len(in_service(aws)) == len(made.open_nodes()) == 3
    aws.scale("pool", 1)
    assert made.drive(worker) == ["continue"] * 2
    assert len(aws.states("pool")) == len(made.nodes()) == 1
    assert made.leases() == []


def calls_of(aws: AwsSite, made: Bench, size: int) -> int:
    """How many calls one message of this scaling costs."""
    aws.scale("pool", size)
    tap = Tap()
    assert made.drive(made.worker(queue(aws, made), tap=tap)) == ["continue"]
    return len(tap.calls)


def killed_at(made: Bench, aws: AwsSite, at: int) -> None:
    """A worker that dies before its call number `at`, and what its process leaves behind."""
    tap = Tap(die_at=at)
    worker = made.worker(queue(aws, made), tap=tap)
    with pytest.raises(Killed):
        made.drive(worker)


def kill_everywhere(aws: AwsSite, made: Bench, step: int, start: int = 1) -> int:
    """Scale out and in once for each place, and kill the worker there both times; gives the number of places."""
    out, back = calls_of(aws, made, 1), calls_of(aws, made, 0)
    for at in range(start, max(out, back) + 1, step):
        aws.completed.clear()
        aws.scale("pool", 1)
        (instance,) = aws.states("pool")
        if at <= out:
            killed_at(made, aws, at)
        made.drive(made.worker(queue(aws, made), "next"))
        assert aws.completed == [(instance, "CONTINUE")], at
        assert in_service(aws) == [instance], at
        assert len(made.open_nodes()) == 1, at

        aws.scale("pool", 0)
        if at <= back:
            killed_at(made, aws, at)
        made.drive(made.worker(queue(aws, made), "next"))
        assert aws.completed == [(instance, "CONTINUE")] * 2, at
        assert made.nodes() == [] and aws.states("pool") == {}, at
    return out


# A sample; `make fuzz` tries every place.
def test_a_worker_that_is_killed_anywhere_is_followed_by_one_that_ends_the_work(
    bench: tuple[AwsSite, Bench],
) -> None:
    assert kill_everywhere(*bench, step=9, start=2) > 15


@pytest.mark.nightly
def test_a_worker_that_is_killed_before_each_of_its_calls_loses_nothing(
    bench: tuple[AwsSite, Bench],
) -> None:
    assert kill_everywhere(*bench, step=1) > 15


def test_messages_may_come_out_of_order(bench: tuple[AwsSite, Bench]) -> None:
    """The end of a machine comes before its beginning: the machine is drained, and no hook waits for the older message."""
    aws, made = bench
    aws.scale("pool", 1)
    aws.client("autoscaling").complete_lifecycle_action(
        LifecycleHookName="launching",
        AutoScalingGroupName="pool",
        InstanceId=next(iter(aws.states("pool"))),
        LifecycleActionResult="CONTINUE",
    )
    aws.scale("pool", 0)

    assert sorted(made.drive(made.worker(queue(aws, made)))) == ["continue", "stale"]
    assert made.nodes() == [] and [result for _, result in aws.completed] == ["CONTINUE"] * 2


def waiting(aws: AwsSite) -> int:
    """Messages in the queue, delivered or not."""
    names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    found = aws.client("sqs").get_queue_attributes(QueueUrl=aws.queue(), AttributeNames=names)
    return sum(int(value) for value in found["Attributes"].values())


def test_a_test_message_is_deleted_and_what_is_not_understood_is_counted_and_left(
    bench: tuple[AwsSite, Bench],
) -> None:
    aws, made = bench
    aws.send({"Service": "AWS Auto Scaling", "Event": "autoscaling:TEST_NOTIFICATION"})
    aws.send({"LifecycleTransition": "autoscaling:SOMETHING_NEW"})
    aws.client("sqs").send_message(QueueUrl=aws.queue(), MessageBody="[" * 100_000)
    worker = made.worker(queue(aws, made))

    assert made.drive(worker, seconds=100.0) == []
    assert waiting(aws) == 2
    assert b'winboot_hook_messages_total{kind="other",outcome="ignored"} 1.0' in worker.metrics.text()
    assert b'winboot_hook_messages_total{kind="other",outcome="not understood"} 2.0' in worker.metrics.text()


def test_an_unknown_instance_is_forgotten_after_some_deliveries(
    bench: tuple[AwsSite, Bench],
) -> None:
    """Its group reports that it waits, but EC2 does not show it yet: the worker asks EC2 again a few times."""
    aws, made = bench
    aws.scale("pool", 1)
    (instance,) = aws.states("pool")
    hooks = queue(aws, made)
    hooks.stage = lambda action: "starts"
    aws.client("ec2").terminate_instances(InstanceIds=[instance])
    worker = made.worker(hooks, gone_after=3)
    worker.work.host = lambda instance: None  # type: ignore[method-assign]

    assert made.drive(worker) == ["gone"]
    early = "the cloud does not list this machine yet"
    assert [one["message"] for one in made.said(worker)] == [early, early, "gone"]


def test_what_is_throttled_is_tried_again(
    bench: tuple[AwsSite, Bench],
) -> None:
    aws, made = bench
    aws.scale("pool", 1)
    tap = Tap()
    worker = made.worker(queue(aws, made), tap=tap)

    def throttled() -> None:
        raise CloudUnreachable("AWS: RequestLimitExceeded", hint="try again")

    tap.before |= {"queue.stage": throttled, "queue.complete": throttled}

    assert made.drive(worker) == ["continue"]
    assert [one["problem"] for one in made.said(worker) if one["message"] == "work failed"] == [
        "AWS: RequestLimitExceeded"
    ] * 2


def test_the_sdk_itself_waits_when_aws_asks_it_to(bench: tuple[AwsSite, Bench]) -> None:
    """RequestLimitExceeded comes over the wire: botocore's adaptive mode asks again, the worker sees nothing."""
    from botocore.awsrequest import AWSResponse

    aws, made = bench
    aws.scale("pool", 1)
    work = made.work(Tap())
    provider: Any = work.pool.provider
    left = [1]

    class Raw:
        """A body as urllib3 gives it."""

        def stream(self, **how: Any) -> Iterator[bytes]:
            yield b"<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></Response>"

    def answer(**request: Any) -> Any:
        if not left[0]:
            return None
        left[0] -= 1
        return AWSResponse("http://localhost", 503, {}, Raw())

    provider.calls.events().register("before-send.ec2", answer)
    hooks = provider.hooks(aws.queue())
    hooks._long_poll = 0

    assert made.drive(made.worker(hooks, work=work)) == ["continue"]
    assert left == [0]


def test_a_machine_that_never_boots_is_abandoned_with_the_reason(bench: tuple[AwsSite, Bench]) -> None:
    aws, made = bench
    made.dead = 1
    aws.scale("pool", 1)
    worker = made.worker(queue(aws, made))

    assert made.drive(worker) == ["abandon"]
    (done,) = [one for one in made.said(worker) if one["message"] == "done"]
    assert (done["result"], "connection refused" in done["reason"]) == ("ABANDON", True)
    assert aws.states("pool") == {} and made.nodes() == [] and made.leases() == []


def test_another_clusters_instance_is_left_alone(bench: tuple[AwsSite, Bench]) -> None:
    aws, made = bench
    aws.group("theirs", aws.network(), cluster="kubernetes.io/cluster/other")
    aws.scale("theirs", 1)

    assert set(made.drive(made.worker(queue(aws, made)), seconds=400.0)) == {"foreign"}
    assert list(aws.states("theirs").values()) == ["Pending:Wait"]
    assert aws.completed == [] and made.machines == {} and made.leases() == []


def test_a_worker_that_was_paused_is_refused_and_answers_nothing(bench: tuple[AwsSite, Bench]) -> None:
    """It stops in the middle of a change; another one takes the claim over and raises the fence; it wakes up."""
    aws, made = bench
    aws.scale("pool", 1)
    tap, hooks = Tap(), queue(aws, made)
    paused, other = made.worker(hooks, "paused", tap=tap), made.worker(hooks, "other")
    # The answer is what it was about to send.
    tap.before["cluster.lift_taint"] = lambda: made.kernel.pause(1000.0)
    made.kernel.at(200.0, lambda: made.kernel.spawn(other.pace.process, other.run))  # type: ignore[attr-defined]

    assert made.drive(paused) == ["left"]

    assert [one["outcome"] for one in made.transitions(other) if one["to"] == "done"] == ["continue"]
    assert "skipped: another worker owns it" in [one["message"] for one in made.said(other)]
    (machine,) = made.machines.values()
    assert [facts["TakeOver"] for facts in machine.facts][-1] is True
    assert machine.facts[0]["TakeOver"] is False
    assert aws.completed == [(next(iter(aws.states("pool"))), "CONTINUE")]


def test_a_paused_worker_does_not_give_back_anothers_claim(bench: tuple[AwsSite, Bench]) -> None:
    aws, made = bench
    aws.scale("pool", 1)
    tap = Tap()
    hooks = queue(aws, made)
    paused, other = made.worker(hooks, "paused", tap=tap), made.worker(hooks, "other")

    def taken_over() -> None:
        """The other one owns it now, and works."""
        (target,) = other.work.targets()
        leases = target.cluster.leases("winboot-system")
        assert other.claimant.take(leases, target.spec.node.name) is None
        made.kernel.pause(100.0)
        assert other.claimant.take(leases, target.spec.node.name) is not None

    tap.before["cluster.lift_taint"] = taken_over

    assert made.drive(paused, seconds=110.0) == ["left"]
    assert len(made.leases()) == 1
    assert aws.completed == []


def test_sigterm_finishes_what_is_held_and_takes_nothing_new(bench: tuple[AwsSite, Bench]) -> None:
    aws, made = bench
    aws.scale("pool", 1)
    tap = Tap()
    worker = made.worker(queue(aws, made), tap=tap, workers=1)
    # The signal comes in the middle of the first machine's join, and the group starts another one.
    tap.before["machine.run"] = lambda: (worker.stop.request(15), aws.scale("pool", 2))  # type: ignore[func-returns-value]

    first, *rest = made.drive(worker)

    assert first == "continue" and set(rest) == {"left"}
    states = list(aws.states("pool").values())
    assert states.count("InService") == 1 and set(states) == {"InService", "Pending:Wait"}
    assert logged(worker)[-1]["message"] == "stopped"
    assert made.leases() == []


def test_a_join_that_a_signal_interrupts_is_no_failed_one(bench: tuple[AwsSite, Bench]) -> None:
    """The group would end the machine; the next worker continues with it."""
    aws, made = bench
    aws.scale("pool", 1)
    made.dead = 1
    tap = Tap()
    worker = made.worker(queue(aws, made), tap=tap)
    # Something listens, and then the connection is lost again and again.
    worker.work.bench = None  # type: ignore[attr-defined]
    tap.before["machine.run"] = lambda: worker.stop.request(15)

    assert made.drive(worker) == ["left"]
    assert (aws.completed, made.leases()) == ([], [])
    assert list(aws.states("pool").values()) == ["Pending:Wait"]


def test_heartbeats_keep_message_hook_and_claim_while_the_work_lasts(bench: tuple[AwsSite, Bench]) -> None:
    aws, made = bench
    aws.scale("pool", 1)
    tap = Tap()
    worker = made.worker(queue(aws, made), tap=tap)
    # Longer than claim and message last without one.
    tap.before["machine.run"] = lambda: made.kernel.sleep(1000.0)

    assert made.drive(worker) == ["continue"]

    (item,) = {one["machine"] for one in made.transitions(worker)}
    assert tap.calls.count("queue.extend") > 30 and aws.heartbeats.count(item) > 30
    assert tap.calls.count("lease.renew") > 30


def test_a_worker_that_lost_its_claim_prolongs_neither_message_nor_hook() -> None:
    """The machine is another worker's: two that keep one hook alive would keep it alive without end."""
    asked: list[str] = []
    refused = threading.Event()

    def renew(claim: Claim) -> Claim:
        asked.append("renew")
        refused.set()
        raise ClusterConflict("the claim is another worker's", hint="")

    shared: Any = SimpleNamespace(
        queue=SimpleNamespace(
            extend=lambda message, seconds: asked.append("extend"),
            heartbeat=lambda action: asked.append("beat") or True,  # type: ignore[func-returns-value]
        ),
        settings=Settings(heartbeat=0.001),
        log=lambda *text, **about: None,
        pace=Pace(),
    )
    leases: Any = SimpleNamespace(renew=renew)
    item = WorkItem(HookAction("launch", "i-1", "pool", "join"), {}, 0.0, Stop())
    item.messages["1"] = Message("1", item.action)

    with Owner(shared, item, leases, Claim("win-1", "w", 60)) as owner:
        assert refused.wait(30)

    # The first heartbeat goes out at once, before the worker reads the claim again.
    assert (owner.lost, asked, item.halt.requested) == (True, ["extend", "beat", "renew"], True)


def test_a_node_that_was_made_by_a_worker_that_died_is_not_joined_again(
    bench: tuple[AwsSite, Bench],
) -> None:
    """The second worker looks, finds all as wanted, and changes nothing on the machine."""
    aws, made = bench
    aws.scale("pool", 1)
    tap = Tap()
    first = made.worker(queue(aws, made), tap=tap)

    def die() -> None:
        tap.dead = True
        raise Killed

    tap.before["queue.complete"] = die
    with pytest.raises(Killed):
        made.drive(first)
    (machine,) = made.machines.values()
    before = machine.modes.count("Change")

    assert made.drive(made.worker(queue(aws, made), "next")) == ["continue"]
    assert machine.modes.count("Change") == before == 1


def test_every_line_of_the_log_is_one_json_object_about_a_machine(bench: tuple[AwsSite, Bench]) -> None:
    aws, made = bench
    aws.scale("pool", 1)
    worker = made.worker(queue(aws, made))
    made.drive(worker)

    begun, done = made.said(worker)
    assert (begun["message"], done["message"]) == ("begun", "done")
    assert {"time", "kind", "instance", "group", "node", "result", "reason"} <= set(done)
    assert json.dumps(done).count("\n") == 0
    path = [(one["from"], one["to"]) for one in made.transitions(worker)]
    assert path == [("new", "waiting"), ("waiting", "queued"), ("queued", "joining"), ("joining", "done")]
    assert {"time", "machine", "group", "kind", "reason"} <= set(made.transitions(worker)[0])
    assert LAUNCHING != TERMINATING and isinstance(worker.queue, Tapped)


def the_lease(made: Bench) -> dict[str, Any]:
    """The one claim that stands."""
    path = "/apis/coordination.k8s.io/v1/namespaces/winboot-system/leases"
    (lease,) = made.admin("GET", path)["items"]
    found: dict[str, Any] = lease
    return found


def test_a_claim_says_whose_machine_it_is_how_far_the_work_is_and_how_it_ended(
    bench: tuple[AwsSite, Bench],
) -> None:
    aws, made = bench
    aws.scale("pool", 1)
    tap, seen = Tap(), []
    worker = made.worker(queue(aws, made), tap=tap)
    worker.claimant.run = "r-5f3c"
    for call in ("queue.begin", "queue.complete"):
        tap.before[call] = lambda: seen.append(the_lease(made))

    assert made.drive(worker) == ["continue"]

    begun, ended = seen
    notes = begun["metadata"]["annotations"]
    (instance,) = aws.states("pool")
    assert (
        notes["winboot.io/provider-id"].startswith("aws:///") and instance in notes["winboot.io/provider-id"]
    )
    assert notes["winboot.io/plan-digest"].startswith("sha256:")
    assert not {"winboot.io/step", "winboot.io/result"} & set(notes)
    assert begun["metadata"]["labels"]["winboot.io/run"] == "r-5f3c"
    done = ended["metadata"]["annotations"]
    assert done["winboot.io/result"] == "ok" and done["winboot.io/step"]
    assert ended["spec"]["acquireTime"] == begun["spec"]["acquireTime"] != ended["spec"]["renewTime"]


def test_a_claim_says_why_the_work_failed_and_a_takeover_begins_with_notes_of_its_own(
    bench: tuple[AwsSite, Bench],
) -> None:
    aws, made = bench
    made.dead = 1
    aws.scale("pool", 1)
    tap = Tap()
    worker = made.worker(queue(aws, made), tap=tap)

    def killed() -> None:
        tap.dead = True
        raise Killed

    tap.before["queue.complete"] = killed
    with pytest.raises(Killed):
        made.drive(worker)
    left = the_lease(made)
    assert left["metadata"]["annotations"]["winboot.io/result"].startswith("failed:Unreachable")

    other, seen = made.worker(queue(aws, made), "other", tap=(second := Tap())), []
    # Something listens there now, so that a join is tried.
    other.work.bench = None  # type: ignore[attr-defined]
    second.before["machine.run"] = lambda: seen.append(the_lease(made))
    assert made.drive(other) == ["abandon"]
    taken = seen[0]
    assert "winboot.io/result" not in taken["metadata"]["annotations"]
    assert taken["spec"]["leaseTransitions"] == 1


def a_sweeper(made: Bench, aws: AwsSite, name: str = "one") -> Any:
    """A worker for machines that join by themselves."""
    work = made.work(Tap(), self_registering=True)
    return made.worker(queue(aws, made), name, work=work, sweep=30.0)


def lose_messages(aws: AwsSite, made: Bench) -> None:
    """What is in the queue is lost."""
    hooks = queue(aws, made)
    while messages := hooks.receive(10, 0):
        for message in messages:
            hooks.delete(message)


def approved(made: Bench) -> list[bool]:
    """Which requests for certificates were approved, in order."""
    requests = (made.admin("GET", f"{CSRS}/{name}") for name in made.requests)
    return [bool(one.get("status", {}).get("conditions")) for one in requests]


def test_a_sweep_finishes_machines_that_no_message_names(bench: tuple[AwsSite, Bench]) -> None:
    """A group that had machines before it had hooks, a message that was lost, a certificate that is renewed."""
    aws, made = bench
    aws.scale("pool", 2)
    worker = a_sweeper(made, aws)
    lose_messages(aws, made)
    first, second = worker.work.targets()
    made.register(first.spec, first.member.identity.provider_id, "uuid")
    made.register(second.spec, second.member.identity.provider_id, "uuid", ready=False)

    sweep = Sweep(worker)
    sweep.sweep()

    assert made.open_nodes() == [first.spec.node.name]
    assert approved(made) == [True, True] and made.leases() == []
    made.register(first.spec, first.member.identity.provider_id, "uuid")
    made.register(second.spec, second.member.identity.provider_id, "uuid")
    sweep.sweep()
    sweep.sweep()
    assert sorted(made.open_nodes()) == sorted(one.spec.node.name for one in (first, second))
    assert approved(made) == [True] * 4
    said = [one["message"] for one in made.said(worker)]
    assert said.count("finished") == 2 and said.count("certificate request approved") == 4
    assert all(machine.modes == [] for machine in made.machines.values())


def test_a_sweep_leaves_what_another_worker_holds_and_what_is_cordoned(bench: tuple[AwsSite, Bench]) -> None:
    aws, made = bench
    aws.scale("pool", 2)
    worker, other = a_sweeper(made, aws), a_sweeper(made, aws, "other")
    held, cordoned = worker.work.targets()
    for one in (held, cordoned):
        made.register(one.spec, one.member.identity.provider_id, "uuid")
    leases = held.cluster.leases("winboot-system")
    assert other.claimant.take(leases, held.spec.node.name) is not None
    cordoned.cluster.cordon(cordoned.spec.node.name)

    Sweep(worker).sweep()

    assert made.open_nodes() == [] and len(made.leases()) == 1


def test_the_loop_sweeps_when_it_is_due_and_a_cloud_that_does_not_answer_does_not_end_it(
    bench: tuple[AwsSite, Bench],
) -> None:
    aws, made = bench
    aws.scale("pool", 1)
    worker = a_sweeper(made, aws)
    lose_messages(aws, made)
    (target,) = worker.work.targets()
    made.register(target.spec, target.member.identity.provider_id, "uuid")
    plain, failed = worker.work.settle, []

    class Fails(type(worker.work)):  # type: ignore[misc]
        def settle(self) -> Any:
            if not failed:
                failed.append(True)
                raise CloudUnreachable("throttled", hint="Try again later.")
            return plain()

    worker.work.__class__ = Fails

    assert made.drive(worker, seconds=20.0) == []
    assert made.open_nodes() == [] and made.said(worker)[-1]["message"] == "nothing swept"

    made.drive(worker, seconds=60.0)
    assert made.open_nodes() == [target.spec.node.name]
