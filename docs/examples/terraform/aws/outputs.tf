output "queue_url" {
  value       = aws_sqs_queue.hooks.id
  description = "For winboot hook serve --queue."
}

output "queue_arn" {
  value       = aws_sqs_queue.hooks.arn
  description = "For winboot cloud policy aws --queue."
}
