# An Auto Scaling group of Windows nodes for winboot: the group, its lifecycle hooks, and the queue that they reach by
# EventBridge. `winboot hook serve --queue <queue_url>` joins what the group starts and drains what it ends.
#
# Nobody of the project has applied this to an AWS account (docs/clouds.md).

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0, < 7.0"
    }
  }
}

provider "aws" {
  region = var.region
}

locals {
  # What winboot's inventory filters by, and what its policy is bound to.
  cluster_tag = "kubernetes.io/cluster/${var.cluster}"
  tags        = { (local.cluster_tag) = "owned" }
}

# The queue.

resource "aws_sqs_queue" "dead" {
  name                      = "${var.cluster}-winboot-dead"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
  tags                      = local.tags
}

resource "aws_sqs_queue" "hooks" {
  name                       = "${var.cluster}-winboot-hooks"
  visibility_timeout_seconds = 120
  # Longer than a hook can wait: 100 heartbeats, or 48 hours at most.
  message_retention_seconds = 345600
  sqs_managed_sse_enabled   = true
  tags                      = local.tags

  # A machine that no inventory means comes again and again, and ends here.
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead.arn
    maxReceiveCount     = 100
  })
}

data "aws_iam_policy_document" "queue" {
  statement {
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.hooks.arn]

    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com"]
    }

    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = [aws_cloudwatch_event_rule.hooks.arn, aws_cloudwatch_event_rule.notices.arn]
    }
  }
}

resource "aws_sqs_queue_policy" "hooks" {
  queue_url = aws_sqs_queue.hooks.id
  policy    = data.aws_iam_policy_document.queue.json
}

resource "aws_cloudwatch_event_rule" "hooks" {
  name        = "${var.cluster}-winboot-hooks"
  description = "Windows machines that start or end"

  event_pattern = jsonencode({
    source      = ["aws.autoscaling"]
    detail-type = ["EC2 Instance-launch Lifecycle Action", "EC2 Instance-terminate Lifecycle Action"]
    detail      = { AutoScalingGroupName = [local.group] }
  })
}

resource "aws_cloudwatch_event_target" "hooks" {
  rule = aws_cloudwatch_event_rule.hooks.name
  arn  = aws_sqs_queue.hooks.arn
}

# These name no group: they are about all instances of the account. What is not the cluster's is left in the queue.
resource "aws_cloudwatch_event_rule" "notices" {
  name        = "${var.cluster}-winboot-notices"
  description = "Instances that will be taken away, or have ended"

  event_pattern = jsonencode({
    source = ["aws.ec2", "aws.health"]
    detail-type = [
      "EC2 Spot Instance Interruption Warning",
      "EC2 Instance Rebalance Recommendation",
      "EC2 Instance State-change Notification",
      "AWS Health Event",
    ]
  })
}

resource "aws_cloudwatch_event_target" "notices" {
  rule = aws_cloudwatch_event_rule.notices.name
  arn  = aws_sqs_queue.hooks.arn
}

# The machines.

locals {
  group = "${var.cluster}-windows"
}

resource "aws_launch_template" "windows" {
  name_prefix            = "${local.group}-"
  image_id               = var.image_id
  instance_type          = var.instance_type
  key_name               = var.key_name
  vpc_security_group_ids = var.security_group_ids
  update_default_version = true

  # One hop: pods do not reach the machine's credentials.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  # No secret in it: every process on the machine can read user data.
  user_data = base64encode(templatefile("${path.module}/winrm.ps1.tftpl", { controller_cidr = var.controller_cidr }))

  tag_specifications {
    resource_type = "instance"
    tags          = local.tags
  }
}

resource "aws_autoscaling_group" "windows" {
  name                = local.group
  min_size            = 0
  max_size            = var.max_size
  vpc_zone_identifier = var.subnet_ids
  # A machine that is being joined is not a sick one.
  health_check_type         = "EC2"
  health_check_grace_period = 2700

  launch_template {
    id      = aws_launch_template.windows.id
    version = aws_launch_template.windows.latest_version
  }

  tag {
    key                 = local.cluster_tag
    value               = "owned"
    propagate_at_launch = true
  }
}

# winboot sends a heartbeat every 30 seconds, so that the timeout is how soon a dead controller is noticed.

resource "aws_autoscaling_lifecycle_hook" "launching" {
  name                   = "winboot-join"
  autoscaling_group_name = aws_autoscaling_group.windows.name
  lifecycle_transition   = "autoscaling:EC2_INSTANCE_LAUNCHING"
  heartbeat_timeout      = 900
  default_result         = "ABANDON"
}

resource "aws_autoscaling_lifecycle_hook" "terminating" {
  name                   = "winboot-drain"
  autoscaling_group_name = aws_autoscaling_group.windows.name
  lifecycle_transition   = "autoscaling:EC2_INSTANCE_TERMINATING"
  heartbeat_timeout      = 900
  default_result         = "CONTINUE"
}

# What the hook may do: winboot cloud policy aws --cluster NAME --queue ARN > policy.json

resource "aws_iam_policy" "hook" {
  count  = var.policy_file == "" ? 0 : 1
  name   = "${var.cluster}-winboot-hook"
  policy = file(var.policy_file)
}
